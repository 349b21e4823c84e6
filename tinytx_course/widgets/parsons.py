"""Parsons problems: the lines of a small program, shuffled, some of them next to a wrong one.

The problems are data: a table ``[puzzle]`` in the file of an exercise, ``exercises/NAME.toml``::

    [puzzle]
    title = "The causal mask"
    task = "One sentence that says what the assembled function does."
    any_order = [["a = 1", "b = 2"]]    # optional: neighbours whose order does not matter

    [[puzzle.distractors]]
    line = "mask = wrong"
    instead_of = "mask = ..."
    why = "One sentence that says what is wrong with it."

The lines are those of the right program, without comments. A distractor may be ``mistake = "SLUG"``, one of
the file that changes a line, with another `why` if its words do not fit. Without a title a problem is made,
see `tinytx_course.exercises.rungs`; what else is in the table stays.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import traitlets

from tinytx.settings import require
from tinytx_course.exercises.catalogue import check_fields
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.exercises.rungs import MOST_LINES, free_lines, pass_rung, program_lines, puzzle, slips
from tinytx_course.results import nearest
from tinytx_course.widgets.base import Explorer

_NEEDED = {"title": str, "lesson": int, "task": str, "lines": list, "distractors": list}
_LEVEL = 4  # spaces of one level of indentation


@functools.cache
def problem_names() -> tuple[str, ...]:
    """Return the names of all problems, sorted.

    Examples
    --------
    >>> "causal_mask" in problem_names()
    True
    """
    return tuple(sorted(name for name, exercise in EXERCISES.items() if puzzle(exercise)))


@dataclass(frozen=True, kw_only=True)
class Distractor:
    """A wrong line: its text without indentation, the number of the right line it is paired with, and why."""

    line: str
    instead_of: int
    why: str


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A Parsons problem, checked.

    Parameters
    ----------
    name, title, task : str
    lesson : int
        Number of its lesson.
    lines : tuple of str
        The right lines in order, indented by four spaces a level.
    slots : tuple of int
        Lines with the same slot may change places.
    free : sequence of sequences of int
        For each line those with which it may change places besides; empty if there are none.
    distractors : tuple of Distractor
        At most one a line.
    """

    name: str
    title: str
    lesson: int
    task: str
    lines: tuple[str, ...]
    slots: tuple[int, ...]
    distractors: tuple[Distractor, ...]
    free: Sequence[Sequence[int]] = ()

    def shuffled(self) -> list[int]:
        """Return the numbers of the lines in an order that is the same everywhere, and not the right one."""
        order = sorted(
            range(len(self.lines)), key=lambda number: self._luck(f"{number}\n{self.lines[number]}")
        )
        return order[::-1] if order == sorted(order) else order

    def _luck(self, text: str) -> str:
        return hashlib.sha256(f"{self.name}\n{text}".encode()).hexdigest()

    def blocks(self) -> list[dict[str, Any]]:
        """Return what the page shows of each line."""
        wrong = {one.instead_of: one for one in self.distractors}
        # In half of the pairs the wrong line comes first, so that its place says nothing.
        wrong_first = sorted(wrong, key=lambda number: self._luck(wrong[number].line))[::2]
        found = []
        for number, line in enumerate(self.lines):
            text, pair = line.lstrip(), wrong.get(number)
            found.append(
                {
                    "right": text,
                    "wrong": pair.line if pair else "",
                    "why": pair.why if pair else "",
                    "wrong_first": number in wrong_first,
                    "indent": (len(line) - len(text)) // _LEVEL,
                    "slot": self.slots[number],
                }
                | ({"free": self.free[number]} if self.free else {})
            )
        return found


def parse_problem(name: str, table: Mapping[str, Any]) -> Problem:
    """Check the fields of a problem.

    Raises
    ------
    ValueError
        If a field is missing, unknown, of another type or against the rules; names the field and the problem.
    """
    check_fields(f"the puzzle of {name}.toml", table, _NEEDED | {"any_order": list}, _NEEDED)
    lines, n_lines = tuple(table["lines"]), len(table["lines"])
    require(2 <= n_lines <= MOST_LINES, f"in {name}.toml there must be 2 to {MOST_LINES} lines", n_lines)
    for line in lines:
        fits = (len(line) - len(line.lstrip())) % _LEVEL == 0 and not line.startswith("\t")
        require(fits, f"in {name}.toml a line must have {_LEVEL} spaces a level", repr(line))
    return Problem(
        name=name,
        lines=lines,
        slots=_slots(name, lines, table.get("any_order", [])),
        distractors=tuple(_distractors(name, lines, table["distractors"])),
        **{field: table[field] for field in ("title", "lesson", "task")},
    )


def _slots(name: str, lines: tuple[str, ...], groups: list[list[str]]) -> tuple[int, ...]:
    """Number the lines; neighbours that may change places share the number of the first."""
    slots = list(range(len(lines)))
    for group in groups:
        places = sorted(_number_of(name, lines, line, "a line of any_order") for line in group)
        neighbours = len(places) > 1 and places == list(range(places[0], places[0] + len(places)))
        require(neighbours, f"in {name}.toml any_order must group neighbouring lines", group)
        for place in places:
            slots[place] = places[0]
    return tuple(slots)


def _number_of(name: str, lines: tuple[str, ...], line: str, what: str) -> int:
    same = [number for number, text in enumerate(lines) if text.strip() == line.strip()]
    require(len(same) == 1, f"in {name}.toml {what} must be exactly one line", f"{line!r} {len(same)} times")
    return same[0]


