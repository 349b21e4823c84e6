"""Who takes part in the contest of objectives, how they are trained alike, and one record of each measure."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinytx.model import MaskedLanguageModel, TransformerConfig, cost_table, count_parameters
from tinytx.text.corpora import Corpus
from tinytx.training.budgets import Recipe, plan, plan_finetuning
from tinytx.training.experiments.objective_measures import (
    best_label_accuracy,
    completion_measures,
    fill_measures,
    next_sentence_measures,
)
from tinytx.training.finetuning import finetune
from tinytx.training.masked.blanks import Sides
from tinytx.training.masked.masking import Masking
from tinytx.training.plans import fingerprint
from tinytx.training.pretraining import PretrainResult, Report, pretrain
from tinytx.training.runs.files import json_bytes

MEAN_LEN = 40  # ids of a review of the world, about; read for the closed form of operations
BODY = {"tie_embeddings": True, "n_segments": 2}  # of all contestants, so that their bodies are alike
TRAINING = ("n_steps", "lr", "optimizer", "decay", "final_lr_fraction")  # all but the first alike, too


@dataclass(frozen=True)
class Contestant:
    """One way to pretrain.

    Attributes
    ----------
    name : str
    objective : str
        Of `pretrain`.
    equal : str or None
        What it has in common with the causal model beside data, tokenizer and body: "compute" (floating-point
        operations of training, by closed form) or "tokens" (steps). None for the causal model itself.
    """

    name: str
    objective: str
    equal: str | None


CONTESTANTS = (
    Contestant("causal", "causal", None),
    Contestant("masked", "masked", "compute"),
    Contestant("masked+nsp", "masked+nsp", "compute"),
    Contestant("masked, same tokens", "masked", "tokens"),
    Contestant("masked+nsp, same tokens", "masked+nsp", "tokens"),
)


def training_flops(config: TransformerConfig, masking: Masking | None, seq_len: int = MEAN_LEN) -> float:
    """Floating-point operations of the forward pass for each id read, by closed form; training takes thrice.

    Only drawn places of a masked model reach its output layer.
    """
    body = cost_table(config, None, batch_size=1, seq_len=seq_len).flops_forward
    output = cost_table(config, "lm", batch_size=1, seq_len=seq_len).flops_forward - body
    if masking is None:
        return (body + output) / seq_len
    if masking.transform:
        output += 2 * seq_len * config.d_model**2
    pooler = 2 * config.d_model**2 + 4 * config.d_model if masking.next_sentence else 0
    return (body + masking.p * output + pooler) / seq_len


class Contest:
    """The models of a contest, trained when first needed, and what is measured on them."""

    def __init__(
        self,
        data: Corpus,
        budget: str,
        label_counts: Sequence[int],
        n_blanks: int,
        n_prefixes: int,
        work_dir: Path,
        device: str,
        report: Report,
    ) -> None:
        self.data, self.budget, self.labels = data, budget, tuple(label_counts)
        self.n_blanks, self.n_prefixes = n_blanks, n_prefixes
        self.work_dir, self.device, self.report = work_dir, device, report
        self._texts = fingerprint(data)
        self._split = "valid" if data.test is None else "test"
        self._at_hand: tuple[int, str] | None = None
        self._result: PretrainResult | None = None
        self._best: float | None = None

    def measures(self, one: Contestant) -> list[str]:
        """Names of what is measured on a contestant."""
        fills = ["fill", "fill, left side"] if one.objective == "causal" else ["fill"]
        following = ["next sentence"] if one.objective == "masked+nsp" else []
        ways = [f"{way} {n}" for n in self.labels for way in ("probe", "finetune")]
        return ["pretraining", *fills, "complete", *following, *ways]

    def origin(self, seed: int, one: Contestant, measure: str) -> dict[str, Any]:
        """Everything that a record follows from."""
        settings: dict[str, Any] = {}
        if measure.startswith("fill"):
            settings = {"n_blanks": self.n_blanks}
        elif measure == "complete":
            settings = {"n_prefixes": self.n_prefixes}
        elif measure.startswith(("probe", "finetune")):
            settings = {"finetuning": dataclasses.asdict(plan_finetuning("world", self.budget))}
        return {"texts": self._texts, "recipe": self._plan(seed, one).to_dict(), "settings": settings}

    def _plan(self, seed: int, one: Contestant) -> Recipe:
        """What a contestant is pretrained with, before its tokenizer is known."""
        base = plan("world", "masked", self.budget, seed=seed)
        config, masking = base.config.replace(**BODY, causal=one.objective == "causal"), None
        n_steps = base.settings.n_steps
        if one.objective != "causal":
            masking = Masking(next_sentence=one.objective == "masked+nsp", transform=False)
        if one.equal == "compute":
            n_steps = round(n_steps * training_flops(config, None) / training_flops(config, masking))
        settings = base.settings.replace(n_steps=n_steps)
        return dataclasses.replace(base, config=config, settings=settings, masking=masking)

    def _trained(self, seed: int, one: Contestant) -> PretrainResult:
        if self._at_hand != (seed, one.name) or self._result is None:
            wanted = self._plan(seed, one)
            what = json_bytes({"texts": self._texts, "recipe": wanted.to_dict()})
            digest = hashlib.sha256(what).hexdigest()[:12]
            name = one.name.replace(", ", "-").replace(" ", "-")
            self._result = pretrain(
                self.data,
                objective=one.objective,
                budget=self.budget,
                seed=seed,
                out=self.work_dir / f"objectives-{name}-{self.budget}-seed{seed}-{digest}",
                resume=True,
                device=self.device,
                model_changes=BODY,
                training_changes={name: getattr(wanted.settings, name) for name in TRAINING},
                masking_changes=None if wanted.masking is None else {"transform": False},
                progress=False,
                report=self.report,
            )
            self._at_hand = (seed, one.name)
        return self._result

    def measured(self, seed: int, one: Contestant, measure: str) -> dict[str, Any]:
        """One record."""
        result = self._trained(seed, one)
        model, tokenizer, texts = result.model, result.tokenizer, self.data.splits[self._split].texts
        if measure == "pretraining":
            return self._pretraining(result)
        if measure.startswith("fill"):
            sides: Sides = "left" if measure.endswith("left side") else "both"
            return fill_measures(model, tokenizer, texts, self.n_blanks, sides)
        if measure == "complete":
            return completion_measures(model, tokenizer, texts, self.n_prefixes, seed=seed)
        if measure == "next sentence" and isinstance(model, MaskedLanguageModel):
            return next_sentence_measures(model, tokenizer, self.data, self._split)
        return self._labelled(result, seed, *measure.split(" "))

    def _pretraining(self, result: PretrainResult) -> dict[str, Any]:
        settings, config = result.recipe.settings, result.recipe.config
        return {
            **{key: value for key, value in result.to_dict().items() if key != "path"},
            "n_body": count_parameters(result.model.body),
            "ids_at_most": settings.n_steps * settings.tokens_per_batch,
            "flops_per_id": 3 * training_flops(config, result.recipe.masking),
            "history": {"step": result.history.step, "loss": result.history.loss},
        }

    def _labelled(self, result: PretrainResult, seed: int, way: str, n_labels: str) -> dict[str, Any]:
        tuned = finetune(
            result,
            self.data,
            frozen=way == "probe",
            budget=self.budget,
            seed=seed,
            n_labels=int(n_labels),
            device=self.device,
            n_scored=1,
            progress=False,
            report=lambda line: None,
        )
        if self._best is None:
            split = self.data.splits[self._split]
            self._best = best_label_accuracy(split.texts, split.labels or ())
        return {**tuned.score.to_dict(), "exact": {"accuracy": self._best}}
