"""The encoder-decoder of torch with the weights of one of ours, as a witness."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from tinytx.model import MultiHeadAttention, SinusoidalPositions, TransformerConfig, Translator

_NAMES = {  # ours: torch's; the norms are numbered in the order in which a block uses them
    "attn": "self_attn",
    "cross_attn": "multihead_attn",
    "ff.up_proj": "linear1",
    "ff.down_proj": "linear2",
}
_NORMS = {"encoder": ("attn_norm", "ff_norm"), "decoder": ("attn_norm", "cross_norm", "ff_norm")}


def torch_attention(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """A `torch.nn.MultiheadAttention` with the weights of our module.

    Its masks have the opposite sign: True = blocked.
    """
    weight = ours.out_proj.weight
    theirs = nn.MultiheadAttention(len(weight), ours.n_heads, batch_first=True, dtype=weight.dtype)
    _copy(ours, theirs)
    return theirs.eval()


class TorchTranslator(nn.Module):
    """`torch.nn.Transformer` between our embeddings and head, with the weights of one of our translators.

    Parameters
    ----------
    ours : Translator
        With tied embeddings and sinusoidal positions. Its weights are copied.

    Notes
    -----
    Torch puts a last norm on both halves even where each block ends in one already (``norm="last"``); there
    it is taken out.
    """

    table: Tensor

    def __init__(self, ours: Translator) -> None:
        super().__init__()
        config = ours.config
        positions = ours.encoder.pos_embed
        if not config.tie_embeddings or not isinstance(positions, SinusoidalPositions):
            raise ValueError(
                "the twin needs tie_embeddings=True and positions='sinusoidal', "
                f"got tie_embeddings={config.tie_embeddings}, positions={config.positions!r}"
            )
        self.matrix = nn.Parameter(ours.head.weight.detach().clone())  # (V, D), used three times
        self.register_buffer("table", positions.table.clone())
        self.stacks = _torch_stacks(config, self.matrix.dtype)
        for mine, other in _counterparts(ours, self.stacks):
            _copy(mine, other)
        self.eval()

    def forward(self, src_ids: Tensor, tgt_ids: Tensor, src_padding_mask: Tensor) -> Tensor:
        """Logits (B, T, V), as `Translator.forward` gives them; True = a real token."""
        n = tgt_ids.shape[1]
        blocked = ~src_padding_mask
        hidden = self.stacks(
            self._embed(src_ids),
            self._embed(tgt_ids),
            tgt_mask=torch.ones(n, n, dtype=torch.bool, device=tgt_ids.device).triu(1),
            src_key_padding_mask=blocked,
            memory_key_padding_mask=blocked,
        )
        return hidden @ self.matrix.T

    def _embed(self, token_ids: Tensor) -> Tensor:
        width = self.matrix.shape[1]
        return self.matrix[token_ids] * math.sqrt(width) + self.table[: token_ids.shape[1]]


def _torch_stacks(config: TransformerConfig, dtype: torch.dtype) -> nn.Transformer:
    layer: dict[str, Any] = {
        "d_model": config.d_model,
        "nhead": config.n_heads,
        "dim_feedforward": config.d_ff,
        "dropout": 0.0,
        "activation": config.activation,
        "batch_first": True,
        "norm_first": config.norm == "first",
        "dtype": dtype,
    }
    norms = [nn.LayerNorm(config.d_model, dtype=dtype) if config.norm == "first" else None for _ in range(2)]
    return nn.Transformer(
        config.d_model,
        config.n_heads,
        custom_encoder=nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**layer), config.n_layers, norms[0], enable_nested_tensor=False
        ),
        custom_decoder=nn.TransformerDecoder(
            nn.TransformerDecoderLayer(**layer), config.n_layers, norms[1]
        ),
        batch_first=True,
    )


def _counterparts(ours: Translator, theirs: nn.Transformer) -> Iterator[tuple[nn.Module, nn.Module]]:
    for half, norms in _NORMS.items():
        mine, other = getattr(ours, half), getattr(theirs, half)
        for block, layer in zip(mine.blocks, other.layers, strict=True):
            for name, its_name in _NAMES.items():
                if name != "cross_attn" or half == "decoder":
                    yield block.get_submodule(name), layer.get_submodule(its_name)
            for number, name in enumerate(norms, start=1):
                yield block.get_submodule(name), layer.get_submodule(f"norm{number}")
        if other.norm is not None:
            yield mine.final_norm, other.norm


@torch.no_grad()
def _copy(mine: nn.Module, other: nn.Module) -> None:
    if isinstance(mine, MultiHeadAttention) and isinstance(other, nn.MultiheadAttention):
        three = (mine.q_proj, mine.k_proj, mine.v_proj)
        other.in_proj_weight.copy_(torch.cat([projection.weight for projection in three]))  # (3 D, D)
        other.in_proj_bias.copy_(torch.cat([projection.bias for projection in three]))
        other.out_proj.load_state_dict(mine.out_proj.state_dict())
    else:
        other.load_state_dict(mine.state_dict())
