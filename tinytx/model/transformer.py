"""Whole transformers: a body, and a head that reads its vectors.

Body and head are two modules, so that the same body serves to predict the next token and to classify a text.
Shape letters: B rows of a batch, T tokens, D model width, V vocabulary, C classes.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from tinytx.model.body import FIRST_LOGIT_STD, TransformerBody
from tinytx.model.config import TransformerConfig

Pooling = Literal["mean", "last", "first"]


class LanguageModel(nn.Module):
    """A body, and a head that scores every token of the vocabulary at every place.

    ``logits = body(token_ids) W + b``. With a causal body, ``logits[:, t]`` scores what may follow token t,
    and ``softmax(logits[:, t])`` is the distribution of the next token.

    Parameters
    ----------
    config : TransformerConfig
        All settings; with `tie_embeddings` the matrix W is that of the token embeddings.

    Attributes
    ----------
    body : TransformerBody
    head : torch.nn.Linear
        From D to V. Body and head may be called apart, for instance to score a few places only.

    Notes
    -----
    Weights start such that first logits are small (standard deviation ``FIRST_LOGIT_STD``) and the first loss
    is close to ln V, that of a guess.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.4.

    Examples
    --------
    >>> from tinytx.model.config import PRESETS
    >>> model = LanguageModel(PRESETS["tiny"])
    >>> model(torch.tensor([[5, 8, 2]])).shape
    torch.Size([1, 3, 1000])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.body = TransformerBody(config)
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=config.lm_bias)
        if config.tie_embeddings:
            self.head.weight = self.body.token_embed.weight
        else:
            nn.init.normal_(self.head.weight, std=FIRST_LOGIT_STD * config.d_model**-0.5)
        if config.lm_bias:
            nn.init.zeros_(self.head.bias)

    @property
    def config(self) -> TransformerConfig:
        """The settings of the body."""
        return self.body.config

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Score the vocabulary at every place: (B, T, V). Parameters as in `TransformerBody.forward`."""
        return self.head(self.body(token_ids, padding_mask))  # (B, T, V)


class Classifier(nn.Module):
    """A body, one vector drawn from all its tokens, and a head that scores the classes.

    ``logits = pool(body(token_ids)) W + b``

    Parameters
    ----------
    config : TransformerConfig
        All settings of the body.
    n_classes : int
        C, at least 1.
    pooling : {"mean", "last", "first"}
        Over real tokens only: their mean, the last of them, or the first. In a causal body the first token
        has seen nothing but itself.
    dropout : float, optional
        Before the head; that of the configuration where not given.
    body : TransformerBody, optional
        Read instead of a new one. It is not copied: training the classifier trains it.

    Raises
    ------
    ValueError
        If `pooling` or `n_classes` is not as above.

    References
    ----------
    .. [1] Radford et al., "Improving Language Understanding by Generative Pre-Training", 2018, section 3.2.

    Examples
    --------
    Pretrain a language model, then keep its body:

    >>> from tinytx.model.config import PRESETS
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
        body: TransformerBody | None = None,
    ) -> None:
        super().__init__()
        if pooling not in get_args(Pooling):
            raise ValueError(f"pooling must be one of {', '.join(get_args(Pooling))}, got {pooling!r}")
        if n_classes < 1:
            raise ValueError(f"n_classes must be at least 1, got {n_classes}")
        self.pooling: Pooling = pooling
        self.body = TransformerBody(config) if body is None else body
        self.dropout = nn.Dropout(config.dropout if dropout is None else dropout)
        self.head = nn.Linear(config.d_model, n_classes, bias=config.bias)
        nn.init.xavier_uniform_(self.head.weight)
        if config.bias:
            nn.init.zeros_(self.head.bias)

    @classmethod
    def from_body(
        cls,
        body: TransformerBody,
        n_classes: int = 2,
        pooling: Pooling = "mean",
        dropout: float | None = None,
    ) -> Classifier:
        """Put a new head on a body, for instance a pretrained one, which keeps its weights and its mask."""
        return cls(body.config, n_classes, pooling, dropout, body=body)

    @property
    def config(self) -> TransformerConfig:
        """The settings of the body."""
        return self.body.config

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Score the classes of each row: (B, C). Parameters as in `TransformerBody.forward`."""
        pooled = pool(self.body(token_ids, padding_mask), padding_mask, self.pooling)  # (B, D)
        return self.head(self.dropout(pooled))  # (B, C)


def pool(hidden: Tensor, padding_mask: Tensor | None, pooling: Pooling) -> Tensor:
    """Draw one vector from each row of a padded batch.

    Parameters
    ----------
    hidden : Tensor of shape (B, T, D)
        One vector a token.
    padding_mask : Tensor of shape (B, T), bool, or None
        True = a real token; None: all are.
    pooling : {"mean", "last", "first"}
        Over real tokens.

    Returns
    -------
    Tensor of shape (B, D)
        Zeros (mean) or the first vector for a row without any real token.

    Examples
    --------
    >>> hidden = torch.tensor([[[1.0], [3.0], [8.0]]])
    >>> real = torch.tensor([[True, True, False]])
    >>> [pool(hidden, real, how).item() for how in ("mean", "last", "first")]
    [2.0, 3.0, 1.0]
    """
    if padding_mask is None:
        padding_mask = torch.ones(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
    if pooling == "mean":
        real = padding_mask[:, :, None]  # (B, T, 1)
        return hidden.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1)  # (B, D)
    places = torch.arange(hidden.shape[1], device=hidden.device)
    if pooling == "last":
        chosen = places.masked_fill(~padding_mask, 0).amax(dim=1)  # (B,)
    else:
        chosen = places.masked_fill(~padding_mask, hidden.shape[1]).amin(dim=1) % hidden.shape[1]  # (B,)
    return hidden[torch.arange(hidden.shape[0], device=hidden.device), chosen]  # (B, D)
