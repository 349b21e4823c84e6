"""Train and write the shipped model: ``python -m tinytx_course.building.shipped``, called by `make publish`.

It is trained again only if its recipe has changed, or one of its files is missing. One thread, float32 and a
fixed seed give the same bytes again on the same kind of machine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

import tinytx as tx
from tinytx_course.engine.shipped import FACTS, FOLDER, WEIGHTS, read_shipped, shipped_bytes
from tinytx_course.results import provenance
from tinytx_run.evaluate import evaluate_language_model, exact_nats
from tinytx_run.recipes import plan

LIMIT = 800_000  # bytes
# The recipe "study" of the world, with the output layer tied to the embeddings: 650,000 parameters in place
# of 905,000, and no larger a loss (results/world-minute.json).
MODEL_CHANGES = {"tie_embeddings": True}
TRAINING_CHANGES = {"precision": "fp32"}


def origin(budget: str = "study", seed: int = 0) -> dict[str, Any]:
    """All that the weights follow from, as JSON can hold it."""
    recipe = plan("world", "causal", budget, seed=seed)
    recipe = recipe.replace(
        config=recipe.config.replace(**MODEL_CHANGES), settings=recipe.settings.replace(**TRAINING_CHANGES)
    )
    return {"corpus": "world", "recipe": recipe.to_dict()}


def is_due(folder: Path = FOLDER) -> bool:
    """Whether the model is missing, or was trained by another recipe."""
    facts = folder / FACTS
    if not (facts.is_file() and (folder / WEIGHTS).is_file()):
        return True
    return json.loads(facts.read_text(encoding="utf-8"))["origin"] != origin()


def write_shipped(folder: Path = FOLDER, budget: str = "study", n_texts: int | None = None) -> dict[str, Any]:
    """Train the model, write it with eight bits a weight, and measure what the rounding costs.

    Losses are those of so many held-out reviews, by default of all. Returns what shipped.json states.
    """
    torch.set_num_threads(1)
    corpus = tx.load_corpus("world")
    texts = corpus.valid.texts[:n_texts]
    trained = tx.pretrain(
        corpus,
        budget=budget,
        model_changes=MODEL_CHANGES,
        training_changes=TRAINING_CHANGES,
        options=tx.RunOptions(device="cpu", report=lambda line: None),
    )
    content = shipped_bytes(trained.model, trained.tokenizer)
    if len(content) > LIMIT:
        raise ValueError(f"the shipped model must have at most {LIMIT:,} bytes, got {len(content):,}")
    exact = evaluate_language_model(trained.model, trained.tokenizer, texts)
    rounded = evaluate_language_model(*read_shipped(content), texts)
    bound = float(cast(np.ndarray, exact_nats(corpus, texts)).sum())
    facts = {
        "data": f"{len(texts):,} held-out reviews of the generated language",
        "n_params": tx.count_parameters(trained.model),
        "bytes": len(content),
        "nats_per_review": {
            "entropy bound": bound / len(texts),
            "float32": exact.total_nats / len(texts),
            "8 bits": rounded.total_nats / len(texts),
        },
        "above_bound": rounded.total_nats / bound - 1,
        **provenance(),
        "origin": origin(budget),
    }
    (folder / WEIGHTS).write_bytes(content)
    text = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
    (folder / FACTS).write_text(text, encoding="utf-8")
    return facts


def main() -> None:
    """Write the model if it is due, and print its losses."""
    if is_due():
        write_shipped()
    facts = json.loads((FOLDER / FACTS).read_text(encoding="utf-8"))
    nats = facts["nats_per_review"]
    cost = nats["8 bits"] - nats["float32"]
    print(
        f"{FOLDER / WEIGHTS}: {facts['bytes']:,} bytes for {facts['n_params']:,} parameters; "
        f"{nats['8 bits']:.3f} nats a review ({100 * facts['above_bound']:.2f} % above the entropy bound), "
        f"{cost:+.4f} against float32; {facts['data']}, commit {facts['commit']}"
    )


if __name__ == "__main__":
    main()
