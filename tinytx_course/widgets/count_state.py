"""One state of the count explorer: its settings as a configuration, what that costs, and as bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from tinytx.model.config import PRESETS, TransformerConfig
from tinytx.model.costs import CostTable, cost_table
from tinytx_course.labs.lesson_06 import PUBLISHED

# What a state consists of, and how far each number goes.
SIZES = {
    "vocab_size": 10**6,
    "d_model": 2**15,
    "n_layers": 128,
    "n_heads": 256,
    "d_ff": 2**17,
    "seq_len": 2**17,
    "batch_size": 2**12,
    "max_len": 2**17,
    "n_classes": 1_000,
}
SWITCHES = ("tie_embeddings", "learned", "plain", "causal", "bias", "norm_first", "gelu")
SETTINGS = (*SIZES, *SWITCHES, "head")


def bars_of(table: CostTable) -> dict[str, dict[str, int]]:
    """Return the bars of a table of costs: see `CountExplorer.bars`."""
    learned, kept = table.parameters.kinds, table.activations
    pairs = sum(row.total for row in table.flops.rows if row.name in ("scores", "weighted sums"))
    compute = table.flops.kinds
    inner = sum(row.total for row in kept.rows if row.part == "blocks" and row.kind != "attention")
    weights = table.bytes_parameters
    return {
        "parameters": {
            "embeddings": learned["embeddings"],
            "attention": learned["attention"],
            "feed-forward": learned["feed_forward"],
            "norms": learned["norms"],
            "head": learned["head"],
        },
        "compute": {
            "attention, maps": compute["attention"] - pairs,
            "attention, pairs": pairs,
            "feed-forward": compute["feed_forward"],
            "head": compute["head"],
        },
        "training": {
            "parameters": weights,
            "gradients": weights,
            "Adam’s moments": table.bytes_optimizer,
            "activations, attention": kept.kinds["attention"],
            "activations, feed-forward": inner,
            "activations, head": kept.total - kept.kinds["attention"] - inner,
        },
        "generating": {"parameters": weights, "key-value cache": table.bytes_kv_cache},
    }


def config_of(state: Mapping[str, Any]) -> TransformerConfig:
    sizes = {name: state[name] for name in ("vocab_size", "d_model", "n_layers", "n_heads", "d_ff")}
    positions: Literal["learned", "sinusoidal", "none"] = "none" if state["d_model"] % 2 else "sinusoidal"
    if state["learned"]:
        positions = "learned"
    return TransformerConfig(
        **sizes,
        max_len=max(state["max_len"], state["seq_len"]),  # a table must have a row for each place
        causal=state["causal"],
        norm="first" if state["norm_first"] else "last",
        activation="gelu" if state["gelu"] else "relu",
        positions=positions,
        bias=state["bias"],
        tie_embeddings=state["tie_embeddings"],
    )


def cost_of(state: Mapping[str, Any]) -> CostTable:
    return cost_table(
        config_of(state),
        state["head"],
        batch_size=state["batch_size"],
        seq_len=state["seq_len"],
        n_classes=state["n_classes"],
        attention="plain" if state["plain"] else "fused",
    )


def settings_of(config: TransformerConfig) -> dict[str, Any]:
    """Return what a configuration says about a state."""
    if config.positions not in ("sinusoidal", "learned", "none"):
        raise ValueError(f"positions must be sinusoidal, learned or none, got {config.positions!r}")
    names = ("vocab_size", "d_model", "n_layers", "n_heads", "d_ff", "max_len", "causal", "bias")
    return {name: getattr(config, name) for name in (*names, "tie_embeddings")} | {
        "learned": config.positions == "learned",
        "norm_first": config.norm == "first",
        "gelu": config.activation == "gelu",
    }


def all_presets() -> list[dict[str, Any]]:
    """Return the presets of the package and two sizes of GPT-2 (whose head has no bias, unlike ours)."""
    listed = [{"name": name, **settings_of(config)} for name, config in PRESETS.items()]
    for name in ("GPT-2 small", "GPT-2 XL"):
        sizes = PUBLISHED[name].settings
        config = TransformerConfig(
            vocab_size=sizes["vocab_size"],
            d_model=sizes["n_embd"],
            n_layers=sizes["n_layer"],
            n_heads=sizes["n_head"],
            d_ff=4 * sizes["n_embd"],
            max_len=sizes["n_positions"],
            positions="learned",
            tie_embeddings=True,
        )
        listed.append({"name": f"{name}’s sizes", **settings_of(config)})
    return listed
