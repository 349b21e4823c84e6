"""Texts carried on by a model: seeded, bounded, and true to the prompt."""

import pytest
import torch

from tinytx.model.transformer import Classifier, LanguageModel
from tinytx.training.generate import generate, generate_ids
from tinytx.training.loop import train
from tinytx.training.settings import TrainingSettings
from tinytx.training.tasks import causal_objective


@pytest.fixture
def model(config):
    return LanguageModel(config).eval()


def test_equal_seeds_give_equal_texts_and_leave_the_random_state_alone(model, tokenizer):
    before = torch.get_rng_state()
    texts = [str(generate(model, tokenizer, "le chat", seed=seed)) for seed in (4, 4, 5)]
    assert texts[0] == texts[1] != texts[2]
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("prompt", ["", "le chat", "Ω漢 le 🐈", "  deux  espaces ", "le\tchat", "chat" * 40])
def test_the_prompt_stands_unchanged_in_front(model, tokenizer, prompt):
    result = generate(model, tokenizer, prompt, max_new_tokens=7, seed=1)
    assert str(result) == prompt + result.continuation
    assert 1 <= len(result.token_ids) <= 7
    special = {tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.mask_id}
    assert not special & set(result.token_ids)
    assert result.finished == (result.token_ids[-1] == tokenizer.eos_id)


def test_a_text_learned_by_heart_is_carried_on_word_for_word(config, tokenizer):
    text = "le petit chien voit une belle grand chat"
    model = LanguageModel(config)
    objective = causal_objective(tokenizer, [text], config.max_len)
    train(model, objective, TrainingSettings(n_steps=150, lr=1e-2, warmup_steps=5, precision="fp32"))
    result = generate(model, tokenizer, "le petit", temperature=0.1)
    assert str(result) == text and result.finished


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])
def test_top_k_1_is_greedy_decoding_with_a_sliding_window(config, tokenizer, positions):
    """More new tokens than the model can read at once: the end of the text is what it reads."""
    model = LanguageModel(config.replace(positions=positions)).eval()
    prefix = [tokenizer.bos_id, *tokenizer.encode("le chat")]
    got = generate_ids(model, prefix, eos_id=-1, max_new_tokens=40, top_k=1)
    ids = list(prefix)
    for _ in range(40):
        ids.append(int(model(torch.tensor([ids[-24:]]))[0, -1].argmax()))
    assert got == ids[len(prefix) :]


def test_forbidden_ids_never_come(model):
    got = generate_ids(model, [2], eos_id=3, forbidden_ids=(3, *range(5, 25)), max_new_tokens=60)
    assert len(got) == 60 and set(got) <= {0, 1, 2, 4, 25, 26, 27, 28, 29}


def test_models_that_cannot_generate_are_refused(model, tokenizer, config):
    with pytest.raises(ValueError, match="needs a language model, got a Classifier"):
        generate(Classifier(config), tokenizer, "le")
    with pytest.raises(ValueError, match="needs a causal model"):
        generate(LanguageModel(config.replace(causal=False)), tokenizer, "le")
    with pytest.raises(ValueError, match="max_new_tokens must be at least 1, got 0"):
        generate(model, tokenizer, "le", max_new_tokens=0)
    with pytest.raises(ValueError, match="got an empty prefix"):
        generate_ids(model, [], eos_id=3)
