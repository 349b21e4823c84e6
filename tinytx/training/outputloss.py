"""The loss over a large vocabulary, some positions at a time, so that all logits never exist at once."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 512  # positions; their logits stay in the processor's cache


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
    chunk, while the logits of the chunk are at hand; the backward pass only scales them.

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
        n_rows, n_pieces = len(hidden), len(weight)
        states, matrix = hidden.detach().to(dtype), weight.detach().to(dtype)
        grad_hidden = torch.empty_like(states)
        grad_weight = torch.zeros_like(weight)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        total = torch.zeros((), device=hidden.device, dtype=torch.promote_types(weight.dtype, torch.float32))
        with torch.autocast(device, enabled=False):
            for start in range(0, n_rows, CHUNK):
                part = states[start : start + CHUNK]  # (C, D)
                logits = (part @ matrix.T).to(total.dtype)  # (C, V)
                if bias is not None:
                    logits += bias.detach()
                wanted = targets[start : start + CHUNK, None]  # (C, 1)
                log_probs = F.log_softmax(logits, dim=-1)  # (C, V)
                total -= (1 - smoothing) * log_probs.gather(1, wanted).sum()
                if smoothing:
                    total -= smoothing / n_pieces * log_probs.sum()
                error = log_probs.exp_().sub_(smoothing / n_pieces)  # (C, V), p - q
                error.scatter_add_(1, wanted, error.new_full((), smoothing - 1).expand_as(wanted))
                error /= n_rows
                if grad_bias is not None:
                    grad_bias += error.sum(dim=0)
                error = error.to(dtype)
                grad_hidden[start : start + CHUNK] = error @ matrix
                grad_weight += error.T @ part
        ctx.save_for_backward(grad_hidden.to(hidden.dtype), grad_weight, grad_bias)
        return total / n_rows

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        (scale,) = grads
        scaled_bias = None if grad_bias is None else grad_bias * scale
        return grad_hidden * scale.to(grad_hidden.dtype), grad_weight * scale, scaled_bias, None, None
