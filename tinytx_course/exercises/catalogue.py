"""The file of an exercise, ``exercises/NAME.toml``: what is asked, a right program, its mistakes as edits.

::

    signature = "attention_row(query, keys)"
    lesson = 0                               # the lesson and the section that explain it
    section = "By hand: score, then share"
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
function. Further ways to make it are listed in ``also``, each written like one of these three. It may name
another ``section`` and ``lesson`` to read, take its words from a mistake that it is ``like``, and have a
``tolerance`` of its own where rounding weighs more than usual. A mistake that no text can say has no such key:
its function stands in the module of the exercise, in `Exercise.in_python`.

``together`` lists slugs that often come with another one: both are tried at once, wherever their edits do not
overlap. Programs use the names in `NAMES`, and import what else they need.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import chain, combinations, product
from os.path import commonprefix
from types import CodeType
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import tinytx as tx

Function = Callable[..., Any]
_EXERCISE = {
    "signature": str,
    "lesson": int,
    "section": str,
    "rule": str,
    "right": str,
    "mistakes": dict,
    "together": list,
}
_MISTAKE = {
    "words": str,
    "like": str,
    "section": str,
    "lesson": int,
    "tolerance": float,
    "edit": list,
    "edits": list,
    "program": str,
    "also": list,
}
#: What a program may use without importing it.
NAMES = {"torch": torch, "nn": nn, "F": F, "math": math, "np": np, "tx": tx}
_TOKEN = re.compile(r"\w+|\s+|.")


@dataclass(frozen=True)
class Mistake:
    """A common way to get it wrong.

    Attributes
    ----------
    slug : str
        Its stable name.
    words : str
        What was done and what to do instead.
    section : str
        Heading to read, in the lesson of the exercise unless `lesson` says otherwise.
    lesson : int or None
        Number of another lesson.
    wrongs : tuple of callable
        Small implementations that make it; it explains results that equal those of one of them everywhere.
    tolerance : float
        For mistakes in which rounding weighs more than usual.
    """

    slug: str
    words: str
    section: str = ""
    lesson: int | None = None
    wrongs: tuple[Function, ...] = ()
    tolerance: float = 0.0


class Program:
    """A function given as text, compiled when it is first called.

    Attributes
    ----------
    name : str
        Of the function.
    text : str
        Of the program that defines it.

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


@dataclass(frozen=True)
class Catalogue:
    """What the file of an exercise says.

    Attributes
    ----------
    signature, section, rule : str
    lesson : int
    solve : Program
        The right one.
    mistakes : tuple of Mistake
        In the order of the file, then pairs of these.
    """

    signature: str
    lesson: int
    section: str
    rule: str
    solve: Program
    mistakes: tuple[Mistake, ...]


def read_catalogue(name: str, in_python: Mapping[str, Function | tuple[Function, ...]] = {}) -> Catalogue:
    """Read the file of an exercise.

    Parameters
    ----------
    name : str
    in_python : mapping
        From the slug of a mistake that no text can say to one or several functions that make it.

    Raises
    ------
    ValueError
        If it is not written as it should be; one sentence with file and name.

    Examples
    --------
    >>> catalogue = read_catalogue("causal_mask")
    >>> catalogue.solve(2).tolist(), catalogue.mistakes[0].slug, catalogue.mistakes[0].wrongs[0](2).tolist()
    ([[True, False], [True, True]], 'reversed', [[False, True], [False, False]])
    """
    text = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    try:
        return parse_catalogue(name, tomllib.loads(text), in_python)
    except tomllib.TOMLDecodeError as problem:
        raise ValueError(f"{name}.toml must be TOML, got {problem}") from None


