"""One check under way: calls on copies of the inputs, and what came of each."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tinytx_course.exercises.calling import Outcome, Trouble, call
from tinytx_course.exercises.comparing import Reading, ids
from tinytx_course.exercises.exercise import Case, Exercise
from tinytx_course.exercises.telling import tell_stub, tell_trouble
from tinytx_course.exercises.verdict import Verdict


@dataclass(frozen=True)
class Trial:
    """What a function made of one input.

    Attributes
    ----------
    case : Case
    expected : Reading
    got : Reading or None
        None where there is a trouble instead.
    trouble : Trouble or None
        Also a complaint about type, dtype or shape, or about an input that was modified.
    printed : str
    """

    case: Case
    expected: Reading
    got: Reading | None
    trouble: Trouble | None
    printed: str

    @property
    def right(self) -> bool:
        """Whether values, types and manners are as they should be."""
        return self.trouble is None and self.got is not None and self.got.agrees_with(self.expected)


class Session:
    """One check under way: a function, an exercise, and the time that is left."""

    def __init__(self, exercise: Exercise, function: Any, seed: int, seconds: float) -> None:
        self.exercise, self.function, self.seed = exercise, function, seed
        self._seconds, self._started = seconds, time.process_time()
        chosen = torch.get_default_device()  # where the learner wants to work
        self._device = torch.device("cpu") if chosen.type == "meta" else chosen

    def call(self, arguments: Sequence[Any]) -> Outcome:
        """Call the function on these very arguments."""
        left = max(self._seconds - (time.process_time() - self._started), 0.1)
        return call(self.function, self.exercise.parameters, arguments, left)

    def attempt(self, case: Case) -> Trial:
        """Call the function on a copy of the arguments and read the result."""
        expected = self.read_known(self.exercise.solve, case)
        assert expected is not None
        given, kept = copied(case.arguments, self._device), copied(case.arguments, self._device)
        outcome = self.call(given)
        if outcome.trouble is not None:
            return Trial(case, expected, None, outcome.trouble, outcome.printed)
        reading = self._read(outcome.value, case)
        if isinstance(reading, Trouble):
            return Trial(case, expected, None, reading, outcome.printed)
        trouble = reading.complaint or self._shape_trouble(reading, expected)
        if trouble is None and (self.exercise.judge is not None or reading.agrees_with(expected)):
            trouble = modified(self.exercise.parameters, given, kept)
        return Trial(case, expected, reading, trouble, outcome.printed)

    def tell(self, trial: Trial) -> Verdict:
        """The verdict on a call that came to nothing that could be compared."""
        assert trial.trouble is not None
        if not trial.trouble.attempted:
            return tell_stub(self.exercise, trial.trouble)
        return tell_trouble(self.exercise, trial.trouble, dataclasses.replace(trial, got=None))

    def tell_trouble(self, trouble: Trouble) -> Verdict:
        """The verdict on something that no single call shows."""
        return tell_trouble(self.exercise, trouble)

    def read_known(self, function: Any, case: Case) -> Reading | None:
        """Result of one of our own functions, right or wrong; None where it fails."""
        try:
            with torch.device("cpu") if self._device.type != "cpu" else contextlib.nullcontext():
                reading = self._read(function(*copied(case.arguments)), case)
        except Exception:
            return None
        return None if isinstance(reading, Trouble) else reading

    def _shape_trouble(self, got: Reading, expected: Reading) -> Trouble | None:
        if self.exercise.read is ids:  # lists of another length are other lists
            return None
        for i, (mine, due) in enumerate(zip(got.tensors, expected.tensors, strict=True)):
            if mine.shape != due.shape:
                whose = f" of {expected.names[i]}" if expected.names else ""
                words = f"The shape{whose} should be {tuple(due.shape)}, got {tuple(mine.shape)}."
                return Trouble("wrong-shape", words)
        return None

    def _read(self, value: Any, case: Case) -> Reading | Trouble:
        try:
            reading = self.exercise.read(value)
            if isinstance(reading, Reading) and self.exercise.view is not None:
                seen = tuple(self.exercise.view(case.arguments, tensor) for tensor in reading.tensors)
                return dataclasses.replace(reading, tensors=seen)
            return reading
        except Exception as problem:  # an object that misbehaves when it is looked at
            return Trouble("wrong-type", f"The result could not be read: {type(problem).__name__}.")


def copied(arguments: Sequence[Any], device: torch.device | str = "cpu") -> tuple[Any, ...]:
    """Arguments that may be modified without harm, on a device."""
    return tuple(_copy(argument, device) for argument in arguments)


def _copy(argument: Any, device: torch.device | str) -> Any:
    if isinstance(argument, Tensor):
        return argument.clone().to(device)
    if isinstance(argument, list):
        return list(argument)
    if not isinstance(argument, torch.Generator):
        return argument
    fresh = torch.Generator(device)
    if fresh.device == argument.device:
        return fresh.set_state(argument.get_state())
    return fresh.manual_seed(argument.initial_seed())  # states of one kind of device fit no other


def modified(names: Sequence[str], given: Sequence[Any], kept: Sequence[Any]) -> Trouble | None:
    """Say which argument a function has changed, if any."""
    for name, now, before in zip(names, given, kept, strict=True):
        if isinstance(now, torch.Generator):
            continue
        same = torch.equal(now, before) if isinstance(now, Tensor) else now == before
        if not same:
            words = f"The call modified its input `{name}`: work on a copy, such as `{name}.clone()`."
            return Trouble("input-modified", words)
    return None
