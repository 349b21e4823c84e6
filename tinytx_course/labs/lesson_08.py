"""Lesson 08, pretraining: probabilities of whole words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tinytx.batching import pad_batch
from tinytx.generate import check_vocabulary
from tinytx.inference import eval_mode
from tinytx.tokenizer import SPACE_MARK, Tokenizer
from tinytx.transformer import LanguageModel

ROWS_PER_BATCH = 256


def next_word_probs(
    model: LanguageModel, tokenizer: Tokenizer, prefix: Sequence[str], words: Sequence[str]
) -> np.ndarray:
    """Probability of each of some words as the next whole word: a product over its tokens.

    Parameters
    ----------
    prefix : sequence of str
        Words of the text so far; may be empty.
    words : sequence of N str
        Each not empty, without a space.

    Returns
    -------
    ndarray of shape (N + 1,), float64
        In the order of `words`; the last is the probability that the text ends here. The sum is at most 1;
        the rest belongs to other words.

    Raises
    ------
    ValueError
        If prefix and word together are longer than `max_len`.
    """
    check_vocabulary(model, tokenizer)
    start = [tokenizer.bos_id, *(token_id for word in prefix for token_id in tokenizer.word_pieces(word))]
    rows = [tokenizer.word_pieces(word) for word in words]
    longest = len(start) + max(map(len, rows), default=0)
    if longest > model.config.max_len:
        raise ValueError(
            f"prefix and word must be at most max_len={model.config.max_len} tokens long, got {longest}"
        )
    log_probs = []
    with eval_mode(model) as device:
        after = model(torch.tensor([start], device=device))[0, -1].double().log_softmax(dim=-1)  # (V,)
        pieces = map(tokenizer.piece, range(tokenizer.vocab_size))
        boundary = torch.tensor([piece.startswith(SPACE_MARK) for piece in pieces], device=device)
        boundary[tokenizer.eos_id] = True
        for at in range(0, len(rows), ROWS_PER_BATCH):
            batch = rows[at : at + ROWS_PER_BATCH]
            inputs = pad_batch([[*start, *row] for row in batch], tokenizer.pad_id).to(device)
            hidden = model.body(inputs)[:, len(start) - 1 :]  # (B, longest word + 1, D)
            token_log_probs = model.head(hidden).double().log_softmax(dim=-1)  # (B, longest word + 1, V)
            log_probs.append(_whole_words(token_log_probs, batch, boundary, tokenizer.pad_id))
        end = after[tokenizer.eos_id : tokenizer.eos_id + 1]
        return torch.cat([*log_probs, end]).exp().cpu().numpy()


def _whole_words(log_probs: Tensor, rows: Sequence[Sequence[int]], boundary: Tensor, pad_id: int) -> Tensor:
    """Log-probability (B,) of the tokens of each row, and of a word boundary after them."""
    device = log_probs.device
    targets = pad_batch(rows, pad_id).to(device)  # (B, L)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    of_tokens = log_probs[:, :-1].gather(-1, targets[..., None])[..., 0]  # (B, L)
    real = torch.arange(targets.shape[1], device=device) < lengths[:, None]
    after = log_probs[torch.arange(len(rows), device=device), lengths]  # (B, V)
    ends = after.masked_fill(~boundary, -torch.inf).logsumexp(dim=-1)
    return of_tokens.masked_fill(~real, 0.0).sum(dim=-1) + ends
