"""The mask explorer against torch and the package, and its JavaScript against its Python."""

import numpy as np
import pytest
import torch
from traitlets import TraitError

import tinytx as tx
import tinytx_course as course


def some(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 14))
    return course.widgets.mask(
        [str(word) for word in random.choice(["the", "cat", "sat"], n)],
        causal=bool(random.random() < 0.6),
        window=int(random.integers(0, n + 1)),
        prefix=int(random.integers(0, 3)),
        padding=int(random.integers(0, 3)) % n,
        where=str(random.choice(["before", "after"])),
        moved=int(random.integers(0, n)),
        layers=int(random.integers(1, 5)),
        seed=seed,
    )


def test_the_masks_are_those_of_the_package():
    explorer = course.widgets.mask(list("abcdefg"))
    causal = tx.causal_mask(7)
    np.testing.assert_array_equal(explorer.allowed(), causal)
    explorer.padding = 2
    real = tx.padding_mask(torch.tensor([1, 1, 1, 1, 1, 0, 0]), 0)
    np.testing.assert_array_equal(explorer.allowed(), causal & real)


def test_window_prefix_and_drawing_combine_by_hand():
    explorer = course.widgets.mask(list("abcd"), window=2, prefix=1)
    expected = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1]]
    np.testing.assert_array_equal(explorer.allowed(), expected)
    explorer.drawn = [3, 4]  # opens the corner, blocks the first key for the second query
    expected[0][3], expected[1][0] = 1, 0
    np.testing.assert_array_equal(explorer.allowed(), expected)


def test_before_softmax_the_weights_are_those_of_the_package_and_rows_sum_to_one():
    explorer = some(3)
    explorer.where, explorer.drawn = "before", [0]
    x, maps = torch.tensor(explorer._vectors()), torch.tensor(explorer._maps())
    weights = tx.attention_weights(x @ maps[0], x @ maps[1], torch.tensor(explorer.allowed()))
    np.testing.assert_allclose(explorer.weights(), weights, atol=1e-12)
    sums = explorer.weights().sum(axis=1)
    np.testing.assert_allclose(sums, explorer.allowed().any(axis=1), atol=1e-12)


def test_zeroing_after_softmax_does_not_renormalise_and_leaks():
    explorer = course.widgets.mask(moved=5)
    assert (explorer.moves()[:5] == 0).all() and (explorer.moves()[5:] > 0).all()
    assert "no leak" in explorer.describe()
    explorer.where = "after"
    assert (explorer.weights().sum(axis=1)[:-1] < 0.999).all()
    assert (explorer.weights()[~explorer.allowed()] == 0).all()
    assert (explorer.moves() > 0).all()
    assert "LEAK: the mask hides it from 0–4." in explorer.describe()


@pytest.mark.parametrize("seed", range(8))
def test_blocking_before_softmax_moves_what_can_be_reached_and_nothing_else(seed):
    explorer = some(seed)
    explorer.where = "before"
    moved = explorer.moves() > 1e-9
    assert not (moved & ~explorer.reach()).any()
    assert moved[explorer.moved]


def test_a_window_reaches_further_with_each_layer():
    explorer = course.widgets.mask(list("abcdefg"), window=2, moved=0)
    for layers in (1, 2, 3):
        explorer.layers = layers
        assert (explorer.moves() > 1e-9).tolist() == [i <= layers for i in range(7)]


def test_the_page_computes_what_python_computes(node):
    explorers = [some(seed) for seed in range(12)]
    for explorer, seed in zip(explorers, range(12), strict=True):
        n_cells = len(explorer.tokens) ** 2
        explorer.drawn = np.random.default_rng(seed).integers(0, n_cells, 3).tolist()
    found = node(
        "mask",
        "(() => { const a = js.allowedCells(get); return [a, js.maskedWeights(get, get('inputs'), a), "
        "js.outputMoves(get, a), js.reachable(get, a), js.describe(get)]; })()",
        *explorers,
    )
    for explorer, (allowed, weights, moves, reach, text) in zip(explorers, found, strict=True):
        n = len(explorer.tokens)
        np.testing.assert_array_equal(np.reshape(allowed, (n, n)), explorer.allowed())
        np.testing.assert_allclose(np.reshape(weights, (n, n)), explorer.weights(), atol=1e-5)
        np.testing.assert_allclose(moves, explorer.moves(), atol=1e-5)
        np.testing.assert_array_equal(reach, explorer.reach())
        assert text == explorer.describe()


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="tokens must be 2 to 24 words, got 1"):
        course.widgets.mask(["alone"])
    with pytest.raises(ValueError, match=r"window must lie in 0\.\.2, got 3"):
        course.widgets.mask(["a", "b"], window=3)
    with pytest.raises(ValueError, match=r"layers must lie in 1\.\.6, got 7"):
        course.widgets.mask(layers=7)
    with pytest.raises(TraitError, match="where"):
        course.widgets.mask(where="during")
    explorer = course.widgets.mask(["a", "b"])
    with pytest.raises(ValueError, match=r"drawn must hold cells in 0\.\.3, got \[4\]"):
        explorer.drawn = [4]
