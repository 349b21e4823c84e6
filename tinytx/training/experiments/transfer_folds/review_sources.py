"""Unlabelled French, far from the reviews and near them, and the star ratings of other readers."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from pathlib import Path

from tinytx.text.files import read_lines
from tinytx.training.experiments.transfer_folds.folds import readable, same_text
from tinytx.training.experiments.transfer_folds.sources import Rated, Sources

ELSEWHERE = ("novels", "tatoeba", "readers")
SHORTEST_WORDS = 3
HIGHEST_STARS = 5.0


class ReviewSources(Sources):
    """Texts by name, in plain typography, without any text that is tested.

    Parameters
    ----------
    data_dir : path
        Holds ``eltec-fra/``, ``tatoeba-en-fr/`` and ``reader-reviews-fr/``, of which only what is asked for
        is read.
    left_out : iterable of str
        Texts that are never given, whatever their case and punctuation: those that will be tested.
    """

    names = ELSEWHERE
    together = {"around": ELSEWHERE}

    def __init__(self, data_dir: str | Path | None, left_out: Iterable[str] = ()) -> None:
        if data_dir is None:
            raise ValueError("data_dir must be the folder that holds the texts, got None")
        self._folder = Path(data_dir)
        self._left_out = {same_text(text) for text in left_out}

    @functools.cached_property
    def rated(self) -> list[Rated]:
        """Reader reviews with stars from 0.5 to 5, each text once."""
        found: dict[str, Rated] = {}
        for path in sorted(self._require("reader-reviews-fr").glob("*.jsonl")):
            for number, line in read_lines(path):
                try:
                    row = json.loads(line)
                    rated = Rated(readable(row["reader_review"]), float(row["rating"]))
                except (ValueError, KeyError, TypeError) as error:
                    raise ValueError(
                        f"{path}, line {number}: must be JSON with reader_review and rating, got {error!r}"
                    ) from error
                if rated.stars <= HIGHEST_STARS and self._is_wanted(rated.text):
                    found.setdefault(same_text(rated.text), rated)
        return list(found.values())

    def _whole(self, name: str) -> list[str]:
        if name == "readers":
            return [rated.text for rated in self.rated]
        if name == "novels":
            lines = (line for _, line in read_lines(self._require("eltec-fra") / "corpus.train.txt"))
        else:
            pairs = read_lines(self._require("tatoeba-en-fr") / "pairs.train.tsv")
            lines = (line.partition("\t")[2] for _, line in pairs)
        return [text for text in map(readable, lines) if self._is_wanted(text)]

    def _is_wanted(self, text: str) -> bool:
        return text.count(" ") + 1 >= SHORTEST_WORDS and same_text(text) not in self._left_out

    def _require(self, name: str) -> Path:
        folder = self._folder / name
        if not folder.is_dir():
            raise ValueError(f"data_dir must hold the folder {name} for this condition, looked for {folder}")
        return folder
