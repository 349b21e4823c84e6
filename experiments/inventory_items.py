"""What an item of the concept inventory is, and how its two forms are made of one function.

An item asks what a function of an exercise returns. Each implementation of that function, right or wrong, is
run on the inputs of the item, and what it returns is what somebody with that idea would answer. The right
implementation gives the key, three wrong ones give the other options. The forms differ in their inputs only.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tinytx_course import PACKAGES

Function = Callable[..., Any]
Cell = float | str | bool
FORMS = ("A", "B")
LETTERS = "ABCD"
N_DRAWS = 2_000  # inputs that are tried for a form
N_WISHES = 100  # inputs after which the wish for a key that is not the most typical option is given up


@dataclass(frozen=True)
class Shown:
    """A small table, mask or curve, given with a question or offered as an answer."""

    cells: Sequence[Sequence[Cell]]  # rows of numbers, words or booleans; of a curve (step, nats) pairs
    kind: str = "table"  # or "mask" or "curve"
    rows: Sequence[str] = ()  # labels, or none
    columns: Sequence[str] = ()
    digits: int = 2  # decimals of numbers
    caption: str = ""
    bound: float | None = None  # the entropy bound that is drawn with a curve

    def agrees_with(self, other: Shown) -> bool:
        """Whether both hold the same: equal words, and numbers that differ by rounding errors only."""
        mine, theirs = (flat(one.cells) for one in (self, other))
        return sizes(self) == sizes(other) and all(map(_same, mine, theirs))

    def plain(self) -> dict[str, Any]:
        """As JSON holds it: cells are words, as people read them; those of curves stay numbers."""
        plain: dict[str, Any] = {"kind": self.kind}
        if self.kind == "curve":
            plain |= {"cells": [[round(float(x), 3) for x in row] for row in self.cells], "bound": self.bound}
        else:
            plain["cells"] = [[written(cell, self.digits) for cell in row] for row in self.cells]
        labels = {"rows": list(self.rows), "columns": list(self.columns), "caption": self.caption}
        return plain | {key: value for key, value in labels.items() if value}


def flat(cells: Sequence[Sequence[Cell]]) -> list[Cell]:
    """All cells in a row."""
    return [cell for row in cells for cell in row]


def sizes(*shown: Shown) -> list[list[int]]:
    """The lengths of the rows of some tables."""
    return [[len(row) for row in one.cells] for one in shown]


def _same(mine: Cell, theirs: Cell) -> bool:
    if isinstance(mine, str) or isinstance(theirs, str):
        return mine == theirs
    return math.isclose(mine, theirs, rel_tol=1e-5, abs_tol=1e-5)


def written(cell: Cell, digits: int) -> str:
    """A cell as people read it; zero has no sign."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "1" if cell else "0"
    return f"{round(cell, digits) + 0.0:,.{digits}f}".replace("-", "−")


def table(result: Any, *, digits: int = 2, **labels: Any) -> Shown:
    """Numbers that an implementation returned, as a table; a vector is one row."""
    numbers = torch.as_tensor(result).to(torch.float64)
    if numbers.dim() > 2:
        raise ValueError(f"an answer must be a number, a row or a table, got {numbers.dim()} axes")
    cells = numbers.reshape(-1, numbers.shape[-1] if numbers.dim() else 1).tolist()
    return Shown(cells, digits=digits, **labels)


def mask(result: Tensor, **labels: Any) -> Shown:
    """A mask that an implementation returned; of numbers only 0 and 1 are read."""
    if result.dim() != 2 or not torch.isin(result.double(), torch.tensor([0.0, 1.0]).double()).all():
        raise ValueError("a mask must be a table of True and False, got something else")
    return Shown(result.bool().tolist(), kind="mask", **labels)


def words(chosen: Sequence[str]) -> Shown:
    """Words in one row."""
    return Shown([list(chosen)])


@dataclass(frozen=True)
class Question:
    """One question with its inputs."""

    prompt: str
    answer: Callable[[Function], Shown]  # of an implementation; raises where there is none
    given: tuple[Shown, ...] = ()


@dataclass(frozen=True)
class Item:
    """A question in two forms."""

    key: str
    concept: str
    function: str  # the exercise whose implementations answer, or ``museum:`` and a program of lesson 18
    slugs: tuple[str, ...]  # misconceptions whose answers are offered
    ask: Callable[[random.Random], Question]


