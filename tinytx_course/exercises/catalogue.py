"""The file of an exercise, ``exercises/NAME.toml``: what is asked, a right program, its mistakes as edits.

::

    signature = "attention_row(query, keys)"
    lesson = 0                               # the lesson and the section that explain it
    section = "By hand: score, then share"
    title = "one row of attention"           # what its lesson asks, see `statement`
    level = 1
    minutes = 2
    outcome = 2
    statement = "The task, in 15 to 110 words of Markdown, with shapes."
    hints = ["Folded below it."]
    rule = "What to return, in one sentence with shapes."
    right = '''
    def attention_row(query, keys):
        scores = keys @ query / math.sqrt(len(query))  # (S,)
        return scores.softmax(dim=0)
    '''

    [mistakes.scale-by-keys]                 # the commonest mistake first
    edit = ['len(query)', 'len(keys)']       # what stands once in `right`, and what takes its place
    words = "What was done, and what to do instead."

In place of `edit` a mistake may have ``edits``, a list of such pairs, or ``program``, a text that defines the
function. Further ways to make it are listed in ``also``, each written like one of these three. It may have a
``hint``, the words of `tinytx_course.grading.hint` where its own quote a right program; name another
``section`` and ``lesson`` to read; take its words from a mistake that it is ``like``; and have a
``tolerance`` of its own where rounding weighs more than usual.

``together`` lists slugs that often come with another one: both are tried at once, wherever their edits do not
overlap. ``also`` of the exercise itself lists edits after which the program is right as before: mistakes are
made in these programs too, again where edits do not overlap. Programs use the names in `NAMES`, and import
what else they need. A table ``[puzzle]`` makes a Parsons problem of the right program, see
`tinytx_course.widgets.parsons`.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import combinations, product
from os.path import commonprefix
from types import CodeType
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx
from tinytx_course.exercises.statement import Statement

Function = Callable[..., Any]
_ABOUT = {"title": str, "level": int, "minutes": int, "outcome": int, "statement": str, "hints": list}
_NEEDED = ("signature", "lesson", "section", *_ABOUT, "rule", "right", "mistakes")
_EXERCISE: Mapping[str, type] = {
    **_ABOUT,
    **{"together": list, "also": list, "mistakes": dict, "puzzle": dict, "lesson": int},
    **dict.fromkeys(("signature", "section", "rule", "right"), str),
}
_MISTAKE: Mapping[str, type] = {
    **{"lesson": int, "tolerance": float, "edit": list, "edits": list, "also": list},
    **dict.fromkeys(("words", "hint", "like", "section", "program"), str),
}
#: What a program may use without importing it.
NAMES: Mapping[str, Any] = {"torch": torch, "nn": nn, "F": F, "math": math, "np": np, "tx": tx}
_WAYS = ("edit", "edits", "program")
_TOKEN = re.compile(r"\w+|\s+|.")


@dataclass(frozen=True)
class Mistake:
    """A common way to get it wrong."""

    slug: str  # its stable name
    words: str  # what was done and what to do instead
    section: str = ""  # heading to read, in the lesson of the exercise unless `lesson` says otherwise
    lesson: int | None = None  # number of another lesson
    wrongs: tuple[Function, ...] = ()  # small implementations: it explains what one of them gives everywhere
    tolerance: float = 0.0  # where rounding weighs more than usual
    hint: str = ""  # `words` for who is to find the line alone; empty where they quote no right program


class Program:
    """A function given as text, compiled when it is first called.

    Raises
    ------
    ValueError
        When it is called: if the text does not compile or does not define the function.
    """

    def __init__(self, name: str, text: str, whose: str) -> None:
        self.name, self.text, self._whose = name, text, whose

    @cached_property
    def function(self) -> Function:
        """The function itself."""
        space = dict(NAMES)
        try:
            exec(compile(self.text, str(files(__package__).joinpath(f"{self.name}.toml")), "exec"), space)
        except Exception as problem:
            got = f"{type(problem).__name__}: {problem}"
            raise ValueError(f"{self._whose} must be a program that runs, got {got}") from None
        if not callable(space.get(self.name)):
            raise ValueError(f"{self._whose} must define {self.name}, got {self.text!r}")
        return space[self.name]

    @property
    def __code__(self) -> CodeType:
        return self.function.__code__

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __repr__(self) -> str:
        return f"<{self._whose}>"


class Edit(NamedTuple):
    """A part of a text, from `start` to `end`, and what takes its place."""

    start: int
    end: int
    new: str

    def overlaps(self, other: Edit) -> bool:
        """Whether both change the same part; what is put in between touches both sides."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return start < end or start == end and (self.start == self.end or other.start == other.end)


