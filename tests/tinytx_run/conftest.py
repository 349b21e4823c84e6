"""A toy corpus, made of few words, on which everything takes a moment."""

import random

import pytest

from tinytx.config import TransformerConfig
from tinytx.tokenizer import Tokenizer
from tinytx_run.corpora import Corpus, Split

WORDS = ("le", "la", "chat", "chien", "mange", "voit", "un", "une", "belle", "petit", "grand")
FRENCH = ("le", "la", "chat", "chien", "mange", "voit", "été", "une", "belle", "petit", "livre", "roman")


def sentences(n, seed):
    """Texts of 3 to 15 words."""
    rng = random.Random(seed)
    return [" ".join(rng.choice(FRENCH) for _ in range(rng.randint(3, 15))) for _ in range(n)]


def make_split(n_texts: int, seed: int) -> Split:
    """Texts of 2 to 12 words; label 1 where a cat occurs."""
    rng = random.Random(seed)
    texts = [" ".join(rng.choice(WORDS) for _ in range(rng.randint(2, 12))) for _ in range(n_texts)]
    return Split(tuple(texts), tuple(int("chat" in text) for text in texts))


@pytest.fixture
def prose(tmp_path):
    """A file of texts, with a blank in its name, which a command has to quote."""
    file = tmp_path / "some prose.txt"
    file.write_text("\n".join(sentences(150, 1)), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def corpus():
    return Corpus("toy", make_split(120, 1), make_split(30, 2), make_split(20, 3))


@pytest.fixture(scope="session")
def tokenizer(corpus):
    return Tokenizer.train(corpus.train.texts, vocab_size=30)


@pytest.fixture
def config(tokenizer):
    return TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=24
    )