def parse_catalogue(
    name: str, table: Mapping[str, Any], in_python: Mapping[str, Function | tuple[Function, ...]] = {}
) -> Catalogue:
    """Check the fields of an exercise; as `read_catalogue`."""
    file = f"{name}.toml"
    _check_fields(file, table, _EXERCISE, set(_EXERCISE) - {"together"})
    right, texts, often = table["right"], table["mistakes"], set(table.get("together", []))
    if unknown := (often | set(in_python)) - set(texts):
        raise ValueError(f"{file} must have the mistakes {', '.join(sorted(unknown))}, got none of the name")
    mistakes, edits = [], {}
    for slug, text in texts.items():
        whose = f"the mistake {slug!r} of {file}"
        _check_fields(whose, text, _MISTAKE, {"words"} if "like" not in text else set())
        given = [text[key] for key in ("edit", "edits", "program") if key in text]
        if len(given) + (slug in in_python) != 1:
            made = [key for key in ("edit", "edits", "program") if key in text]
            raise ValueError(
                f"{whose} must be made in one way, by edit, edits, program or Python, got {made}"
            )
        ways = [_read_way(whose, right, way) for way in chain(given, text.get("also", ()))]
        edits[slug] = [way for way in ways if not isinstance(way, str)]
        functions: Any = in_python.get(slug, ())
        functions = functions if isinstance(functions, tuple) else (functions,)
        functions += tuple(
            Program(name, way if isinstance(way, str) else _applied(right, way), whose) for way in ways
        )
        if text.get("like", slug) not in texts:
            raise ValueError(f"{whose} must be like one of {', '.join(texts)}, got {text['like']!r}")
        about = texts[text.get("like", slug)] | text
        about = {key: about[key] for key in ("words", "section", "lesson", "tolerance") if key in about}
        mistakes.append(Mistake(slug, wrongs=functions, **about))
    for one, other in combinations([mistake for mistake in mistakes if "+" not in mistake.slug], 2):
        slug = f"{one.slug}+{other.slug}"
        if slug not in texts and often & {one.slug, other.slug}:
            wrongs = tuple(
                Program(name, _applied(right, first + second), f"the pair {slug!r} of {file}")
                for first, second in product(edits[one.slug], edits[other.slug])
                if not _overlap(first + second)
            )
            words = f"Two things at once. {one.words} And: {other.words}"
            tolerance = max(one.tolerance, other.tolerance)
            mistakes += [Mistake(slug, words, one.section, one.lesson, wrongs, tolerance)] if wrongs else []
    about = {field: table[field] for field in ("signature", "lesson", "section", "rule")}
    solve = Program(name, right, f"`right` of {file}")
    return Catalogue(**about, solve=solve, mistakes=tuple(mistakes))


def _check_fields(
    whose: str, table: Mapping[str, Any], fields: Mapping[str, type], needed: Iterable[str]
) -> None:
    if unknown := set(table) - set(fields):
        raise ValueError(f"{whose} may have the keys {', '.join(fields)}, got {', '.join(sorted(unknown))}")
    if missing := set(needed) - set(table):
        raise ValueError(
            f"{whose} must have the keys {', '.join(sorted(needed))}, got no {sorted(missing)[0]}"
        )
    for key, value in table.items():
        if type(value) is not fields[key]:
            raise ValueError(f"{key} of {whose} must be {fields[key].__name__}, got {value!r}")


def _read_way(whose: str, right: str, way: Any) -> str | Edits:
    """The text of a program, or edits of the right one, in the order of the text."""
    if isinstance(way, str):
        return way
    pairs = [way] if all(isinstance(part, str) for part in way) else way
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            raise ValueError(f"an edit in {whose} must be a pair [old, new] of texts, got {pair!r}")
        if (times := right.count(pair[0])) != 1:
            raise ValueError(
                f"an edit in {whose} must change what occurs once, got {pair[0]!r} {times} times"
            )
    edits = tuple(_edit(right, *pair) for pair in pairs)
    if _overlap(edits):
        raise ValueError(f"the edits of {whose} must not overlap, got {pairs}")
    return edits


def _edit(right: str, old: str, new: str) -> Edit:
    """An edit, without the words and signs that both sides begin or end with."""
    before, after, start = _TOKEN.findall(old), _TOKEN.findall(new), right.index(old)
    same = len(commonprefix([before, after]))
    before, after, start = before[same:], after[same:], start + len("".join(before[:same]))
    same = len(commonprefix([before[::-1], after[::-1]]))
    before, after = before[: len(before) - same], after[: len(after) - same]
    return Edit(start, start + len("".join(before)), "".join(after))


def _overlap(edits: Sequence[Edit]) -> bool:
    return any(one.overlaps(other) for one, other in combinations(edits, 2))


def _applied(right: str, edits: Edits) -> str:
    for start, end, new in sorted(edits, reverse=True):
        right = right[:start] + new + right[end:]
    return right
