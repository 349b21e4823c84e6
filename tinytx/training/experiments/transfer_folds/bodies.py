"""Bodies for all conditions: pretrained in stages, each kept in a folder and gone on with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tinytx.model import Classifier, LanguageModel, MaskedLanguageModel, TransformerBody, TransformerConfig
from tinytx.text import Tokenizer
from tinytx.training.budgets import Recipe
from tinytx.training.engine.loop import train
from tinytx.training.evaluation import classifier_inputs
from tinytx.training.experiments.transfer_folds.conditions import Condition
from tinytx.training.experiments.transfer_folds.counts import count_vectors, spread_evenly
from tinytx.training.experiments.transfer_folds.folds import Fold
from tinytx.training.experiments.transfer_folds.recipes import Stage, TransferRecipe
from tinytx.training.experiments.transfer_folds.sources import Sources, digest_of
from tinytx.training.experiments.transfer_folds.stars import StarsObjective
from tinytx.training.experiments.transfer_folds.task import Task
from tinytx.training.masked.masking import Masking
from tinytx.training.objectives import Objective
from tinytx.training.plans import describe
from tinytx.training.pretraining import Report
from tinytx.training.runs.checkpoints import MODEL_FILE, load, save, step_folders, step_of
from tinytx.training.runs.files import write_file
from tinytx.training.runs.runfolder import RunFolder
from tinytx.training.settings import TrainingSettings, choose_device, choose_precision
from tinytx.training.tasks import new_model, objective_for

AnyModel = LanguageModel | MaskedLanguageModel | Classifier
Plan = dict[str, Any]


@dataclass
class Bodies:
    """Makes bodies when they are first needed, from what lies below `work_dir` where it can.

    Attributes
    ----------
    task : Task
    recipe : TransferRecipe
    sources : Sources
    work_dir : Path
    device : str
    report : callable
        Told what is pretrained, a line each.
    """

    task: Task
    recipe: TransferRecipe
    sources: Sources
    work_dir: Path
    device: str = "auto"
    report: Report = print
    _tokenizer: Tokenizer | None = field(default=None, repr=False)

    @property
    def tokenizer(self) -> Tokenizer:
        """One for all conditions, learned from text elsewhere: no text of the task was read for it."""
        if self._tokenizer is None:
            file = self.work_dir / f"tokenizer-{digest_of(self._pieces())}.model"
            if not file.is_file():
                task = self.task
                texts = lowered(self.sources.elsewhere(task.pieces_from, task.pieces_words))
                made = Tokenizer.train(texts, vocab_size=self.recipe.vocab_size, max_chars=4_000_000)
                write_file(file, made.to_bytes())
            self._tokenizer = Tokenizer.load(file)
        return self._tokenizer

    def _pieces(self) -> Plan:
        words = dict(self.task.pieces_words)
        return {
            "vocab_size": self.recipe.vocab_size,
            "words": words,
            **self.sources.identity(self.task.pieces_from),
        }

    def new_body(self, *, causal: bool, seed: int) -> TransformerBody:
        """A body with new weights."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return TransformerBody(self.recipe.config(causal=causal).replace(tie_embeddings=False))

    def model(self, wanted: Condition, fold: Fold) -> AnyModel | None:
        """The model whose body a condition uses, pretrained where it is not yet; None for new weights."""
        model: AnyModel | None = None
        for stage, folder in self.stages(wanted, fold):
            model = _finished(stage, folder) or self._made(stage, folder, model, fold)
        return model

    def stages(self, wanted: Condition, fold: Fold) -> list[tuple[Plan, Path]]:
        """How a body comes about, and the folder of each stage: named after all that went into it."""
        found, digest = [], ""
        for stage in self._plans(wanted, fold):
            digest = digest_of({"stage": stage, "before": digest})
            found.append((stage, self.work_dir / f"{stage['what']}-{stage['text']}-{digest}"))
        return found

    def _plans(self, wanted: Condition, fold: Fold) -> list[Plan]:
        recipe = self.recipe
        shape = {"config": recipe.config(causal=wanted.causal).to_dict(), "pieces": self._pieces()}
        learns = {"what": wanted.objective, "mask": recipe.mask, "from_counts": recipe.from_counts, **shape}
        stages: list[Plan] = []
        if wanted.text is not None:
            before, own = self.task.texts[wanted.text].elsewhere, self.task.own
            elsewhere = {"words": recipe.words, **({} if before is None else self.sources.identity(before))}
            read = {own: digest_of({"texts": list(fold.train.texts)})} if wanted.needs_fold and own else {}
            if wanted.objective == "counts":
                stages.append({"what": "counts", **shape, **read, "text": wanted.text, **elsewhere})
            else:
                if before is not None:
                    stages.append(
                        {**learns, "text": before, **elsewhere, "stage": _fields(recipe.pretraining)}
                    )
                if read:
                    stages.append({**learns, "text": own, **read, "stage": _fields(recipe.adapting)})
        if wanted.stars:
            rates = {"what": "stars", "text": self.task.neighbour, "from_counts": recipe.from_counts}
            stages.append({**rates, **shape, "stage": _fields(recipe.rating)})
        return stages

    def _made(self, plan: Plan, folder: Path, before: AnyModel | None, fold: Fold) -> AnyModel:
        """Carry a stage out, from its latest checkpoint where there is one."""
        if plan["what"] == "stars":
            return self._rated(plan, folder, before)
        texts = lowered(self._texts(plan, fold))
        config = TransformerConfig.from_dict(plan["config"])
        if plan["what"] == "counts":
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                counted = MaskedLanguageModel(config)
            self._count(counted, texts)
            save(counted, folder, self.tokenizer)
            return counted.eval()
        masking = None if config.causal else Masking(p=self.recipe.mask)
        settings = self._settings(plan)
        recipe = Recipe(self.recipe.budget, config.vocab_size, config, settings, masking=masking)
        model = new_model(recipe, seed=0)
        if before is not None:
            model.load_state_dict(before.state_dict())  # body and head
        elif plan["from_counts"]:
            self._count(model, texts)
        # At the rates at which a body learns, what was counted would be gone within a few steps.
        model.body.token_embed.weight.requires_grad_(not plan["from_counts"])
        return self._run(model, objective_for(recipe, self.tokenizer, texts), plan, folder)

    def _texts(self, plan: Plan, fold: Fold) -> list[str]:
        """What a stage reads: text elsewhere, the texts of the fold that are not tested, or both."""
        text = self.task.texts[plan["text"]]
        own = list(fold.train.texts) if text.own else []
        return own if text.elsewhere is None else self.sources.elsewhere(text.elsewhere, plan["words"]) + own

    def _count(self, model: LanguageModel | MaskedLanguageModel, texts: Sequence[str]) -> None:
        """Give the embeddings what counts tell, in the size of new ones that are scaled by the root of D."""
        weight = model.body.token_embed.weight
        ids = self.tokenizer.encode_batch(texts)
        flat = torch.from_numpy(np.concatenate([np.asarray(row, dtype=np.int64) for row in ids]))
        frequencies = torch.bincount(flat, minlength=len(weight)).float()
        with torch.no_grad():
            weight.copy_(spread_evenly(count_vectors(ids, *weight.shape), frequencies))
            weight.mul_(weight.shape[1] ** -0.5)

    def _rated(self, plan: Plan, folder: Path, before: AnyModel | None) -> AnyModel:
        """A classifier that says from the words whether a reader gave more stars than others."""
        config = TransformerConfig.from_dict(plan["config"])
        rated = self.sources.rated
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            config = config.replace(dropout=self.recipe.tuning.dropout, tie_embeddings=False)
            model = Classifier(config)
        if before is not None:
            model.body.load_state_dict(before.body.state_dict())
            model.body.token_embed.weight.requires_grad_(not plan["from_counts"])
        sequences, _ = classifier_inputs(
            self.tokenizer, lowered([one.text for one in rated]), config.max_len, causal=config.causal
        )
        learning = StarsObjective(sequences, [one.stars for one in rated], pad_id=self.tokenizer.pad_id)
        return self._run(model, learning, plan, folder)

    def _settings(self, plan: Plan) -> TrainingSettings:
        precision = choose_precision("auto", choose_device(self.device))
        return Stage(**plan["stage"]).settings(0, precision)

    def _run(self, model: Any, learning: Objective, plan: Plan, folder: Path) -> AnyModel:
        settings = self._settings(plan)
        model.to(choose_device(self.device))
        self.report(f"{plan['what']} on {plan['text']}: {describe(model, settings)}")
        with RunFolder.opened(folder, {"request": plan}, self.tokenizer, self.report) as run:
            train(model, learning, settings, run=run, label=f"{plan['what']} on {plan['text']}")
        return model


def is_finished(plan: Plan, folder: Path) -> bool:
    """Whether a stage has been carried out."""
    if plan["what"] == "counts":
        return (folder / MODEL_FILE).is_file()
    steps = step_folders(folder)
    return bool(steps) and step_of(steps[-1]) >= plan["stage"]["n_steps"]


def _finished(plan: Plan, folder: Path) -> AnyModel | None:
    if not is_finished(plan, folder):
        return None
    model = load(folder)
    assert not hasattr(model, "decoder")
    return model  # type: ignore[return-value]


def lowered(texts: Sequence[str]) -> list[str]:
    """Texts as bodies read them: in small letters, so that a word has one vector."""
    return [text.lower() for text in texts]


def _fields(stage: Stage | None) -> Plan:
    if stage is None:
        raise ValueError("the recipe must hold a stage for each text that a body reads, got None")
    return dataclasses.asdict(stage)
