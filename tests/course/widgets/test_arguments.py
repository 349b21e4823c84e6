"""What explorers refuse, when they are made and when their state is set: the error names rule and value."""

import numpy as np
import pytest
import torch
from traitlets import TraitError

import tinytx as tx
import tinytx_course as course
from tinytx_course.widgets.base import numbers

Q, K, V = np.zeros((2, 3)), np.zeros((5, 3)), np.zeros((5, 7))
TINY = tx.PRESETS["tiny"]
ROWS = torch.full((5, 5), 0.2)
WORDS = list("abcde")


@pytest.mark.parametrize(
    ("kind", "arguments", "options", "values"),
    [
        ("by_hand", ("x",), {}, "causal, padding.*got 'x'"),
        ("attention", (torch.full((4, 5), 0.2), WORDS), {}, r"each of 5 queries .* \(1, 1, 4, 5\)"),
        ("attention", (2 * ROWS, WORDS), {}, "sum to 1 .* sums 2 to 2"),
        ("attention", (ROWS[0], WORDS), {}, "2 to 4 axes.* got 1"),
        ("attention", (torch.ones(13, 1, 1, 1), ["a"]), {}, "at most 12 layers.* got 13"),
        ("attention", (ROWS, WORDS), {"query": 5}, r"query .* 0\.\.4, got 5"),
        ("attention", (ROWS, WORDS), {"mask": tx.causal_mask(4)}, r"mask .* \(5, 5\), got shape \(4, 4\)"),
        ("attention", (ROWS * torch.nan, WORDS), {}, "weights must be finite"),
        ("attention", (tx.LanguageModel(TINY), WORDS), {}, "token_ids .* None"),
        ("count", (TINY.replace(positions="alibi"),), {}, "positions .* got 'alibi'"),
        ("mask", (["alone"],), {}, "tokens .* 2 to 24 .* 1$"),
        ("one_query", (Q, V, V), {}, "equally wide, got 3 and 7"),
        ("one_query", (Q, K, Q), {}, "got 5 and 2"),
        ("one_query", (None, K, V), {}, "q must have 2 axes"),
        ("one_query", (np.zeros((25, 3)), K, V), {}, "at most 24 tokens of 64 numbers"),
        ("one_query", (Q, K, V), {"tokens": ["one"]}, "tokens .* 2 .* got 1"),
        ("parsons", ("causal_msk",), {}, "got 'causal_msk'; did you mean 'causal_mask'"),
        *[("playground", (), {"d_model": d}, f"multiple of 4 from 8 to 256, got {d}") for d in (7, 10, 260)],
        ("positions", (), {"d_model": 7}, "d_model .* even, got 7"),
        ("roofline", (0.0, 1.0), {}, "positive and finite"),
        ("roofline", (1.0, float("inf")), {}, "positive and finite"),
        ("roofline", (1.0, 1.0, {"k": (1.0, 0.0, 1.0)}), {}, "positive and finite"),
        ("shapes", (), {"n_heads": 3}, "n_heads must divide d_model, got d_model=8, n_heads=3"),
        ("shapes", (), {"seq_len": 9}, r"T .* 1\.\.8, got 9"),
        ("tokenizer", (["ab"], []), {}, "at least one text"),
        ("tokenizer", (["ab"], "x" * 161), {}, "text .* at most 160 .* got 161"),
    ],
)
def test_what_does_not_fit_is_refused(kind, arguments, options, values):
    with pytest.raises(ValueError, match=values):
        getattr(course.widgets, kind)(*arguments, **options)


@pytest.mark.parametrize(
    ("kind", "limits"),
    {
        "count": {"seq_len": (1, 131_072), "batch_size": (1, 4096), "n_layers": (1, 128)},
        "how_sure": {"review": (0, 3), "n_read": (0, 34)},
        "live_model": {"head": (0, 7), "block": (0, 1), "back": (0, 127)},
        "mask": {"window": (0, 8), "padding": (0, 8), "moved": (0, 7), "layers": (1, 6)},
        "one_query": {"query": (0, 4), "key": (0, 4), "step": (0, 5), "head_dim": (1, 512)},
        "playground": {"seed": (0, 99), "n_layers": (1, 8), "lr": (1e-5, 10.0), "guess": (-1, 3)},
        "positions": {"max_len": (2, 512), "d_model": (2, 256), "base": (2, 10**9), "hand": (0, 127)},
        "sampling": {"top_k": (1, 2000), "temperature": (0.1, 5.0), "top_p": (0.01, 1.0), "seed": (0, 9999)},
        "shapes": {"step": (0, 15), "token": (0, 9), "column": (0, 7)},
    }.items(),
)
def test_a_state_takes_both_limits_and_nothing_beyond(kind, limits):
    explorer = getattr(course.widgets, kind)()
    for name, (low, high) in limits.items():
        for value in (low, high):
            setattr(explorer, name, value)
        for value in (low - 2, high + 2):
            with pytest.raises(ValueError, match=rf"{name} .* {low}\.\.{high}, got {value}"):
                setattr(explorer, name, value)


def test_a_state_that_does_not_fit_is_refused():
    explorer, count = course.widgets.mask(["a", "b"]), course.widgets.count()
    with pytest.raises(ValueError, match=r"drawn .* 0\.\.3, got \[4\]"):
        explorer.drawn = [4]
    for make, name, value in (
        (course.widgets.mask, "where", "during"),
        (course.widgets.depth, "norm", "first"),
        (course.widgets.depth, "n_layers", 5),
        (course.widgets.playground, "positions", "rotary"),
    ):
        with pytest.raises(TraitError, match=f"{name}.* not .*{value}"):
            setattr(make(), name, value)
    with pytest.raises(ValueError, match="pinned .* vocab_size, d_model"):
        count.pinned = {"seq_len": 3}
    with pytest.raises(ValueError, match=r"n_layers .* 1\.\.128, got 0"):
        count.pinned = count.pinned | {"n_layers": 0}


def test_numbers_as_a_mask_and_numbers_without_the_right_axes_are_refused():
    with pytest.raises(TypeError, match="mask .* int64"):
        course.widgets.attention(ROWS, WORDS, mask=np.ones((5, 5), dtype=np.int64))
    with pytest.raises(ValueError, match=r"weights .* 2 axes.*\(3,\)"):
        numbers([1, 2, 3], "weights", 2)
