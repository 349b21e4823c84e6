"""One blank at a time: what a model expects in a place of a text, given all the rest or only what is left.

A masked model is asked directly: the place is hidden, and one pass answers. A causal model only knows
what comes next, but it knows the probability of whole texts, and so by Bayes' rule also

.. math:: q(x_t \\mid \\text{rest}) = \\frac{q(x_1 \\dots x_t \\dots x_T)}{\\sum_v q(x_1 \\dots v \\dots x_T)}

at the price of one pass for each piece v of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tinytx.model import LanguageModel, MaskedLanguageModel
from tinytx.text import Tokenizer
from tinytx.text.batching import batches_by_length, pad_batch
from tinytx.training.evaluation import check_vocabulary
from tinytx.training.generation.decoding import unwritten_ids
from tinytx.training.masked.objective import masked_rows

Sides = Literal["both", "left"]
MAX_BLANKS = 8_000  # of an evaluation: each is a pass over its text


@dataclass(frozen=True)
class BlankScore:
    """How surprised a masked model is by pieces that are hidden one at a time.

    Attributes
    ----------
    total_nats : float
        Sum over all blanks. It is no ``-log P`` of a text.
    n_blanks : int
    n_texts : int
    correct : int
        Blanks whose piece was the most probable one.
    """

    total_nats: float
    n_blanks: int
    n_texts: int
    correct: int

    @property
    def nats_per_blank(self) -> float:
        """Mean loss."""
        return self.total_nats / self.n_blanks

    @property
    def accuracy(self) -> float:
        """Share of blanks filled with the right piece."""
        return self.correct / self.n_blanks

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        return {**asdict(self), "nats_per_blank": self.nats_per_blank, "accuracy": self.accuracy}

    def __str__(self) -> str:
        return (
            f"{self.nats_per_blank:.4f} nats per blank, {self.accuracy:.4f} filled right, "
            f"{self.n_blanks:,} blanks in {self.n_texts:,} texts"
        )


def blank_texts(tokenizer: Tokenizer, texts: Sequence[str], max_blanks: int = MAX_BLANKS) -> Sequence[str]:
    """The first texts that have so many pieces together, at least one text."""
    n_blanks = 0
    for number, ids in enumerate(tokenizer.encode_batch(texts)):
        n_blanks += len(ids)
        if n_blanks > max_blanks and number:
            return texts[:number]
    return texts


@torch.no_grad()
def evaluate_blanks(
    model: MaskedLanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    max_blanks: int = MAX_BLANKS,
    tokens_per_batch: int = 4096,
) -> BlankScore:
    """Hide each piece of some texts in turn, the others in view, and ask for it.

    Parameters
    ----------
    model : MaskedLanguageModel
    tokenizer : Tokenizer
    texts : sequence of str
        Long ones are read in windows.
    max_blanks : int
        The first texts are taken that have so many pieces together.
    tokens_per_batch : int
        Changes memory and speed, not the result.
    """
    check_vocabulary(model, tokenizer)
    taken = blank_texts(tokenizer, texts, max_blanks)
    rows, _ = masked_rows(tokenizer, taken, model.config.max_len)
    if not rows:
        raise ValueError("blanks need at least one text that is not empty, got none")
    nats, correct, n_blanks = 0.0, 0, 0
    for log_probs, wanted in _each_place_hidden(model, tokenizer, rows, tokens_per_batch):
        nats -= float(log_probs.gather(1, wanted[:, None]).sum())
        correct += int((log_probs.argmax(dim=1) == wanted).sum())
        n_blanks += len(wanted)
    return BlankScore(nats, n_blanks, len(taken), correct)


def _each_place_hidden(
    model: MaskedLanguageModel, tokenizer: Tokenizer, rows: list[list[int]], tokens_per_batch: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Log-probabilities (N, V) at hidden places, and what stood there (N,), batch by batch."""
    asked = [(number, place) for number, row in enumerate(rows) for place in range(1, len(row) - 1)]
    lengths = [len(rows[number]) for number, _ in asked]
    for indices in batches_by_length(lengths, max(tokens_per_batch, max(lengths)), seed=0, epoch=0):
        chosen = [asked[i] for i in indices]
        places = torch.tensor([place for _, place in chosen])
        inputs = pad_batch([rows[number] for number, _ in chosen], tokenizer.pad_id)  # (N, T)
        wanted = inputs[torch.arange(len(chosen)), places]
        yield _at_hidden(model, tokenizer, inputs, places).cpu(), wanted


