"""The explorer of shapes against a real block and torch's reshaping, its JavaScript against its Python."""

import math

import numpy as np
import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tinytx.model.transformer import Block
from tinytx_course.widgets.block_steps import block_steps


def some(seed):
    random = np.random.default_rng(seed)
    n_heads = int(random.integers(1, 5))
    sizes = [int(random.integers(1, most + 1)) for most in (4, 8)]
    d_model = n_heads * int(random.integers(1, 5))
    return course.widgets.shapes(
        *sizes, d_model, n_heads, int(random.integers(1, 33)), step=seed % 16,
        token=(sizes[0] - 1, int(random.integers(sizes[1]))), column=int(random.integers(d_model)),
    )  # fmt: skip


def test_parameters_and_shapes_are_those_of_a_real_block():
    explorer = course.widgets.shapes(3, 5, 8, 4, 10)
    config = tx.TransformerConfig(vocab_size=7, d_model=8, n_heads=4, n_layers=1, d_ff=10)
    block, seen = Block(config), []
    parts = (
        block.attn_norm, block.attn.q_proj, block.attn.out_proj, block.ff_norm, block.ff.up_proj,
        block.ff.down_proj,
    )  # fmt: skip
    for part in parts:
        part.register_forward_hook(lambda part, _, output: seen.append((part, tuple(output.shape))))
    with tx.record_attention(block) as recorded:
        block(torch.randn(3, 5, 8))
    learning = [i for i, step in enumerate(explorer.steps) if step["n_params"]]
    count = {part: sum(p.numel() for p in part.parameters()) for part in parts}
    count[block.attn.q_proj] *= 3
    assert len(learning) == len(parts)
    for explorer.step, part in zip(learning, parts, strict=True):
        assert explorer.now().n_params == count[part]
        assert explorer.shape() == dict(seen)[part]
    explorer.step = 6
    assert explorer.shape() == tuple(recorded["attn"].shape)
    assert sum(step.n_params for step in block_steps(8, 10)) == tx.count_parameters(block)


@pytest.mark.parametrize("n_heads", [1, 2, 3, 4, 6, 12])
def test_entries_go_where_torch_puts_them(n_heads):
    explorer = course.widgets.shapes(2, 5, 12, n_heads, step=9)
    names = explorer.labels().ravel()
    flat = torch.arange(2 * 5 * 12).view(2, 5, 12)
    cut = flat.unflatten(-1, (n_heads, -1))
    for explorer.step, expected in ((2, flat), (3, cut), (4, cut.transpose(1, 2)), (9, flat)):
        assert explorer.shape() == tuple(expected.shape)
        np.testing.assert_array_equal(explorer.labels(), names[expected.numpy()])
        at = explorer.entry()
        index = tuple(at[axis.lower()] for axis in explorer.now().axes)
        assert explorer.labels()[index] == f"{at['b']},{at['t']},{at['d']}"


def test_the_summary_follows_one_entry_by_hand():
    explorer = course.widgets.shapes(3, 5, 8, 4, token=(1, 2), column=5, step=4)
    assert "Shape (B, H, T, K) = (3, 4, 5, 2): 120 numbers, 3 times, no parameters." in explorer.describe()
    assert "Entry (b 1, t 2, d 5) stands at [1, 2, 2, 1] and belongs to head 2." in explorer.describe()
    explorer.n_heads = 2
    assert "stands at [1, 1, 2, 1] and belongs to head 1." in explorer.describe()
    explorer.step = 2
    assert "3·(D·D + D) = 216 parameters" in explorer.describe()
    explorer.step = 5
    assert "the row of its token there is [1, 1, 2, :]" in explorer.describe()
    explorer.step = 13
    assert "(B, T, F) = (3, 5, 10)" in explorer.describe()


def test_the_number_of_heads_changes_shapes_but_no_count():
    explorer = course.widgets.shapes()
    shapes, totals = set(), set()
    for explorer.n_heads in (1, 2, 4, 8):
        shapes.add(explorer.shape())
        totals.add((math.prod(explorer.shape()), sum(step["n_params"] for step in explorer.steps)))
    assert len(shapes) == 4 and len(totals) == 1


def test_the_page_computes_what_python_computes(node):
    explorers = [some(seed) for seed in range(32)]
    found = node(
        "shapes",
        "[js.shapeOf(get), js.labels(get), js.entryOf(get), js.describe(get)]",
        *explorers,
    )
    for explorer, (shape, labels, entry, text) in zip(explorers, found, strict=True):
        assert tuple(shape) == explorer.shape()
        assert labels == explorer.labels().ravel().tolist()
        assert entry == explorer.entry()
        assert text == explorer.describe()


def test_the_largest_sizes_fit_into_the_still_and_the_page_stays_small():
    explorer = course.widgets.shapes(4, 8, 16, 16, 32, step=5)
    still = np.asarray(explorer.picture().image)
    assert (still[:, -8:] == 255).all() and (still[-4:] == 255).all()  # nothing is cut off at the edges
    assert len(explorer.to_html()) < 70_000


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="n_heads must divide d_model, got d_model=8, n_heads=3"):
        course.widgets.shapes(n_heads=3)
    with pytest.raises(ValueError, match=r"T must lie in 1\.\.8, got 9"):
        course.widgets.shapes(seq_len=9)
    with pytest.raises(ValueError, match=r"token must lie in \(2, 5\), got \(2, 0\)"):
        course.widgets.shapes(token=(2, 0))
    with pytest.raises(ValueError, match=r"column must lie in 0\.\.7, got 8"):
        course.widgets.shapes(column=8)
    explorer = course.widgets.shapes()
    with pytest.raises(ValueError, match=r"step must lie in 0\.\.15, got 16"):
        explorer.step = 16
    with pytest.raises(ValueError, match="n_heads must divide"):
        explorer.n_heads = 5
