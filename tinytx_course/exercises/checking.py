"""Check a learner's function: observe it, judge what was observed, show the verdict."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import re
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from tinytx_course.exercises import (
    attending,
    blocks,
    counting,
    decoding,
    losses,
    masking,
    masks,
    modern,
    outside,
    positions,
    published,
    sampling,
    subwords,
    training,
)
from tinytx_course.exercises.calling import observe
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.exercises.judging import judge
from tinytx_course.exercises.rungs import lowest_left, rungs_of
from tinytx_course.exercises.verdict import Verdict
from tinytx_course.lessons import FURTHER, LESSONS, project_root
from tinytx_course.progress.answers import store_answer
from tinytx_course.progress.record import record
from tinytx_course.results import nearest

_MODULES = (
    subwords, masks, attending, blocks, positions, counting, losses, sampling, training, masking, decoding,
    modern, outside, published,
)  # fmt: skip
_BY_LESSON = sorted(
    (exercise for module in _MODULES for exercise in module.EXERCISES), key=lambda exercise: exercise.lesson
)
EXERCISES: Mapping[str, Exercise] = MappingProxyType({exercise.name: exercise for exercise in _BY_LESSON})

TIME_LIMIT = 5.0  # seconds of the processor for all first calls of a check
_one_at_a_time = threading.RLock()  # the screen is captured, and there is only one


def check(name: str, function: Any, *, seed: int = 0, display: bool = True) -> Verdict:
    """Check a learner's function for an exercise, and name the mistake; from the second try on say the rule.

    Parameters
    ----------
    name : str
        Of the exercise, such as ``causal_mask``.
    function : callable
        What the learner wrote.
    seed : int
        For the random part of the inputs.
    display : bool
        Whether to show the verdict, as a card in a notebook and as text elsewhere, and to record it; a
        function that passed is then stored for `use`.

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
    >>> check("causal_mask", lambda seq_len: torch.ones(seq_len, seq_len).tril() > 0, display=False).passed
    True
    >>> check("causal_mask", lambda seq_len: ~tx.causal_mask(seq_len), display=False).mistake
    'reversed'
    >>> check("causal_mask", lambda seq_len: tx.causal_mask(seq_len), display=False).mistake
    'calls-the-answer'
    """
    exercise = find_exercise(name)
    with _one_at_a_time, _usual_state():
        verdict = judge(exercise, observe(exercise, function, seed, TIME_LIMIT), seed)
    if display:
        _record(verdict)
        if verdict.passed:
            store_answer(name, function)
            verdict = dataclasses.replace(verdict, parts=(*verdict.parts, _whats_next(exercise)))
        elif verdict.attempted:
            rule = [f"Expected: {exercise.rule}"] if record().entry("exercises", name)["tries"] > 1 else []
            parts = (*rule, *verdict.parts, *filter(None, [_rung_below(exercise)]))
            verdict = dataclasses.replace(verdict, parts=parts)
        verdict.show()
    return verdict


def _whats_next(exercise: Exercise) -> str:
    """Return how many exercises of the lesson are done, and which is the next one."""
    of_lesson = [one.name for one in EXERCISES.values() if one.lesson == exercise.lesson]
    todo = [name for name in of_lesson if not record().entry("exercises", name).get("passed")]
    lesson = f"lesson {exercise.lesson:02d}"
    if not todo:
        return f"All exercises of {lesson} are done."
    core = core_exercises(exercise.lesson)
    if core and not {*core} & {*todo}:
        return f"The core of {lesson} is done. Further, {len(todo)} more: `{'`, `'.join(todo)}`."
    following = next((f"`{name}`, in the core" for name in core if name in todo), f"`{todo[0]}`")
    return f"{len(of_lesson) - len(todo)} of {len(of_lesson)} in {lesson}. Next: {following}."


@cache
def core_exercises(lesson: int) -> tuple[str, ...]:
    """Return the exercises in the core of a lesson; none where its notebook is not installed."""
    try:
        file = project_root() / "notebooks" / f"{LESSONS[lesson].name}.ipynb"
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    except (ValueError, OSError):
        return ()
    core = (one for one in cells if FURTHER not in one["metadata"].get("tags", []))
    return tuple(re.findall(r'course\.check\("(\w+)"', "\n".join("".join(one["source"]) for one in core)))


def _rung_below(exercise: Exercise) -> str:
    """Return a line that offers the lowest rung not passed, then to watch; empty if there is none below."""
    ways = {"order": "Put its lines in order first", "fill": "Fill its blanks first"}
    if way := ways.get(lowest_left(exercise)):
        return f'{way}: `course.practise("{exercise.name}")`.'
    if "watch" in rungs_of(exercise):
        return f'See how it is done: `course.practise("{exercise.name}", "watch")`.'
    return ""


def find_exercise(name: str) -> Exercise:
    """Return an exercise by its name; ValueError names those that come near."""
    if name not in EXERCISES:
        hint = nearest(name, EXERCISES) or f"; there are {', '.join(EXERCISES)}"
        raise ValueError(f"name must be that of an exercise, got {name!r}{hint}")
    return EXERCISES[name]


def _record(verdict: Verdict) -> None:
    """Add a try to the learner's progress; an exercise that was passed once stays so."""
    if verdict.attempted:
        before = record().entry("exercises", verdict.exercise)
        passed = bool(before.get("passed")) or verdict.passed
        entry = {"passed": passed, "mistake": verdict.mistake, "tries": before.get("tries", 0) + 1}
        record().change("exercises", verdict.exercise, before | entry)


@contextlib.contextmanager
def _usual_state() -> Iterator[None]:
    """Check with float32 and gradients, whatever a notebook has set; restore that and all random states."""
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    dtype = torch.get_default_dtype()
    with torch.random.fork_rng(gpus), torch.inference_mode(False), torch.enable_grad():
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002
