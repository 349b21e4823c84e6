"""Rows carried on side by side: as each alone, as by reading everything again, and as drawn by hand."""

import pytest
import torch
from torch import nn

from tinytx.model.transformer import LanguageModel
from tinytx.training.generate import continue_rows, draw, next_token_probs

EOS = 3
PREFIXES = [[2, 7, 8, 9, 10, 11], [2], [2, 9, 9], [2, 7, 8, 9, 10, 12, 13, 14], [2, 9, 9]]


@pytest.fixture
def model(config):
    model = LanguageModel(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():  # else every row soon says the same
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


@torch.no_grad()
def by_hand(model, prefix, max_new_tokens, *, seed=None, forbidden=(), eos_id=EOS):
    """One row, the whole of it read at every step; greedy without a seed."""
    ids, generator = list(prefix), torch.Generator().manual_seed(seed or 0)
    while len(ids) - len(prefix) < max_new_tokens and (ids[-1] != eos_id or len(ids) == len(prefix)):
        logits = model(torch.tensor([ids[-model.config.max_len :]]))[0, -1]
        logits[list(forbidden)] = -torch.inf
        probs = next_token_probs(logits)
        ids.append(int(probs.argmax() if seed is None else torch.multinomial(probs, 1, generator=generator)))
    return ids[len(prefix) :]


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])
def test_prompts_of_different_lengths_go_side_by_side_as_each_alone(config, positions):
    """Past the length that the model reads as well: 24 ids."""
    model = LanguageModel(config.replace(positions=positions)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    eos_id = by_hand(model, PREFIXES[0], 7, eos_id=-1)[
        6
    ]  # an id that ends some rows early, at different times
    alone = [by_hand(model, prefix, 21, eos_id=eos_id) for prefix in PREFIXES]
    assert len(set(map(len, alone))) > 1
    how = {"eos_id": eos_id, "max_new_tokens": 21, "top_k": 1}
    for cached in (True, False):
        assert continue_rows(model, PREFIXES, cached=cached, **how) == alone


def test_a_row_drawn_alone_is_the_row_drawn_by_hand(model):
    for seed in (1, 2, 3):
        (got,) = continue_rows(
            model, [[2, 7]], eos_id=EOS, seed=seed, max_new_tokens=30, forbidden_ids=(0, 1)
        )
        assert got == by_hand(model, [2, 7], 30, seed=seed, forbidden=(0, 1))


@pytest.mark.parametrize("temperature", [0.8, 1.3])
def test_kept_keys_and_values_change_no_draw(model, temperature):
    how = {
        "eos_id": EOS,
        "max_new_tokens": 40,
        "temperature": temperature,
        "top_k": 9,
        "top_p": 0.9,
        "seed": 5,
    }
    kept, anew = (continue_rows(model, PREFIXES * 3, cached=cached, **how) for cached in (True, False))
    assert kept == anew and len(set(map(tuple, kept))) > 8


def test_modules_put_in_place_of_others_are_followed(model):
    class Mute(nn.Module):
        def forward(self, x):
            return x * 0

    (before,) = continue_rows(model, [[2, 7]], eos_id=EOS, max_new_tokens=20, seed=1)
    model.body.blocks[0].ff = Mute()
    (got,) = continue_rows(model, [[2, 7]], eos_id=EOS, max_new_tokens=20, seed=1)
    assert got == by_hand(model, [2, 7], 20, seed=1) != before


def test_the_model_is_left_as_it_was(model):
    weights = [parameter.clone() for parameter in model.train().parameters()]
    state = torch.get_rng_state()
    continue_rows(model, PREFIXES, eos_id=EOS, max_new_tokens=5, seed=2)
    assert model.training and torch.equal(state, torch.get_rng_state())
    assert all(map(torch.equal, weights, model.parameters()))
    model(torch.tensor([PREFIXES[0]])).sum().backward()  # no tensor of inference mode is left in it


def test_a_greedy_draw_takes_the_first_of_several_best():
    logits = torch.tensor([[0.0, 2.0, 2.0], [1.0, 1.0, -torch.inf]])
    generator = torch.Generator().manual_seed(0)
    assert draw(logits, generator, top_k=1).tolist() == [1, 0]
    for broken in (torch.nan, -torch.inf):
        with pytest.raises(ValueError, match="finite maximum"):
            draw(torch.full((1, 3), broken), generator, top_k=1)


def test_what_cannot_be_carried_on_is_refused(model):
    with pytest.raises(ValueError, match="got an empty prefix"):
        continue_rows(model, [[2], []], eos_id=EOS)
    with pytest.raises(ValueError, match=r"ids must lie in 0\.\.29, got 2 to 30"):
        continue_rows(model, [[2, 30]], eos_id=EOS)
    with pytest.raises(ValueError, match="max_new_tokens must be at least 1, got 0"):
        continue_rows(model, [[2]], eos_id=EOS, max_new_tokens=0)
    with pytest.raises(ValueError, match="temperature must be positive"):
        continue_rows(model, [[2]], eos_id=EOS, temperature=0.0)
