"""Put a finding into words: what was expected, where it differs, what it is, where to read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tinytx_course.exercises.card import Grid, Part
from tinytx_course.exercises.catalogue import Mistake
from tinytx_course.exercises.comparing import Reading, differing
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.exercises.observation import Call, Failure
from tinytx_course.exercises.verdict import Verdict

if TYPE_CHECKING:
    from tinytx_course.exercises.judging import Trial

_SHOWN = 8  # rows and columns of a grid at most
_DIGITS = 4  # of a number, unless it takes more
_LEGIBLE, _LEGIBLE_NESTED = 40, 24  # numbers of an input that is spelled out at most, with 4 axes or more


def tell_pass(exercise: Exercise, trials: Sequence[Trial], hint: str = "") -> Verdict:
    """All is right; at most one friendly remark."""
    parts = [f"All {len(trials)} inputs give what is expected."]
    notes = [trial.got.note for trial in trials if trial.got is not None and trial.got.note]
    if notes or hint:
        parts.append(f"A remark: {[*notes, hint][0]}")
    elif warned := re.search(r": (\w+Warning: .*)", "\n".join(trial.printed for trial in trials)):
        parts.append(f"A remark: Python warns, {warned[1][:300]}")
    elif any(trial.printed for trial in trials):
        parts.append("A remark: the function prints while it works; that is fine, the page does not show it.")
    return Verdict(exercise.name, passed=True, parts=tuple(parts))


def tell_stub(exercise: Exercise, failure: Failure) -> Verdict:
    """Nothing has been written yet."""
    parts = (failure.message, f"To be written: `{exercise.signature}`.")
    return Verdict(exercise.name, passed=False, parts=parts, attempted=False)


def tell_failure(
    exercise: Exercise,
    failure: Failure | None,
    trial: Trial | None = None,
    mistake: Mistake | None = None,
    evidence: Sequence[Part] = (),
) -> Verdict:
    """Something is not right yet: say what, on the smallest input that shows it, and leave the rule out."""
    parts: list[Part] = [*evidence]
    slug = mistake.slug if mistake else failure.mistake if failure else None
    if trial is not None:
        parts += describe_call(exercise, trial.call)
    if failure is not None:
        parts.append(failure.message)
    if trial is not None and trial.got is not None:
        parts += describe_difference(trial.got, trial.expected)
        if exercise.explain is not None:
            parts += exercise.explain(trial)
        if slug is None and any(tensor.isnan().any() for tensor in trial.got.tensors):
            slug = "not-a-number"
            failure = Failure(slug, "There is NaN in the result: somewhere 0/0 or inf - inf was computed.")
            parts.append(failure.message)
    elif trial is not None and exercise.judge is None:
        parts.append(_due(trial.expected))
    if mistake is not None:
        parts.append(f"What it is: {mistake.words}")
    parts.append(where_to_read(exercise, mistake))
    if trial is not None and trial.printed.strip():
        parts.append(f"It printed:\n{quoted(trial.printed)}")
    finding = mistake.words if mistake is not None else failure.message if failure is not None else ""
    return Verdict(exercise.name, False, tuple(parts), mistake=slug, finding=finding, trial=trial)


def where_to_read(exercise: Exercise, mistake: Mistake | None = None) -> str:
    """Lesson and section."""
    lesson = exercise.lesson if mistake is None or mistake.lesson is None else mistake.lesson
    section = mistake.section if mistake is not None and mistake.section else exercise.section
    where = f', section "{section}"' if section else ""
    return f"Where to read: lesson {lesson:02d}{where}."


def describe_call(exercise: Exercise, call: Call) -> list[Part]:
    """The smallest input on which something happens, spelled out."""
    spoken, grids = [], []
    for name, value in zip(exercise.parameters, call.arguments, strict=True):
        if isinstance(value, Tensor):
            spoken.append(name)
            if value.numel() <= (_LEGIBLE if value.dim() <= 3 else _LEGIBLE_NESTED):
                for place in product(*map(range, value.shape[:-2])):
                    where = "".join(f"[{i}]" for i in place)
                    grids.append(Grid(f"{name}{where} =", _cells(value[place])))
            else:
                grids.append(Grid(f"{name}: shape {tuple(value.shape)}", ()))
        elif callable(value) or isinstance(value, (torch.Generator, torch.optim.Optimizer)):
            spoken.append(name)
        else:
            spoken.append(repr(value) if len(exercise.parameters) == 1 else f"{name}={value!r}")
    parts: list[Part] = [f"The smallest input that shows it: {exercise.name}({', '.join(spoken)})"]
    if grids:
        parts.append(tuple(grids))
    return [*parts, call.shown] if call.shown else parts


def describe_difference(got: Reading, expected: Reading) -> list[Part]:
    """Expected next to got, the differing cells marked; of several results, those that differ."""
    if expected.cells or got.cells:
        return [] if got.agrees_with(expected) else [_texts_side_by_side(got.cells, expected.cells)]
    pairs = list(zip(got.tensors, expected.tensors, strict=True))
    wrong = [
        i
        for i, (mine, due) in enumerate(pairs)
        if mine.shape != due.shape or differing(mine, due, got.tolerance).any()
    ]
    if not wrong:
        return []
    names = [f"{name}: " for name in expected.names] or [""]
    parts: list[Part] = [_which(expected.names, wrong)] if expected.names else []
    return parts + [_side_by_side(*pairs[i], got.tolerance, names[i]) for i in wrong]


def _due(expected: Reading) -> tuple[Grid, ...]:
    """What a call that gave no result should give."""
    if expected.cells:
        return (Grid("expected", expected.cells),)
    names = [f"{name}: " for name in expected.names] or [""]
    pairs = zip(names, expected.tensors, strict=True)
    return tuple(Grid(f"{name}expected{_signs(tensor)}", _cells(tensor)) for name, tensor in pairs)


def _signs(tensor: Tensor) -> str:
    return " (1 = True)" if tensor.dtype == torch.bool else ""


def _which(names: Sequence[str], wrong: Sequence[int]) -> str:
    """Say which of several results differ."""
    differ = " and ".join(names[i] for i in wrong)
    right = " and ".join(name for i, name in enumerate(names) if i not in wrong)
    whole = f"In the result ({', '.join(names)}), {differ} differ"
    return f"{whole}; {right} are as expected." if right else f"{whole}."


def _side_by_side(mine: Tensor, due: Tensor, tolerance: float, name: str) -> tuple[Grid, ...]:
    if mine.shape != due.shape:
        marked = _from_first_difference(mine, due)
        return Grid(f"{name}expected", _cells(due)), Grid(f"{name}yours", _cells(mine), marked)
    wrong, where = differing(mine, due, tolerance), ""
    while due.dim() > 2:  # the first slice that differs
        first = int(wrong.flatten(1).any(dim=1).nonzero()[0, 0])
        mine, due, wrong, where = mine[first], due[first], wrong[first], f"{where}[{first}]"
    wrong = torch.atleast_2d(wrong)
    row, column = (max(0, int(place) - _SHOWN + 1) for place in wrong.nonzero()[0])
    here = slice(row, row + _SHOWN), slice(column, column + _SHOWN)
    mine, due = torch.atleast_2d(mine)[here], torch.atleast_2d(due)[here]
    marked = frozenset((r, c) for r, c in wrong[here].nonzero().tolist())
    digits = _digits_that_tell(mine, due, marked)
    where += _signs(due)
    return (
        Grid(f"{name}expected{where}", _cells(due, digits)),
        Grid(f"{name}yours{where}", _cells(mine, digits), marked),
    )


def _texts_side_by_side(
    mine: tuple[tuple[str, ...], ...], due: tuple[tuple[str, ...], ...]
) -> tuple[Grid, ...]:
    expected = {(r, c): text for r, row in enumerate(due) for c, text in enumerate(row)}
    marked = frozenset(
        (r, c) for r, row in enumerate(mine) for c, text in enumerate(row) if expected.get((r, c)) != text
    )
    return Grid("expected", due), Grid("yours", mine, marked)


def _digits_that_tell(mine: Tensor, due: Tensor, marked: Iterable[tuple[int, int]]) -> int:
    """How many digits it takes until differing numbers look different."""
    pairs = [(mine[cell].item(), due[cell].item()) for cell in marked]
    enough = (n for n in range(_DIGITS, 17) if all(_spoken(a, n) != _spoken(b, n) for a, b in pairs))
    return next(enough, 17)


def _from_first_difference(mine: Tensor, due: Tensor) -> frozenset[tuple[int, int]]:
    """Cells of a list of another length that are not as expected."""
    if mine.dim() != 1 or due.dim() != 1:
        return frozenset()
    pairs = zip(mine.tolist(), due.tolist(), strict=False)
    alike = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(mine), len(due)))
    return frozenset((0, i) for i in range(alike, min(len(mine), _SHOWN)))


def _cells(tensor: Tensor, digits: int = _DIGITS) -> tuple[tuple[str, ...], ...]:
    if tensor.dim() > 2:
        return ((f"shape {tuple(tensor.shape)}",),)
    table = torch.atleast_2d(tensor)[:_SHOWN, :_SHOWN]
    return tuple(tuple(_spoken(value, digits) for value in line) for line in table.tolist())


def _spoken(value: Any, digits: int = _DIGITS) -> str:
    """A cell: floats with so many digits, or with more where they would look whole and are not."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if not isinstance(value, float):
        return str(value)
    value = round(value, max(6, digits)) + 0.0  # no trace of rounding in float32, no minus before 0
    shown = f"{value:.{digits}g}"
    looks_whole = shown.lstrip("-").isdigit()
    return f"{value:.7g}" if looks_whole and digits < 7 and float(shown) != value else shown


def quoted(printed: str) -> str:
    """The first three lines of what was printed."""
    found = [line[:100] for line in printed.strip().splitlines()]
    more = ["..."] if len(found) > 3 else []
    return "\n".join(f"  | {line}" for line in found[:3] + more)
