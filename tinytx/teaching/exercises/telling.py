"""Put a finding into words: what was expected, where it differs, what it is, where to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tinytx.teaching.exercises.calling import Trouble, quoted
from tinytx.teaching.exercises.card import Grid, Part
from tinytx.teaching.exercises.comparing import Reading, differing
from tinytx.teaching.exercises.exercise import Case, Exercise, Mistake
from tinytx.teaching.exercises.verdict import Verdict, make_verdict

if TYPE_CHECKING:
    from tinytx.teaching.exercises.session import Trial

_SHOWN = 8  # rows and columns of a grid at most
_LEGIBLE = 40  # numbers of an input that is spelled out at most


def tell_pass(exercise: Exercise, trials: Sequence[Trial], hint: str = "") -> Verdict:
    """All is right; at most one friendly remark."""
    parts = [f"All {len(trials)} inputs give what is expected."]
    notes = [trial.got.note for trial in trials if trial.got is not None and trial.got.note]
    if notes or hint:
        parts.append(f"A remark: {[*notes, hint][0]}")
    elif any(trial.printed for trial in trials):
        parts.append("A remark: the function prints while it works; that is fine, it was kept off the page.")
    return make_verdict(exercise.name, passed=True, parts=tuple(parts))


def tell_stub(exercise: Exercise, trouble: Trouble) -> Verdict:
    """Nothing has been written yet."""
    parts = (trouble.text, f"To be written: {exercise.signature}. {exercise.rule}")
    return make_verdict(exercise.name, passed=False, parts=parts, attempted=False)


def tell_trouble(
    exercise: Exercise,
    trouble: Trouble | None,
    trial: Trial | None = None,
    mistake: Mistake | None = None,
    evidence: Sequence[Part] = (),
) -> Verdict:
    """Something is not right yet: say what, on the smallest input that shows it."""
    parts: list[Part] = [f"Expected: {exercise.rule}", *evidence]
    slug = mistake.slug if mistake else trouble.slug if trouble else None
    if trial is not None:
        parts += told_call(exercise, trial.case)
    if trouble is not None:
        parts.append(trouble.text)
    if trial is not None and trial.got is not None:
        parts += told_difference(trial.got, trial.expected)
        if exercise.explain is not None:
            parts += exercise.explain(trial)
        if slug is None and any(tensor.isnan().any() for tensor in trial.got.tensors):
            slug = "not-a-number"
            parts.append("There is NaN in the result: somewhere 0/0 or inf - inf was computed.")
    if mistake is not None:
        parts.append(f"What it is: {mistake.words}")
    parts.append(where_to_read(exercise, mistake))
    if trial is not None and trial.printed.strip():
        parts.append(f"It printed:\n{quoted(trial.printed)}")
    return make_verdict(exercise.name, passed=False, parts=tuple(parts), mistake=slug)


def where_to_read(exercise: Exercise, mistake: Mistake | None = None) -> str:
    """Lesson and section."""
    lesson = exercise.lesson if mistake is None or mistake.lesson is None else mistake.lesson
    section = mistake.section if mistake is not None and mistake.section else exercise.section
    where = f', section "{section}"' if section else ""
    return f"Where to read: lesson {lesson:02d}{where}."


def told_call(exercise: Exercise, case: Case) -> list[Part]:
    """The smallest input on which something happens, spelled out."""
    spoken, grids = [], []
    for name, value in zip(exercise.parameters, case.arguments, strict=True):
        if isinstance(value, Tensor):
            spoken.append(name)
            if value.dim() <= 2 and value.numel() <= _LEGIBLE:
                grids.append(Grid(f"{name} =", _cells(value)))
            elif value.dim() == 3 and value.numel() <= _LEGIBLE:
                grids += [Grid(f"{name}[{i}] =", _cells(matrix)) for i, matrix in enumerate(value)]
            else:
                grids.append(Grid(f"{name}: shape {tuple(value.shape)}", ()))
        elif callable(value) or isinstance(value, torch.Generator):
            spoken.append(name)
        else:
            spoken.append(repr(value) if len(exercise.parameters) == 1 else f"{name}={value!r}")
    parts: list[Part] = [f"The smallest input that shows it: {exercise.name}({', '.join(spoken)})"]
    if grids:
        parts.append(tuple(grids))
    return [*parts, case.shown] if case.shown else parts


def told_difference(got: Reading, expected: Reading) -> list[Part]:
    """Expected beside got, the differing cells marked."""
    parts: list[Part] = []
    for mine, due in zip(got.tensors, expected.tensors, strict=True):
        if mine.shape == due.shape and not differing(mine, due, got.tolerance).any():
            continue
        parts.append(_side_by_side(mine, due, got.tolerance))
        break
    return parts


def _side_by_side(mine: Tensor, due: Tensor, tolerance: float) -> tuple[Grid, ...]:
    if mine.shape != due.shape:
        return Grid("expected", _cells(due)), Grid("yours", _cells(mine), _from_first_difference(mine, due))
    wrong, where = differing(mine, due, tolerance), ""
    while due.dim() > 2:  # the first slice that differs
        first = int(wrong.flatten(1).any(dim=1).nonzero()[0, 0])
        mine, due, wrong, where = mine[first], due[first], wrong[first], f"{where}[{first}]"
    marked = torch.atleast_2d(wrong).nonzero().tolist()
    row = max(0, marked[0][0] - _SHOWN + 1)
    column = max(0, marked[0][1] - _SHOWN + 1)
    cells = frozenset((r - row, c - column) for r, c in marked if 0 <= c - column < _SHOWN)
    where += " (1 = True)" if due.dtype == torch.bool else ""
    return (
        Grid(f"expected{where}", _cells(due, row, column)),
        Grid(f"yours{where}", _cells(mine, row, column), cells),
    )


def _from_first_difference(mine: Tensor, due: Tensor) -> frozenset[tuple[int, int]]:
    """Cells of a list of another length that are not as expected."""
    if mine.dim() != 1 or due.dim() != 1:
        return frozenset()
    pairs = zip(mine.tolist(), due.tolist(), strict=False)
    alike = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(mine), len(due)))
    return frozenset((0, i) for i in range(alike, min(len(mine), _SHOWN)))


def _cells(tensor: Tensor, row: int = 0, column: int = 0) -> tuple[tuple[str, ...], ...]:
    if tensor.dim() > 2:
        return ((f"shape {tuple(tensor.shape)}",),)
    table = torch.atleast_2d(tensor)[row : row + _SHOWN, column : column + _SHOWN]
    return tuple(tuple(_spoken(value) for value in line) for line in table.tolist())


def _spoken(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return f"{round(value, 6) + 0.0:.4g}" if isinstance(value, float) else str(value)
