"""What a run was asked to do: stored beside its checkpoints, and compared before it goes on."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinytx.model import Classifier, LanguageModel, MaskedLanguageModel, Translator, count_parameters
from tinytx.text import Tokenizer
from tinytx.text.corpora import Corpus
from tinytx.training.runs.checkpoints import STATE_FILE, load_tokenizer, step_folders, step_of
from tinytx.training.runs.files import as_json, is_empty_folder, read_json
from tinytx.training.runs.seals import SEAL_FILE, check_seal
from tinytx.training.settings import TrainingSettings

PLAN_FILE = "plan.json"


class ForeignCheckpoint(ValueError):
    """A checkpoint that is whole, but of another run."""


def stored_plan(out: str | os.PathLike[str] | None, resume: bool) -> dict[str, Any] | None:
    """The plan of the run in a folder, or None where a run may begin afresh.

    Parameters
    ----------
    out : path or None
        The run folder; it may be missing. None writes nothing.
    resume : bool
        Whether going on with a run is wanted.

    Raises
    ------
    ValueError
        When the folder holds a run and ``resume`` is False, or holds something else: nothing is ever
        written over.
    """
    if out is None:
        if resume:
            raise ValueError("resume needs out, the folder of the run to go on with, got None")
        return None
    folder = Path(out)
    if not folder.exists() or is_empty_folder(folder):
        return None
    if not folder.is_dir():
        raise ValueError(f"a run goes into a folder, got the file {folder}")
    if not (folder / PLAN_FILE).is_file() and not step_folders(folder):
        raise ValueError(f"a run goes into a new or empty folder, got {folder}, which holds other files")
    if not resume:
        raise ValueError(f"{folder} already holds a run: go on with --resume, or choose another folder")
    return _read_plan(folder)


def _read_plan(folder: Path) -> dict[str, Any]:
    """The plan of a run; a damaged one is read from the newest checkpoint that holds a copy."""
    try:
        return read_json(folder / PLAN_FILE)
    except ValueError:
        for checkpoint in reversed(step_folders(folder)):
            with contextlib.suppress(ValueError):
                check_seal(checkpoint)
                if copy := read_json(checkpoint / STATE_FILE).get("plan"):
                    return copy
        raise


def read_state(checkpoint: Path, plan: Mapping[str, Any]) -> dict[str, Any]:
    """What training was doing when it wrote a checkpoint, as far as JSON holds it.

    Parameters
    ----------
    checkpoint : Path
        One of a run's folders; each of its files is compared with the seal.
    plan : mapping
        Of the run.

    Raises
    ------
    ForeignCheckpoint
        When it was written by a run with another plan, or after another step than its name says.
    ValueError
        When a file is damaged; it is named.
    """
    check_seal(checkpoint)
    training = read_json(checkpoint / STATE_FILE)
    state = training.get("state")
    if not isinstance(state, dict) or "step" not in state:
        raise ValueError(f"{checkpoint / STATE_FILE} does not say where training stood")
    if state["step"] != step_of(checkpoint):
        raise ForeignCheckpoint(f"{checkpoint} was written after step {state['step']}")
    if as_json(training.get("plan", plan)) != as_json(plan):
        raise ForeignCheckpoint(f"{checkpoint} was written by a run with another plan")
    if "plan" in training and not (checkpoint / SEAL_FILE).exists():  # older ones have neither
        raise ValueError(f"{checkpoint / SEAL_FILE} is missing")
    return training


def check_request(stored: Mapping[str, Any], request: Mapping[str, Any]) -> None:
    """Refuse to go on with a run that was asked for otherwise; names what differs."""
    before = stored.get("request", {})
    request = as_json(request)  # as the stored one has been, which turns tuples into lists
    for key in sorted({*before, *request}):
        if before.get(key) != request.get(key):
            what = "the training texts" if key == "texts" else key
            raise ValueError(
                f"a run goes on as it began, got another {what}: "
                f"it began with {before.get(key)}, now {request.get(key)}"
            )


def fingerprint(corpus: Corpus) -> str:
    """A short name for the training texts and labels, which changes whenever any of them does."""
    digest = hashlib.sha256()
    for text in corpus.train.texts:
        digest.update(text.encode() + b"\n")
    digest.update(repr(corpus.train.labels).encode())
    return digest.hexdigest()[:16]


def stored_tokenizer(out: str | os.PathLike[str], plan: Mapping[str, Any]) -> Tokenizer | None:
    """The tokenizer of a run's newest checkpoint that is whole and its own, or None."""
    for folder in reversed(step_folders(Path(out))):
        with contextlib.suppress(ValueError):
            read_state(folder, plan)
            return load_tokenizer(folder)
    return None


def describe(
    model: LanguageModel | MaskedLanguageModel | Classifier | Translator, settings: TrainingSettings
) -> str:
    """One line for a person who waits: size of the model and amount of training."""
    config = model.config
    return (
        f"{config.n_layers} layers of width {config.d_model}, {config.vocab_size:,} pieces, "
        f"{count_parameters(model):,} parameters; {settings.n_steps:,} steps of up to "
        f"{settings.tokens_per_batch:,} tokens, {settings.precision}"
    )