def _at_hidden(model: MaskedLanguageModel, tokenizer: Tokenizer, inputs: Tensor, places: Tensor) -> Tensor:
    """Log-probabilities (N, V), in float64, of one place of each row, which is hidden first."""
    device, rows = next(model.parameters()).device, torch.arange(len(inputs))
    inputs = inputs.clone()
    inputs[rows, places] = tokenizer.mask_id
    real = inputs != tokenizer.pad_id
    was_training = model.training
    model.eval()
    hidden = model.body(inputs.to(device), None if bool(real.all()) else real.to(device))  # (N, T, D)
    logits = model.head(hidden[rows.to(device), places.to(device)])  # (N, V)
    model.train(was_training)
    return logits.double().log_softmax(dim=-1)


@torch.no_grad()
def fill_probs(
    model: LanguageModel | MaskedLanguageModel,
    tokenizer: Tokenizer,
    ids: Sequence[int],
    position: int,
    *,
    sides: Sides = "both",
    tokens_per_batch: int = 8192,
) -> np.ndarray:
    """What a model expects at one place of a text.

    Parameters
    ----------
    model : LanguageModel or MaskedLanguageModel
        A language model must be causal.
    tokenizer : Tokenizer
    ids : sequence of int
        The pieces of the whole text, without special ids; the one at `position` is not looked at.
    position : int
    sides : {"both", "left"}
        "left": given only what stands before, for a causal model.
    tokens_per_batch : int
        Changes memory and speed, not the result.

    Returns
    -------
    ndarray of shape (V,), float64
        Sums to 1 over the pieces that texts are made of; special ids have 0.

    Notes
    -----
    For both sides a causal model scores the text once for each piece: V passes over what follows the blank.
    """
    check_vocabulary(model, tokenizer)
    if not 0 <= position < len(ids):
        raise ValueError(f"position must be from 0 to {len(ids) - 1}, got {position}")
    if sides not in ("both", "left"):
        raise ValueError(f"sides must be 'both' or 'left', got {sides!r}")
    masked = isinstance(model, MaskedLanguageModel)
    if not masked and not model.config.causal:
        raise ValueError("a blank needs a causal or a masked language model, got one that is neither")
    longest = model.config.max_len - (2 if masked else 1)
    if len(ids) > longest:
        raise ValueError(f"a text with a blank must be at most {longest} pieces long, got {len(ids)}")
    if isinstance(model, MaskedLanguageModel):
        if sides == "left":
            raise ValueError("the left side alone is what a causal model sees, got a masked model")
        row = torch.tensor([[tokenizer.cls_id, *ids, tokenizer.sep_id]])
        log_probs = _at_hidden(model, tokenizer, row, torch.tensor([position + 1]))[0].cpu()
    else:
        was_training = model.training
        model.eval()
        log_probs = _from_left(model, tokenizer, ids, position)
        if sides == "both":
            log_probs = log_probs + _what_follows(model, tokenizer, ids, position, tokens_per_batch)
        model.train(was_training)
    log_probs[[*unwritten_ids(tokenizer), tokenizer.eos_id]] = -torch.inf
    return log_probs.softmax(dim=0).numpy()


def _from_left(model: LanguageModel, tokenizer: Tokenizer, ids: Sequence[int], position: int) -> Tensor:
    """Log-probability of each piece after those before a place; shape (V,)."""
    device = next(model.parameters()).device
    prefix = torch.tensor([[tokenizer.bos_id, *ids[:position]]], device=device)
    return model.head(model.body(prefix)[0, -1]).double().log_softmax(dim=-1).cpu()


def _what_follows(
    model: LanguageModel, tokenizer: Tokenizer, ids: Sequence[int], position: int, tokens_per_batch: int
) -> Tensor:
    """Log-probability of all that follows a place, for each piece that may stand there; shape (V,)."""
    device = next(model.parameters()).device
    row = torch.tensor([tokenizer.bos_id, *ids], device=device)
    targets = torch.tensor([*ids[position + 1 :], tokenizer.eos_id], device=device)
    found = []
    rows_per_batch = max(1, tokens_per_batch // len(row))
    for pieces in torch.arange(tokenizer.vocab_size, device=device).split(rows_per_batch):
        inputs = row.repeat(len(pieces), 1)  # (N, T)
        inputs[:, position + 1] = pieces
        logits = model.head(model.body(inputs)[:, position + 1 :]).float()  # (N, what follows, V)
        nats = F.cross_entropy(logits.flatten(0, 1), targets.repeat(len(pieces)), reduction="none")
        found.append(-nats.view(len(pieces), -1).double().sum(dim=1))
    return torch.cat(found).cpu()
