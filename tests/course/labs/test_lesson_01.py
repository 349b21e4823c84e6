"""Difficult texts are valid, varied and the same each time."""

import pytest

from tinytx.tokenizer import Tokenizer
from tinytx_course.labs.lesson_01 import DANGEROUS, difficult_texts


def test_texts_are_valid_and_everything_dangerous_and_every_width_occurs():
    together = "".join(difficult_texts(2000, seed=0))
    assert together.encode("utf-8").decode("utf-8") == together
    assert all(part in together for part in DANGEROUS)
    widths = {len(character.encode("utf-8")) for character in together}
    assert widths == {1, 2, 3, 4}


def test_texts_depend_on_the_seed_and_nothing_else():
    assert difficult_texts(50, seed=3) == difficult_texts(50, seed=3) != difficult_texts(50, seed=4)
    assert difficult_texts(9, seed=3) == difficult_texts(50, seed=3)[:9]
    assert difficult_texts(0, seed=3) == []


def test_a_tokenizer_with_bytes_loses_none():
    tokenizer = Tokenizer.train(["le chat", "la table"] * 9, vocab_size=274, byte_fallback=True)
    texts = difficult_texts(2000, seed=0)
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_batch(texts)] == texts


def test_a_negative_number_raises():
    with pytest.raises(ValueError, match="n_texts must be at least 0, got -1"):
        difficult_texts(-1, seed=0)
