"""Carrying on a text with a model that fills blanks, which was never asked to.

How long the text will be must be said beforehand: as many blanks are put behind it. They are filled from
left to right; then each is hidden and filled again, all others in view, as in Gibbs sampling, so that what
was written first gets to see what came later. The answers of a masked model fit no one distribution over
texts, so this converges to nothing that it could be said to believe.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tinytx.model import MaskedLanguageModel
from tinytx.text import Tokenizer
from tinytx.text.batching import pad_batch
from tinytx.training.evaluation import check_vocabulary
from tinytx.training.generation.decoding import next_token_probs, unwritten_ids


@torch.no_grad()
def complete_masked(
    model: MaskedLanguageModel,
    tokenizer: Tokenizer,
    prefixes: Sequence[Sequence[int]],
    n_new: Sequence[int],
    *,
    n_sweeps: int = 4,
    temperature: float = 1.0,
    seed: int = 0,
) -> list[list[int]]:
    """Write so many pieces behind each of some prefixes.

    Parameters
    ----------
    model : MaskedLanguageModel
    tokenizer : Tokenizer
    prefixes : sequence of N sequences of int
        Without special ids.
    n_new : sequence of N int
        Pieces to be written, at least 1 each; after them the text ends.
    n_sweeps : int
        How often every new piece is written again after the first time, in an order drawn anew.
    temperature : float
        Positive; below 1 sharpens.
    seed : int
        Equal seeds give equal texts.

    Returns
    -------
    list of N lists of int
        The new pieces.

    References
    ----------
    Wang and Cho, "BERT has a Mouth, and It Must Speak", arXiv 1902.04094, section 3.
    """
    check_vocabulary(model, tokenizer)
    if len(prefixes) != len(n_new) or not all(n >= 1 for n in n_new) or n_sweeps < 0:
        raise ValueError(
            "each prefix needs a number of new pieces of 1 or more, and n_sweeps must be 0 or more, got "
            f"{len(prefixes)} prefixes, {list(n_new)}, n_sweeps={n_sweeps}"
        )
    rows = [
        [tokenizer.cls_id, *prefix, *[tokenizer.mask_id] * n, tokenizer.sep_id]
        for prefix, n in zip(prefixes, n_new, strict=True)
    ]
    if (longest := max(map(len, rows), default=0)) > model.config.max_len:
        most = model.config.max_len
        raise ValueError(f"prefix, blanks and two marks must be at most {most} together, got {longest}")
    if not rows:
        return []
    generator = torch.Generator().manual_seed(seed)
    ids = pad_batch(rows, tokenizer.pad_id)  # (N, T)
    starts, counts = torch.tensor([len(prefix) + 1 for prefix in prefixes]), torch.tensor(list(n_new))
    was_training = model.training
    model.eval()
    for sweep in range(1 + n_sweeps):
        order = [
            torch.arange(n) if sweep == 0 else torch.randperm(n, generator=generator) for n in counts.tolist()
        ]
        for turn in range(int(counts.max())):
            going = torch.nonzero(counts > turn)[:, 0]
            places = starts[going] + torch.stack([order[row][turn] for row in going.tolist()])
            _write(model, tokenizer, ids, going, places, temperature, generator)
    model.train(was_training)
    return [
        ids[row, start : start + n].tolist()
        for row, (start, n) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True))
    ]


def _write(
    model: MaskedLanguageModel,
    tokenizer: Tokenizer,
    ids: Tensor,
    rows: Tensor,
    places: Tensor,
    temperature: float,
    generator: torch.Generator,
) -> None:
    """Hide one place in each of some rows, and draw what stands there; ``ids`` is changed in place."""
    device = next(model.parameters()).device
    ids[rows, places] = tokenizer.mask_id
    inputs = ids[rows].to(device)
    hidden = model.body(inputs, inputs != tokenizer.pad_id)  # (n, T, D)
    at = hidden[torch.arange(len(rows), device=device), places.to(device)]
    logits = model.head(at).float().cpu()  # (n, V)
    logits[:, [*unwritten_ids(tokenizer), tokenizer.eos_id]] = -torch.inf
    drawn = torch.multinomial(next_token_probs(logits, temperature), 1, generator=generator)
    ids[rows, places] = drawn[:, 0]
