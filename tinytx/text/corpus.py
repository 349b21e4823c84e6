"""What a corpus is: texts in splits, so that what is reported never stood in training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Split:
    """Texts that serve one purpose, with a label each or with none at all.

    Parameters
    ----------
    texts : tuple of str
        At least one.
    labels : tuple of int, optional
        From 0 up, one for each text.

    Examples
    --------
    >>> len(Split(("un beau livre", "un livre raté"), (1, 0)))
    2
    """

    texts: tuple[str, ...]
    labels: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not self.texts:
            raise ValueError("a split must hold at least one text, got none")
        if self.labels is not None and len(self.labels) != len(self.texts):
            raise ValueError(
                f"labels must be as many as texts, got {len(self.labels)} labels, {len(self.texts)} texts"
            )

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Corpus:
    """A corpus in its splits.

    Parameters
    ----------
    name : str
        A name of `list_corpora`, or the name of the file.
    train, valid : Split
        To learn from, and to choose settings by.
    test : Split, optional
        To report on; it selects nothing.
    licence, source : str
        As stated where the texts come from; empty for a file of one's own.
    label_names : tuple of str
        What the labels 0, 1, ... mean; empty where that is not known.
    card : str
        What the texts were made of, for a corpus that differs from machine to machine.
    """

    name: str
    train: Split
    valid: Split
    test: Split | None = None
    licence: str = ""
    source: str = ""
    label_names: tuple[str, ...] = ()
    card: str = ""

    @classmethod
    def from_splits(
        cls,
        name: str,
        splits: Mapping[str, Split],
        *,
        licence: str = "",
        source: str = "",
        label_names: tuple[str, ...] = (),
        card: str = "",
    ) -> Corpus:
        """A corpus of splits by name: train, valid, and test where there is one."""
        test = splits.get("test")
        return cls(name, splits["train"], splits["valid"], test, licence, source, label_names, card)

    @property
    def splits(self) -> dict[str, Split]:
        """The splits that exist, by name."""
        named = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: split for name, split in named.items() if split is not None}

    @property
    def n_classes(self) -> int | None:
        """As many as there are names, else one more than the largest label; None without labels."""
        if self.train.labels is None:
            return None
        return len(self.label_names) or 1 + max(max(split.labels or ()) for split in self.splits.values())

    def repeated(self) -> dict[str, int]:
        """How many texts of each held-out split stand, word for word, in the training split too."""
        seen = set(self.train.texts)
        return {
            name: sum(text in seen for text in split.texts)
            for name, split in self.splits.items()
            if name != "train"
        }


@dataclass(frozen=True)
class CorpusInfo:
    """One row of `list_corpora`: what a named corpus is, and whether it can be read now."""

    name: str
    description: str
    labelled: bool
    licence: str
    source: str
    available: bool


class CorpusWarning(UserWarning):
    """Something about the texts that their reader should know before trusting a figure."""
