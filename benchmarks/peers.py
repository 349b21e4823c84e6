"""Language models of other packages that compute what ours computes, of the same sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.hf.convert import GPT2
from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import LanguageModel

#: What all of them support: pre-norm, learned positions, tied embeddings.
SHARED = GPT2


class TorchEncoder(nn.Module):
    """`torch.nn.TransformerEncoder` with tied embeddings."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.token_embed = nn.Embedding(config.vocab_size, config.d_model)
        self.pos_embed = nn.Embedding(config.max_len, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        layer = nn.TransformerEncoderLayer(
            config.d_model,
            config.n_heads,
            config.d_ff,
            dropout=config.dropout,
            activation=partial(F.gelu, approximate="tanh"),
            layer_norm_eps=config.norm_eps,
            batch_first=True,
            norm_first=True,
        )
        final_norm = nn.LayerNorm(config.d_model, eps=config.norm_eps)
        self.encoder = nn.TransformerEncoder(layer, config.n_layers, final_norm, enable_nested_tensor=False)
        with torch.no_grad():  # as small as ours: what torch draws leads to first losses in the hundreds
            for table in (self.token_embed.weight, self.pos_embed.weight):
                nn.init.normal_(table, std=0.02)

    def forward(self, token_ids: Tensor) -> Tensor:
        """Score the vocabulary at every position: (B, T, V)."""
        seq_len = token_ids.shape[1]
        positions = torch.arange(seq_len, device=token_ids.device)
        x = self.dropout(self.token_embed(token_ids) + self.pos_embed(positions))  # (B, T, D)
        mask = nn.Transformer.generate_square_subsequent_mask(seq_len, device=token_ids.device)
        hidden = self.encoder(x, mask=mask, is_causal=True)  # (B, T, D)
        return hidden @ self.token_embed.weight.T


class HuggingFaceGPT2(nn.Module):
    """`transformers.GPT2LMHeadModel`."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        self.model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=config.vocab_size,
                n_positions=config.max_len,
                n_embd=config.d_model,
                n_layer=config.n_layers,
                n_head=config.n_heads,
                n_inner=config.d_ff,
                activation_function="gelu_new",
                resid_pdrop=config.dropout,
                embd_pdrop=config.dropout,
                attn_pdrop=config.dropout,
                layer_norm_epsilon=config.norm_eps,
                use_cache=False,
                bos_token_id=None,
                eos_token_id=None,
            )
        )

    def forward(self, token_ids: Tensor) -> Tensor:
        """Score the vocabulary at every position: (B, T, V)."""
        return self.model(token_ids).logits


def x_transformers(config: TransformerConfig) -> nn.Module:
    """A `TransformerWrapper` around a `Decoder` of `x-transformers`, with its fused attention."""
    from x_transformers import Decoder, TransformerWrapper

    return TransformerWrapper(
        num_tokens=config.vocab_size,
        max_seq_len=config.max_len,
        tie_embedding=True,
        tie_embedding_scale=1.0,
        emb_dropout=config.dropout,
        attn_layers=Decoder(
            dim=config.d_model,
            depth=config.n_layers,
            heads=config.n_heads,
            attn_dim_head=config.head_dim,
            attn_flash=True,
            attn_dropout=config.dropout,
            ff_mult=config.d_ff / config.d_model,
            ff_custom_activation=nn.GELU(approximate="tanh"),
            ff_dropout=config.dropout,
        ),
    )


#: Our model in the plain loop of the peers: separates the model from the training code.
PLAIN = "the same model in a plain loop"
#: Name of a peer -> its constructor, and what differs from ours.
PEERS: dict[str, tuple[Callable[[TransformerConfig], nn.Module], str]] = {
    PLAIN: (LanguageModel, "none"),
    "torch.nn.TransformerEncoder": (TorchEncoder, "none"),
    "transformers GPT-2": (HuggingFaceGPT2, "nothing dropped inside the feed-forward network"),
    "x-transformers": (x_transformers, "no biases in attention and norms"),
}


def peer_step(
    model: nn.Module, batches: list[tuple[Tensor, Tensor]], *, bf16: bool, optimizer: dict[str, Any]
) -> Callable[[], float]:
    """A task: one training step as the tutorials write it: logits, cross-entropy, clipping, AdamW.

    Parameters
    ----------
    model : Module
        From token ids (B, T) to logits (B, T, V).
    batches : list of pairs of Tensors of shape (B, T)
        Inputs and targets, ready on the device; used in turn.
    bf16 : bool
        Compute under autocast.
    optimizer : dict
        Settings of `torch.optim.AdamW`.
    """
    adamw = torch.optim.AdamW(model.parameters(), **optimizer)
    device = batches[0][0].device.type
    model.train()
    number = 0

    def step() -> float:
        nonlocal number
        inputs, targets = batches[number % len(batches)]
        number += 1
        with torch.autocast(device, dtype=torch.bfloat16, enabled=bf16):
            logits = model(inputs)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad(set_to_none=True)
        return loss.item()

    return step
