"""One small language model with four ways to mix tokens, one recipe for all, and the table of their losses.

Shape letters: B rows of a batch, T tokens, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.batching import batches_by_length, pad_batch
from tinytx.config import TransformerConfig
from tinytx.transformer import LanguageModel
from tinytx_course.labs.layers import ConvolutionLayer, GRULayer, RecurrentLayer

if TYPE_CHECKING:
    import pandas as pd

D_MODEL, D_FF, KERNEL_SIZE = 64, 256, 4

# name: how many matrices of D by D the layer holds, and how to build it; None leaves attention in its place
MIXERS: dict[str, tuple[int, Callable[[int], nn.Module] | None]] = {
    "RNN": (2, RecurrentLayer),
    "GRU": (6, GRULayer),
    "CNN": (KERNEL_SIZE, lambda d_model: ConvolutionLayer(d_model, KERNEL_SIZE)),
    "transformer": (4, None),
}
COLUMNS = ("n_params", "milliseconds", "n_steps", "lr")


class InPlaceOfAttention(nn.Module):
    """A layer that only ever reads the past, so it needs no mask."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, mask: Tensor | None = None, cache: None = None) -> Tensor:
        """Mix the tokens of x, (B, T, D)."""
        return self.layer(x)


def build_model(kind: str, vocab_size: int, max_len: int, seed: int = 0) -> LanguageModel:
    """Two blocks whose attention is exchanged for another layer; the feed-forward width evens the parameters.

    Parameters
    ----------
    kind : {"RNN", "GRU", "CNN", "transformer"}
    vocab_size, max_len : int
    seed : int
        Of the first weights.
    """
    if kind not in MIXERS:
        raise ValueError(f"kind must be one of {', '.join(MIXERS)}, got {kind!r}")
    n_matrices, make_layer = MIXERS[kind]
    torch.manual_seed(seed)
    model = LanguageModel(
        TransformerConfig(
            vocab_size=vocab_size,
            max_len=max_len,
            d_model=D_MODEL,
            n_heads=4,
            n_layers=2,
            d_ff=D_FF + (4 - n_matrices) * D_MODEL // 2,  # a unit of it has 2 D weights
            positions="rotary",
            tie_embeddings=True,
        )
    )
    if make_layer is not None:
        for block in model.body.blocks:
            block.attn = InPlaceOfAttention(make_layer(D_MODEL))
    return model


@dataclass(frozen=True, kw_only=True)
class LadderRecipe:
    """How every model of the ladder is trained: AdamW, a linear warm-up, a linear decay to zero."""

    lr: float  # the highest learning rate
    n_steps: int
    tokens_per_batch: int = 1024  # at most, padding included
    warmup_share: float = 0.05  # of the steps
    weight_decay: float = 0.01
    clip: float = 1.0  # the largest norm of the gradient

    def to_dict(self) -> dict[str, float]:
        """As JSON can hold it."""
        return asdict(self)


def train_model(
    model: LanguageModel, rows: Sequence[Sequence[int]], recipe: LadderRecipe, *, pad_id: int, seed: int = 0
) -> list[float]:
    """Train a model on rows that begin with bos and end with eos; return the loss of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay)
    lengths = [len(row) for row in rows]
    n_warmup, losses, epoch = recipe.warmup_share * recipe.n_steps, list[float](), 0
    while len(losses) < recipe.n_steps:
        batches = batches_by_length(lengths, recipe.tokens_per_batch, seed=seed, epoch=epoch)
        for batch in batches[: recipe.n_steps - len(losses)]:
            share = min((len(losses) + 1) / n_warmup, 1 - len(losses) / recipe.n_steps)
            optimizer.param_groups[0]["lr"] = recipe.lr * share
            loss = next_token_loss(model, [rows[i] for i in batch], pad_id)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
            optimizer.step()
            losses.append(loss.item())
        epoch += 1
    return losses


def next_token_loss(
    model: LanguageModel, rows: Sequence[Sequence[int]], pad_id: int, reduction: str = "mean"
) -> Tensor:
    """Cross-entropy of each next token of some rows, in nats; padding does not count."""
    ids = pad_batch(rows, pad_id)  # (B, T + 1)
    logits = model(ids[:, :-1])  # (B, T, V)
    return F.cross_entropy(
        logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=pad_id, reduction=reduction
    )


@torch.no_grad()
def nats_per_token(model: LanguageModel, rows: Sequence[Sequence[int]], *, pad_id: int) -> float:
    """Mean loss of all next tokens of some rows."""
    rows = sorted(rows, key=len)
    total = sum(
        next_token_loss(model, rows[at : at + 64], pad_id, reduction="sum").item()
        for at in range(0, len(rows), 64)
    )
    return total / sum(len(row) - 1 for row in rows)


def ladder_table(records: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Loss above the entropy bound of each model at equal parameters and at equal processor time.

    Parameters
    ----------
    records : mapping of str to mapping
        Those of `results/ladder.json`.

    Returns
    -------
    DataFrame
        ``model``, ``equal`` ("parameters" or "time"), ``n`` (seeds), ``above`` (mean, nats per token above
        the bound), ``std``, ``n_params``, ``milliseconds`` (a training step), ``n_steps``, ``lr``; from the
        best to the worst of each comparison.
    """
    import pandas as pd

    counts = [record for record in records.values() if record["measure"] == "counts"]
    best = min((record["valid"] for record in counts), default=None)  # chooses the order of the n-gram model
    costs = {record["model"]: record for record in records.values() if record["measure"] == "cost"}
    rows: list[dict[str, Any]] = []
    for equal in ("parameters", "time"):
        for record in records.values():
            # The transformer sets the time, so its run is the same in both comparisons.
            shared = record["model"] == "transformer" and record["measure"] == "equal parameters"
            if record["measure"] == f"equal {equal}" or shared:
                rows.append({**costs[record["model"]], **record, "equal": equal})
        rows += [{**record, "equal": equal} for record in counts if record["valid"] == best]
    data = pd.DataFrame(rows).assign(above=lambda data: data["test"] - data["bound"])
    means = data.groupby(["equal", "model"], sort=False).agg(
        n=("above", "count"),
        above=("above", "mean"),
        std=("above", "std"),
        **{name: (name, "first") for name in COLUMNS if name in data},
    )
    return means.reset_index().sort_values(["equal", "above"], ignore_index=True)
