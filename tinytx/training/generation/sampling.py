"""Choosing the next token from its scores: temperature, top-k, top-p, and greedily."""

from __future__ import annotations

import torch
from torch import Tensor


def check_sampling(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Refuse settings that `next_token_probs` cannot follow."""
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1, or None for no limit, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must lie in (0, 1], or None for no limit, got {top_p}")


def next_token_probs(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Distribution that the next token is drawn from.

    The logits are divided by the temperature and turned into probabilities; then only the ``top_k``
    largest stay; then only the smallest set of most probable tokens whose probability reaches
    ``top_p`` (the token that crosses stays); what is left is scaled to sum to 1.

    Parameters
    ----------
    logits : Tensor of shape (..., V)
        Scores before the softmax; ``-inf`` forbids a token.
    temperature : float
        Positive; below 1 sharpens, above 1 flattens.
    top_k : int or None
        Number of tokens kept; None keeps all.
    top_p : float or None
        Probability to be reached, in (0, 1]; None keeps all.

    Returns
    -------
    Tensor of shape (..., V)
        Probabilities; each row sums to 1.

    Notes
    -----
    ``top_p`` counts probability before top-k took any away: with both, the stricter one decides. Some
    libraries scale the ``top_k`` to sum to 1 first and so keep fewer.

    References
    ----------
    Holtzman et al., The Curious Case of Neural Text Degeneration, arXiv:1904.09751, section 3.1 (top-p).

    Examples
    --------
    >>> logits = torch.tensor([0.5, 0.3, 0.2]).log()
    >>> [round(p, 3) for p in next_token_probs(logits, top_k=2).tolist()]
    [0.625, 0.375, 0.0]
    >>> [round(p, 3) for p in next_token_probs(logits, top_p=0.6).tolist()]
    [0.625, 0.375, 0.0]
    """
    check_sampling(temperature, top_k, top_p)
    probs = torch.softmax(logits.float() / temperature, dim=-1)
    if top_k is None and top_p in (None, 1.0):
        return probs
    ordered, order = probs.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        ordered[..., top_k:] = 0
    if top_p is not None and top_p < 1:
        before = ordered.double().cumsum(dim=-1) - ordered  # probability of all that stand in front
        ordered[before >= top_p] = 0
    ordered /= ordered.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter_(-1, order, ordered)


def draw(
    logits: Tensor,
    generator: torch.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Draw one token a row from `next_token_probs`; parameters as there.

    Parameters
    ----------
    logits : Tensor of shape (R, V)
    generator : torch.Generator
        On the CPU. Where only one token is left to be drawn, nothing is drawn.

    Returns
    -------
    Tensor of shape (R,), on the CPU
        Of several best, ``top_k=1`` takes the first.
    """
    if top_k == 1:
        best, ids = logits.max(dim=-1)
        if not best.isfinite().all():
            raise ValueError("logits must have a finite maximum to be drawn from, got none")
        return ids.cpu()
    probs = next_token_probs(logits.float().cpu(), temperature, top_k, top_p)
    return torch.multinomial(probs, 1, generator=generator)[:, 0]
