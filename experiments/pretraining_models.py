"""Models of the experiment on pretraining: one trunk at a constant rate, and a decay branch at each dose."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.harness import Record, digest_of
from experiments.linear import embed_by_counts
from experiments.pretraining_data import Texts, lowered
from experiments.pretraining_recipes import Condition, Recipe, part_of, times_width
from tinytx.loop import train
from tinytx.objectives import CausalObjective, MaskedObjective
from tinytx.settings import TrainingSettings, choose_device, choose_precision
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import Transformer
from tinytx_run.checkpoint import load, step_folders, step_of
from tinytx_run.files import json_bytes, write_file
from tinytx_run.pretrain import new_model, objective_for
from tinytx_run.recipes import Recipe as TrainingRecipe
from tinytx_run.runs import Checkpoints
from tinytx_run.training import Report, describe, seeded

N_HELD_OUT = 200  # texts that the loss of a finished model is measured on
CHECKPOINT_EVERY = 250
AnyObjective = CausalObjective | MaskedObjective


@dataclass(frozen=True)
class Dose:
    """How far a dose of pretraining reaches."""

    n_steps: int  # of the finished model
    n_decay: int  # how many of them, the last, are a branch with a falling rate
    n_tokens: int  # read, padding not counted
    n_distinct: int  # how many of them were read for the first time
    passes: float  # over the unlabelled texts


def plan_doses(
    objective: AnyObjective, settings: TrainingSettings, pad_id: int, doses: Sequence[int], decay_share: float
) -> dict[int, Dose]:
    """The fewest steps that read each dose of tokens, in the order in which training reads its batches."""
    wanted, found = sorted(doses), {}
    step = n_read = n_distinct = 0
    for epoch in itertools.count():
        how = {"seed": settings.seed, "epoch": epoch, "tokens_per_batch": settings.tokens_per_batch}
        batches = objective.epoch_batches(**how)
        sizes = [int((objective.batch(rows)[0] != pad_id).sum()) for rows in batches]
        n_distinct = n_distinct or sum(sizes)
        for size in sizes:
            step, n_read = step + 1, n_read + size
            while wanted and n_read >= wanted[0]:
                n_decay = max(1, round(decay_share * step))
                reach = min(n_read, n_distinct), round(n_read / n_distinct, 3)
                found[wanted.pop(0)] = Dose(step, n_decay, n_read, *reach)
            if not wanted:
                return found
    raise AssertionError("epochs never end")


class Bodies:
    """The transformers of one task; each pretrained one is trained once and cached under `work_dir`."""

    def __init__(self, texts: Texts, recipe: Recipe, work_dir: Path, device: str, report: Report) -> None:
        self.texts, self.recipe, self.report = texts, recipe, report
        self._where = choose_device(device)
        self._objective = functools.cache(lambda start: self._objective_on(start, texts.unlabelled))
        self.identity = digest_of({"recipe": recipe.pretraining(), "unlabelled": list(texts.unlabelled)})
        self.folder = work_dir / f"pretraining-{texts.name}-{self.identity}"

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """One for all conditions: it reads unlabelled texts only."""
        file = self.folder / "tokenizer.model"
        if not file.is_file():
            texts = lowered(self.texts.unlabelled[: self.recipe.token_texts])
            write_file(file, Tokenizer.train(texts, vocab_size=self.recipe.vocab_size).to_bytes())
        return Tokenizer.load(file)

    def body(self, wanted: Condition, seed: int) -> Transformer:
        """The transformer of a condition; the seed is that of new weights."""
        if wanted.dose:
            body = self._finished(wanted.start, wanted.dose).body
            body.config = body.config.replace(causal=wanted.causal)
            return body
        config = self.recipe.config(causal=wanted.causal).replace(tie_embeddings=False)
        body = seeded(lambda: Transformer(config), seed)
        if wanted.start.startswith("counts"):
            body.token_embed.load_state_dict(self._counted)
        return body

    def pretrained(self, start: str, dose: int) -> Record:
        """Train a body, where that is not done yet, and say what it read and how well it predicts."""
        nats, reach = self._held_out_nats(start, self._finished(start, dose)), self.doses(start)[dose]
        facts = {"corpus": self.texts.name, "objective": start, "dose": dose}
        return {**facts, **asdict(reach), "held_out_nats": nats}

    def doses(self, start: str) -> dict[int, Dose]:
        """What each dose means for an objective; on disk, as all texts have to be encoded to know it."""
        wanted = [dose for dose in self.recipe.doses if dose]
        file = self.folder / start / f"doses-{'-'.join(map(str, wanted))}.json"
        if not file.is_file():
            how = self._settings(start, 1), self.tokenizer.pad_id, wanted, self.recipe.decay_share
            plan = plan_doses(self._objective(start), *how)
            write_file(file, json_bytes({str(dose): asdict(reach) for dose, reach in plan.items()}))
        known = json.loads(file.read_bytes())
        return {int(dose): Dose(**reach) for dose, reach in known.items()}

    def _finished(self, start: str, dose: int) -> Any:
        """The model of a dose: a branch of the trunk, with its rate down to zero."""
        reach, folder = self.doses(start)[dose], self.folder / start / f"dose-{dose}"
        if not _ends_at(folder, reach.n_steps):
            settings = self._settings(start, reach.n_steps, reach.n_decay)
            self._run(start, folder, settings, self._trunk(start, reach.n_steps - reach.n_decay))
        return load(folder).model

    def _trunk(self, start: str, n_steps: int) -> Path | None:
        """The checkpoint of the trunk after so many steps; it continues from the nearest one before."""
        if not n_steps:
            return None
        folder = self.folder / start / f"trunk-{n_steps}"
        if not _ends_at(folder, n_steps):
            earlier = (reach.n_steps - reach.n_decay for reach in self.doses(start).values())
            before = max((step for step in earlier if step < n_steps), default=0)
            self._run(start, folder, self._settings(start, n_steps), self._trunk(start, before))
        return step_folders(folder)[-1]

    def _run(self, start: str, folder: Path, settings: TrainingSettings, origin: Path | None) -> None:
        recipe = self._training_recipe(start, settings)
        model = new_model(recipe, settings.seed).to(self._where)
        label = f"{self.texts.name}, {start}, {folder.name}"
        self.report(f"{label}: {describe(model, settings)}")
        plan = {"start": start, "identity": self.identity}
        with Checkpoints(folder, plan, self.tokenizer, start=origin).opened() as checkpoints:
            train(model, self._objective(start), settings, checkpoints=checkpoints, label=label)

    def _settings(self, start: str, n_steps: int, n_decay: int | None = None) -> TrainingSettings:
        precision = choose_precision("auto", self._where)
        settings = self.recipe.settings(n_steps, n_decay, precision)
        return settings.replace(checkpoint_every=CHECKPOINT_EVERY, seed=int(part_of(start, "seed") or 0))

    def _training_recipe(self, start: str, settings: TrainingSettings) -> TrainingRecipe:
        objective = part_of(start, "objective")
        config = self.recipe.config(causal=objective != "masked", times_width=times_width(start))
        masking = self.recipe.masking(objective)
        return TrainingRecipe("study", config.vocab_size, config, settings, masking=masking)

    def _objective_on(self, start: str, texts: Sequence[str]) -> AnyObjective:
        recipe = self._training_recipe(start, self._settings(start, 1))
        return objective_for(recipe, self.tokenizer, lowered(texts))

    def _held_out_nats(self, start: str, model: Any) -> float:
        """Mean loss a predicted token of texts that were not read, masked as in training."""
        objective = self._objective_on(start, self.texts.held_out[:N_HELD_OUT])
        batches = objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=self.recipe.tokens_per_batch)
        weights = [objective.n_predictions(rows) for rows in batches]
        model.to(self._where).eval()
        with torch.no_grad():
            losses = [float(objective.loss(model, rows)) for rows in batches]
        return round(float(np.average(losses, weights=weights)), 4)

    @functools.cached_property
    def _counted(self) -> dict[str, torch.Tensor]:
        """Embeddings from counts of the unlabelled texts."""
        table = torch.nn.Embedding(self.recipe.vocab_size, self.recipe.d_model)
        embed_by_counts(table.weight, self.tokenizer, lowered(self.texts.unlabelled))
        return table.state_dict()


def _ends_at(folder: Path, n_steps: int) -> bool:
    steps = step_folders(folder)
    return bool(steps) and step_of(steps[-1]) == n_steps
