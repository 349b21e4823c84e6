"""Running a trained model: evaluation mode, and batches of similar length with results in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm.auto import tqdm

from tinytx.batching import batches_by_length, pad_batch
from tinytx.fast import widened
from tinytx.settings import Lines, check_whole, require

TOKENS_PER_BATCH = 4096  # changes memory and speed of an evaluation, not its result

SILENT = 2  # seconds after which an evaluation shows its progress in a terminal

T = TypeVar("T")


def shown(batches: Sequence[T], label: str) -> Iterator[T]:
    """Batches one after the other, with a bar after a while or, without a terminal, `Lines`."""
    hidden = bool(os.environ.get("TQDM_DISABLE")) or None
    bar = tqdm(batches, desc=label, disable=hidden, delay=SILENT, leave=False)
    lines = Lines(label, len(batches))
    for number, batch in enumerate(bar, start=1):
        yield batch
        if bar.disable and hidden is None:
            lines.say(number)


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[torch.device]:
    """Switch off dropout and gradients for a while; gives the device of the model.

    Examples
    --------
    >>> layer = nn.Dropout(0.5).train()
    >>> with eval_mode(nn.Sequential(layer, nn.Linear(2, 2))):
    ...     layer.training
    False
    >>> layer.training
    True
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield next(model.parameters()).device
    finally:
        for module, training in modes:
            module.training = training


def evaluate_rows(
    model: nn.Module,
    rows: Sequence[Sequence[int]],
    compute: Callable[[Tensor, list[int]], Tensor],
    *,
    pad_id: int,
    tokens_per_batch: int = TOKENS_PER_BATCH,
) -> Tensor:
    """Evaluate rows in batches of similar length, without dropout and gradients.

    ``compute`` takes token ids (B, T), padded and on the device of the model, and the indices of these rows,
    and returns a Tensor of shape (B, ...). Gives a Tensor of shape (N, ...), on the CPU, in the order of the
    rows.
    """
    require(len(rows), "evaluation needs at least one text that is not empty", "none")
    lengths = [len(row) for row in rows]
    batches = batches_by_length(lengths, tokens_per_batch, seed=0, epoch=0)
    with eval_mode(model) as device:
        padded = (
            (pad_batch([rows[i] for i in batch], pad_id).to(device), batch)
            for batch in shown(batches, "evaluation")
        )
        values = torch.cat([compute(*given).cpu() for given in padded])
    return values[torch.tensor(list(chain(*batches))).argsort()]


def padding_mask_or_none(token_ids: Tensor, pad_id: int) -> Tensor | None:
    """True = a real token; None where all are, which is faster."""
    real = token_ids != pad_id
    return None if bool(real.all()) else real


def row_nats(logits: Tensor, targets: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Summed cross-entropy (B,) in float64 at the targets of each row, from logits (B, T, V)."""
    wanted = pad_batch(targets, pad_id).to(logits.device)  # (B, T)
    losses = F.cross_entropy(
        widened(logits).flatten(0, 1), wanted.flatten(), ignore_index=pad_id, reduction="none"
    )
    return losses.view(wanted.shape).double().sum(dim=1)


def in_blocks(
    answer: Callable[[list[str], int], Iterable[T]], lines: Iterable[str], lines_per_block: int
) -> Iterator[T]:
    """Answer lines as they arrive, a block at a time; ``answer`` gets it and the number of its first line.

    An error while reading is raised only after the lines before it are answered.
    """
    check_whole("lines_per_block", lines_per_block, 1)
    stream, n_before, stop = iter(lines), 0, None
    while stop is None:
        block: list[str] = []
        try:
            while len(block) < lines_per_block:
                block.append(next(stream))
        except Exception as error:  # StopIteration at the end
            stop = error
        yield from answer(block, n_before + 1)
        n_before += len(block)
    if not isinstance(stop, StopIteration):
        raise stop
