"""English docstrings to learn the language from: none that holds a text of the task."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tinytx.text.docstrings import docstrings_corpus
from tinytx.text.docstrings.corpus import without_giveaways
from tinytx.training.experiments.transfer_folds.folds import readable, same_text
from tinytx.training.experiments.transfer_folds.sources import Sources, digest_of

DOCSTRINGS = "docstrings"


class PackageSources(Sources):
    """The docstrings of this machine, but for those of the test splits and those that are tested.

    Parameters
    ----------
    data_dir : path or None
        Not looked into: this text lies on every machine.
    left_out : iterable of str
        Texts of the task. A document is never given if it holds one of them, as it stands or without the
        sentences that name packages, whatever case and punctuation.
    documents : sequence of str, optional
        By default the train and valid splits of `docstrings_corpus`.
    """

    names = (DOCSTRINGS,)

    def __init__(
        self,
        data_dir: str | Path | None = None,
        left_out: Iterable[str] = (),
        documents: Sequence[str] | None = None,
    ) -> None:
        self._holds_tested = Holds(left_out)
        self._documents = documents

    def identity(self, name: str) -> dict[str, Any]:
        """A digest of the texts: each machine has its own packages."""
        return {"documents": self._digest} if name in self.names else {}

    @functools.cached_property
    def _digest(self) -> str:
        return digest_of({"documents": self._kept(DOCSTRINGS)})

    def _whole(self, name: str) -> list[str]:
        documents = self._documents
        if documents is None:
            corpus = docstrings_corpus()
            documents = corpus.train.texts + corpus.valid.texts
        return [readable(one) for one in documents if not self._is_tested(one)]

    def _is_tested(self, document: str) -> bool:
        return self._holds_tested(document) or self._holds_tested(without_giveaways(document))


class Holds:
    """Says whether a text holds one of some texts as a whole; case, spaces and punctuation do not count.

    Parameters
    ----------
    wanted : iterable of str

    Examples
    --------
    >>> holds = Holds(["the mean of an array"])
    >>> holds("Return *the mean* of an\\n array."), holds("The mean of an arrayed")
    (True, False)
    """

    def __init__(self, wanted: Iterable[str]) -> None:
        found = {tuple(same_text(text).split()) for text in wanted} - {()}
        self._n_first = min(map(len, found), default=0)
        self._by_first: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for words in found:
            self._by_first.setdefault(words[: self._n_first], []).append(words)

    def __call__(self, text: str) -> bool:
        words = tuple(same_text(text).split())
        return any(
            words[at : at + len(one)] == one
            for at in range(len(words) - self._n_first + 1)
            for one in self._by_first.get(words[at : at + self._n_first], ())
        )
