r"""What a model expects as the next whole word, though it only knows of pieces.

.. math:: q(w \mid \text{prefix}) = q(\text{pieces of } w \mid \text{prefix}) \;
    q(\text{a new word begins, or the text ends} \mid \text{prefix}, w)

The second factor tells "a" from the beginning of "absurd": only what comes next shows that a word is whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tinytx.model import LanguageModel
from tinytx.text import Tokenizer
from tinytx.text.batching import pad_batch
from tinytx.text.lossless import SPACE_MARK
from tinytx.training.evaluation import check_vocabulary


@torch.no_grad()
def next_word_probs(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prefix: Sequence[str],
    words: Sequence[str],
    *,
    rows_per_batch: int = 256,
) -> np.ndarray:
    """Probability that a model gives to each of some words as the next whole word.

    Parameters
    ----------
    model : LanguageModel
        A causal one.
    tokenizer : Tokenizer
        The one it was trained with.
    prefix : sequence of str
        Words of the text so far; may be empty.
    words : sequence of N str
        Each not empty, without a space.
    rows_per_batch : int
        Changes memory and speed, not the result.

    Returns
    -------
    ndarray of shape (N + 1,), float64
        In the order of `words`; the last is the chance that the text ends here. What is missing to 1 went to
        words that are not among them.

    Raises
    ------
    ValueError
        If prefix and word are longer than the model can read.
    """
    check_vocabulary(model, tokenizer)
    start = [tokenizer.bos_id, *(one for word in prefix for one in tokenizer.word_pieces(word))]
    pieces = [tokenizer.word_pieces(word) for word in words]
    longest = len(start) + max(map(len, pieces), default=0)
    if longest > model.config.max_len:
        raise ValueError(
            f"prefix and word must be at most {model.config.max_len} pieces long, the model's max_len, "
            f"got {longest}"
        )
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    here = model(torch.tensor([start], device=device))[0, -1].double().log_softmax(dim=-1)  # (V,)
    begins = _begins_a_word(tokenizer).to(device)
    chances = []
    for at in range(0, len(pieces), rows_per_batch):
        rows = pieces[at : at + rows_per_batch]
        inputs = pad_batch([[*start, *row] for row in rows], tokenizer.pad_id).to(device)
        hidden = model.body(inputs)[:, len(start) - 1 :]  # (B, longest word + 1, D)
        log_probs = model.head(hidden).double().log_softmax(dim=-1)  # (B, longest word + 1, V)
        chances.append(_whole_words(log_probs, rows, begins, tokenizer.pad_id))
    model.train(was_training)
    return torch.cat([*chances, here[tokenizer.eos_id : tokenizer.eos_id + 1]]).exp().cpu().numpy()


def _whole_words(log_probs: Tensor, rows: Sequence[Sequence[int]], begins: Tensor, pad_id: int) -> Tensor:
    """Log-probability of each row of pieces, and that it is a whole word; shape (B,)."""
    device = log_probs.device
    targets = pad_batch(rows, pad_id).to(device)  # (B, L)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    taken = log_probs[:, :-1].gather(-1, targets[..., None])[..., 0]  # (B, L)
    real = torch.arange(targets.shape[1], device=device) < lengths[:, None]
    after = log_probs[torch.arange(len(rows), device=device), lengths]  # (B, V)
    ends = after.masked_fill(~begins, -torch.inf).logsumexp(dim=-1)
    return taken.masked_fill(~real, 0.0).sum(dim=-1) + ends


def _begins_a_word(tokenizer: Tokenizer) -> Tensor:
    """Which ids show that the word before them is whole; shape (V,), bool."""
    ids = range(tokenizer.vocab_size)
    return torch.tensor(
        [one == tokenizer.eos_id or tokenizer.piece(one).startswith(SPACE_MARK) for one in ids]
    )
