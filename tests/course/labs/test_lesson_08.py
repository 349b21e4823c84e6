"""Lesson 08: from tokens to whole words."""

import numpy as np
import pytest
import torch

from tinytx.config import TransformerConfig
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_course.labs import lesson_08
from tinytx_course.labs.lesson_08 import next_word_probs

WORDS = ["a", "ab", "abc", "b", "ba", "bb", "c", "cab"]


@pytest.fixture(scope="module")
def tokenizer():
    """Few pieces, so that "a" is both a word and the beginning of others."""
    return Tokenizer.train([" ".join(WORDS)] * 5, vocab_size=13, model_type="bpe")


@pytest.fixture
def model(tokenizer):
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=11
    )
    return LanguageModel(config).eval()


def test_a_word_is_the_product_of_its_tokens_and_of_a_word_boundary(model, tokenizer):
    prefix = ["b", "cab"]
    got = next_word_probs(model, tokenizer, prefix, WORDS)
    ids = [tokenizer.bos_id, *(one for word in prefix for one in tokenizer.word_pieces(word))]
    begins = [i for i in range(tokenizer.vocab_size) if tokenizer.piece(i).startswith("▁")]
    for word, chance in zip(WORDS, got, strict=False):
        read, expected = list(ids), 1.0
        for piece in tokenizer.word_pieces(word):
            expected *= model(torch.tensor([read]))[0, -1].softmax(-1)[piece].item()
            read.append(piece)
        after = model(torch.tensor([read]))[0, -1].softmax(-1)
        expected *= after[begins].sum().item() + after[tokenizer.eos_id].item()
        assert chance == pytest.approx(expected, rel=1e-5)
    end = model(torch.tensor([ids]))[0, -1].softmax(-1)[tokenizer.eos_id].item()
    assert got[-1] == pytest.approx(end, rel=1e-5)


def test_the_batch_changes_nothing_and_the_sum_is_below_1(model, tokenizer, monkeypatch):
    together = next_word_probs(model, tokenizer, ["a"], WORDS)
    monkeypatch.setattr(lesson_08, "ROWS_PER_BATCH", 3)
    one = next_word_probs(model, tokenizer, ["a"], WORDS)
    np.testing.assert_allclose(one, together, rtol=1e-5)
    assert (one > 0).all() and one.sum() < 1
    assert next_word_probs(model, tokenizer, [], []).shape == (1,)


def test_what_is_longer_than_max_len_raises(model, tokenizer):
    with pytest.raises(ValueError, match="max_len=11 tokens"):
        next_word_probs(model, tokenizer, ["a"] * 11, WORDS)
