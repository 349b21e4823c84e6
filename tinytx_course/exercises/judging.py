"""The judge's half of a check: from plain observations to a verdict that names the mistake."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tinytx_course.exercises.calling import copied, on_cpu
from tinytx_course.exercises.catalogue import Mistake
from tinytx_course.exercises.comparing import Reading, ids
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.exercises.observation import Call, Failure, Observation, Record
from tinytx_course.exercises.telling import tell_failure, tell_pass, tell_stub
from tinytx_course.exercises.verdict import Verdict


@dataclass(frozen=True)
class Trial:
    """What a function made of one input."""

    call: Call
    expected: Reading
    got: Reading | None  # None where the call failed
    failure: Failure | None  # of the call; a wrong type, dtype or shape, or an argument that was modified
    printed: str

    @property
    def right(self) -> bool:
        """Whether value and type are right, and no argument was modified."""
        return self.failure is None and self.got is not None and self.got.agrees_with(self.expected)


def judge(exercise: Exercise, record: Record, seed: int = 0) -> Verdict:
    """Judge what a function did; its record was made with the same seed, perhaps in another process.

    Raises
    ------
    ValueError
        If the record is shorter than a check is, and nothing in it says why.
    """
    if record.refusal is not None:
        if record.refusal.attempted:
            return tell_failure(exercise, record.refusal)
        return tell_stub(exercise, record.refusal)
    with on_cpu():
        verdict = _judge_calls(exercise, record, seed)
    if verdict.passed and record.passes_on is not None:
        return tell_failure(exercise, record.passes_on)
    if not verdict.passed and record.remembers is not None:
        return tell_failure(exercise, record.remembers, verdict.trial)
    return verdict


def _judge_calls(exercise: Exercise, record: Record, seed: int) -> Verdict:
    calls = _calls(exercise, seed)
    expected = [read_known(exercise, exercise.solve, call) for call in calls]
    trials = _trials(exercise, calls, expected, record.calls)
    for trial in trials:
        if trial.failure is not None and not trial.failure.attempted:
            return tell_stub(exercise, trial.failure)
    repeats = _trials(exercise, calls, expected, record.repeats)
    wrong = [trial for trial in trials if not trial.right]
    complete = len(trials) == len(calls) and len(repeats) == len(calls)
    if not complete and not any(trial.failure for trial in [*trials, *repeats]):
        raise ValueError(
            f"a record must hold {len(calls)} calls, each twice, got {len(trials)}, {len(repeats)}"
        )
    if exercise.judge is not None:
        return exercise.judge(exercise, trials, repeats)
    if wrong:
        return _diagnosed(exercise, trials, repeats, wrong[0], record)
    for again in repeats:
        if not again.right:
            return tell_failure(exercise, _unsteady(exercise, record.chance), again)
    hint = exercise.hint(record.probe) if exercise.hint is not None and record.probe is not None else ""
    return tell_pass(exercise, trials, hint)


@lru_cache(maxsize=128)
def _calls(exercise: Exercise, seed: int) -> tuple[Call, ...]:
    """The inputs of an exercise, which only our own functions see: the same ones for its next check."""
    return tuple(exercise.calls(seed))


def _trials(
    exercise: Exercise,
    calls: Sequence[Call],
    expected: Sequence[Reading | None],
    observations: Sequence[Observation],
) -> list[Trial]:
    return [_trial(exercise, *parts) for parts in zip(calls, expected, observations, strict=False)]


def _trial(exercise: Exercise, call: Call, expected: Reading | None, observation: Observation) -> Trial:
    assert expected is not None
    failure, printed = observation.failure, observation.printed
    if failure is not None:
        return Trial(call, expected, None, failure, printed)
    reading = _read(exercise, observation.value)
    if isinstance(reading, Failure):
        return Trial(call, expected, None, reading, printed)
    failure = reading.complaint or _shape_failure(exercise, reading, expected)
    right = exercise.judge is not None or reading.agrees_with(expected)
    if failure is None and right and observation.modified:
        name = observation.modified[0]
        words = (
            f"The call modified its input `{name}`: work on a copy, such as `{name}.clone()` of a tensor or "
            f"`{name}.copy()` of a list."
        )
        failure = Failure("input-modified", words)
    return Trial(call, expected, reading, failure, printed)


def _shape_failure(exercise: Exercise, got: Reading, expected: Reading) -> Failure | None:
    if exercise.read is ids or expected.cells or got.cells:  # lists of another length are other lists
        return None
    for i, (mine, due) in enumerate(zip(got.tensors, expected.tensors, strict=True)):
        if mine.shape != due.shape:
            whose = f" of {expected.names[i]}" if expected.names else ""
            words = f"The shape{whose} should be {tuple(due.shape)}, got {tuple(mine.shape)}."
            return Failure("wrong-shape", words)
    return None


def _read(exercise: Exercise, value: Any) -> Reading | Failure:
    try:
        return exercise.read(value)
    except (TypeError, ValueError, RuntimeError) as problem:  # such as a tensor that does not multiply
        return Failure("wrong-type", f"The result could not be read: {type(problem).__name__}.")


def read_known(exercise: Exercise, function: Callable[..., Any], call: Call) -> Reading | None:
    """Result of one of our own functions, right or wrong, computed once; None where it fails."""
    reading = _known(exercise, function, call)
    return reading if isinstance(reading, Reading) else None


@lru_cache(maxsize=4096)
def _known(exercise: Exercise, function: Callable[..., Any], call: Call) -> Reading | str:
    """The result, or what an error says."""
    try:
        reading = _read(exercise, function(*copied(call.arguments)))
    except Exception as error:
        return str(error)
    return reading.message if isinstance(reading, Failure) else reading


def _unsteady(exercise: Exercise, chance: str) -> Failure:
    words = "The same call gave another result the second time"
    if chance:
        return Failure("changes-between-calls", f"{words}. {chance}")
    words += ": it depends on earlier calls, or on chance."
    more = " Let `draw` choose." if "draw" in exercise.parameters else ""
    return Failure("changes-between-calls", words + more)


def _given_back(
    exercise: Exercise, trials: Sequence[Trial], observations: Sequence[Observation]
) -> Failure | None:
    """Say so where an argument is the result, as it is, on every input."""
    for place, name in enumerate(exercise.parameters):
        pairs = zip(observations, trials, strict=False)
        if all(_is_same(seen.value, trial.call.arguments[place]) for seen, trial in pairs):
            return Failure(
                "argument-returned", f"This is `{name}` as it was given: compute the answer from it."
            )
    return None


def _is_same(value: Any, argument: Any) -> bool:
    """Whether two plain values have one type and are equal; what else a learner returns is never compared."""
    if type(value) is not type(argument):
        return False
    if isinstance(value, Tensor):
        return value.dtype == argument.dtype and torch.equal(value.cpu(), argument.cpu())
    if isinstance(value, list | tuple):
        return len(value) == len(argument) and all(map(_is_same, value, argument))
    return isinstance(value, str | int | float | None) and value == argument


def _diagnosed(
    exercise: Exercise,
    trials: Sequence[Trial],
    repeats: Sequence[Trial],
    first: Trial,
    record: Record,
) -> Verdict:
    telling = [trial for trial in trials if trial.failure and trial.failure.mistake == "additive-mask"]
    first = telling[0] if telling else first
    one_too_many = first.failure is not None and first.failure.mistake == "too-many-results"
    mistake = None if one_too_many else _recognise(exercise, trials)
    if mistake is None and (given_back := _given_back(exercise, trials, record.calls)):
        return tell_failure(exercise, given_back, first)
    stopped = [trial for trial in trials if trial.got is None]
    if mistake is None and first.failure is None and stopped:
        first = stopped[0]
    if mistake is None and first.failure is None and _differ(trials, repeats):
        return tell_failure(exercise, _unsteady(exercise, record.chance), first)
    failure, slip = first.failure, record.slip
    if failure is not None and slip is not None:
        failure = Failure(failure.mistake, f"{failure.message} {slip.message}")
    return tell_failure(exercise, failure or (None if mistake else slip), first, mistake)


def _differ(trials: Sequence[Trial], repeats: Sequence[Trial]) -> bool:
    """Whether some call gave another result when it was repeated."""
    pairs = [(one.got, other.got) for one, other in zip(trials, repeats, strict=False)]
    return any(one and other and not other.agrees_with(one) for one, other in pairs)


def _recognise(exercise: Exercise, trials: Sequence[Trial]) -> Mistake | None:
    """The first known mistake whose results agree with the learner's on every input.

    Where several single ones do, as different slips can make equal counts, the words name the others too.
    """
    telling_first = sorted(trials, key=lambda trial: trial.right)
    found = None
    for mistake in exercise.mistakes:
        if found is not None and ("+" in mistake.slug or mistake.words in found.words):
            continue
        if any(_explains(exercise, wrong, mistake.tolerance, telling_first) for wrong in mistake.wrongs):
            if "+" in mistake.slug:
                return mistake
            if found is None:
                found = mistake
            else:
                words = f"{found.words} Or this, which comes to the same: {mistake.words}"
                found = dataclasses.replace(found, words=words)
    if found is None and exercise.recognise is not None:
        return exercise.recognise(trials)
    return found


def _of_one_size(error: str, message: str) -> bool:
    """Whether two errors of torch about sizes that do not fit name the same sizes; others may differ."""
    sizes = [re.findall(r"tensor [ab] \((\d+)\)", text) for text in (error, message)]
    return not all(sizes) or sizes[0] == sizes[1]


def _explains(
    exercise: Exercise, wrong: Callable[..., Any], tolerance: float, trials: Sequence[Trial]
) -> bool:
    """Whether a wrong implementation gives what the learner's function gave, on every input and somewhere."""

    def same(trial: Trial) -> bool:
        reading, failure = _known(exercise, wrong, trial.call), trial.failure
        if isinstance(reading, str) or trial.got is None:
            if not isinstance(reading, str) or failure is None or failure.mistake != "error":
                return False
            return _of_one_size(reading, failure.message)
        coarse = max(reading.tolerance, tolerance)
        return dataclasses.replace(reading, tolerance=coarse).agrees_with(trial.got)

    return any(trial.got for trial in trials) and all(same(trial) for trial in trials)
