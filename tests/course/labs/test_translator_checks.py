"""Examining translators: sources exchanged, pieces written to the number, kept figures told."""

import pytest
import torch

from tinytx.model.config import TransformerConfig
from tinytx.model.encoder_decoder import Translator
from tinytx.text.pairs import LAB_SENTENCES, PairCorpus, Pairs
from tinytx.text.tokenizer import Tokenizer
from tinytx_course.labs.lesson_11 import (
    short_race,
    source_losses,
    told_faults,
    told_translation,
    writing_seconds,
)
from tinytx_course.results import Results

PAIRS = Pairs(("a cat", "the dog sees", "cats"), ("un chat", "le chien voit", "chats"))


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train([*PAIRS.sources, *PAIRS.targets] * 3, vocab_size=32, model_type="bpe")


@pytest.fixture
def model(tokenizer):
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=12, n_heads=3, n_layers=1, d_ff=8, max_len=30
    )
    model = Translator(config).double().eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return model


def test_a_model_that_does_not_read_is_found(model, tokenizer):
    reading = source_losses(model, tokenizer, PAIRS)
    assert abs(reading.own - reading.other) > 1e-4
    for block in model.decoder.blocks:  # cross-attention hands over nothing
        block.cross_attn.out_proj.weight.data.zero_()
    blind = source_losses(model, tokenizer, PAIRS)
    assert blind.own == pytest.approx(blind.other, abs=1e-9)
    with pytest.raises(ValueError, match="pairs must be at least 2"):
        source_losses(model, tokenizer, Pairs(("a",), ("b",)))


@pytest.mark.parametrize("cached", [True, False])
def test_exactly_so_many_pieces_are_written(model, cached):
    assert all(each > 0 for each in writing_seconds(model, [2, 5, 30], cached=cached))
    with pytest.raises(ValueError, match="at most max_len=30, got 31"):
        writing_seconds(model, [31], cached=cached)


def test_the_short_race_is_run_as_it_is_ordered():
    words = ["cat", "dog", "book", "red", "small", "old"]
    rows = [f"{a} {b} {c}" for a in words for b in words for c in words]
    long = " ".join(words * 3)
    pairs = PairCorpus("toy", Pairs((*rows, long), (*rows, long)), PAIRS)
    result = short_race(pairs, norm="last", warmup_steps=1, lr=1e-3, dropout=0.1, n_steps=2)
    config, settings = result.recipe.config, result.recipe.settings
    assert (config.norm, config.dropout, settings.optimizer) == ("last", 0.1, "adamw")
    assert (settings.n_steps, settings.warmup_steps, settings.lr) == (2, 1, 1e-3)


def test_kept_figures_are_told_and_missing_ones_named(tmp_path):
    assert "translation --corpus tatoeba-en-fr" in told_translation("tatoeba-en-fr", tmp_path)
    assert "python -m experiments broken-translation" in told_faults(tmp_path)
    score = {"bleu": 41.25, "interval": [40.0, 42.5], "chrf": 60.0, "signature": "nrefs:1"}
    record = {
        "n_params": 1234,
        "n_steps": 56,
        "scores": {"greedy": score | {"all_references": {"bleu": 50.5}}},
        "sentences": {sentence: {"greedy": f"<{sentence}>"} for sentence in LAB_SENTENCES},
    }
    Results("translation-tatoeba-en-fr", tmp_path).put("tatoeba-en-fr/study/seed 0", record)
    told = told_translation("tatoeba-en-fr", tmp_path)
    for part in ("measured 2", "1,234 param", "BLEU 41.2 [40.0, 42.5]", "all references 50.5", "nrefs:1"):
        assert part in told
    assert all(f"<{sentence}>" in told for sentence in LAB_SENTENCES)
    store = Results("broken-translation", tmp_path)
    store.put("a", {"seed": 0, "name": "sound", "bleu": 90.0})
    store.put("b", {"seed": 0, "name": "all four faults", "bleu": None})
    assert told_faults(tmp_path).splitlines()[-2:] == [
        "  seed 0  sound                 BLEU  90.0",
        "  seed 0  all four faults       diverged",
    ]
