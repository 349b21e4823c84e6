"""The mask explorer: what its JavaScript computes, compared with torch and the package."""

import numpy as np
import pytest
import torch
from traitlets import TraitError

import tinytx as tx
import tinytx_course as course

NUMBERS = """(() => { const a = js.allowedCells(get), x = Float64Array.from(get('inputs'));
  return [a, js.maskedWeights(get, x, a), js.outputMoves(get, a), js.reachable(get, a)]; })()"""


def random_mask(seed, **options):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 14))
    explorer = course.widgets.mask(
        [str(word) for word in random.choice(["the", "cat", "sat"], n)],
        causal=bool(random.random() < 0.6),
        window=int(random.integers(0, n + 1)),
        prefix=int(random.integers(0, 3)),
        padding=int(random.integers(0, 3)) % n,
        where=options.get("where", str(random.choice(["before", "after"]))),
        moved=int(random.integers(0, n)),
        layers=int(random.integers(1, 5)),
        seed=seed,
    )
    explorer.drawn = random.integers(0, n * n, 3).tolist()
    return explorer


@pytest.fixture
def allowed(node):
    """Return the mask of an explorer, bool of shape (T, T)."""
    return lambda explorer: torch.tensor(node("mask", "js.allowedCells(get)", explorer)[0]).bool().view(
        len(explorer.tokens), -1
    )  # fmt: skip


def test_the_masks_are_those_of_the_package(allowed):
    explorer = course.widgets.mask(list("abcdefg"))
    causal = tx.causal_mask(7)
    torch.testing.assert_close(allowed(explorer), causal)
    explorer.padding = 2
    real = tx.padding_mask(torch.tensor([[1, 1, 1, 1, 1, 0, 0]]), 0).view(1, 7)
    torch.testing.assert_close(allowed(explorer), causal & real)


def test_window_prefix_and_drawing_combine_by_hand(allowed):
    explorer = course.widgets.mask(list("abcd"), window=2, prefix=1)
    expected = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1]]).bool()
    torch.testing.assert_close(allowed(explorer), expected)
    explorer.drawn = [3, 4]  # opens the corner, blocks the first key for the second query
    expected[0, 3], expected[1, 0] = True, False
    torch.testing.assert_close(allowed(explorer), expected)


def torch_numbers(explorer, mask):
    """Return weights (T, T) and by how much each output changes (T,), computed by torch."""
    n = len(explorer.tokens)
    start, maps, push = (
        torch.frombuffer(bytearray(each), dtype=torch.float32).double()
        for each in (explorer.inputs, explorer.maps, explorer.push)
    )
    q_map, k_map, v_map = maps.view(3, push.numel(), -1)

    def weights(x):
        if explorer.where == "before":
            return tx.attention_weights(x @ q_map, x @ k_map, mask)
        return ((x @ q_map) @ (x @ k_map).T / push.numel() ** 0.5).softmax(-1) * mask

    x = start.view(n, -1)
    pushed = x.clone()
    pushed[explorer.moved] += push
    first = weights(x)
    for _ in range(explorer.layers):
        x, pushed = (each + weights(each) @ (each @ v_map) for each in (x, pushed))
    return first, (x - pushed).abs().amax(dim=1)


def test_weights_and_outputs_are_those_of_torch(node):
    explorers = [random_mask(seed) for seed in range(12)]
    for explorer, (cells, weights, moves, reach) in zip(
        explorers, node("mask", NUMBERS, *explorers), strict=True
    ):
        n = len(explorer.tokens)
        mask = torch.tensor(cells).bool().view(n, n)
        first, changes = torch_numbers(explorer, mask)
        torch.testing.assert_close(torch.tensor(weights, dtype=torch.float64).view(n, n), first)
        torch.testing.assert_close(torch.tensor(moves, dtype=torch.float64), changes)
        steps = (mask | torch.eye(n).bool()).double()
        expected = torch.linalg.matrix_power(steps, explorer.layers)[:, explorer.moved] > 0
        assert reach == expected.tolist()


def test_blocking_before_softmax_moves_what_can_be_reached_and_nothing_else(node):
    explorers = [random_mask(seed, where="before") for seed in range(8)]
    for explorer, (_, _, moves, reach) in zip(explorers, node("mask", NUMBERS, *explorers), strict=True):
        moved = np.array(moves) > 1e-9
        assert not (moved & ~np.array(reach)).any()
        assert moved[explorer.moved]


def test_zeroing_after_softmax_does_not_renormalise_and_leaks(node, describe):
    explorer = course.widgets.mask(moved=5)
    ((_, _, moves, _),) = node("mask", NUMBERS, explorer)
    assert moves[:5] == [0] * 5 and min(moves[5:]) > 0
    assert "36 of 64 cells open" in describe(explorer)[0]
    assert "moves outputs 5–7; no leak" in describe(explorer)[0]
    explorer.where = "after"
    ((cells, weights, moves, _),) = node("mask", NUMBERS, explorer)
    cells, weights = np.reshape(cells, (8, 8)), np.reshape(weights, (8, 8))
    assert (weights.sum(axis=1)[:-1] < 0.999).all() and (weights[cells == 0] == 0).all()
    assert min(moves) > 0
    assert "LEAK: the mask hides it from 0–4." in describe(explorer)[0]


def test_a_window_reaches_further_with_each_layer(node):
    explorer = course.widgets.mask(list("abcdefg"), window=2, moved=0)
    for explorer.layers in (1, 2, 3):
        ((_, _, moves, _),) = node("mask", NUMBERS, explorer)
        assert [much > 1e-9 for much in moves] == [i <= explorer.layers for i in range(7)]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"tokens .* 2 to 24 .* 1$"):
        course.widgets.mask(["alone"])
    for options, values in (
        ({"window": 3}, r"window .* 0\.\.2, got 3"),
        ({"layers": 7}, r"layers .* 1\.\.6, got 7"),
    ):
        with pytest.raises(ValueError, match=values):
            course.widgets.mask(["a", "b"], **options)
    with pytest.raises(TraitError, match="where"):
        course.widgets.mask(where="during")
    explorer = course.widgets.mask(["a", "b"])
    with pytest.raises(ValueError, match=r"drawn .* 0\.\.3, got \[4\]"):
        explorer.drawn = [4]
