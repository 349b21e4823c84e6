"""Lesson 16, real models: published models where they lie, and three ways to fine-tune a body."""

from __future__ import annotations

import copy
from typing import Literal

import torch
from torch import nn

from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import Classifier, Transformer
from tinytx.text.corpora import Split
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.loop import train
from tinytx.training.lora import add_lora
from tinytx.training.optim import make_optimizer
from tinytx.training.recipes import plan_finetuning, resize
from tinytx.training.settings import TrainingSettings
from tinytx.training.tasks import class_objective, epoch_ends, seeded
from tinytx_course.labs.lesson_06 import PUBLISHED

__all__ = ["PUBLISHED", "Way", "WAYS", "adapted", "fine_tune", "optimizer_bytes", "random_body"]

Way = Literal["frozen", "lora", "full"]
WAYS: tuple[Way, ...] = ("frozen", "lora", "full")
RANK, ALPHA = 4, 8.0


def random_body(config: TransformerConfig, seed: int) -> Transformer:
    """A body of the same shape with the weights that a new model starts from."""
    return seeded(lambda: Transformer(config), 1_000 + seed)


def adapted(body: Transformer, way: Way, *, seed: int, n_classes: int = 2) -> Classifier:
    """A new head on a copy of a body: only the head is trained, or LoRA on queries and values too, or all."""
    config = body.config.replace(dropout=plan_finetuning("world", "laptop").dropout)

    def make() -> Classifier:
        model = Classifier(config, n_classes)
        model.body.load_state_dict(copy.deepcopy(body.state_dict()))
        model.body.requires_grad_(way == "full")
        if way == "lora":
            add_lora(model.body, RANK, ALPHA)
        return model

    return seeded(make, seed)


def fine_tune(
    model: Classifier, tokenizer: Tokenizer, learned: Split, *, lr: float, n_epochs: int, seed: int
) -> TrainingSettings:
    """Train on labelled texts what requires a gradient, with the loop of lesson 09; returns its settings."""
    learning, _ = class_objective(tokenizer, learned, model.config)
    settings = TrainingSettings(n_steps=1, lr=lr, tokens_per_batch=512, precision="fp32", seed=seed)
    settings = resize(settings, epoch_ends(learning, settings, n_epochs)[-1])
    train(model, learning, settings, progress=False)
    return settings


def optimizer_bytes(model: nn.Module, settings: TrainingSettings) -> int:
    """Bytes that AdamW stores about what is trained, counted after a step of zero gradients."""
    model = copy.deepcopy(model)
    optimizer = make_optimizer(model, settings)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    optimizer.step()
    stored = (tensor for state in optimizer.state.values() for tensor in state.values())
    return sum(tensor.nbytes for tensor in stored if tensor.dim())
