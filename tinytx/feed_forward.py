"""The feed-forward network of a block, and several of them behind a router.

Shape letters: B batch size, T tokens, D model width, F feed-forward width, E experts, A experts of one token.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from tinytx.config import TransformerConfig
from tinytx.fast import Dropout

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "gelu-tanh": partial(nn.GELU, approximate="tanh"),
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "swiglu": nn.SiLU,  # of the gate
}


class FeedForward(nn.Module):
    """Transform each token on its own: ``act(x W_up + b_up) W_down + b_down``.

    With "swiglu" a gate takes the place of the activation, which acts within it:
    ``(silu(x W_gate + b_gate) * (x W_up + b_up)) W_down + b_down``.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.3, equation 2.
    .. [2] Hendrycks and Gimpel, "Gaussian Error Linear Units", arXiv 1606.08415, section 2.
    .. [3] Shazeer, "GLU Variants Improve Transformer", arXiv 2002.05202, section 2, equation 6, for SwiGLU.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        gated = config.activation == "swiglu"
        self.gate_proj = nn.Linear(config.d_model, config.d_ff, bias=config.bias) if gated else None
        self.up_proj = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.down_proj = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        self.dropout = Dropout(config.dropout)
        self.activation = ACTIVATIONS[config.activation]()

    def forward(self, x: Tensor) -> Tensor:
        """Transform each vector of x, (B, T, D)."""
        if self.gate_proj is None:
            inner = self.activation(self.up_proj(x))  # (B, T, F)
        else:
            inner = self.activation(self.gate_proj(x)) * self.up_proj(x)  # (B, T, F)
        return self.down_proj(self.dropout(inner))  # (B, T, D)


class MixtureOfExperts(nn.Module):
    """Transform each token by those of E feed-forward networks that a router chooses for it.

    ``sum_e p_e FeedForward_e(x)`` over the A experts with the largest ``p = softmax(x W_router)``.

    Notes
    -----
    The weights p are not scaled to sum to 1 over the chosen: with one expert a token, its weight would always
    be 1, and the router would get no gradient. No loss holds the experts equally busy, as published models
    have it: it would have to pass through every model, and the few experts of a lesson share the tokens
    without. There is no limit on the tokens of an expert, so no token is dropped.

    References
    ----------
    .. [1] Shazeer et al., "Outrageously Large Neural Networks", arXiv 1701.06538, section 2.
    .. [2] Fedus et al., "Switch Transformers", arXiv 2101.03961, section 2.1, equations 1 and 2.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.experts_per_token = config.experts_per_token
        self.router = nn.Linear(config.d_model, config.n_experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(config) for _ in range(config.n_experts))

    def forward(self, x: Tensor) -> Tensor:
        """Transform each vector of x, (..., D)."""
        weights, chosen = self.router(x).softmax(dim=-1).topk(self.experts_per_token)  # (..., A)
        output = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            here = chosen == number  # (..., A), True at most once a token
            tokens = here.any(dim=-1)  # (...)
            output[tokens] += weights[here][:, None] * expert(x[tokens])  # (n, D)
        return output


def feed_forward(config: TransformerConfig) -> FeedForward | MixtureOfExperts:
    """The feed-forward network of a block, or several with a router."""
    return FeedForward(config) if config.n_experts == 1 else MixtureOfExperts(config)
