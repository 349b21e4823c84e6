"""The loss over a large vocabulary, some positions at a time, so that all logits never exist at once."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

LOGITS_AT_ONCE = 2**22  # few enough to stay in the processor's cache


def smoothed_output_loss(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    *,
    label_smoothing: float = 0.0,
    bias: Tensor | None = None,
) -> Tensor:
    r"""Mean cross-entropy of an output layer's predictions, against targets that are smoothed.

    .. math:: -\sum_v q(v) \log p(v), \quad q(v) = (1 - s) [v = \text{target}] + s / V,
              \quad p = \text{softmax}(W h + b)

    Parameters
    ----------
    hidden : Tensor of shape (N, D)
        States before the output layer, only those of positions that count.
    weight : Tensor of shape (V, D)
    targets : Tensor of shape (N,)
    label_smoothing : float
        s, in [0, 1]: the share of probability that is spread over the whole vocabulary.
    bias : Tensor of shape (V,), optional

    Returns
    -------
    Tensor of shape ()
        In float32. Under autocast the products are made in its precision.

    Notes
    -----
    Equal to `torch.nn.CrossEntropyLoss` on all logits. The gradients are made in the forward pass, chunk by
    chunk, while the logits of the chunk are at hand; the backward pass only scales them. NaN without rows.

    References
    ----------
    Szegedy et al., arXiv 1512.00567, section 7 (label smoothing).
    """
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must lie in [0, 1], got {label_smoothing}")
    return _OutputLoss.apply(hidden, weight, bias, targets, label_smoothing)


class _OutputLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
    ) -> Tensor:
        device = hidden.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        exact = torch.promote_types(weight.dtype, torch.float32)
        n_rows, n_pieces = len(hidden), len(weight)
        states, matrix = hidden.detach().to(dtype), weight.detach().to(dtype)
        added = None if bias is None else bias.detach().to(dtype)
        grad_hidden = torch.empty_like(states)
        grad_weight = torch.zeros_like(weight)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        total = torch.zeros((), device=hidden.device, dtype=exact)
        at_once = max(1, LOGITS_AT_ONCE // n_pieces)
        with torch.autocast(device, enabled=False):
            for start in range(0, n_rows, at_once):
                part = states[start : start + at_once]  # (C, D)
                wanted = targets[start : start + at_once, None]  # (C, 1)
                logits = F.linear(part, matrix, added).to(exact)  # (C, V)
                nats, error = _nats_and_error(logits, wanted, smoothing)
                total += nats
                if grad_bias is not None:
                    grad_bias += error.sum(dim=0)
                error = error.to(dtype)
                grad_hidden[start : start + at_once] = error @ matrix
                grad_weight += error.T @ part
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        ctx.n_rows, ctx.dtype = n_rows, hidden.dtype
        return total / n_rows

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        scale = grads[0] / ctx.n_rows
        scaled_bias = None if grad_bias is None else grad_bias * scale
        return grad_hidden.to(ctx.dtype) * scale, grad_weight * scale, scaled_bias, None, None


def _nats_and_error(logits: Tensor, wanted: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The summed loss of some positions, and p - q, written over their logits.

    The logarithm of the sum of exponentials follows from the largest logit and its probability, which is no
    smaller than 1 / V: one pass of exponentials is enough for both.
    """
    n_pieces = logits.shape[1]
    top = logits.amax(dim=1)  # (C,)
    expected = logits.gather(1, wanted).sum() * (1 - smoothing)
    if smoothing:
        expected = expected + logits.sum() * (smoothing / n_pieces)
    probs = torch.softmax(logits, dim=1, out=logits)  # (C, V)
    nats = (top - probs.amax(dim=1).log()).sum() - expected
    error = probs.sub_(smoothing / n_pieces) if smoothing else probs
    error.scatter_add_(1, wanted, error.new_full((), smoothing - 1).expand_as(wanted))
    return nats, error
