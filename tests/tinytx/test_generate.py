"""Generation: the distribution by hand, rows together as alone, with and without a KV cache."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from tests.tinytx.against_torch import shaken
from tinytx.classifier import Classifier
from tinytx.generate import (
    Sampling,
    continue_rows,
    draw,
    generate,
    generate_many,
    next_token_probs,
)
from tinytx.transformer import LanguageModel

EOS = 3
PREFIXES = [[2, 7, 8, 9, 10, 11], [2], [2, 9, 9], [2, 7, 8, 9, 10, 12, 13, 14], [2, 9, 9]]


@pytest.fixture
def model(config):
    return shaken(LanguageModel(config).double())


def probs_by_hand(logits, temperature, top_k, top_p):
    """The definition, token by token."""
    probs = torch.softmax(logits.double() / temperature, dim=-1).tolist()
    order = sorted(range(len(probs)), key=lambda i: -probs[i])[:top_k]
    if top_p is not None:
        reached = [sum(probs[i] for i in order[:n]) for n in range(len(order))]
        order = [i for i, before in zip(order, reached, strict=True) if before < top_p]
    total = sum(probs[i] for i in order)
    return torch.tensor([probs[i] / total if i in order else 0.0 for i in range(len(probs))])


@given(
    seed=st.integers(0, 10_000),
    temperature=st.floats(0.2, 5.0),
    top_k=st.one_of(st.none(), st.integers(1, 9)),
    top_p=st.one_of(st.none(), st.floats(0.05, 0.97)),
)
def test_next_token_probs_are_the_definition_written_in_loops(seed, temperature, top_k, top_p):
    logits = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(seed)) * 2
    before = logits.clone()
    found = next_token_probs(logits, temperature, top_k, top_p)
    assert torch.equal(logits, before)
    expected = [probs_by_hand(row, temperature, top_k, top_p) for row in logits.flatten(0, 1)]
    assert_close(found.flatten(0, 1), torch.stack(expected), atol=1e-5, rtol=1e-4)


def test_a_greedy_draw_takes_the_first_of_several_best():
    logits = torch.tensor([[0.0, 2.0, 2.0], [1.0, 1.0, -torch.inf]])
    generator = torch.Generator().manual_seed(0)
    assert draw(logits, generator, Sampling(top_k=1)).tolist() == [1, 0]
    for broken in (torch.nan, -torch.inf):
        with pytest.raises(ValueError, match="finite maximum"):
            draw(torch.full((1, 3), broken), generator, Sampling(top_k=1))


@torch.no_grad()
def by_hand(model, prefix, max_new_tokens, *, seed=None, forbidden=(), eos_id=EOS, how=()):
    """One row, read from its beginning at every step; greedy without a seed."""
    ids, generator = list(prefix), torch.Generator().manual_seed(seed or 0)
    while len(ids) - len(prefix) < max_new_tokens and (ids[-1] != eos_id or len(ids) == len(prefix)):
        logits = model(torch.tensor([ids[-model.config.max_len :]]))[0, -1]
        logits[list(forbidden)] = -torch.inf
        probs = next_token_probs(logits, *how)
        ids.append(int(probs.argmax() if seed is None else torch.multinomial(probs, 1, generator=generator)))
    return ids[len(prefix) :]


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])
def test_rows_together_are_rows_alone_even_beyond_max_len(config, positions):
    model = shaken(LanguageModel(config.replace(positions=positions)).double())  # max_len 24, rows grow to 29
    eos_id = by_hand(model, PREFIXES[0], 7, eos_id=-1)[6]  # an id that ends some rows early
    alone = [by_hand(model, prefix, 21, eos_id=eos_id) for prefix in PREFIXES]
    assert len(set(map(len, alone))) > 1
    for cached in (True, False):
        sampling = Sampling(max_new_tokens=21, top_k=1)
        found = continue_rows(model, PREFIXES, sampling, eos_id=eos_id, cached=cached)
        assert found == alone


@pytest.mark.parametrize("how", [(1.0, None, None), (0.7, None, None), (1.3, 9, None), (1.3, None, 0.9)])
def test_a_sampled_row_is_the_row_sampled_by_hand(model, how):
    for seed, cached in ((1, True), (2, False), (3, True)):
        settings = dict(zip(("temperature", "top_k", "top_p"), how, strict=True))
        sampling, rule = Sampling(seed=seed, max_new_tokens=30, **settings), {"eos_id": EOS}
        (found,) = continue_rows(model, [[2, 7]], sampling, forbidden_ids=(0, 1), cached=cached, **rule)
        assert found == by_hand(model, [2, 7], 30, seed=seed, forbidden=(0, 1), how=how)


def test_model_and_random_state_do_not_change(model):
    weights = [parameter.clone() for parameter in model.train().parameters()]
    state = torch.get_rng_state()
    continue_rows(model, PREFIXES, Sampling(max_new_tokens=5, seed=2), eos_id=EOS)
    assert model.training and torch.equal(state, torch.get_rng_state())
    assert all(map(torch.equal, weights, model.parameters()))
    model(torch.tensor([PREFIXES[0]])).sum().backward()  # no tensor of inference mode is left in it


@pytest.mark.parametrize("prompt", ["", "Ω漢 le 🐈", "  deux  espaces ", "le\tchat", "chat" * 40])
def test_the_prompt_comes_first_unchanged(config, tokenizer, prompt):
    result = generate(LanguageModel(config), tokenizer, prompt, Sampling(max_new_tokens=7, seed=1))
    assert str(result) == prompt + result.continuation
    assert 1 <= len(result.token_ids) <= 7
    assert all(i == tokenizer.eos_id or i > 6 for i in result.token_ids)  # no special one
    assert result.finished == (result.token_ids[-1] == tokenizer.eos_id)


def test_many_continuations_include_the_single_one_and_end_each_by_itself(model, tokenizer):
    greedy = Sampling(max_new_tokens=40, top_k=1)
    alone = generate(model, tokenizer, "le chat", greedy)
    assert generate_many(model, tokenizer, "le chat", greedy, n=3) == [alone] * 3
    samplings = [Sampling(max_new_tokens=100, seed=seed) for seed in (4, 4, 5)]
    first, again, other = (generate_many(model, tokenizer, "", each, n=60) for each in samplings)
    assert first == again != other
    assert len({len(text.token_ids) for text in first}) > 3 and len(set(map(str, first))) > 30
    for text in first:
        assert tokenizer.eos_id not in text.token_ids[:-1]
        assert text.finished == (text.token_ids[-1] == tokenizer.eos_id) or len(text.token_ids) == 100


@pytest.mark.parametrize(
    ("settings", "got"),
    [
        ({"temperature": float("nan")}, "temperature .* nan"),
        ({"temperature": float("inf")}, "temperature .* inf"),
        ({"temperature": 1e300}, r"temperature .* 1e\+300"),
        ({"top_k": 0}, "top_k .* 0"),
        ({"top_p": 0.0}, "top_p .* 0.0"),
        ({"top_p": 1.5}, "top_p .* 1.5"),
        ({"max_new_tokens": 0}, "max_new_tokens .* 0"),
        ({"seed": -1}, "seed .* -1"),
        ({"seed": 2**63}, "seed .* 9223372036854775808"),
        ({"seed": None}, "seed .* None"),
    ],
)
def test_settings_outside_their_range_raise(settings, got):
    with pytest.raises(ValueError, match=got):
        Sampling(**settings)


def test_models_and_ids_that_cannot_be_continued_raise(model, tokenizer, config):
    for wrong in (Classifier(config), LanguageModel(config.replace(causal=False))):
        with pytest.raises(ValueError, match="Classifier|causal=False"):
            generate(wrong, tokenizer, "le")
    with pytest.raises(ValueError, match="30 tokens and vocab_size=31"):
        generate(LanguageModel(config.replace(vocab_size=31)), tokenizer, "le")
    with pytest.raises(ValueError, match="n must .* 0"):
        generate_many(model, tokenizer, n=0)
    with pytest.raises(ValueError, match="empty prefix"):
        continue_rows(model, [[2], []], eos_id=EOS)
    with pytest.raises(ValueError, match=r"0\.\.29, got 2 to 30"):
        continue_rows(model, [[2, 30]], eos_id=EOS)
