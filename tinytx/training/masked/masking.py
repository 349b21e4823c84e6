"""Hiding tokens as BERT does: which ones, and what stands in their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

IGNORED = -100  # a label where nothing is predicted; the losses of torch skip it
HIDDEN, EXCHANGED = 0.8, 0.1  # of the drawn tokens; the rest stays as it is


@dataclass(frozen=True, kw_only=True)
class Masking:
    """How a masked language model is trained.

    Parameters
    ----------
    p : float
        Share of the tokens that are drawn.
    whole_words : bool
        True draws words, with all their pieces, in place of single pieces.
    next_sentence : bool
        True shows pairs of sentences and asks whether the second follows the first.
    transform : bool
        Whether the model has the transform of `MaskedHead`.
    """

    p: float = 0.15
    whole_words: bool = False
    next_sentence: bool = False
    transform: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.p < 1:
            raise ValueError(f"p must lie between 0 and 1, got {self.p}")

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return asdict(self)


def mask_tokens(
    token_ids: Tensor,
    *,
    mask_id: int,
    special_ids: Sequence[int],
    vocab_size: int,
    p: float = 0.15,
    words: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Draw tokens to be predicted; of these hide 80 %, exchange 10 % and leave 10 %.

    Parameters
    ----------
    token_ids : Tensor of any shape, integer
    mask_id : int
        What stands in a hidden place.
    special_ids : sequence of int
        Ids that are never drawn and never put in.
    vocab_size : int
        V; an exchanged token becomes any id below V but the special ones and `mask_id`.
    p : float
        Chance of each token to be drawn.
    words : Tensor of the shape of `token_ids`, optional
        A number from 0 up for the word that each token belongs to. Whole words are then drawn; what becomes
        of their pieces is drawn one by one.
    generator : torch.Generator, optional
        torch's own where not given.

    Returns
    -------
    inputs : Tensor of the shape of `token_ids`
        The input itself is left alone.
    labels : Tensor of the same shape
        The original id where one was drawn, and -100 elsewhere.

    References
    ----------
    Devlin et al., "BERT", arXiv 1810.04805, section 3.1 and appendix A.1; whole words as in its authors'
    later code.

    Examples
    --------
    >>> rule = dict(mask_id=4, special_ids=[0], vocab_size=9)
    >>> inputs, labels = mask_tokens(torch.tensor([[7, 8, 0]]), **rule, p=1.0)
    >>> labels
    tensor([[   7,    8, -100]])
    """
    known = set(special_ids) | {mask_id}
    ordinary = torch.tensor([one for one in range(vocab_size) if one not in known])
    if not len(ordinary):
        raise ValueError(f"vocab_size must leave ids that are not special, got vocab_size={vocab_size}")
    may = ~torch.isin(token_ids, torch.tensor(sorted(known)))
    if words is None:
        drawn = may & (torch.rand(token_ids.shape, generator=generator) < p)
    else:
        n_words = int(words.max()) + 1
        drawn = may & (torch.rand(n_words, generator=generator) < p)[words]
    fate = torch.rand(token_ids.shape, generator=generator)
    others = ordinary[torch.randint(len(ordinary), token_ids.shape, generator=generator)]
    inputs = torch.where(drawn & (fate < HIDDEN), mask_id, token_ids)
    exchanged = drawn & (fate >= HIDDEN) & (fate < HIDDEN + EXCHANGED)
    inputs = torch.where(exchanged, others.to(token_ids.dtype), inputs)
    return inputs, torch.where(drawn, token_ids, IGNORED)
