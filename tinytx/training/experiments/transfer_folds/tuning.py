"""Two ways to use a body: train all of it on the labels, or read its states as they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tinytx.model import Classifier, TransformerBody, TransformerConfig
from tinytx.model.transformer import pool
from tinytx.text import Tokenizer
from tinytx.text.corpora import Split
from tinytx.training.budgets import resize
from tinytx.training.engine.loop import train
from tinytx.training.epochs import epoch_ends
from tinytx.training.evaluation import classifier_inputs, count_correct
from tinytx.training.experiments.transfer_folds.bodies import lowered
from tinytx.training.experiments.transfer_folds.recipes import Tuning
from tinytx.training.objectives import ClassificationObjective, PackedSequences
from tinytx.training.settings import TrainingSettings, choose_device, choose_precision
from tinytx.training.subsets import label_subset

TEXTS_AT_ONCE = 32


def fine_tuned(
    body: TransformerBody,
    tokenizer: Tokenizer,
    train_split: Split,
    tested: Split,
    *,
    tuning: Tuning,
    seed: int,
    device: str = "auto",
) -> tuple[int, list[dict[str, Any]]]:
    """Train a body and a new head, and count how many tested texts the last state names rightly.

    Parameters
    ----------
    body : TransformerBody
        Copied, not changed.
    tokenizer : Tokenizer
    train_split, tested : Split
    tuning : Tuning
    seed : int
        Of the head, the order and dropout.
    device : str

    Returns
    -------
    correct : int
        Of all tested texts.
    curve : list of dict
        ``epoch``, ``step``, ``accuracy`` on ``n`` of the tested texts: to look at, not to choose by.
    """
    where = choose_device(device)
    n_classes = 1 + max((*(train_split.labels or ()), *(tested.labels or ())))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Classifier(
            body.config.replace(dropout=tuning.dropout), n_classes=n_classes, pooling=tuning.pooling
        )
    model.body.load_state_dict(body.state_dict())
    model.body.token_embed.weight.requires_grad_(not tuning.keep_embeddings)
    model.to(where)
    learning, lengths = _objective(tokenizer, train_split, body)
    settings = TrainingSettings(
        n_steps=1,
        lr=tuning.lr,
        optimizer=tuning.optimizer,
        tokens_per_batch=max(max(lengths), math.ceil(tuning.texts_per_batch * float(np.mean(lengths)))),
        precision=choose_precision("auto", where),
        seed=seed,
    )
    per_epoch = epoch_ends(learning, settings, 1)[0]
    n_epochs = max(tuning.n_epochs, math.ceil(tuning.n_updates / per_epoch))
    ends = epoch_ends(learning, settings, n_epochs)
    some = label_subset(tested, min(tuning.n_scored, len(tested)), seed)
    looked_at = _objective(tokenizer, some, body)[0]
    every = math.ceil(n_epochs / tuning.n_curve)

    def after(step: int, now: nn.Module) -> dict[str, Any] | None:
        epoch = 1 + ends.index(step) if step in ends else 0
        if epoch == 0 or (epoch % every and epoch != n_epochs) or not isinstance(now, Classifier):
            return None
        return {"epoch": epoch, "accuracy": count_correct(now, looked_at) / len(some), "n": len(some)}

    history = train(model, learning, resize(settings, ends[-1]), on_step=after, progress=False)
    return count_correct(model, _objective(tokenizer, tested, body)[0]), history.evaluations


def _objective(
    tokenizer: Tokenizer, split: Split, body: TransformerBody
) -> tuple[ClassificationObjective, list[int]]:
    sequences, _ = classifier_inputs(
        tokenizer, lowered(split.texts), body.config.max_len, causal=body.config.causal
    )
    learning = ClassificationObjective(sequences, split.labels or (), pad_id=tokenizer.pad_id)
    return learning, [len(sequence) for sequence in sequences]


def pooled_states(
    body: TransformerBody, tokenizer: Tokenizer, split: Split, *, device: str = "auto"
) -> np.ndarray:
    """The mean over each text of the embeddings and of the last states, side by side, shape (N, 2 D)."""

    def both(token_ids: Tensor, real: Tensor) -> Tensor:
        layers = body.token_embed(token_ids), body(token_ids, real)
        return torch.cat([pool(states, real, "mean") for states in layers], dim=1)

    return _for_each(both, body, body.config, tokenizer, split, device)


def opinions(model: Classifier, tokenizer: Tokenizer, split: Split, *, device: str = "auto") -> np.ndarray:
    """How much a classifier of two classes leans to the second, in nats, as a column (N, 1)."""

    def lean(token_ids: Tensor, real: Tensor) -> Tensor:
        logits = model(token_ids, real)  # (B, 2)
        return logits[:, 1:] - logits[:, :1]

    return _for_each(lean, model, model.config, tokenizer, split, device)


@torch.no_grad()
def _for_each(
    figures: Callable[[Tensor, Tensor], Tensor],
    module: nn.Module,
    config: TransformerConfig,
    tokenizer: Tokenizer,
    split: Split,
    device: str,
) -> np.ndarray:
    where = choose_device(device)
    module.to(where).eval()
    sequences, _ = classifier_inputs(tokenizer, lowered(split.texts), config.max_len, causal=config.causal)
    rows = PackedSequences(sequences, tokenizer.pad_id)
    order = np.argsort(rows.lengths).tolist()
    found: dict[int, np.ndarray] = {}
    for at in range(0, len(order), TEXTS_AT_ONCE):
        chosen = order[at : at + TEXTS_AT_ONCE]
        token_ids = rows.rows(chosen).to(where)
        found.update(
            zip(chosen, figures(token_ids, token_ids != tokenizer.pad_id).cpu().numpy(), strict=True)
        )
    return np.stack([found[i] for i in range(len(order))]).astype(float)
