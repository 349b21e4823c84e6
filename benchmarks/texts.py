"""What a benchmark reads: real text where there is some, the generated language elsewhere."""

from __future__ import annotations

from benchmarks.settings import BenchSettings
from tinytx.text.corpora import Corpus, load_corpus
from tinytx.text.tokenizer import Tokenizer

REAL = "cls-books"


def reviews(settings: BenchSettings) -> Corpus:
    """Real reviews where `data_dir` has them, else those of the world."""
    folder = settings.data_dir
    if folder is not None and (folder / REAL).is_dir():
        return load_corpus(REAL, folder)
    return load_corpus("world")


def token_stream(corpus: Corpus, tokenizer: Tokenizer, n: int) -> list[int]:
    """The first n token ids of the training texts, one after the other, again from the start if need be."""
    ids: list[int] = []
    for text in corpus.train.texts:
        ids += [*tokenizer.encode(text), tokenizer.eos_id]
        if len(ids) >= n:
            return ids[:n]
    return (ids * (n // len(ids) + 1))[:n]
