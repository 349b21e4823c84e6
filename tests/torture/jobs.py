"""What is trained: four small jobs of some fifty steps, as a person would type them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

FRENCH = ("le", "la", "chat", "chien", "mange", "voit", "un", "une", "belle", "petit", "grand", "livre")
ENGLISH = ("the", "a", "cat", "dog", "eats", "sees", "one", "her", "pretty", "small", "big", "book")


@dataclass(frozen=True)
class Job:
    """A command that trains: its arguments but the folder and ``--resume``."""

    name: str
    arguments: tuple[str, ...]

    def command(self, out: Path) -> list[str]:
        """Its arguments with a folder, into which it may or may not have been started before."""
        return [*self.arguments, "--device", "cpu", "--out", str(out), "--resume"]


def make_jobs(folder: Path, n_steps: int = 50) -> list[Job]:
    """Write small corpora into a folder, and give the jobs that learn from them.

    The fine-tuning begins with the model of the first job, which has to be run into ``folder / "lm"`` before.
    """
    rng = random.Random(1)
    rows = [[rng.randrange(len(FRENCH)) for _ in range(rng.randint(3, 10))] for _ in range(2400)]
    french = [" ".join(FRENCH[i] for i in row) for row in rows]
    english = [" ".join(ENGLISH[i] for i in row) for row in rows]
    labels = [int("chat" in text) for text in french]
    files = {
        "prose.txt": french[:300],
        "reviews.tsv": [f"{label}\t{text}" for label, text in zip(labels, french, strict=True)],
        "pairs.tsv": [f"{a}\t{b}" for a, b in zip(english[:300], french[:300], strict=True)],
    }
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    prose, reviews, pairs = (str(folder / name) for name in files)
    seed = ("--seed", "3")
    trained = ("--budget", "smoke", "--steps", str(n_steps), *seed)
    return [
        Job("causal", ("pretrain", "--corpus", prose, *trained)),
        Job("masked", ("pretrain", "--objective", "masked+nsp", "--corpus", prose, *trained)),
        Job("translation", ("pretrain", "--objective", "translation", "--corpus", pairs, *trained)),
        Job(
            "fine-tuning", ("finetune", str(folder / "lm"), "--corpus", reviews, "--budget", "laptop", *seed)
        ),
    ]


def newest_step(folder: Path) -> int:
    """The step of the newest checkpoint, 0 where there is none."""
    return max((int(path.name[5:]) for path in folder.glob("step-*")), default=0)


def interval_of(finished: Path) -> int:
    """Steps between two checkpoints of a finished run."""
    training = json.loads((finished / f"step-{newest_step(finished):06d}" / "training.json").read_text())
    return training["settings"]["checkpoint_every"]
