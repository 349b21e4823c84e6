"""A classifier: a transformer, the pooled hidden state of all tokens, and an output layer.

Shape letters: B batch size, T tokens, D model width, C classes.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.config import TransformerConfig
from tinytx.fast import IGNORE_ID, sent, widened
from tinytx.masks import Mask, dtype_of
from tinytx.settings import check_whole, require
from tinytx.transformer import Transformer, init_linear

Pooling = Literal["mean", "last", "first"]


class Classifier(nn.Module):
    """A transformer, the pooled hidden state of all tokens, and an output layer that scores the classes.

    ``logits = pool(body(token_ids)) W + b``

    Parameters
    ----------
    n_classes : int
        C.
    pooling : {"mean", "last", "first"}
        Over real tokens only: their mean, the last of them, or the first. In a causal transformer the first
        token has attended to nothing but itself.
    dropout : float, optional
        Before the output layer; that of the configuration where not given.
    body : Transformer, optional
        Read instead of a new one. It is not copied: training the classifier trains it.

    References
    ----------
    .. [1] Radford et al., "Improving Language Understanding by Generative Pre-Training", 2018, section 3.2.

    Examples
    --------
    Pretrain a language model, then fine-tune its body:

    >>> from tinytx.config import PRESETS
    >>> from tinytx.transformer import LanguageModel
    >>> pretrained = LanguageModel(PRESETS["tiny"])
    >>> model = Classifier.from_body(pretrained.body, n_classes=2)
    >>> model(torch.tensor([[5, 8, 2]])).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        config: TransformerConfig,
        n_classes: int = 2,
        pooling: Pooling = "mean",
        dropout: float | None = None,
        *,
        body: Transformer | None = None,
    ) -> None:
        super().__init__()
        _check_pooling(pooling)
        check_whole("n_classes", n_classes, 1)
        if not isinstance(body, Transformer | None):
            raise TypeError(f"body must be a Transformer, such as model.body, got a {type(body).__name__}")
        if body is not None and body.config != config:
            raise ValueError(f"body must have the configuration {config}, got {body.config}")
        self.config, self.pooling = config, pooling
        self.body = Transformer(config) if body is None else body
        self.dropout = nn.Dropout(config.dropout if dropout is None else dropout)
        self.head = nn.Linear(config.d_model, n_classes, bias=config.bias)
        init_linear(self.head)

    @classmethod
    def from_body(
        cls, body: Transformer, n_classes: int = 2, pooling: Pooling = "mean", dropout: float | None = None
    ) -> Classifier:
        """Put a new output layer on a transformer, for instance a pretrained one; parameters as above."""
        return cls(body.config, n_classes, pooling, dropout, body=body)

    def forward(self, token_ids: Tensor, padding_mask: Mask = None) -> Tensor:
        """Score the classes of each row: (B, C). Parameters as in `Transformer.forward`."""
        pooled = pool(self.body(token_ids, padding_mask), padding_mask, self.pooling)  # (B, D)
        logits: Tensor = self.head(self.dropout(pooled))  # (B, C)
        return logits

    def loss(self, token_ids: Tensor, labels: Tensor, padding_mask: Mask = None) -> Tensor:
        """Mean cross-entropy of the labels, (B,), in nats a row. Parameters as in `Transformer.forward`."""
        if not isinstance(labels, Tensor) or labels.is_floating_point():
            raise TypeError(f"labels must be a tensor of integers, got {dtype_of(labels)}")
        logits = self(token_ids, padding_mask)  # (B, C)
        if labels.device.type == "cpu" and (labels == IGNORE_ID).any():  # the loss would pass over it
            raise ValueError(f"labels must be from 0 to {logits.shape[-1] - 1}, got {IGNORE_ID}")
        return F.cross_entropy(widened(logits), sent(labels.long(), logits.device))


def _check_pooling(pooling: str) -> None:
    known = get_args(Pooling)
    require(pooling in known, f"pooling must be one of {', '.join(known)}", repr(pooling))


def pool(hidden: Tensor, padding_mask: Mask, pooling: Pooling) -> Tensor:
    """Reduce the hidden states of each row, (B, T, D), to one vector, (B, D), over real tokens.

    Zeros (mean) or the first vector for a row without any real token. Parameters as in `Classifier`.

    Examples
    --------
    >>> hidden = torch.tensor([[[1.0], [3.0], [8.0]]])
    >>> real = torch.tensor([[True, True, False]])
    >>> [pool(hidden, real, how).item() for how in ("mean", "last", "first")]
    [2.0, 3.0, 1.0]
    """
    _check_pooling(pooling)
    if padding_mask is None:
        padding_mask = hidden.new_ones(hidden.shape[:2], dtype=torch.bool)
    if pooling == "mean":
        real = padding_mask[:, :, None]  # (B, T, 1)
        return hidden.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1)  # (B, D)
    rows, positions = (torch.arange(n, device=hidden.device) for n in hidden.shape[:2])
    if pooling == "last":
        return hidden[rows, (padding_mask * positions).amax(dim=1)]  # (B, D)
    return hidden[rows, padding_mask.int().argmax(dim=1)]  # (B, D)
