"""Lesson 07, your own GPT: texts as rows of token ids, and the loss of a model on some of them."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.batching import pad_batch
from tinytx.tokenizer import Tokenizer
from tinytx_run.corpora import Corpus, load_corpus
from tinytx_run.pretrain import train_tokenizer
from tinytx_run.recipes import corpus_kind

LONGEST = 128  # tokens of a row, its first and its last one included
_NO_TARGET = -1


def read_rows(name: str | os.PathLike[str]) -> tuple[Corpus, Tokenizer, list[list[int]], list[list[int]]]:
    """Read a corpus, learn a vocabulary of about 2,000 tokens from it, and encode its texts.

    Returns
    -------
    corpus : Corpus
    tokenizer : Tokenizer
        Trained on the first 8,000 texts of the training split.
    rows, held_out : list of list of int
        A row for each of these texts, and one for each of the first 100 of the valid split: ``<bos>``, the
        ids of the text, cut where it is too long, ``<eos>``.
    """
    corpus = load_corpus(name)
    texts = corpus.train.texts[:8000]
    tokenizer = train_tokenizer(texts, 2000, exact=False, kind=corpus_kind(corpus))
    rows, held_out = (
        [[tokenizer.bos_id, *ids[: LONGEST - 2], tokenizer.eos_id] for ids in tokenizer.encode_batch(part)]
        for part in (texts, corpus.valid.texts[:100])
    )
    return corpus, tokenizer, rows, held_out


def loss_of(model: nn.Module, rows: Sequence[Sequence[int]]) -> Tensor:
    """Return the mean of -ln p of the tokens that came, over all B rows: each is asked from those before it.

    Padding is read as id 0, to the right of a row, and is no target.
    """
    padded = pad_batch(rows, _NO_TARGET)  # (B, T + 1)
    inputs, targets = padded[:, :-1].clamp(min=0), padded[:, 1:]  # (B, T) each
    logits = model(inputs)  # (B, T, V)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=_NO_TARGET)
