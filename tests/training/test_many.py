"""Many texts at once: as `generate` would write them, each drawn by itself."""

import pytest
import torch

from tinytx.model.transformer import Classifier, LanguageModel
from tinytx.training.generate import generate, generate_many


@pytest.fixture
def model(config):
    return LanguageModel(config).eval()


def test_without_chance_every_text_is_the_one_that_generate_writes(model, tokenizer):
    alone = generate(model, tokenizer, "le chat", max_new_tokens=40, top_k=1)
    together = generate_many(model, tokenizer, "le chat", n=3, max_new_tokens=40, top_k=1)
    assert together == [alone] * 3


def test_texts_follow_the_distribution_of_the_model(model, tokenizer):
    """First piece of 4,000 texts against its probability: z-scores as of a standard normal."""
    prompt = "le chien"
    drawn = generate_many(model, tokenizer, prompt, n=4000, max_new_tokens=1, temperature=0.7)
    logits = model(torch.tensor([[tokenizer.bos_id, *tokenizer.encode(prompt)]]))[0, -1].detach()
    logits[[0, 1, 2, 4, 5, 6]] = -torch.inf
    expected = torch.softmax(logits / 0.7, dim=-1)
    counts = torch.bincount(torch.tensor([text.token_ids[0] for text in drawn]), minlength=len(expected))
    likely = expected > 0.002
    z = (counts / 4000 - expected) / (expected * (1 - expected) / 4000).sqrt()
    assert z[likely].abs().max() < 4.5
    assert (counts[expected == 0] == 0).all()


def test_each_text_ends_at_its_own_end_mark_or_at_the_limit(model, tokenizer):
    texts = generate_many(model, tokenizer, n=60, max_new_tokens=30, seed=2)
    assert len({len(text.token_ids) for text in texts}) > 3
    for text in texts:
        assert tokenizer.eos_id not in text.token_ids[:-1]
        assert text.finished == (text.token_ids[-1] == tokenizer.eos_id)
        assert text.finished or len(text.token_ids) == 30
    assert len({str(text) for text in texts}) > 30


def test_equal_seeds_give_equal_texts_and_leave_model_and_random_state_alone(model, tokenizer):
    before = torch.get_rng_state()
    first, again, other = (
        generate_many(model.train(), tokenizer, n=5, max_new_tokens=9, seed=s) for s in (4, 4, 5)
    )
    assert first == again != other
    assert model.training and torch.equal(before, torch.get_rng_state())


def test_what_cannot_be_done_is_refused(model, tokenizer, config):
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        generate_many(model, tokenizer, n=0)
    with pytest.raises(ValueError, match="max_new_tokens must be at least 1, got 0"):
        generate_many(model, tokenizer, n=1, max_new_tokens=0)
    with pytest.raises(ValueError, match="needs a language model, got a Classifier"):
        generate_many(Classifier(config), tokenizer, n=1)