Edits = tuple[Edit, ...]


def read_catalogue(name: str) -> dict[str, Any]:
    """Read what the file of an exercise says, by the names that `Exercise` has for it; pairs come last.

    Raises
    ------
    ValueError
        If it is not written as it should be; one sentence with file and name.

    Examples
    --------
    >>> catalogue = read_catalogue("causal_mask")
    >>> first = catalogue["mistakes"][0]
    >>> catalogue["solve"](2).tolist(), first.slug, first.wrongs[0](2).tolist()
    ([[True, False], [True, True]], 'reversed', [[False, True], [False, False]])
    """
    text = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    try:
        return parse_catalogue(name, tomllib.loads(text))
    except tomllib.TOMLDecodeError as problem:
        raise ValueError(f"{name}.toml must be TOML, got {problem}") from None


def parse_catalogue(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Check the fields of an exercise; as `read_catalogue`."""
    file = f"{name}.toml"
    check_fields(file, table, _EXERCISE, _NEEDED)
    statement = read_statement(file, table)
    texts, often = table["mistakes"], set(table.get("together", ()))
    if unknown := often - set(texts):
        raise ValueError(f"{file} must have the mistakes {', '.join(sorted(unknown))}, got none of the name")
    others = [_read_way(f"`also` of {file}", table["right"], way) for way in table.get("also", ())]
    if programs := [way for way in others if isinstance(way, str)]:
        raise ValueError(f"`also` of {file} must list edits, got {programs[0]!r}")
    known = [_read_mistake(name, table, slug, others) for slug in texts]
    pairs = [
        _pair(name, table["right"], one, other)
        for one, other in combinations(known, 2)
        if often & {one.slug, other.slug} and f"{one.slug}+{other.slug}" not in texts
    ]
    return {
        **{field: table[field] for field in ("signature", "lesson", "section", "rule")},
        "statement": statement,
        "solve": Program(name, table["right"], f"`right` of {file}"),
        "mistakes": (*(one.mistake for one in known), *(pair for pair in pairs if pair.wrongs)),
        "puzzle": table.get("puzzle", {}),
    }


def read_statement(whose: str, table: Mapping[str, Any]) -> Statement:
    """Read what an exercise, or a room of the museum, asks."""
    try:
        return Statement(table["lesson"], **{field: table[field] for field in _ABOUT})
    except ValueError as problem:
        raise ValueError(f"{whose}: {problem}") from None


class _Known(NamedTuple):
    """A mistake, and those ways to make it that are edits."""

    mistake: Mistake
    edits: list[Edits]

    @property
    def slug(self) -> str:
        return self.mistake.slug


def _read_mistake(name: str, table: Mapping[str, Any], slug: str, others: Sequence[str | Edits]) -> _Known:
    whose, texts, right = f"the mistake {slug!r} of {name}.toml", table["mistakes"], table["right"]
    check_fields(whose, texts[slug], _MISTAKE)
    like = texts[slug].get("like", slug)
    about = texts.get(like, {}) | texts[slug]
    if like not in texts or "words" not in about:
        raise ValueError(f"{whose} must have words, or be like a mistake that has, got like={like!r}")
    given = [about[key] for key in _WAYS if key in texts[slug]]
    if len(given) != 1:
        raise ValueError(f"{whose} must have one of {', '.join(_WAYS)}, got {sorted(about)}")
    ways = [_read_way(whose, right, way) for way in (*given, *texts[slug].get("also", ()))]
    ways += _together(ways, others)
    made = [Program(name, way if isinstance(way, str) else _applied(right, way), whose) for way in ways]
    said = {key: about[key] for key in ("words", "hint", "section", "lesson", "tolerance") if key in about}
    mistake = Mistake(slug, wrongs=tuple(made), **said)
    return _Known(mistake, [way for way in ways if not isinstance(way, str)])


def _pair(name: str, right: str, one: _Known, other: _Known) -> Mistake:
    """Both mistakes at once; without `wrongs` where all their edits overlap."""
    (first, its_edits), (second, other_edits) = one, other
    slug = f"{first.slug}+{second.slug}"
    texts = dict.fromkeys(_applied(right, both) for both in _together(its_edits, other_edits))
    wrongs = tuple(Program(name, text, f"the pair {slug!r} of {name}.toml") for text in texts)
    words = f"Two things at once. {first.words} And: {second.words}"
    hint = f"Two things at once. {first.hint or first.words} And: {second.hint or second.words}"
    tolerance = max(first.tolerance, second.tolerance)
    return Mistake(slug, words, first.section, first.lesson, wrongs, tolerance, hint)


def check_fields(whose: str, table: Any, fields: Mapping[str, type], needed: Iterable[str] = ()) -> None:
    """Refuse a table with a key that is unknown, missing or of another type than `fields` say."""
    if not isinstance(table, dict):
        raise ValueError(f"{whose} must be a table, got {table!r}")
    if unknown := set(table) - set(fields):
        raise ValueError(f"{whose} may have the keys {', '.join(fields)}, got {', '.join(sorted(unknown))}")
    if missing := set(needed) - set(table):
        raise ValueError(f"{whose} must have {', '.join(needed)}, got no {', '.join(sorted(missing))}")
    for key, value in table.items():
        if type(value) is not fields[key]:
            raise ValueError(f"{key} of {whose} must be {fields[key].__name__}, got {value!r}")


def _read_way(whose: str, right: str, way: Any) -> str | Edits:
    """The text of a program, or edits of the right one."""
    if isinstance(way, str):
        return way
    pairs = [way] if isinstance(way, list) and all(isinstance(part, str) for part in way) else way
    for pair in pairs if isinstance(pairs, list) else [pairs]:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            raise ValueError(f"an edit in {whose} must be a pair [old, new] of texts, got {pair!r}")
        if (times := right.count(pair[0])) != 1:
            got = f"{pair[0]!r} {times} times"
            raise ValueError(f"an edit in {whose} must change what occurs once in `right`, got {got}")
    edits = tuple(_edit(right, *pair) for pair in pairs)
    if _overlap(edits):
        raise ValueError(f"the edits of {whose} must not overlap, got {pairs}")
    return edits


def edited(whose: str, right: str, way: Any) -> str:
    """Return the program of a mistake that is written in one of the three ways."""
    read = _read_way(whose, right, way)
    return read if isinstance(read, str) else _applied(right, read)


def _edit(right: str, old: str, new: str) -> Edit:
    """An edit, without the words and signs that both sides begin or end with."""
    before, after, start = _TOKEN.findall(old), _TOKEN.findall(new), right.index(old)
    same = len(commonprefix([before, after]))
    before, after, start = before[same:], after[same:], start + len("".join(before[:same]))
    same = len(commonprefix([before[::-1], after[::-1]]))
    before, after = before[: len(before) - same], after[: len(after) - same]
    return Edit(start, start + len("".join(before)), "".join(after))


def _together(some: Iterable[str | Edits], others: Iterable[str | Edits]) -> list[Edits]:
    """Each of the first with each of the others, where both are edits that do not overlap."""
    pairs = product(some, others)
    both = [one + other for one, other in pairs if isinstance(one, tuple) and isinstance(other, tuple)]
    return [edits for edits in both if not _overlap(edits)]


def _overlap(edits: Sequence[Edit]) -> bool:
    return any(one.overlaps(other) for one, other in combinations(edits, 2))


def _applied(right: str, edits: Edits) -> str:
    for start, end, new in sorted(edits, reverse=True):
        right = right[:start] + new + right[end:]
    return right
