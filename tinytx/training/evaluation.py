"""How good a model is: nats per token and perplexity, accuracy with its interval."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tinytx.model import Classifier, LanguageModel, MaskedLanguageModel
from tinytx.text import Tokenizer
from tinytx.training.intervals import Interval, PairedInterval, paired_interval, wilson_interval
from tinytx.training.objectives import CausalObjective, ClassificationObjective

__all__ = [
    "ClassifierScore",
    "Interval",
    "LanguageModelScore",
    "PairedInterval",
    "check_vocabulary",
    "class_probabilities",
    "classifier_inputs",
    "count_correct",
    "evaluate_classifier",
    "evaluate_language_model",
    "paired_interval",
    "text_nats",
    "wilson_interval",
]


@dataclass(frozen=True)
class LanguageModelScore:
    """How surprised a language model is by some texts.

    Attributes
    ----------
    total_nats : float
        ``-log P`` of all texts together.
    n_tokens : int
        Predicted tokens: all pieces, and one end mark a text.
    n_texts : int
    """

    total_nats: float
    n_tokens: int
    n_texts: int

    @property
    def nats_per_token(self) -> float:
        """Mean loss."""
        return self.total_nats / self.n_tokens

    @property
    def perplexity(self) -> float:
        """``exp`` of the mean loss: as uncertain as a fair choice among so many tokens."""
        return math.exp(min(self.nats_per_token, 700.0))

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        return {
            **dataclasses.asdict(self),
            "nats_per_token": self.nats_per_token,
            "perplexity": self.perplexity,
        }

    def __str__(self) -> str:
        return f"{self.nats_per_token:.4f} nats per token, perplexity {self.perplexity:.2f}"


@dataclass(frozen=True)
class ClassifierScore:
    """How often a classifier is right.

    Attributes
    ----------
    correct, n : int
    n_cut : int
        Texts that were longer than the model can read, and lost their end.
    """

    correct: int
    n: int
    n_cut: int = 0

    @property
    def accuracy(self) -> float:
        """Share of right answers."""
        return self.correct / self.n

    @property
    def interval(self) -> Interval:
        """Wilson interval of the accuracy at 95 %."""
        return wilson_interval(self.correct, self.n)

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        return {**dataclasses.asdict(self), "accuracy": self.accuracy, "interval": list(self.interval)}

    def __str__(self) -> str:
        low, high = self.interval
        return f"accuracy {self.accuracy:.4f} [{low:.4f}, {high:.4f}], {self.correct:,} of {self.n:,}"


@torch.no_grad()
def text_nats(
    model: LanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    tokens_per_batch: int = 4096,
) -> np.ndarray:
    """``-log P`` of each text in nats, the end mark included.

    Texts longer than the model can read are read in chunks, each from its own beginning, so that every
    token counts once. Computed in float32 whatever training used; sums are made in float64.

    Parameters
    ----------
    model : LanguageModel
    tokenizer : Tokenizer
    texts : sequence of N str
    tokens_per_batch : int
        Changes memory and speed, not the result.

    Returns
    -------
    ndarray of shape (N,), float64
    """
    return _nats(model, _causal_objective(model, tokenizer, texts), tokenizer.pad_id, tokens_per_batch)


def evaluate_language_model(
    model: LanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    tokens_per_batch: int = 4096,
) -> LanguageModelScore:
    """Loss and perplexity on some texts; parameters as in `text_nats`."""
    objective = _causal_objective(model, tokenizer, texts)
    nats = _nats(model, objective, tokenizer.pad_id, tokens_per_batch)
    return LanguageModelScore(float(nats.sum()), objective.n_tokens, objective.n_texts)


def _causal_objective(model: LanguageModel, tokenizer: Tokenizer, texts: Sequence[str]) -> CausalObjective:
    check_vocabulary(model, tokenizer)
    return CausalObjective(
        tokenizer.encode_batch(texts),
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
        pad_id=tokenizer.pad_id,
        max_len=model.config.max_len,
    )


@torch.no_grad()
def _nats(model: LanguageModel, objective: CausalObjective, pad_id: int, tokens_per_batch: int) -> np.ndarray:
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    nats = np.zeros(objective.n_texts)
    text_of_row = np.asarray(objective.text_of_row)
    for indices in objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=tokens_per_batch):
        inputs, targets = (part.to(device) for part in objective.batch(indices))
        logits = model(inputs).float()  # (B, T, V)
        losses = F.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id, reduction="none"
        )
        rows = losses.view(targets.shape).double().sum(dim=1)  # (B,)
        np.add.at(nats, text_of_row[indices], rows.cpu().numpy())
    model.train(was_training)
    return nats


def check_vocabulary(model: LanguageModel | MaskedLanguageModel | Classifier, tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer that makes other ids than the model knows."""
    if tokenizer.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"tokenizer and model must have one vocabulary, got {tokenizer.vocab_size} pieces "
            f"and vocab_size={model.config.vocab_size}"
        )


