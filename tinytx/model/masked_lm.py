"""A model that fills blanks: a body that looks both ways, and BERT's two heads.

Shape letters: B rows of a batch, T tokens, N places, D model width, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import FIRST_LOGIT_STD, TransformerBody, activation


class MaskedHead(nn.Module):
    """Score the vocabulary at some places: ``norm(act(h W_t + b_t)) W + b``.

    Parameters
    ----------
    config : TransformerConfig
        Read for sizes, `activation`, `bias`, `head_bias` and `norm_eps`.
    transform : bool
        False leaves ``norm(act(h W_t + b_t))`` out: one linear map, as in a `LanguageModel`.

    Attributes
    ----------
    dense, norm, output : Module
        In this order; without `transform` the first two change nothing.

    References
    ----------
    .. [1] Devlin et al., "BERT", arXiv 1810.04805, section 3.1, task 1. The transform
       stands in their code only.
    """

    def __init__(self, config: TransformerConfig, transform: bool = True) -> None:
        super().__init__()
        self.dense: nn.Module = nn.Identity()
        self.norm: nn.Module = nn.Identity()
        if transform:
            dense = nn.Linear(config.d_model, config.d_model, bias=config.bias)
            self.dense = nn.Sequential(dense, activation(config))
            self.norm = nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=config.lm_bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Turn vectors (..., D) into logits (..., V)."""
        return self.output(self.norm(self.dense(hidden)))


class NextSentenceHead(nn.Module):
    """Say from the first vector of a row whether its second sentence follows its first.

    ``tanh(h W_p + b_p) W + b``; class 0 means that it follows, class 1 that it comes from elsewhere.

    Parameters
    ----------
    config : TransformerConfig
        Read for `d_model` and `bias`.

    References
    ----------
    .. [1] Devlin et al., "BERT", arXiv 1810.04805, section 3.1, task 2.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pooler = nn.Linear(config.d_model, config.d_model, bias=config.bias)
        self.output = nn.Linear(config.d_model, 2, bias=config.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Turn the vectors of a body, (B, T, D), of which the first is read, into logits (B, 2)."""
        return self.output(torch.tanh(self.pooler(hidden[:, 0])))


class MaskedLanguageModel(nn.Module):
    """A body that looks both ways, and a head that says which token belongs in a hidden place.

    ``logits = head(body(token_ids))``, read at hidden places; elsewhere the token itself stands in view.

    Parameters
    ----------
    config : TransformerConfig
        All settings. The body looks both ways, whatever `causal` says. With `tie_embeddings` the matrix W of
        the head is that of the token embeddings, as in BERT.
    transform : bool
        See `MaskedHead`.
    next_sentence : bool
        True adds a `NextSentenceHead`.

    Attributes
    ----------
    body : TransformerBody
    head : MaskedHead
    next_head : NextSentenceHead or None

    Notes
    -----
    In training only hidden places need logits: call body and head apart, ``head(body(token_ids)[hidden])``.
    With ``positions="learned"``, ``norm="last"``, ``embed_norm=True``, ``scale_embeddings=False``,
    ``tie_embeddings=True``, ``n_segments=2`` and ``norm_eps=1e-12`` it is BERT; `tinytx.hf.convert` takes
    over the weights of BERT and its kin.

    References
    ----------
    .. [1] Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding",
       arXiv 1810.04805, section 3.

    Examples
    --------
    >>> from tinytx.model.config import PRESETS
    >>> model = MaskedLanguageModel(PRESETS["tiny"], next_sentence=True)
    >>> token_ids = torch.tensor([[5, 8, 4, 6]])
    >>> model(token_ids).shape, model.follows(token_ids).shape
    (torch.Size([1, 4, 1000]), torch.Size([1, 2]))
    """

    def __init__(
        self, config: TransformerConfig, *, transform: bool = True, next_sentence: bool = False
    ) -> None:
        super().__init__()
        self.transform = transform
        self.body = TransformerBody(config.replace(causal=False))
        self.head = MaskedHead(config, transform)
        self.next_head = NextSentenceHead(config) if next_sentence else None
        for module in (self.head, *([] if self.next_head is None else [self.next_head])):
            for linear in module.modules():
                if isinstance(linear, nn.Linear):
                    nn.init.xavier_uniform_(linear.weight)
                    if linear.bias is not None:
                        nn.init.zeros_(linear.bias)
        if config.tie_embeddings:
            self.head.output.weight = self.body.token_embed.weight
        else:
            nn.init.normal_(self.head.output.weight, std=FIRST_LOGIT_STD * config.d_model**-0.5)

    @property
    def config(self) -> TransformerConfig:
        """The settings of the body."""
        return self.body.config

    def forward(
        self, token_ids: Tensor, padding_mask: Tensor | None = None, segment_ids: Tensor | None = None
    ) -> Tensor:
        """Score the vocabulary at every place: (B, T, V). Parameters as in `TransformerBody.forward`."""
        return self.head(self.body(token_ids, padding_mask, segment_ids))  # (B, T, V)

    def follows(
        self, token_ids: Tensor, padding_mask: Tensor | None = None, segment_ids: Tensor | None = None
    ) -> Tensor:
        """Score whether the second sentence of each row follows the first: (B, 2), class 0 = it does.

        Raises
        ------
        ValueError
            If the model was built without `next_sentence`.
        """
        if self.next_head is None:
            raise ValueError("follows needs a model with next_sentence=True, got next_sentence=False")
        return self.next_head(self.body(token_ids, padding_mask, segment_ids))  # (B, 2)
