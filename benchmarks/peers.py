"""Models of other packages of the same sizes, and two training loops: ours, and that of the tutorials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle, islice
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.config import TransformerConfig
from tinytx.loop import TrainingStep
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.objectives import Objective
from tinytx.settings import TrainingSettings
from tinytx.transformer import LanguageModel
from tinytx_run.hf.convert import to_transformers


class TorchEncoder(nn.Module):
    """`torch.nn.TransformerEncoder` with tied embeddings, causal."""

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


class HuggingFace(nn.Module):
    """`GPT2LMHeadModel` or `LlamaForCausalLM` of `transformers`."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.model = to_transformers(LanguageModel(config), use_cache=False)

    def forward(self, token_ids: Tensor) -> Tensor:
        """Score the vocabulary at every position: (B, T, V)."""
        return self.model(token_ids).logits


class HuggingFaceBert(nn.Module):
    """`transformers.BertForSequenceClassification` ; its pooler is one matrix more than ours."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        from transformers import BertForSequenceClassification

        same: Any = to_transformers(MaskedLanguageModel(config))
        self.model = BertForSequenceClassification(same.config)

    def forward(self, token_ids: Tensor, real: Tensor) -> Tensor:
        """Score the classes (B, C) of token ids (B, T), of which some are real (B, T)."""
        return self.model(token_ids, attention_mask=real.long()).logits


def x_transformers(config: TransformerConfig) -> nn.Module:
    """A `TransformerWrapper` around a `Decoder` of `x-transformers`, with its fused attention."""
    from x_transformers import Decoder, TransformerWrapper

    of_gpt2: dict[str, Any] = {"ff_custom_activation": nn.GELU(approximate="tanh")}
    of_llama = {
        **dict.fromkeys(("use_rmsnorm", "rotary_pos_emb", "ff_glu", "ff_swish", "ff_no_bias"), True),
        **{"rotary_emb_dim": config.head_dim, "attn_kv_heads": config.kv_heads},
    }
    return TransformerWrapper(
        num_tokens=config.vocab_size,
        max_seq_len=config.max_len,
        use_abs_pos_emb=not is_llama(config),
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
            ff_dropout=config.dropout,
            **(of_llama if is_llama(config) else of_gpt2),
        ),
    )


def is_llama(config: TransformerConfig) -> bool:
    """Whether blocks are those of a Llama; else they are those of GPT-2."""
    return config.norm_kind == "rms"


PLAIN = "the same model in a plain loop"  # separates the model from the training code
TORCH = "torch.nn.TransformerEncoder"
# Name of a peer -> its constructor, and what differs from ours.
PEERS: dict[str, tuple[Callable[[TransformerConfig], nn.Module], str]] = {
    TORCH: (TorchEncoder, "none"),
    "transformers": (HuggingFace, "as GPT-2, nothing dropped inside the feed-forward network"),
    "x-transformers": (x_transformers, "as GPT-2, no biases in attention and norms; as Llama, a gate's bias"),
    PLAIN: (LanguageModel, "none"),
}


def peers_of(config: TransformerConfig, on_gpu: bool = False) -> list[str]:
    """The peers that have such blocks; on a GPU, where each is compiled, too, the two that matter most."""
    names = ("transformers", PLAIN) if on_gpu else PEERS
    return [name for name in names if name != TORCH or not is_llama(config)]


def plain_loop(
    model: nn.Module,
    batches: Sequence[tuple[Tensor, ...]],
    *,
    n_updates: int,
    lr: float,
    bf16: bool,
    fused: bool,
) -> Callable[[], float]:
    """A task: training steps as the tutorials write them: logits, cross-entropy, clipping, AdamW.

    Parameters
    ----------
    model : Module
        From the inputs of a batch to logits (..., C).
    batches : sequence of tuples of Tensors
        Inputs, then targets (...), ready on the device; used in turn.
    n_updates : int
        Steps of one call, whose mean loss it returns.
    bf16 : bool
        Compute under autocast.
    fused : bool
        Use torch's fused AdamW, else the one that torch chooses.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=fused or None)
    device = batches[0][0].device.type
    model.train()
    turn = cycle(batches)

    def step(*inputs_and_targets: Tensor) -> float:
        *inputs, targets = inputs_and_targets
        with torch.autocast(device, dtype=torch.bfloat16, enabled=bf16):
            loss = F.cross_entropy(model(*inputs).flatten(0, -2), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    return lambda: sum(step(*batch) for batch in islice(turn, n_updates)) / n_updates


def our_loop(
    model: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    batches: Sequence[list[int]],
    *,
    n_updates: int,
) -> Callable[[], float]:
    """A task: the steps of our training; parameters as in `plain_loop`, batches as indices."""
    learner = TrainingStep(model, objective, settings)
    model.train()
    turn = cycle(batches)

    def step(indices: list[int]) -> float:
        loss = learner.backward(indices)
        learner.update(settings.lr)
        return loss.item()

    return lambda: sum(step(indices) for indices in islice(turn, n_updates)) / n_updates
