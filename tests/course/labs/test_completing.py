"""A masked model carries on a text: as many pieces as asked, each drawn from what the model says there."""

import pytest
import torch

from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx_course.labs.lesson_10 import complete_masked

PREFIXES = ([9, 12, 15], [8], [])
N_NEW = [4, 1, 6]


@pytest.fixture
def model(config):
    return MaskedLanguageModel(config).eval()


def test_so_many_new_pieces_are_written_and_none_is_special(model, tokenizer):
    found = complete_masked(model, tokenizer, PREFIXES, N_NEW, n_sweeps=2)
    assert [len(ids) for ids in found] == N_NEW
    assert all(one > tokenizer.sep_id for ids in found for one in ids)
    assert found == complete_masked(model, tokenizer, PREFIXES, N_NEW, n_sweeps=2)
    assert found != complete_masked(model, tokenizer, PREFIXES, N_NEW, n_sweeps=2, seed=1)
    assert complete_masked(model, tokenizer, [], []) == []


def test_the_first_round_goes_from_left_to_right_with_blanks_behind(model, tokenizer):
    prefix, ids = [9, 12], [9, 12]
    found = complete_masked(model, tokenizer, [prefix], [3], n_sweeps=0, temperature=1e-4)[0]
    for n_left in (3, 2, 1):
        row = [tokenizer.cls_id, *ids, *[tokenizer.mask_id] * n_left, tokenizer.sep_id]
        with torch.no_grad():
            logits = model(torch.tensor([row]))[0, len(ids) + 1]
        ids.append(7 + int(logits[7:].argmax()))
    assert found == ids[2:]


def test_later_rounds_write_each_piece_again_in_view_of_the_others(model, tokenizer):
    calls = []
    model.body.register_forward_pre_hook(lambda module, inputs: calls.append(inputs[0].clone()))
    complete_masked(model, tokenizer, [[9, 12]], [3], n_sweeps=2)
    assert len(calls) == 3 * 3
    hidden = [[(row == tokenizer.mask_id).nonzero()[:, 0].tolist() for row in call] for call in calls]
    assert [places for (places,) in hidden[:3]] == [[3, 4, 5], [4, 5], [5]]
    for sweep in (hidden[3:6], hidden[6:]):
        assert sorted(places for (places,) in sweep) == [[3], [4], [5]]


def test_rows_do_not_disturb_each_other(model, tokenizer):
    together = complete_masked(model, tokenizer, PREFIXES, N_NEW, n_sweeps=0, temperature=1e-4)
    for prefix, n, found in zip(PREFIXES, N_NEW, together, strict=True):
        assert complete_masked(model, tokenizer, [prefix], [n], n_sweeps=0, temperature=1e-4) == [found]


def test_impossible_requests_are_refused(model, tokenizer):
    for prefixes, n_new, words in (
        ([[9]], [0], "1 or more"),
        ([[9]], [1, 2], "1 prefixes"),
        ([[9] * 20], [3], "must be at most 24 together, got 25"),
    ):
        with pytest.raises(ValueError, match=words):
            complete_masked(model, tokenizer, prefixes, n_new)
    with pytest.raises(ValueError, match="temperature must be positive"):
        complete_masked(model, tokenizer, [[9]], [1], temperature=0)
