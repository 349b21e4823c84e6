"""The mask explorer: what its JavaScript computes, compared with torch and the package."""

import numpy as np
import torch

import tinytx as tx
import tinytx_course as course
from tests.course.widgets.conftest import changed, close

NUMBERS = """(() => { const a = js.allowedCells(get), x = Float64Array.from(get('inputs'));
  return [a, js.maskedWeights(get, x, a), js.outputMoves(get, a), js.reachable(get, a)]; })()"""


def random_mask(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 14))
    explorer = changed(
        course.widgets.mask(["x"] * n),
        causal=bool(random.random() < 0.6),
        window=int(random.integers(0, n + 1)),
        prefix=int(random.integers(0, 3)),
        padding=int(random.integers(0, 3)) % n,
        moved=int(random.integers(0, n)),
    )
    drawn, where = random.integers(0, n * n, 3).tolist(), ["before", "after", "score"][seed % 3]
    return changed(explorer, drawn=drawn, where=where, layers=int(random.integers(1, 5)))


def numbers_of(explorer, mask):
    """Return weights (T, T) and by how much each output changes (T,), computed by torch."""
    buffers = (explorer.inputs, explorer.maps, explorer.push)
    start, maps, push = (torch.frombuffer(bytearray(each), dtype=torch.float32).double() for each in buffers)
    q_map, k_map, v_map = maps.view(3, push.numel(), -1)

    def weights(x):
        if explorer.where == "before":
            return tx.attention_weights(x @ q_map, x @ k_map, mask)
        scores = (x @ q_map) @ (x @ k_map).T / push.numel() ** 0.5
        return scores.softmax(-1) * mask if explorer.where == "after" else (scores * mask).softmax(-1)

    x = start.view(len(mask), -1)
    pushed = x.clone()
    pushed[explorer.moved] += push
    first = weights(x)
    for _ in range(explorer.layers):
        x, pushed = (each + weights(each) @ (each @ v_map) for each in (x, pushed))
    return first, (x - pushed).abs().amax(dim=1)


def test_the_masks_are_those_of_the_package_and_combine_by_hand(node):
    plain, padded = course.widgets.mask(list("abcdefg")), course.widgets.mask(list("abcdefg"), padding=2)
    near, drawn = (changed(course.widgets.mask(list("abcd")), window=2, prefix=1) for _ in range(2))
    drawn.drawn = [3, 4]  # opens the corner, blocks the first key for the second query
    answers = node("mask", "js.allowedCells(get)", plain, padded, near, drawn)
    causal = tx.causal_mask(7)
    close(answers[0], causal)
    close(answers[1], causal & tx.padding_mask(torch.tensor([[1, 1, 1, 1, 1, 0, 0]]), 0).view(1, 7))
    assert answers[2] == [1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1]
    assert answers[3] == [1, 0, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1]


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
    causal, unmasked, leaking = (changed(course.widgets.mask(), moved=5) for _ in range(3))
    unmasked.causal, leaking.where = False, "after"
    texts = describe(causal, unmasked, leaking)
    assert "36 of 64 cells open" in texts[0] and "moves outputs 5–7; no leak.\n" in texts[0]
    assert texts[1].endswith("rows sum to 1.00.")
    meant = "right for reading a whole text, wrong for predicting the next token.\n"
    assert f"moves outputs 0–7; 0–4 see ahead: {meant}" in texts[1]
    assert "LEAK: the mask hides it from 0–4." in texts[2]
    ((_, weights, moves, _),) = node("mask", NUMBERS, leaking)
    assert np.reshape(weights, (8, 8)).sum(axis=1)[:-1].max() < 0.999 and min(moves) > 0


def test_presets_are_the_masks_of_the_package_and_mistakes_show_as_the_verdict_they_deserve(node):
    explorer = course.widgets.mask(list("abcdefg"))
    shown = "(p) => { const own = p(7), at = (k) => (k in own ? own[k] : get(k)), a = js.allowedCells(at);"
    shown += " return [a, js.verdictsOf(at, a)]; }"
    ((presets, mistakes),) = node(
        "mask", f"[js.PRESETS, js.MISTAKES].map((all) => Object.values(all).map({shown}))", explorer
    )
    causal, place = tx.causal_mask(7), torch.arange(7)
    masks = [
        causal, torch.ones(7, 7).bool(), causal | (place < 3), causal & (place[:, None] - place < 3),
        causal & (place < 6), causal.T, causal | (place == place[:, None] + 1), causal ^ torch.eye(7).bool(),
        causal, causal,
    ]  # fmt: skip
    for (cells, _), mask in zip(presets + mistakes, masks, strict=True):
        close(cells, mask)
    verdicts = [verdicts for _, verdicts in presets + mistakes]
    still, moves, ahead, leak = (["still"], ["moves"], ["ahead"], ["leak"])
    right = 3 * still + 4 * moves
    assert verdicts[0] == verdicts[4] == right and verdicts[1] == 3 * ahead + 4 * moves
    assert verdicts[5] == 3 * ahead + moves + 3 * still and verdicts[6] == 2 * still + ahead + 4 * moves
    assert verdicts[8] == verdicts[9] == 3 * leak + 4 * moves


def test_a_mask_that_lets_the_answer_in_is_never_called_free_of_leaks(node, describe):
    explorer = course.widgets.mask(list("abcdefg"))
    ((far, transposed),) = node(
        "mask", "['one too far', 'transposed'].map((name) => js.MISTAKES[name](7))", explorer
    )
    states = [explorer.state() | each for each in (far, transposed, {"drawn": [3]}, far | {"moved": 0})]
    *spoilt, first = [text.split("\n")[0] for text in node("mask", "js.describe(get)", *states)]
    said = "the model obeys your mask, but the mask lets the answer in (by the causal mask, a leak)"
    for text, who in zip(spoilt, ("2 sees", "0–2 see", "0 sees"), strict=True):
        assert f"; {who} ahead: {said}" in text and "no leak" not in text
    assert "moves outputs 0–6; no output lies before it to see ahead." in first and "no leak" not in first