def classifier_inputs(
    tokenizer: Tokenizer, texts: Sequence[str], max_len: int, *, causal: bool = True
) -> tuple[list[list[int]], int]:
    """Ids of labelled texts as a classifier reads them, and how many texts were cut.

    A row looks as in pretraining: it begins with ``bos`` for a causal body, and stands between ``cls`` and
    ``sep`` for one that looks both ways. Of a text that is too long the beginning is kept.
    """
    if not causal:
        cls_id, sep_id, room = tokenizer.cls_id, tokenizer.sep_id, max_len - 2
        texts_ids = tokenizer.encode_batch(texts)
        return [[cls_id, *ids[:room], sep_id] for ids in texts_ids], sum(len(ids) > room for ids in texts_ids)
    whole = [[tokenizer.bos_id, *ids] for ids in tokenizer.encode_batch(texts)]
    return [ids[:max_len] for ids in whole], sum(len(ids) > max_len for ids in whole)


def evaluate_classifier(
    model: Classifier,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    labels: Sequence[int],
    *,
    tokens_per_batch: int = 4096,
) -> ClassifierScore:
    """Accuracy on labelled texts.

    Parameters
    ----------
    model : Classifier
    tokenizer : Tokenizer
    texts : sequence of N str
    labels : sequence of N int
    tokens_per_batch : int
        Changes memory and speed, not the result.
    """
    check_vocabulary(model, tokenizer)
    sequences, n_cut = classifier_inputs(
        tokenizer, texts, model.config.max_len, causal=model.config.causal
    )
    objective = ClassificationObjective(sequences, labels, pad_id=tokenizer.pad_id)
    correct = count_correct(model, objective, tokens_per_batch=tokens_per_batch)
    return ClassifierScore(correct, len(labels), n_cut)


@torch.no_grad()
def class_probabilities(
    model: Classifier, tokenizer: Tokenizer, texts: Sequence[str], *, tokens_per_batch: int = 4096
) -> np.ndarray:
    """``P(class | text)`` as the classifier sees it.

    Parameters
    ----------
    model : Classifier
    tokenizer : Tokenizer
    texts : sequence of N str
        Cut as in `classifier_inputs`.
    tokens_per_batch : int
        Changes memory and speed, not the result.

    Returns
    -------
    ndarray of shape (N, C), float64
        In the order of the texts; rows sum to 1.
    """
    check_vocabulary(model, tokenizer)
    sequences, _ = classifier_inputs(
        tokenizer, texts, model.config.max_len, causal=model.config.causal
    )
    objective = ClassificationObjective(sequences, [0] * len(sequences), pad_id=tokenizer.pad_id)
    was_training = model.training
    model.eval()
    found = np.zeros((len(sequences), model.head.out_features))
    for indices in objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=tokens_per_batch):
        found[indices] = objective.logits(model, indices).double().softmax(dim=-1).cpu().numpy()
    model.train(was_training)
    return found


@torch.no_grad()
def count_correct(
    model: Classifier, objective: ClassificationObjective, *, tokens_per_batch: int = 4096
) -> int:
    """Number of texts of the objective whose class the model names."""
    was_training = model.training
    model.eval()
    correct = 0
    for indices in objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=tokens_per_batch):
        answers = objective.logits(model, indices).argmax(dim=-1).cpu()
        correct += int((answers == objective.labels[indices]).sum())
    model.train(was_training)
    return correct
