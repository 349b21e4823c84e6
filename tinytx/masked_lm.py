"""A masked language model: a bidirectional transformer with BERT's two heads.

Shape letters: B batch size, T tokens, D model width, V vocabulary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.config import TransformerConfig
from tinytx.fast import IGNORE_ID, sent, widened
from tinytx.masks import Mask
from tinytx.transformer import ACTIVATIONS, Transformer, init_linear, init_output_layer, make_norm


class MaskedHead(nn.Module):
    """Score the vocabulary: ``norm(act(h W_t + b_t)) W + b``; without `transform`, ``h W + b``.

    References
    ----------
    .. [1] Devlin et al., "BERT", arXiv 1810.04805, section 3.1, task 1. The transform is in their code only.
    """

    def __init__(self, config: TransformerConfig, transform: bool = True) -> None:
        super().__init__()
        self.dense: nn.Module = nn.Identity()
        self.norm: nn.Module = nn.Identity()
        if transform:
            dense = nn.Linear(config.d_model, config.d_model, bias=config.bias)
            self.dense = nn.Sequential(dense, ACTIVATIONS[config.activation]())
            self.norm = make_norm(config)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=config.lm_bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Turn hidden states (..., D) into logits (..., V)."""
        logits: Tensor = self.output(self.norm(self.dense(hidden)))
        return logits


class NextSentenceHead(nn.Module):
    """Classify from the first hidden state of a row whether its second sentence follows its first.

    ``tanh(h W_p + b_p) W + b``; class 0: it follows, class 1: it comes from another text.

    References
    ----------
    .. [1] Devlin et al., "BERT", arXiv 1810.04805, section 3.1, task 2.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pooler = nn.Linear(config.d_model, config.d_model, bias=config.bias)
        self.output = nn.Linear(config.d_model, 2, bias=config.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Turn the hidden states of a row, (B, T, D), of which the first is read, into logits (B, 2)."""
        logits: Tensor = self.output(torch.tanh(self.pooler(hidden[:, 0])))
        return logits


class MaskedLanguageModel(nn.Module):
    """A bidirectional transformer, `body`, and a head that predicts the tokens at masked positions.

    ``logits = head(body(token_ids))``, read at masked positions; elsewhere the model sees the token itself.

    Parameters
    ----------
    config : TransformerConfig
        The transformer is bidirectional, whatever `causal` says. With `tie_embeddings` the matrix W of the
        head is that of the token embeddings, as in BERT.
    transform : bool
        See `MaskedHead`.
    next_sentence : bool
        True adds a `NextSentenceHead`, `next_head`.

    Notes
    -----
    With ``positions="learned"``, ``norm="last"``, ``embed_norm=True``, ``scale_embeddings=False``,
    ``tie_embeddings=True``, ``n_segments=2`` and ``norm_eps=1e-12`` it is BERT; `tinytx_run.hf.convert` takes
    over the weights of BERT and its kin.

    References
    ----------
    .. [1] Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding",
       arXiv 1810.04805, section 3.

    Examples
    --------
    >>> from tinytx.config import PRESETS
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
        self.body = Transformer(config.replace(causal=False))
        self.config = self.body.config
        self.head = MaskedHead(config, transform)
        self.next_head = NextSentenceHead(config) if next_sentence else None
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear) and name.startswith(("head.", "next_head.")):
                init_linear(module)
        init_output_layer(self.head.output, self.body.token_embed, config)

    def forward(
        self, token_ids: Tensor, padding_mask: Mask = None, segment_ids: Tensor | None = None
    ) -> Tensor:
        """Score the vocabulary at every position: (B, T, V). Parameters as in `Transformer.forward`."""
        logits: Tensor = self.head(self.body(token_ids, padding_mask, segment_ids))  # (B, T, V)
        return logits

    def loss(
        self, token_ids: Tensor, targets: Tensor, padding_mask: Mask = None, *, ignore_id: int = IGNORE_ID
    ) -> Tensor:
        """Mean cross-entropy at masked positions, in nats a token: the first of `losses`."""
        return self.losses(token_ids, targets, padding_mask, ignore_id=ignore_id)[0]

    def losses(
        self,
        token_ids: Tensor,
        targets: Tensor,
        padding_mask: Mask = None,
        segment_ids: Tensor | None = None,
        next_labels: Tensor | None = None,
        *,
        ignore_id: int = IGNORE_ID,
    ) -> tuple[Tensor, Tensor | None]:
        """Mean nats a masked token, and mean nats a row of the next-sentence head.

        Parameters
        ----------
        targets : Tensor of shape (B, T), integer
            The original token at masked positions, which alone reach the head, and `ignore_id` elsewhere,
            best on the CPU, as in `output_loss`. Where none is masked, this part and its gradients are 0.
        next_labels : Tensor of shape (B,), integer, optional
            0 where the second sentence follows the first; read if the model has a `next_head`.
        """
        if targets.shape != token_ids.shape:
            shapes = f"{tuple(token_ids.shape)}, got {tuple(targets.shape)}"
            raise ValueError(f"targets must have the shape of token_ids, {shapes}")
        hidden = self.body(token_ids, padding_mask, segment_ids)  # (B, T, D)
        chosen = (targets != ignore_id).nonzero(as_tuple=True)
        if len(chosen[0]):
            rows, columns = (sent(axis, hidden.device) for axis in chosen)
            wanted = sent(targets[chosen].long(), hidden.device)
            masked = F.cross_entropy(widened(self.head(hidden[rows, columns])), wanted)
        else:
            masked = self.head(hidden[:, :1]).float().sum() * 0.0
        if next_labels is None or self.next_head is None:
            return masked, None
        follows = widened(self.next_head(hidden))  # (B, 2)
        return masked, F.cross_entropy(follows, sent(next_labels.long(), hidden.device))

    def follows(
        self, token_ids: Tensor, padding_mask: Mask = None, segment_ids: Tensor | None = None
    ) -> Tensor:
        """Score whether the second sentence of each row follows the first: (B, 2), class 0 = it does."""
        if self.next_head is None:
            raise ValueError("follows needs a model with next_sentence=True, got next_sentence=False")
        logits: Tensor = self.next_head(self.body(token_ids, padding_mask, segment_ids))  # (B, 2)
        return logits
