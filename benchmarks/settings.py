"""How much a benchmark measures, and the texts that it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tinytx.tokenizer import Tokenizer
from tinytx_run.corpora import Corpus, load_corpus

Sizes = dict[str, Any]
REAL = "cls-books"
# Sizes of the models that are compared: the preset seed-lab, a small GPT, a Llama of about its parameters,
# and one that shows that it runs.
SEED_LAB: Sizes = {"d_model": 200, "n_heads": 2, "n_layers": 4, "d_ff": 200}
SMALL_GPT: Sizes = {"d_model": 256, "n_heads": 4, "n_layers": 6, "d_ff": 1024}
GPT2_SMALL: Sizes = {"d_model": 768, "n_heads": 12, "n_layers": 12, "d_ff": 3072}
SMALL_LLAMA: Sizes = {"d_model": 256, "n_heads": 4, "n_layers": 6, "d_ff": 688, "n_kv_heads": 2}
TINY: Sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8}


@dataclass(frozen=True, kw_only=True)
class BenchSettings:
    """Settings of all parts of a benchmark."""

    n_rounds: int  # how often each candidate is timed, at least once
    tiny: bool = False  # sizes of a few tokens: shows that everything runs, and no more
    device: torch.device = torch.device("cpu")
    data_dir: Path | None = None  # of real text, see `load_corpus`; else the generated language is read
    report: Callable[[str], None] = print  # takes a line for each comparison

    def __post_init__(self) -> None:
        if self.n_rounds < 1:
            raise ValueError(f"rounds must be at least 1, got {self.n_rounds}")


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
