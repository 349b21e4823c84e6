"""The four rungs of an exercise, made from its right program and the mistakes that change one line of it.

*watch* labels the steps of the program, *order* shuffles its lines, *fill* leaves blanks where mistakes
differ, *write* is the exercise itself. An exercise has those of them that its file allows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from typing import Any

from tinytx_course.exercises.catalogue import Mistake, Program
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.progress.record import record

RUNGS = ("watch", "order", "fill", "write")
MOST_LINES = 25  # of a program that is put in order: those of learn_merges
_MOST_WRONG = 3  # of a blank
_MOST_DISTRACTORS = 4
# A quotient and a filling with -inf, of the same name, may change places.
_COMMUTE = re.compile(r"(\w+) = \1( / |\.masked_fill(?=.*, -math\.inf\)$)).*")
_PARTS = (ast.Subscript, ast.Attribute)
_STEPS = (ast.Assign, ast.AugAssign, ast.Return)


@dataclass(frozen=True)
class Slip:
    """A mistake that changes one line."""

    number: int  # of the line
    line: str  # in its place
    mistake: Mistake


@dataclass(frozen=True)
class Blank:
    """A part of a line, and what stands there in the right program and in those with a mistake."""

    number: int  # of the line, which is `before`, `right` and `after`
    before: str
    right: str
    after: str
    wrong: Mapping[str, Mistake]  # by what it writes in the place of `right`, the commonest first


def program_lines(function: Callable[..., Any]) -> list[str]:
    """Return the lines of a program without comments and empty ones; none of a function without a text.

    Examples
    --------
    >>> from tinytx_course.exercises.checking import EXERCISES
    >>> program_lines(EXERCISES["padding_mask"].solve)
    ['def padding_mask(token_ids, pad_id):', '    return token_ids != pad_id']
    """
    lines = (re.sub(r"\s*# .*", "", line) for line in _text(function).splitlines())
    return [line for line in lines if line]


def slips(exercise: Exercise) -> list[Slip]:
    """Return the mistakes of an exercise that change exactly one line, in their order; no pairs."""
    right, found = program_lines(exercise.solve), []
    for mistake in exercise.mistakes:
        for wrong in mistake.wrongs if "+" not in mistake.slug else ():
            lines = program_lines(wrong)
            changed = [number for number, line in enumerate(lines) if [line] != right[number : number + 1]]
            if len(changed) == 1 and len(lines) == len(right):
                found.append(Slip(changed[0], lines[changed[0]], mistake))
                break
    return found


def blanks(exercise: Exercise) -> tuple[Blank, ...]:
    """Return the blanks of an exercise from top to bottom, each where at least two mistakes differ.

    Examples
    --------
    >>> from tinytx_course.exercises.checking import EXERCISES
    >>> blank = blanks(EXERCISES["attention"])[0]
    >>> blank.before, blank.right, list(blank.wrong)
    ('    scores = ', 'q @ k.transpose(-2, -1)', ['q @ q.transpose(-2, -1)', 'k @ q.transpose(-2, -1)'])
    """
    lines, known, found = program_lines(exercise.solve), slips(exercise), []
    for number, line in enumerate(lines):
        here = [slip for slip in known if slip.number == number]
        told = {slip.mistake.words: slip for slip in reversed(here)}  # one for each text: the commonest
        chosen = [slip for slip in here if told[slip.mistake.words] is slip][:_MOST_WRONG]
        if len(chosen) > 1:
            start, end = _place(lines, number, [slip.line for slip in chosen])
            wrong = {slip.line[start : len(slip.line) - len(line) + end]: slip.mistake for slip in chosen}
            found.append(Blank(number, line[:start], line[start:end], line[end:], wrong))
    return tuple(found)


def _place(lines: list[str], number: int, others: list[str]) -> tuple[int, int]:
    """The smallest expression of a line that holds all in which others differ; else all of the line."""
    line = lines[number]
    start = len(commonprefix([line, *others]))
    end = len(line) - len(commonprefix([text[::-1] for text in (line, *others)]))
    places = [(len(line) - len(line.lstrip()), len(line))]
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.expr) and node.lineno == node.end_lineno == number + 1:
            first, last = line.encode()[: node.col_offset], line.encode()[: node.end_col_offset]
            places.append((len(first.decode()), len(last.decode())))
    return min((b - a, (a, b)) for a, b in places if a <= min(start, end) and max(start, end) <= b)[1]


def title_of(exercise: Exercise) -> str:
    """Return what its rungs are called, without a capital letter where it is the name of the function."""
    return exercise.puzzle.get("title", exercise.name.replace("_", " "))


def puzzle(exercise: Exercise) -> Mapping[str, Any]:
    """Return the table of the Parsons problem, made where the file has no title for it; or nothing."""
    lines = program_lines(exercise.solve)
    texts = [line.strip() for line in lines]
    fit = [
        one
        for one in slips(exercise)
        if one.line.strip() not in texts and texts.count(texts[one.number]) == 1
    ]
    firsts = {slip.number: slip for slip in reversed(fit)}.values()  # the commonest of a line
    if "title" in exercise.puzzle or not firsts or len(lines) > MOST_LINES:
        return exercise.puzzle
    used = sorted(firsts, key=fit.index)[:_MOST_DISTRACTORS]
    return {
        "title": title_of(exercise),
        "task": f"Assemble `{exercise.signature}`. It returns {exercise.rule}",
        "distractors": [{"mistake": slip.mistake.slug} for slip in used],
        **exercise.puzzle,
    }


def free_lines(lines: Sequence[str]) -> list[list[int]]:
    """Return for each line the numbers of those with which it may change places.

    They are assignments, or calls of methods, with no other statement in between, and neither sets what the
    other one uses. What else may change places is written in the file, ``[puzzle] any_order``.

    Examples
    --------
    >>> free_lines(["def f(x):", "    a = x", "    b = x + 1", "    c = a", "    return b * c"])
    [[], [2], [1, 3], [2], []]
    """
    free: list[list[int]] = [[] for _ in lines]
    for node in ast.walk(ast.parse("\n".join(lines))):
        for body in (getattr(node, "body", []), getattr(node, "orelse", [])):
            run: list[ast.stmt] = []
            for statement in body if isinstance(body, list) else ():
                run = run if _targets(statement) else []
                for other in run:
                    if _apart(statement, other):
                        free[other.lineno - 1].append(statement.lineno - 1)
                        free[statement.lineno - 1].append(other.lineno - 1)
                if _targets(statement):
                    run.append(statement)
    return [sorted(others) for others in free]


def _targets(statement: ast.stmt) -> list[ast.expr]:
    """What one line sets, or changes by a method; empty for other statements."""
    if statement.lineno == statement.end_lineno:
        match statement:
            case ast.Assign(targets=targets):
                return targets
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=whose))):
                return [whose]
    return []


def _apart(one: ast.stmt, other: ast.stmt) -> bool:
    """Whether neither sets what the other uses, but for different parts, or what is scaled and filled."""
    (sets, uses), (also_sets, also_uses) = _names(one), _names(other)
    targets = [target for each in (one, other) for target in _targets(each) if isinstance(target, _PARTS)]
    steps = sorted(_COMMUTE.sub(r"\2", ast.unparse(each)) for each in (one, other))
    if len({ast.unparse(target) for target in targets}) == 2 or steps == [" / ", ".masked_fill"]:
        shared = sets & also_sets
        uses, also_uses = uses - shared, also_uses - shared
    return sets.isdisjoint(also_uses) and uses.isdisjoint(also_sets)


def _names(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """The names that are set or of which a part is set, and all that are used for more than their shape."""
    shapes: list[ast.AST] = []
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            shapes += ast.walk(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("_like"):
            shapes += ast.walk(node.args[0])
    bases = [target.value if isinstance(target, _PARTS) else target for target in _targets(statement)]
    sets = {node.id for base in bases for node in ast.walk(base) if isinstance(node, ast.Name)}
    names = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and node not in shapes]
    return sets, {node.id for node in names}


def labelled(exercise: Exercise) -> str:
    """Return the right program with numbered steps: what each one makes, and what its comment says.

    Examples
    --------
    >>> from tinytx_course.exercises.checking import EXERCISES
    >>> print(labelled(EXERCISES["padding_mask"]))
    def padding_mask(token_ids, pad_id):
        return token_ids != pad_id  # 1. returned: (B, S)
    """
    text = _text(exercise.solve)
    lines = text.splitlines()
    steps = [node for node in ast.walk(ast.parse(text)) if isinstance(node, _STEPS)]
    for number, step in enumerate(sorted(steps, key=lambda node: node.lineno), 1):
        targets = getattr(step, "targets", None) or [getattr(step, "target", None)]
        made = ", ".join(ast.unparse(target).strip("()") for target in targets if target) or "returned"
        code, _, comment = lines[step.lineno - 1].partition("  # ")
        lines[step.lineno - 1] = f"{code}  # {number}. {made}" + (f": {comment}" if comment else "")
    return "\n".join(lines)


def _text(function: Callable[..., Any]) -> str:
    return function.text.strip() if isinstance(function, Program) else ""


def rungs_of(exercise: Exercise) -> tuple[str, ...]:
    """Return the rungs that an exercise has, the lowest first."""
    there = (_text(exercise.solve), puzzle(exercise), blanks(exercise), True)
    return tuple(rung for rung, has in zip(RUNGS, there, strict=True) if has)


def lowest_left(exercise: Exercise) -> str:
    """Return the lowest rung that this learner has not passed, *watch* left out; *write* if there is none."""
    passed = record().entry("exercises", exercise.name).get("rungs", [])
    return next(rung for rung in rungs_of(exercise) if rung not in ("watch", *passed) or rung == "write")


def pass_rung(name: str, rung: str) -> None:
    """Record that *order* or *fill* is passed."""
    entry = record().entry("exercises", name)
    record().change("exercises", name, entry | {"rungs": sorted({*entry.get("rungs", []), rung})})


def may_watch(name: str) -> bool:
    """Whether this learner has passed the exercise, or tried twice."""
    entry = record().entry("exercises", name)
    return bool(entry.get("passed")) or entry.get("tries", 0) >= 2
