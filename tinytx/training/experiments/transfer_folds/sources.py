"""What tasks give to read without labels: texts by name, none of which is tested."""

from __future__ import annotations

import functools
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinytx.training.runs.files import json_bytes


@dataclass(frozen=True)
class Rated:
    """A reader's review of a book, with the stars that the reader gave it."""

    text: str
    stars: float


class Sources(ABC):
    """Unlabelled texts of one task, by name."""

    names: tuple[str, ...] = ()
    together: Mapping[str, tuple[str, ...]] = {}  # other names, for several at once

    def elsewhere(self, name: str, words: Mapping[str, int]) -> list[str]:
        """Texts of one source, or of several, each thinned to so many words (drawn with seed 0)."""
        if name in self.together:
            return [text for one in self.together[name] for text in self.elsewhere(one, words)]
        if name not in self.names:
            known = " or ".join([", ".join(self.names), *self.together])
            raise ValueError(f"text must be one of {known}, got {name!r}")
        return _thinned(self._kept(name), words[name])

    def identity(self, name: str) -> dict[str, Any]:
        """What tells the texts of a name from other texts of that name; nothing where all have the same."""
        return {}

    @property
    def rated(self) -> list[Rated]:
        """Texts with stars, where the task has such a neighbour."""
        raise ValueError("stars need a task with star ratings beside it, got one without")

    @functools.cache  # noqa: B019  (one instance a run)
    def _kept(self, name: str) -> list[str]:
        return self._whole(name)

    @abstractmethod
    def _whole(self, name: str) -> list[str]:
        """All texts of one name, in plain typography, without those that are tested."""


def _thinned(texts: list[str], n_words: int) -> list[str]:
    order = np.random.default_rng(0).permutation(len(texts))
    kept, total = [], 0
    for index in order.tolist():
        if total >= n_words:
            break
        kept.append(texts[index])
        total += texts[index].count(" ") + 1
    return kept


def digest_of(content: dict[str, Any]) -> str:
    """A short name for some settings or texts, which changes whenever any of them does."""
    return hashlib.sha256(json_bytes(content)).hexdigest()[:12]
