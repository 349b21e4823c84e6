"""The mask explorer: what its JavaScript computes, compared with torch and the package."""

import numpy as np
import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tests.course.widgets.conftest import close

NUMBERS = """(() => { const a = js.allowedCells(get), x = Float64Array.from(get('inputs'));
  return [a, js.maskedWeights(get, x, a), js.outputMoves(get, a), js.reachable(get, a)]; })()"""


@pytest.fixture
def allowed(node):
    """Return ``run(explorer)``: its mask, row after row."""
    return lambda explorer: node("mask", "js.allowedCells(get)", explorer)[0]


def random_mask(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 14))
    explorer = course.widgets.mask(
        [str(word) for word in random.choice(["the", "cat", "sat"], n)],
        causal=bool(random.random() < 0.6),
        window=int(random.integers(0, n + 1)),
        prefix=int(random.integers(0, 3)),
        padding=int(random.integers(0, 3)) % n,
        where=["before", "after"][seed % 2],
        moved=int(random.integers(0, n)),
        layers=int(random.integers(1, 5)),
        seed=seed,
    )
    explorer.drawn = random.integers(0, n * n, 3).tolist()
    return explorer


def numbers_of(explorer, mask):
    """Return weights (T, T) and by how much each output changes (T,), computed by torch."""
    buffers = (explorer.inputs, explorer.maps, explorer.push)
    start, maps, push = (torch.frombuffer(bytearray(each), dtype=torch.float32).double() for each in buffers)
    q_map, k_map, v_map = maps.view(3, push.numel(), -1)

    def weights(x):
        if explorer.where == "before":
            return tx.attention_weights(x @ q_map, x @ k_map, mask)
        return ((x @ q_map) @ (x @ k_map).T / push.numel() ** 0.5).softmax(-1) * mask

    x = start.view(len(mask), -1)
    pushed = x.clone()
    pushed[explorer.moved] += push
    first = weights(x)
    for _ in range(explorer.layers):
        x, pushed = (each + weights(each) @ (each @ v_map) for each in (x, pushed))
    return first, (x - pushed).abs().amax(dim=1)


def test_the_masks_are_those_of_the_package(allowed):
    explorer = course.widgets.mask(list("abcdefg"))
    causal = tx.causal_mask(7)
    close(allowed(explorer), causal)
    explorer.padding = 2
    close(allowed(explorer), causal & tx.padding_mask(torch.tensor([[1, 1, 1, 1, 1, 0, 0]]), 0).view(1, 7))


def test_window_prefix_and_drawing_combine_by_hand(allowed):
    explorer = course.widgets.mask(list("abcd"), window=2, prefix=1)
    assert allowed(explorer) == [1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1]
    explorer.drawn = [3, 4]  # opens the corner, blocks the first key for the second query
    assert allowed(explorer) == [1, 0, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1]


def test_weights_and_outputs_are_those_of_torch(node):
    explorers = [random_mask(seed) for seed in range(12)]
    answers = node("mask", NUMBERS, *explorers)
    for explorer, (cells, weights, moves, reach) in zip(explorers, answers, strict=True):
        n = len(explorer.tokens)
        mask = torch.tensor(cells).bool().view(n, n)
        first, changes = numbers_of(explorer, mask)
        close(weights, first)
        close(moves, changes)
        steps = (mask | torch.eye(n).bool()).double()
        close(reach, torch.linalg.matrix_power(steps, explorer.layers)[:, explorer.moved] > 0)
        if explorer.where == "before":
            assert not any(much > 1e-9 and not near for much, near in zip(moves, reach, strict=True))


def test_zeroing_after_softmax_leaks_and_the_page_says_where(node, describe):
    explorer = course.widgets.mask(moved=5)
    assert "36 of 64 cells open" in describe(explorer)[0]
    assert describe(explorer)[0].endswith("moves outputs 5–7; no leak.")
    open_mask = course.widgets.mask(moved=5, causal=False)
    assert "rows sum to 1.00. " in describe(open_mask)[0]
    assert describe(open_mask)[0].endswith("moves outputs 0–7; the mask lets 0–4 see ahead; no leak.")
    explorer.where = "after"
    ((_, weights, moves, _),) = node("mask", NUMBERS, explorer)
    assert np.reshape(weights, (8, 8)).sum(axis=1)[:-1].max() < 0.999 and min(moves) > 0
    assert "LEAK: the mask hides it from 0–4." in describe(explorer)[0]


def test_a_window_reaches_further_with_each_layer(node):
    explorer = course.widgets.mask(list("abcdefg"), window=2, moved=0)
    for explorer.layers in (1, 2, 3):
        ((_, _, moves, _),) = node("mask", NUMBERS, explorer)
        assert [much > 1e-9 for much in moves] == [i <= explorer.layers for i in range(7)]
