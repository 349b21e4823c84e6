"""The learner's own functions of earlier lessons, to build with: ``course.use``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tinytx_course.exercises.checking import check, find_exercise
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.progress.answers import answer_file


class UsedFunction:
    """A function under the signature of its exercise, whatever its own parameters are called.

    Attributes
    ----------
    name : str
        Of the exercise.
    yours : bool
        Whether it is the learner's.
    """

    def __init__(self, exercise: Exercise, function: Callable[..., Any], *, yours: bool) -> None:
        self.name, self.yours, self._function = exercise.name, yours, function
        kinds = inspect.Parameter
        parameters = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in exercise.parameters]
        self.__signature__ = inspect.Signature(parameters)
        own = inspect.signature(function).parameters.values()
        self._by_name = {one.name for one in own if one.kind is kinds.KEYWORD_ONLY}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call it, with arguments in the order of the exercise or by the names given there."""
        given = self.__signature__.bind(*args, **keywords).arguments
        by_name = {name: given.pop(name) for name in self._by_name & given.keys()}
        return self._function(*given.values(), **by_name)

    def __repr__(self) -> str:
        return f"<{'your' if self.yours else 'our'} {self.name}{self.__signature__}>"


def use(*names: str) -> tuple[UsedFunction, ...]:
    """Return the learner's own functions where their checks passed, ours where not, and print which.

    What a check stored when it passed, perhaps long ago and in another notebook, is run and checked again.

    Parameters
    ----------
    *names : str
        Of exercises, such as ``causal_mask``.

    Returns
    -------
    tuple of UsedFunction
        In the order of the names; called as the exercises say.

    Raises
    ------
    ValueError
        If there is no such exercise.
    """
    exercises = [find_exercise(name) for name in names]
    found = {exercise.name: _own(exercise) for exercise in exercises}
    for whose, yours in (("Yours", True), ("Ours", False)):
        if chosen := [name for name, own in found.items() if bool(own) is yours]:
            print(f"{whose}: {', '.join(chosen)}.")
    return tuple(
        UsedFunction(exercise, found[exercise.name] or exercise.solve, yours=bool(found[exercise.name]))
        for exercise in exercises
    )


def _own(exercise: Exercise) -> Callable[..., Any] | None:
    """Return the learner's function if it is stored and still passes; one line says why it does not."""
    file = answer_file(exercise.name)
    if file is None or not file.is_file():
        return None
    try:  # errors name the file and the line
        space: dict[str, Any] = {"__name__": f"answers.{file.stem}"}
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), space)
        function = space[exercise.name]
    except (Exception, SystemExit) as problem:  # the learner's code may raise anything
        got = f"{type(problem).__name__}: {problem}".replace("\n", " ")
        print(f"Your stored {exercise.name} must run, got {got}; ours takes its place.")
        return None
    verdict = check(exercise.name, function, display=False)
    if not verdict.passed:
        got = verdict.finding or verdict.state
        print(f"Your stored {exercise.name} must pass its check, got: {got} Ours takes its place.")
        return None
    return function
