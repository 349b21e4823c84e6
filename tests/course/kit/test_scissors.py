"""Attention on paper: what a learner computes with the cards is what the answer strip says."""

import math

import pytest

from tinytx_course.kit.scissors import KEYS, LARGEST, QUERIES, VALUES, WORDS, attend

TABLE = [round(math.exp(score), 1) for score in range(LARGEST + 1)]  # as printed on the work sheet
PAIRS = [(t, s) for t in range(len(WORDS)) for s in range(len(WORDS))]


def by_hand(t, *, causal):
    """One word asks, with the steps and the rounded table of the sheet."""
    seen = range(t + 1 if causal else len(WORDS))
    scores = [sum(a * b for a, b in zip(QUERIES[t], KEYS[s], strict=True)) // 2 for s in seen]
    powers = [TABLE[score] for score in scores]
    weights = [100 * power / sum(powers) for power in powers]
    context = [sum(w * VALUES[s][i] for w, s in zip(weights, seen, strict=True)) / 100 for i in range(2)]
    return scores, weights, context


def test_every_score_is_a_whole_number_of_the_table():
    scores, _, _ = attend(causal=False)
    assert all(scores[t, s] == round(scores[t, s].item()) and 0 <= scores[t, s] <= LARGEST for t, s in PAIRS)
    assert all(len(set(row)) >= 3 for row in scores.tolist())  # a row of equal scores would teach nothing
    assert not scores.equal(scores.T)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("t", range(len(WORDS)))
def test_hand_and_strip_agree_within_one_percent_and_one_unit(t, causal):
    scores, weights, contexts = attend(causal=causal)
    hand_scores, hand_weights, hand_context = by_hand(t, causal=causal)
    n = len(hand_scores)
    assert scores[t, :n].tolist() == hand_scores
    assert weights[t, :n].tolist() == pytest.approx(hand_weights, abs=1)
    assert weights[t, n:].tolist() == [0.0] * (len(WORDS) - n)
    assert contexts[t].tolist() == pytest.approx(hand_context, abs=1)
    assert sum(round(weight) for weight in weights[t].tolist()) == 100
