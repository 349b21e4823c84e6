"""Controls of the objectives: the next sentence from counts of words, reviews completed by a masked model."""

import numpy as np
import pytest
import torch

from experiments.objective_measures import TopicOverlap, complete_masked
from tinytx.config import TransformerConfig
from tinytx.masked_lm import MaskedLanguageModel


def test_a_weight_is_the_log_of_how_much_more_often_words_meet():
    # Counted are the first, third, ... pair: words 0 and 1 meet in 2 of 3 that follow, in 1 of 2 that do not.
    firsts = [[0], [2], [0], [2], [2], [2], [0], [2], [2], [2]]
    seconds = [[1], [2], [1, 1], [2], [2], [2], [1], [2], [2], [2]]
    labels = [0, 0, 0, 1, 0, 0, 1, 1, 1, 1]
    model = TopicOverlap(3, certainty=0).fit(firsts, seconds, labels)
    assert model.weights[0, 1] == pytest.approx(np.log(((2 + 1) / (3 + 1)) / ((1 + 1) / (2 + 1))))
    assert model.weights[1, 0] == pytest.approx(np.log((1 / 4) / (1 / 3)))
    both = (model.weights[0, 1] + model.weights[0, 2]) / 2
    assert model.scores([[0, 0]], [[2, 1]]) == pytest.approx([both])
    shared = TopicOverlap(9, associations=False).scores([[1, 2], [3], []], [[2, 5, 7], [3], [1]])
    assert shared.tolist() == pytest.approx([1 / 6, 1.0, 0.0])


def test_a_weight_that_chance_could_explain_is_zero():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=4000)
    # Word 0 meets word 1 far more often where passages follow; all else is noise.
    firsts = [[0, *rng.integers(2, 40, 3).tolist()] for _ in labels]
    seconds = [
        [*([1] if rng.random() < (0.2 if label else 0.6) else []), *rng.integers(2, 40, 3).tolist()]
        for label in labels
    ]
    model = TopicOverlap(40).fit(firsts, seconds, labels.tolist())
    assert model.weights[0, 1] == pytest.approx(np.log(3), abs=0.2)
    assert (np.delete(model.weights[2:], 1, axis=1) != 0).mean() < 0.01
    assert model.scores(firsts, seconds).shape == (4000,)
    noisy = TopicOverlap(40, certainty=0).fit(firsts, seconds, labels.tolist())
    assert (noisy.weights[2:, 2:] != 0).mean() > 0.9


def test_without_evidence_the_commoner_answer_is_given():
    same = [[1]] * 8
    for labels, answer in (([0, 1, 0, 0, 0, 0, 1, 0], 0), ([0, 1, 1, 1, 0, 1, 0, 1], 1)):
        assert TopicOverlap(3).fit(same, same, labels).predict(same, same).tolist() == [answer] * 8


def test_the_threshold_lies_between_those_that_follow_and_the_others():
    pairs = [([0], [1], 0)] * 2 + [([2], [3], 1)] * 2 + [([4], [4], 0), ([5], [5, 6], 1)]
    firsts, seconds, labels = zip(*(pair for pair in pairs for _ in range(10)), strict=True)
    for associations, due in ((True, [0, 1, 0, 1]), (False, [1, 1, 0, 1])):
        model = TopicOverlap(7, associations=associations, certainty=0).fit(firsts, seconds, labels)
        assert model.predict([[0], [2], [4], [5]], [[1], [3], [4], [5, 6]]).tolist() == due


PREFIXES = ([9, 12, 15], [8], [])
N_NEW = [4, 1, 6]


@pytest.fixture
def model():
    return MaskedLanguageModel(
        TransformerConfig(vocab_size=30, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=24)
    ).eval()


def test_so_many_tokens_are_sampled_and_none_is_special(model, tokenizer):
    found, again, other = (
        complete_masked(model, tokenizer, PREFIXES, N_NEW, n_sweeps=2, seed=seed) for seed in (0, 0, 1)
    )
    assert [len(ids) for ids in found] == N_NEW
    assert all(one > tokenizer.sep_id for ids in found for one in ids)
    assert found == again != other


def test_the_first_sweep_goes_from_left_to_right(model, tokenizer):
    prefix, ids = [9, 12], [9, 12]
    found = complete_masked(model, tokenizer, [prefix], [3], n_sweeps=0, temperature=1e-4)[0]
    for n_left in (3, 2, 1):
        row = [tokenizer.cls_id, *ids, *[tokenizer.mask_id] * n_left, tokenizer.sep_id]
        with torch.no_grad():
            logits = model(torch.tensor([row]))[0, len(ids) + 1]
        ids.append(7 + int(logits[7:].argmax()))
    assert found == ids[2:]


def test_later_sweeps_mask_each_token_alone(model, tokenizer):
    calls = []
    model.body.register_forward_pre_hook(lambda module, inputs: calls.append(inputs[0].clone()))
    complete_masked(model, tokenizer, [[9, 12]], [3], n_sweeps=2)
    assert len(calls) == 3 * 3
    hidden = [[(row == tokenizer.mask_id).nonzero()[:, 0].tolist() for row in call] for call in calls]
    assert [places for (places,) in hidden[:3]] == [[3, 4, 5], [4, 5], [5]]
    for sweep in (hidden[3:6], hidden[6:]):
        assert sorted(places for (places,) in sweep) == [[3], [4], [5]]


def test_a_batch_gives_what_single_rows_give(model, tokenizer):
    together = complete_masked(model, tokenizer, PREFIXES, N_NEW, n_sweeps=0, temperature=1e-4)
    for prefix, n, found in zip(PREFIXES, N_NEW, together, strict=True):
        assert complete_masked(model, tokenizer, [prefix], [n], n_sweeps=0, temperature=1e-4) == [found]
