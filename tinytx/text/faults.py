"""Rows that cannot be used: all are counted, the first is named, and nothing is dropped in silence."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path

from tinytx.text.corpus import CorpusWarning


@dataclass
class Faults:
    """What is wrong with the rows of a file.

    Parameters
    ----------
    path : Path or str
        Named in messages.
    skip : bool
        Pass the rows over with a warning, where otherwise an error is raised.
    unit : str
        What a row is called in front of its number.
    hint : str
        Told at the end of the message.

    Examples
    --------
    >>> faults = Faults("notes.tsv")
    >>> faults.add(7, "must be a label, a tab and a text", "no tab")
    >>> faults.settle(n_good=8)
    Traceback (most recent call last):
    ValueError: notes.tsv, line 7: must be a label, a tab and a text, got no tab
    """

    path: Path | str
    skip: bool = False
    unit: str = "line"
    hint: str = ""
    _numbers: dict[str, set[int]] = field(default_factory=dict)  # of the rows that break each rule
    _first: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, number: int, rule: str, got: str) -> None:
        """Note that row `number`, counted from 1, breaks a rule."""
        self._numbers.setdefault(rule, set()).add(number)
        self._first.setdefault(rule, (number, got))

    def settle(self, n_good: int) -> None:
        """Refuse the rows that were noted, or warn that they are passed over.

        Parameters
        ----------
        n_good : int
            Rows that can be used, for the message.

        Raises
        ------
        ValueError
            If any were noted and `skip` is False.
        """
        if not self._first:
            return
        n_bad = len(set.union(*self._numbers.values()))
        rules = sorted(self._first, key=lambda rule: self._first[rule])
        number, got = self._first[rules[0]]
        message = f"{self.path}, {self.unit} {number}: {rules[0]}, got {got}"
        if n_bad > 1:
            message += f"; {n_bad:,} of {n_good + n_bad:,} rows cannot be used"
        if len(rules) > 1:
            message += ": " + "; ".join(
                f"{rule} ({len(self._numbers[rule]):,} rows, from {self.unit} {self._first[rule][0]})"
                for rule in rules
            )
        message += f"; {self.hint}" if self.hint else ""
        self._numbers.clear()
        self._first.clear()
        if not self.skip:
            raise ValueError(message)
        warnings.warn(f"{message}: passed over, {n_good:,} rows are left", CorpusWarning, stacklevel=3)
