"""Labels as they stand in a table, numbered from 0 up."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from tinytx.text.faults import Faults
from tinytx.text.tables import Row

MAX_CLASSES = 100  # with names: more of them are no labels
_INTEGER = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")


def name_labels(rows: Sequence[Row], faults: Faults) -> tuple[str, ...]:
    """The names of the classes, in order.

    Parameters
    ----------
    rows : sequence of Row
        With labels.
    faults : Faults
        Takes note of words among numbers, and of numbers among words, whichever are fewer.

    Returns
    -------
    tuple of str
        Empty if the labels are integers from 0 up, which then are what they say. Else the different ones,
        numbers by their value, words by the alphabet.

    Raises
    ------
    ValueError
        If there are more than `MAX_CLASSES`.
    """
    numbers = [row for row in rows if _value(row.label) is not None]
    words = [row for row in rows if _value(row.label) is None]
    kept, strangers, kind = (
        (numbers, words, "number") if len(numbers) >= len(words) else (words, numbers, "word")
    )
    for row in strangers:
        faults.add(row.number, f"the label must be a {kind}, as most are", repr((row.label or "")[:40]))
    found = {row.label or "" for row in kept}
    if all(map(_INTEGER.fullmatch, found)):
        return ()
    if len(found) > MAX_CLASSES:
        some = ", ".join(repr(label[:20]) for label in sorted(found)[:3])
        raise ValueError(
            f"{faults.path} must have at most {MAX_CLASSES} different labels, got {len(found):,}, "
            f"such as {some}"
        )
    return tuple(sorted(found, key=lambda label: (_value(label) or 0.0, label)))


def number_labels(
    rows: Sequence[Row], names: Sequence[str], faults: Faults, *, known: Container[int] | None = None
) -> list[tuple[Row, int]]:
    """Number the labels of rows.

    Parameters
    ----------
    rows : sequence of Row
    names : sequence of str
        Of the classes 0, 1, ...; if empty, labels must be whole numbers from 0 up.
    faults : Faults
        Takes note of rows whose label is not known; they are left out.
    known : container of int, optional
        The classes that were met in training.

    Returns
    -------
    list of (Row, int)
    """
    places = {name: place for place, name in enumerate(names)}
    if len(places) < len(names):
        raise ValueError(f"label_names must be different, got {', '.join(names)}")
    rule = "the label must be an integer from 0 up"
    if names:
        rule = "the label must be one of " + ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    numbered = []
    for row in rows:
        label = row.label or ""
        place = places.get(label) if names else int(label) if _INTEGER.fullmatch(label) else None
        if place is None:
            faults.add(row.number, rule, repr(label[:40]))
        elif known is not None and place not in known:
            faults.add(row.number, "the label must be one that occurs in train", repr(label[:40]))
        else:
            numbered.append((row, place))
    return numbered


def _value(label: str | None) -> float | None:
    return float(label) if label and _NUMBER.fullmatch(label) else None
