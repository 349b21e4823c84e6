"""How a transformer is read to classify texts: fine-tuned with a new head, or frozen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from experiments.pretraining_recipes import Tuning
from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import Classifier, Transformer, pool
from tinytx.text.batching import PackedSequences
from tinytx.text.corpora import Split, label_subset
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.evaluate import classifier_inputs, count_correct
from tinytx.training.loop import train
from tinytx.training.objectives import ClassificationObjective
from tinytx.training.recipes import resize
from tinytx.training.settings import TrainingSettings, choose_device, choose_precision
from tinytx.training.tasks import epoch_ends, seeded

TEXTS_AT_ONCE = 32


def fine_tuned(
    encoder: Transformer, tokenizer: Tokenizer, train_split: Split, test: Split, **how: Any
) -> tuple[int, list[dict[str, Any]]]:
    """Train a copy of an encoder with a new head; count the tested texts that its last state gets right.

    Returns
    -------
    correct : int
        Of all tested texts.
    curve : list of dict
        ``epoch``, ``step``, ``accuracy`` on ``n`` of the tested texts; nothing is chosen by it.
    """
    model, curve = tuned(encoder, tokenizer, train_split, test, **how)
    return count_correct(model, _objective(tokenizer, test, model.body.config)[0]), curve


def tuned(
    encoder: Transformer,
    tokenizer: Tokenizer,
    train_split: Split,
    test: Split,
    *,
    tuning: Tuning,
    seed: int,
    device: str = "auto",
) -> tuple[Classifier, list[dict[str, Any]]]:
    """The trained classifier and the curve of `fine_tuned`; the seed is that of head, order and dropout."""
    where = choose_device(device)
    n_classes = 1 + max((*(train_split.labels or ()), *(test.labels or ())))
    config = encoder.config.replace(dropout=tuning.dropout)
    model = seeded(lambda: Classifier(config, n_classes=n_classes, pooling=tuning.pooling), seed)
    model.body.load_state_dict(encoder.state_dict())
    model.body.token_embed.weight.requires_grad_(not tuning.keep_embeddings)
    model.to(where)
    objective, lengths = _objective(tokenizer, train_split, config)
    settings = TrainingSettings(
        n_steps=1,
        lr=tuning.lr,
        optimizer=tuning.optimizer,
        tokens_per_batch=max(max(lengths), math.ceil(tuning.texts_per_batch * float(np.mean(lengths)))),
        precision=choose_precision("auto", where),
        seed=seed,
    )
    n_epochs = max(tuning.n_epochs, math.ceil(tuning.n_updates / epoch_ends(objective, settings, 1)[0]))
    ends = epoch_ends(objective, settings, n_epochs)
    some = label_subset(test, min(tuning.n_scored, len(test)), seed)
    curve_objective = _objective(tokenizer, some, config)[0]
    every = math.ceil(n_epochs / tuning.n_curve)

    def on_step(step: int, now: nn.Module) -> dict[str, Any] | None:
        epoch = 1 + ends.index(step) if step in ends else 0
        if epoch == 0 or (epoch % every and epoch != n_epochs) or not isinstance(now, Classifier):
            return None
        return {"epoch": epoch, "accuracy": count_correct(now, curve_objective) / len(some), "n": len(some)}

    history = train(model, objective, resize(settings, ends[-1]), on_step=on_step, progress=False)
    return model, history.evaluations


def _objective(
    tokenizer: Tokenizer, split: Split, config: TransformerConfig
) -> tuple[ClassificationObjective, list[int]]:
    sequences, _ = classifier_inputs(tokenizer, split.texts, config.max_len, causal=config.causal)
    objective = ClassificationObjective(sequences, split.labels or (), pad_id=tokenizer.pad_id)
    return objective, [len(sequence) for sequence in sequences]


@torch.no_grad()
def columns_of(body: Transformer, tokenizer: Tokenizer, split: Split, device: str = "auto") -> np.ndarray:
    """Mean embedding and mean last hidden state of each text, for a linear model to read: shape (N, 2 D)."""
    where = choose_device(device)
    body.to(where).eval()
    config = body.config
    sequences, _ = classifier_inputs(tokenizer, split.texts, config.max_len, causal=config.causal)
    rows = PackedSequences(sequences, tokenizer.pad_id)
    order = np.argsort(rows.lengths).tolist()
    found: dict[int, np.ndarray] = {}
    for at in range(0, len(order), TEXTS_AT_ONCE):
        chosen = order[at : at + TEXTS_AT_ONCE]
        token_ids = rows.rows(chosen).to(where)  # (n, T)
        real = token_ids != tokenizer.pad_id
        layers = body.token_embed(token_ids), body(token_ids, real)
        columns = torch.cat([pool(states, real, "mean") for states in layers], dim=1)  # (n, 2 D)
        found.update(zip(chosen, columns.cpu().numpy(), strict=True))
    return np.stack([found[i] for i in range(len(order))]).astype(float)
