"""What a reader of figures should know about a corpus: repeats between splits, classes without texts."""

from __future__ import annotations

import dataclasses
import warnings
from collections import defaultdict
from typing import Any

from tinytx.text.corpus import Corpus, CorpusWarning, Split

SHOWN = 60  # characters of a text that is named


def without_repeats(corpus: Corpus) -> Corpus:
    """Keep a text that stands in several splits only in the one that matters most: test, then valid.

    So what is reported stays complete, and nothing of it was learned from.

    Parameters
    ----------
    corpus : Corpus

    Returns
    -------
    Corpus
        Equal texts within a split stay.

    Raises
    ------
    ValueError
        If a split would be empty.
    """
    seen: set[str] = set()
    splits: dict[str, Any] = {}
    for name, split in reversed(corpus.splits.items()):
        kept = [i for i, text in enumerate(split.texts) if text not in seen]
        if not kept:
            raise ValueError(f"{corpus.name}: a split must keep a text, got only repeats in {name}")
        seen |= set(split.texts)
        texts = tuple(split.texts[i] for i in kept)
        labels = None if split.labels is None else tuple(split.labels[i] for i in kept)
        splits[name] = Split(texts, labels)
    return dataclasses.replace(corpus, **splits)


def warn_of_repeats(corpus: Corpus) -> None:
    """Warn if texts of a held-out split stand in train, or texts of test in valid, too; names the first."""
    splits = corpus.splits
    for held_out, other in (("valid", "train"), ("test", "train"), ("test", "valid")):
        if held_out not in splits:
            continue
        place = {text: i for i, text in reversed(list(enumerate(splits[other].texts)))}
        rows = [i for i, text in enumerate(splits[held_out].texts) if text in place]
        if rows:
            text = splits[held_out].texts[rows[0]]
            _warn(
                f"{corpus.name}: {len(rows):,} of {len(splits[held_out]):,} texts of {held_out} stand in "
                f"{other} too, word for word; the first is text {rows[0] + 1} of {held_out} and text "
                f"{place[text] + 1} of {other}: {_short(text)}; drop_repeats (--drop-repeats) takes them out "
                f"of {other}"
            )


def warn_of_classes(corpus: Corpus) -> None:
    """Warn if a class has no text in some split, or equal texts have different labels."""
    n_classes = corpus.n_classes
    if n_classes is None:
        return
    known_empty: set[int] = set()
    for split_name, split in corpus.splits.items():
        empty = sorted(set(range(n_classes)).difference(split.labels or (), known_empty))
        known_empty.update(empty if split_name == "train" else ())
        if empty:
            listed = ", ".join(_class(corpus, label) for label in empty[:5]) + (", ..." if empty[5:] else "")
            what = "can be learned" if split_name == "train" else "is tested"
            _warn(
                f"{corpus.name}: {len(empty):,} of {n_classes:,} classes have no text in {split_name}, so "
                f"nothing of them {what}: {listed}"
            )
    labels = defaultdict(set)
    for split in corpus.splits.values():
        for text, label in zip(split.texts, split.labels or (), strict=True):
            labels[text].add(label)
    torn = [text for text, found in labels.items() if len(found) > 1]
    if torn:
        found = " and ".join(_class(corpus, label) for label in sorted(labels[torn[0]])[:2])
        _warn(
            f"{corpus.name}: {len(torn):,} texts stand under different labels; the first, under {found}: "
            f"{_short(torn[0])}"
        )


def _class(corpus: Corpus, label: int) -> str:
    return f"{label} ({corpus.label_names[label]})" if corpus.label_names else str(label)


def _short(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")


def _warn(message: str) -> None:
    warnings.warn(message, CorpusWarning, stacklevel=4)