ITEMS: dict[str, Item] = {}


def item(concept: str, function: str, *slugs: str) -> Callable[[Callable[[random.Random], Question]], None]:
    """Enter an item: a function from a random generator to a Question."""

    def enter(ask: Callable[[random.Random], Question]) -> None:
        key = ask.__name__.replace("_", "-")
        ITEMS[key] = Item(key, concept, function, slugs, ask)

    return enter


@dataclass(frozen=True)
class Form:
    """One form of an item."""

    question: Question
    options: tuple[Shown, ...]  # the key, then the answer of each of the item's misconceptions
    steps: int  # lines of code that the right implementation takes to the answer

    def chosen_by(self, function: Function) -> str | None:
        """The number of the option that an implementation answers, ``other``, or None where it fails.

        One that draws random numbers answers the same each time.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            try:
                answer = self.question.answer(function)
            except Exception:
                return None
        found = [number for number, option in enumerate(self.options) if option.agrees_with(answer)]
        return str(found[0]) if found else "other"


def make_forms(
    item: Item, right: Function, wrong: Mapping[str, Function], *, typical: bool | None = None
) -> dict[str, Form]:
    """Both forms of an item: of random inputs, the first for which all options differ.

    Wrong answers are slips of the right one, so the key would often be the option that resembles the others
    most. Inputs for which it does, or does not, are preferred as `typical` says.

    Parameters
    ----------
    item : Item
    right : callable
    wrong : mapping
        From each of its misconceptions to an implementation.
    typical : bool, optional
        Whether the key is to be the most typical option, where the inputs allow that; None: either will do.

    Raises
    ------
    ValueError
        If no inputs will do.
    """
    forms: dict[str, Form] = {}
    for name in FORMS:
        found: Form | None = None
        for seed in range(N_DRAWS):
            question = item.ask(random.Random(f"{item.key} {name} {seed}"))
            form = _form(question, right, [wrong[slug] for slug in item.slugs])
            if form is not None and (not forms or _parallel(forms["A"], form)):
                wished = typical in (None, _is_typical(form.options))
                found = form if wished or found is None else found
                if wished:
                    break
            if found is not None and seed >= N_WISHES:
                break
        if found is None:
            raise ValueError(
                f"{item.key} must have inputs that tell its options apart, got none in {seed + 1}"
            )
        forms[name] = found
    return forms


def _is_typical(options: Sequence[Shown]) -> bool:
    """Whether the first option alone resembles the others most: by its numbers, else by equal cells."""
    cells = [flat(option.cells) for option in options]
    numbers = all(isinstance(cell, float) for cell in flat(cells)) and len({*map(len, cells)}) == 1

    def likeness(mine: Sequence[Cell], other: Sequence[Cell]) -> float:
        if numbers:
            return -sum(abs(float(a) - float(b)) for a, b in zip(mine, other, strict=True))
        return sum(a == b for a, b in zip(mine, other, strict=False)) / max(len(mine), len(other))

    sums = [sum(likeness(one, other) for other in cells if other is not one) for one in cells]
    return sums[0] > max(sums[1:]) + 1e-9


def _form(question: Question, right: Function, wrong: Sequence[Function]) -> Form | None:
    try:
        options = tuple(question.answer(function) for function in (right, *wrong))
    except (ValueError, IndexError):  # inputs that are no question, such as a draw without a masked word
        return None
    if any(cell != cell for option in options for cell in flat(option.cells)):  # NaN
        return None
    shown = [str(option.plain()) for option in options]
    steps = lines_run(lambda: question.answer(right))
    return Form(question, options, steps) if len(set(shown)) == len(shown) else None


def _parallel(first: Form, second: Form) -> bool:
    """Whether two forms have equally many steps and words, tables of equal sizes, and different answers."""

    def measures(form: Form) -> tuple[Any, ...]:
        return len(form.question.prompt.split()), form.steps, sizes(*form.question.given, *form.options)

    return measures(first) == measures(second) and first.options[0].plain() != second.options[0].plain()


def lines_run(call: Callable[[], object]) -> int:
    """How many lines of this project a call runs; the same for inputs that take equally many steps."""
    count = 0

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal count
        if not frame.f_globals.get("__name__", "").startswith((*PACKAGES, "experiments")):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
