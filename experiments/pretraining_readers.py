"""How a transformer is read to classify texts: fine-tuned with a new head, or frozen."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from experiments.pretraining_recipes import Tuning
from tinytx.inference import evaluate_rows
from tinytx.loop import train
from tinytx.objectives import ClassificationObjective
from tinytx.settings import TrainingSettings, choose_device, choose_precision
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import Classifier, Transformer, pool
from tinytx_run.classify import classifier_inputs
from tinytx_run.corpora import Split
from tinytx_run.finetune import epoch_ends
from tinytx_run.recipes import resize
from tinytx_run.training import seeded


def tuned(
    encoder: Transformer,
    tokenizer: Tokenizer,
    split: Split,
    *,
    tuning: Tuning,
    n_classes: int,
    seed: int,
    device: str = "auto",
) -> Classifier:
    """Train a copy of an encoder with a new head; the seed is that of head, order and dropout."""
    where = choose_device(device)
    config = encoder.config.replace(dropout=tuning.dropout)
    model = seeded(lambda: Classifier(config, n_classes=n_classes, pooling=tuning.pooling), seed)
    model.body.load_state_dict(encoder.state_dict())
    model.body.token_embed.weight.requires_grad_(not tuning.keep_embeddings)
    model.to(where)
    sequences, _ = classifier_inputs(tokenizer, split.texts, config.max_len, causal=config.causal)
    objective = ClassificationObjective(sequences, split.labels or (), pad_id=tokenizer.pad_id)
    lengths = [len(sequence) for sequence in sequences]
    settings = TrainingSettings(
        n_steps=1,
        lr=tuning.lr,
        optimizer=tuning.optimizer,
        tokens_per_batch=max(max(lengths), math.ceil(tuning.texts_per_batch * float(np.mean(lengths)))),
        precision=choose_precision("auto", where),
        seed=seed,
    )
    n_epochs = max(tuning.n_epochs, math.ceil(tuning.n_updates / epoch_ends(objective, settings, 1)[0]))
    n_steps = epoch_ends(objective, settings, n_epochs)[-1]
    train(model, objective, resize(settings, n_steps), progress=False)
    return model


def columns_of(body: Transformer, tokenizer: Tokenizer, split: Split, device: str = "auto") -> np.ndarray:
    """Mean embedding and mean last hidden state of each text, for a linear model to read: shape (N, 2 D)."""
    body.to(choose_device(device))
    config = body.config
    sequences, _ = classifier_inputs(tokenizer, split.texts, config.max_len, causal=config.causal)

    def columns(token_ids: Tensor, rows: list[int]) -> Tensor:
        real = token_ids != tokenizer.pad_id
        layers = body.token_embed(token_ids), body(token_ids, real)
        return torch.cat([pool(states, real, "mean") for states in layers], dim=1)  # (B, 2 D)

    return evaluate_rows(body, sequences, columns, pad_id=tokenizer.pad_id).double().numpy()
