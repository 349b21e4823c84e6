"""The program of every patient: three tasks, one kind of model, one loop; a patient has one line wrong.

Shape letters: B rows, T tokens, S source tokens, D model width, V words, C classes. Rows hold word ids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import tinytx as tx
from tinytx.attention import merge_heads, split_heads
from tinytx.batching import pad_batch
from tinytx.fast import Dropout
from tinytx.feed_forward import FeedForward
from tinytx.transformer import pool

PAD, BOS, EOS = 0, 1, 2
Rows = Sequence[Any]


class Norm(nn.LayerNorm):
    """Layer norm, written out."""

    def forward(self, x: Tensor) -> Tensor:  # (B, T, D)
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return self.weight * (x - mean) / (variance + self.eps).sqrt() + self.bias


class Attention(tx.MultiHeadAttention):
    """Multi-head attention, with its weights formed by the formula."""

    def forward(self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        q = split_heads(self.q_proj(x), self.n_heads)  # (B, H, T, K)
        source = x if memory is None else memory
        k = split_heads(self.k_proj(source), self.n_heads)  # (B, H, S, K)
        v = split_heads(self.v_proj(source), self.n_heads)
        weights = tx.attention_weights(q, k, mask)  # (B, H, T, S)
        if self._record is not None:
            self._record(weights)
        return self.out_proj(merge_heads(weights @ v))


class Block(nn.Module):
    """Pre-norm: self-attention, cross-attention where there is a memory, feed-forward."""

    def __init__(self, config: tx.TransformerConfig, cross: bool) -> None:
        super().__init__()
        sizes: dict[str, Any] = {"d_model": config.d_model, "n_heads": config.n_heads}
        self.attn_norm, self.attn = Norm(config.d_model), Attention(**sizes)
        if cross:
            self.cross_norm, self.cross_attn = Norm(config.d_model), Attention(**sizes)
        self.ff_norm, self.ff = Norm(config.d_model), FeedForward(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor | None, memory_mask: Tensor | None) -> Tensor:
        x = x + self.dropout(self.attn(self.attn_norm(x), mask=mask))
        if memory is not None:
            x = x + self.dropout(self.cross_attn(self.cross_norm(x), memory, memory_mask))
        return x + self.dropout(self.ff(self.ff_norm(x)))


class Stack(nn.Module):
    """Embeddings, positions, blocks and a last norm: from word ids, (B, T), to hidden states, (B, T, D)."""

    def __init__(self, config: tx.TransformerConfig, cross: bool = False) -> None:
        super().__init__()
        self.config = config
        self.token_embed = nn.Embedding(config.vocab_size, config.d_model)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, cross) for _ in range(config.n_layers))
        self.final_norm = Norm(config.d_model)
        for module in self.blocks.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(
        self, token_ids: Tensor, memory: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        seq_len, width = token_ids.shape[1], self.config.d_model
        mask = tx.padding_mask(token_ids, PAD)[:, None, None, :]  # (B, 1, 1, T)
        if self.config.causal:
            mask = mask & tx.causal_mask(seq_len)  # (B, 1, T, T)
        x = self.token_embed(token_ids) * math.sqrt(width)
        x = self.dropout(x + tx.sinusoidal_positions(seq_len, width))
        for block in self.blocks:
            x = block(x, mask, memory, memory_mask)
        return self.final_norm(x)


def tied_head(embedding: nn.Embedding) -> nn.Linear:
    """An output layer that shares its weights with the embedding."""
    head = nn.Linear(embedding.embedding_dim, embedding.num_embeddings)
    nn.init.zeros_(head.bias)
    head.weight = embedding.weight
    nn.init.normal_(head.weight, std=0.25 * embedding.embedding_dim**-0.5)
    return head


class LanguageModel(nn.Module):
    """Predicts each next word of a review."""

    def __init__(self, config: tx.TransformerConfig) -> None:
        super().__init__()
        self.body = Stack(config)
        self.head = tied_head(self.body.token_embed)

    def forward(self, token_ids: Tensor) -> Tensor:  # (B, T, V)
        hidden = self.body(token_ids)  # (B, T, D)
        return self.head(hidden)

    def loss(self, rows: Rows) -> Tensor:
        token_ids = pad_batch(rows, PAD)
        inputs, targets = token_ids[:, :-1], token_ids[:, 1:]
        return F.cross_entropy(self(inputs).flatten(0, 1), targets.flatten(), ignore_index=PAD)


class Classifier(nn.Module):
    """Says whether a review praises its book."""

    def __init__(self, config: tx.TransformerConfig) -> None:
        super().__init__()
        self.body = Stack(config.replace(causal=False))
        self.head = nn.Linear(config.d_model, 2)
        nn.init.normal_(self.body.token_embed.weight, std=config.d_model**-0.5)

    def forward(self, token_ids: Tensor) -> Tensor:  # (B, C)
        real = tx.padding_mask(token_ids, PAD)
        return self.head(pool(self.body(token_ids), real, "mean"))

    def loss(self, rows: Rows) -> Tensor:
        token_ids, labels = pad_batch([ids for ids, _ in rows], PAD), torch.tensor([y for _, y in rows])
        logits = self(token_ids)
        return F.cross_entropy(logits, labels)


class Translator(nn.Module):
    """Predicts each next word of a French sentence from the English one and the words before."""

    def __init__(self, config: tx.TransformerConfig) -> None:
        super().__init__()
        self.encoder = Stack(config.replace(causal=False))
        self.decoder = Stack(config, cross=True)
        self.head = tied_head(self.decoder.token_embed)
        self.encoder.token_embed.weight = self.head.weight

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:  # (B, T, V)
        memory = self.encoder(src_ids)  # (B, S, D)
        memory_mask = tx.padding_mask(src_ids, PAD)[:, None, None, :]
        return self.head(self.decoder(tgt_ids, memory, memory_mask))

    def loss(self, rows: Rows) -> Tensor:
        src_ids, tgt_ids = (pad_batch(side, PAD) for side in zip(*rows, strict=True))
        inputs, targets = tgt_ids[:, :-1], tgt_ids[:, 1:]
        logits = self(src_ids, inputs)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD)


def split(rows: Rows, n_held_out: int) -> tuple[Rows, Rows]:
    """Rows to train on, and rows held out."""
    held_out = rows[:n_held_out]
    return rows[n_held_out:], held_out


def parameter_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Weight decay for the matrices, none for biases and norms."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    return [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]


def train(
    model: Any, rows: Rows, *, n_steps: int, n_rows: int, lr: float, seed: int, watch: Callable[..., None]
) -> None:
    """Take so many steps of so many rows; `watch(step, loss)` is called before each update."""
    order = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(parameter_groups(model), lr=lr)
    for step in range(n_steps):
        batch = [rows[i] for i in torch.randint(len(rows), (n_rows,), generator=order)]
        model.train()
        loss = model.loss(batch)
        optimizer.zero_grad()
        loss.backward()
        watch(step, loss.item())
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1.0, (step + 1) / 20, 2 * (1 - step / n_steps))
        optimizer.step()


@torch.no_grad()
def evaluate(model: Any, rows: Rows) -> float:
    """Loss on some rows, in nats a prediction."""
    model.eval()
    return model.loss(rows).item()
