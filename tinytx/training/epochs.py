"""Fine-tuning counts in epochs: where they end, and how a classifier stands at the end of each."""

from __future__ import annotations

import itertools
from typing import Any

from torch import nn

from tinytx.model import Classifier, TransformerConfig
from tinytx.text import Tokenizer
from tinytx.text.corpora import Split
from tinytx.training.engine.loop import OnStep
from tinytx.training.evaluation import ClassifierScore, classifier_inputs, count_correct
from tinytx.training.objectives import ClassificationObjective
from tinytx.training.settings import TrainingSettings
from tinytx.training.subsets import label_subset


def objective_of(
    tokenizer: Tokenizer, split: Split, config: TransformerConfig
) -> tuple[ClassificationObjective, int]:
    """The task of naming the classes of a split, and how many of its texts were cut to what fits."""
    sequences, n_cut = classifier_inputs(tokenizer, split.texts, config.max_len, causal=config.causal)
    return ClassificationObjective(sequences, split.labels or (), pad_id=tokenizer.pad_id), n_cut


def epoch_ends(learning: ClassificationObjective, settings: TrainingSettings, n_epochs: int) -> list[int]:
    """The step that ends each epoch."""
    sizes = [
        len(
            learning.epoch_batches(
                seed=settings.seed, epoch=epoch, tokens_per_batch=settings.tokens_per_batch
            )
        )
        for epoch in range(n_epochs)
    ]
    return list(itertools.accumulate(sizes))


def n_steps_of(learning: ClassificationObjective, settings: TrainingSettings, n_epochs: int) -> int:
    """The steps of all epochs together."""
    return epoch_ends(learning, settings, n_epochs)[-1]


class EpochScoring:
    """Scores on one split: after each epoch of some texts, of every class alike; at the end of all of them.

    Parameters
    ----------
    tokenizer : Tokenizer
    split : Split
    config : TransformerConfig
    n_scored : int, optional
        How many are scored after an epoch; by default all.
    """

    def __init__(
        self, tokenizer: Tokenizer, split: Split, config: TransformerConfig, n_scored: int | None
    ) -> None:
        self._whole, self._n_cut = objective_of(tokenizer, split, config)
        self._n = len(split)
        all_of_them = n_scored is None or n_scored >= len(split)
        # Corpora are often sorted by class: the first texts would be of one.
        some = split if all_of_them else label_subset(split, n_scored or 0, seed=0)
        self._n_some = len(some)
        self._some = self._whole if all_of_them else objective_of(tokenizer, some, config)[0]

    def after(self, epoch_ends: list[int]) -> OnStep:
        """A callback that scores the model at the end of each epoch."""

        def on_step(step: int, model: nn.Module) -> dict[str, Any] | None:
            if step not in epoch_ends or not isinstance(model, Classifier):
                return None
            correct = count_correct(model, self._some)
            return {
                "epoch": 1 + epoch_ends.index(step),
                "accuracy": correct / self._n_some,
                "n": self._n_some,
            }

        return on_step

    def score(self, model: Classifier) -> ClassifierScore:
        """The score on the whole split."""
        return ClassifierScore(count_correct(model, self._whole), self._n, self._n_cut)
