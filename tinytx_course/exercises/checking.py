"""Try a learner's function on the inputs of an exercise and say what came of it."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tinytx_course.exercises.calling import Trouble, refuse
from tinytx_course.exercises.exercise import Exercise, Mistake
from tinytx_course.exercises.session import Session, Trial
from tinytx_course.exercises.telling import tell_pass, tell_stub, tell_trouble
from tinytx_course.exercises.verdict import Verdict

TIME_LIMIT = 5.0  # seconds for all calls of one check
_one_at_a_time = threading.RLock()  # the screen is captured, and there is only one


def check(name: str, function: Any, *, seed: int = 0, display: bool | None = None) -> Verdict:
    """Check a learner's function for an exercise, and name the mistake.

    Parameters
    ----------
    name : str
        Of the exercise, such as ``causal_mask``.
    function : callable
        What the learner wrote.
    seed : int
        For the random part of the inputs.
    display : bool, optional
        Whether to show the verdict, as a card in a notebook and as text elsewhere; yes unless told otherwise.

    Returns
    -------
    Verdict
        ``.passed``, ``.mistake``, ``.message``. At the end of a cell it is not shown a second time.

    Raises
    ------
    ValueError
        If there is no such exercise. Nothing that the function does is ever raised.

    Examples
    --------
    >>> import tinytx as tx
    >>> check("causal_mask", tx.causal_mask, display=False).passed
    True
    >>> check("causal_mask", lambda seq_len: ~tx.causal_mask(seq_len), display=False).mistake
    'reversed'
    """
    from tinytx_course.exercises import EXERCISES

    exercise = find_exercise(name, EXERCISES)
    with _one_at_a_time, _global_state_kept():
        verdict = _verdict(exercise, function, seed)
    if display is None or display:
        verdict.show()
    return verdict


def find_exercise(name: str, exercises: Mapping[str, Exercise]) -> Exercise:
    """Return an exercise by name, or name the nearest ones."""
    if name in exercises:
        return exercises[name]
    near = difflib.get_close_matches(str(name), exercises, n=3)
    known = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(exercises)}"
    raise ValueError(f"name must be that of an exercise, got {name!r}; {known}")


def _verdict(exercise: Exercise, function: Any, seed: int) -> Verdict:
    refusal = refuse(function, exercise.parameters)
    if refusal is not None:
        return tell_trouble(exercise, refusal) if refusal.attempted else tell_stub(exercise, refusal)
    session = Session(exercise, function, seed, TIME_LIMIT)
    if exercise.judge is not None:
        return exercise.judge(session)
    trials = []
    for case in exercise.cases(seed):
        trials.append(session.attempt(case))
        trouble = trials[-1].trouble
        if trouble is not None and not trouble.attempted:
            return tell_stub(exercise, trouble)
        if trouble is not None and trouble.slug in ("time-limit", "interrupted"):
            break
    wrong = [trial for trial in trials if not trial.right]
    if not wrong:
        return _pass_if_steady(session, trials)
    return _diagnosed(session, trials, wrong[0])


def _pass_if_steady(session: Session, trials: Sequence[Trial]) -> Verdict:
    for trial in (trials[0], trials[-1]):
        again = session.attempt(trial.case)
        if not again.right:
            return tell_trouble(session.exercise, _UNSTEADY, again)
    hint = session.exercise.hint(session) if session.exercise.hint is not None else ""
    return tell_pass(session.exercise, trials, hint)


_UNSTEADY = Trouble(
    "changes-between-calls",
    "The same call gave another result the second time: something is kept between calls, or left to chance.",
)


def _diagnosed(session: Session, trials: Sequence[Trial], first: Trial) -> Verdict:
    telling = [
        trial for trial in trials if trial.trouble is not None and trial.trouble.slug == "additive-mask"
    ]
    first = telling[0] if telling else first
    one_too_many = first.trouble is not None and first.trouble.slug == "too-many-results"
    mistake = None if one_too_many else _recognise(session, trials)
    stopped = [trial for trial in trials if trial.got is None]
    if mistake is None and first.trouble is None and stopped:
        first = stopped[0]
    if mistake is None and first.trouble is None and _unsteady(session, [first, *trials[-3:]]):
        return tell_trouble(session.exercise, _UNSTEADY, first)
    return tell_trouble(session.exercise, first.trouble, first, mistake)


def _unsteady(session: Session, trials: Sequence[Trial]) -> bool:
    """Whether some call gives another result when it is repeated."""
    for trial in trials:
        again = session.attempt(trial.case)
        if trial.got is not None and again.got is not None and not again.got.agrees_with(trial.got):
            return True
    return False


def _recognise(session: Session, trials: Sequence[Trial]) -> Mistake | None:
    """The first known mistake whose results agree with the learner's on every input.

    Where several single ones do, as different slips can make equal counts, the others are told too.
    """
    telling_first = sorted(trials, key=lambda trial: trial.right)
    found = None
    for mistake in session.exercise.mistakes:
        if found is not None and ("+" in mistake.slug or mistake.words in found.words):
            continue
        if all(_makes(session, mistake, trial) for trial in telling_first):
            if "+" in mistake.slug:
                return mistake
            words = (
                mistake.words
                if found is None
                else f"{found.words} Or this, which comes to the same: {mistake.words}"
            )
            found = dataclasses.replace(found or mistake, words=words)
    if found is None and session.exercise.recognise is not None:
        return session.exercise.recognise(trials)
    return found


def _makes(session: Session, mistake: Mistake, trial: Trial) -> bool:
    reading = session.read_known(mistake.wrong, trial.case)
    if reading is None or trial.got is None:
        return reading is None and trial.trouble is not None and trial.trouble.slug == "error"
    return dataclasses.replace(reading, tolerance=max(reading.tolerance, mistake.tolerance)).agrees_with(
        trial.got
    )


@contextlib.contextmanager
def _global_state_kept() -> Iterator[None]:
    """Leave all global random states as they were, and whether gradients are recorded."""
    records_gradients = torch.is_grad_enabled()
    kept = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    on_gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        torch.set_grad_enabled(records_gradients)
        random.setstate(kept[0])
        np.random.set_state(kept[1])  # noqa: NPY002
        torch.set_rng_state(kept[2])
        if on_gpu is not None:
            torch.cuda.set_rng_state_all(on_gpu)
