"""What the experiment must be told of a corpus: its folds, its unlabelled texts, its recipes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tinytx.training.experiments.transfer_folds.recipes import TransferRecipe
from tinytx.training.experiments.transfer_folds.sources import Sources


@dataclass(frozen=True)
class Text:
    """What a body is pretrained on.

    Attributes
    ----------
    elsewhere : str or None
        A name of the task's sources, read first; None for nothing from elsewhere.
    own : bool
        Whether the body then reads the texts of the fold that are not tested, without their labels.
    """

    elsewhere: str | None
    own: bool = False


@dataclass(frozen=True)
class Task:
    """One corpus of labelled texts, and all that the harness does not know of it.

    Attributes
    ----------
    corpus : str
        Its train and valid splits are folded; its test split is not touched.
    sources : callable
        Gives the unlabelled texts from a data folder, or None, and the texts that are to be left out.
    texts : dict
        What bodies are pretrained on, by the name that conditions use; one of only own texts at most.
    pieces_from, pieces_words : str, dict
        The name in the sources of the text that the tokenizer learns from, and how many words of each part.
        No text of the task is read for it.
    recipes : dict
        By budget.
    conditions : tuple of str
        Compared unless others are asked for.
    neighbour : str or None
        The source whose texts have stars; None where there is no such task beside this one.
    n_folds : int
    n_texts : int or None
        So many of the texts are drawn (with seed 0, of each class equally many) and folded; None for all.
    """

    corpus: str
    sources: Callable[[str | Path | None, Iterable[str]], Sources]
    texts: Mapping[str, Text]
    pieces_from: str
    pieces_words: Mapping[str, int]
    recipes: Mapping[str, TransferRecipe]
    conditions: tuple[str, ...]
    neighbour: str | None = None
    n_folds: int = 6
    n_texts: int | None = None

    @property
    def own(self) -> str | None:
        """The name of the text that is nothing but the fold's own."""
        return next((name for name, text in self.texts.items() if text.elsewhere is None), None)