def _distractors(name: str, lines: tuple[str, ...], tables: list[dict[str, str]]) -> list[Distractor]:
    require(tables, f"in {name}.toml there must be a distractor", "none")
    found: list[Distractor] = []
    for table in tables:
        whole = set(table) == {"line", "instead_of", "why"} and all(
            str(text).strip() for text in table.values()
        )
        require(whole, f"in {name}.toml a distractor must have line, instead_of and why", table)
        number, text = _number_of(name, lines, table["instead_of"], "instead_of"), table["line"].strip()
        is_right = text in {line.strip() for line in lines}
        require(not is_right, f"in {name}.toml a distractor must not be a right line", repr(text))
        is_first = number not in {one.instead_of for one in found}
        require(is_first, f"in {name}.toml a distractor must be alone with its line", repr(text))
        found.append(Distractor(line=text, instead_of=number, why=table["why"].strip()))
    return found


def read_problem(name: str) -> Problem:
    """Read a problem by its name.

    Raises
    ------
    ValueError
        If there is none of this name, or it is not written as it should be.

    Examples
    --------
    >>> read_problem("causal_mask").lesson
    2
    """
    if name not in problem_names():
        hint = nearest(name, problem_names())
        raise ValueError(f"a Parsons problem is one of {', '.join(problem_names())}, got {name!r}{hint}")
    exercise = EXERCISES[name]
    problem = parse_problem(name, _of_exercise(exercise, puzzle(exercise)))
    return problem if "title" in exercise.puzzle else replace(problem, free=free_lines(problem.lines))


def _of_exercise(exercise: Exercise, table: Mapping[str, Any]) -> dict[str, Any]:
    """Make the fields of a problem from the right program of an exercise and its mistakes."""
    lines, known = program_lines(exercise.solve), {slip.mistake.slug: slip for slip in slips(exercise)}
    distractors = []
    for distractor in table.get("distractors", []):
        if slug := distractor.get("mistake"):
            if slug not in known:
                raise ValueError(f"a distractor of {exercise.name}.toml must change one line, got {slug!r}")
            slip, why = known[slug], distractor.get("why", known[slug].mistake.words)
            distractor = {"line": slip.line, "instead_of": lines[slip.number], "why": why}
        distractors.append(distractor)
    return {**table, "lesson": exercise.lesson, "lines": lines, "distractors": distractors}


class ParsonsExplorer(Explorer):
    """See `parsons`.

    `order` holds the numbers of the lines from top to bottom, `indents` and `picked` the level of indentation
    and the choice for each line: 0 the right one, 1 the wrong one, -1 none yet.
    """

    kind = "parsons"
    title = traitlets.Unicode("Order the lines").tag(sync=True)

    task = traitlets.Unicode().tag(sync=True)
    blocks = traitlets.List(traitlets.Dict()).tag(sync=True)
    start = traitlets.List(traitlets.Int()).tag(sync=True)
    order = traitlets.List(traitlets.Int()).tag(sync=True)
    indents = traitlets.List(traitlets.Int()).tag(sync=True)
    picked = traitlets.List(traitlets.Int()).tag(sync=True)
    held = traitlets.Int(-1).tag(sync=True)
    report = traitlets.Enum(["", "check", "right", "solution"], "").tag(sync=True)

    @traitlets.validate("order")
    def _check_order(self, proposal: Any) -> list[int]:
        if sorted(proposal.value) != list(range(len(self.blocks))):
            raise ValueError(f"order must hold each of {len(self.blocks)} lines once, got {proposal.value}")
        return proposal.value

    @traitlets.validate("indents", "picked")
    def _check_state(self, proposal: Any) -> list[int]:
        deepest = 1 + max((block["indent"] for block in self.blocks), default=0)  # one more than is needed
        low, high = (0, deepest) if proposal.trait.name == "indents" else (-1, 1)
        if len(proposal.value) != len(self.blocks) or not all(low <= one <= high for one in proposal.value):
            raise ValueError(
                f"{proposal.trait.name} must hold a number in {low}..{high} for each of "
                f"{len(self.blocks)} lines, got {proposal.value}"
            )
        return proposal.value

    def summary(self) -> str:
        """Return the task, and the lines in their present order, pairs with "or"."""
        lines = []
        for number in self.order:
            block = self.blocks[number]
            pair = [block["right"], block["wrong"]] if block["wrong"] else [block["right"]]
            lines.append(" or ".join(f"“{text}”" for text in (pair[::-1] if block["wrong_first"] else pair)))
        task = self.task.replace("`", "")
        return (
            f"{task} Put the lines in order and indent them; of two joined by “or” choose one. "
            f"The lines: {'; '.join(lines)}."
        )


def parsons(name: str) -> ParsonsExplorer:
    """Show a Parsons problem: order the lines, indent them, and choose the right one of each pair.

    Parameters
    ----------
    name : str
        Of the problem, such as ``"causal_mask"``.

    Raises
    ------
    ValueError
        If there is no such problem.

    Examples
    --------
    >>> print(parsons("causal_mask").title)
    Order the lines: the causal mask
    """
    problem = read_problem(name)
    blocks = problem.blocks()
    start = problem.shuffled()
    explorer = ParsonsExplorer(
        title=f"Order the lines: {problem.title[0].lower()}{problem.title[1:]}",
        task=problem.task,
        blocks=blocks,
        start=start,
        order=start,
        indents=[0] * len(blocks),
        picked=[-1 if block["wrong"] else 0 for block in blocks],
    )

    def hear(change: Any) -> None:
        if change.new == "right":
            pass_rung(name, "order")

    explorer.observe(hear, "report")
    return explorer
