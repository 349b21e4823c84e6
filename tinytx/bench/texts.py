"""What a benchmark reads: real text where there is some, the generated language elsewhere."""

from __future__ import annotations

from tinytx.bench.settings import BenchSettings
from tinytx.text import Tokenizer
from tinytx.text.corpora import Corpus, load_corpus
from tinytx.training.budgets import corpus_kind
from tinytx.training.pretraining import train_tokenizer

REAL = "cls-books"


def reviews(settings: BenchSettings) -> Corpus:
    """Real reviews where `data_dir` has them, else those of the world."""
    folder = settings.data_dir
    if folder is not None and (folder / REAL).is_dir():
        return load_corpus(REAL, folder)
    return load_corpus("world")


def tokenizer_for(corpus: Corpus, vocab_size: int, n_texts: int = 3000) -> Tokenizer:
    """A tokenizer of at most so many pieces; a language of few words has fewer."""
    return train_tokenizer(corpus.train.texts[:n_texts], vocab_size, exact=False, kind=corpus_kind(corpus))


def token_stream(corpus: Corpus, tokenizer: Tokenizer, n: int) -> list[int]:
    """The first n token ids of the training texts, one after the other, again from the start if need be."""
    ids: list[int] = []
    for text in corpus.train.texts:
        ids += [*tokenizer.encode(text), tokenizer.eos_id]
        if len(ids) >= n:
            return ids[:n]
    return (ids * (n // len(ids) + 1))[:n]
