"""The explorer of the next word: a beginning, and how a model and the world would go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import traitlets

from tinytx.text.tokenizer import Tokenizer
from tinytx.world.reviews import NO_SPACE_BEFORE, write_out
from tinytx.world.world import World
from tinytx_course.widgets.base import Explorer, between, fixed
from tinytx_course.widgets.continuations import END, N_ROWS, WHOLE, Continuations, model_and_tokenizer
from tinytx_course.widgets.picture import ACCENT, SOFT, WARN, Picture


class NextWordExplorer(Explorer):
    """See `next_word`."""

    kind = "next_word"
    title = "The next word"

    words = traitlets.List(traitlets.Unicode()).tag(sync=True)
    pointed = traitlets.Int(0).tag(sync=True)
    problem = traitlets.Unicode().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)
    asked = traitlets.Dict().tag(sync=True)
    stored = traitlets.Dict().tag(sync=True)
    has_model = traitlets.Bool().tag(sync=True)
    glued = traitlets.List(traitlets.Unicode()).tag(sync=True)
    unsplit = traitlets.List(traitlets.Unicode()).tag(sync=True)
    ping = traitlets.Int(0).tag(sync=True)
    pong = traitlets.Int(0).tag(sync=True)

    def __init__(self, continuations: Continuations, beginnings: Sequence[Sequence[str]], n_stored: int):
        self._continuations = continuations
        language = continuations.world.language
        super().__init__(
            words=list(beginnings[0]),
            stored=continuations.stored(beginnings, n_stored),
            has_model=continuations.model is not None,
            glued=sorted(NO_SPACE_BEFORE[language]),
            unsplit=[word for word in continuations.world.vocabulary if "'" in word[:-1]],
        )

    @traitlets.validate("words")
    def _check_words(self, proposal: Any) -> list[str]:
        self._continuations.row(proposal.value)
        return proposal.value

    @traitlets.validate("pointed")
    def _check_pointed(self, proposal: Any) -> int:
        return between(proposal, 0, N_ROWS - 1)

    @traitlets.observe("words")
    def _answer(self, change: Any) -> None:
        self.answer = {"words": list(change.new), "row": self._continuations.row(change.new)}
        self.pointed, self.problem = 0, ""

    @traitlets.observe("asked")
    def _hear(self, change: Any) -> None:
        asked = [str(word) for word in change.new.get("words", [])]
        try:
            self._continuations.row(asked)
            good, problem = tuple(asked), ""
        except ValueError as error:
            good, problem = self._continuations.mistake(asked)
            problem = problem or f"The model cannot read so much: {error}."
            good = good if len(good) < len(asked) else tuple(self.words)
        self.words, self.problem = list(good), problem
        self.pong = change.new["n"]

    @traitlets.observe("ping")
    def _reply(self, change: Any) -> None:
        self.pong = change.new

    @property
    def text(self) -> str:
        """The beginning as people write it."""
        return write_out(self.words, self._continuations.world.language)

    def rows(self) -> list[tuple[str | None, float, float]]:
        """Return the words shown with the chances that model and world give them; the end is None."""
        row = self.answer["row"]
        triples = zip(row[1::3], row[2::3], row[3::3], strict=True)
        return [(None if word == END else word, m / WHOLE, t / WHOLE) for word, m, t in triples]

    def describe(self) -> str:
        """Say how the beginning may go on, and what is likeliest and pointed at."""
        rows, n_possible = self.rows(), self.answer["row"][0]
        at = min(self.pointed, len(rows) - 1)
        text = f"{self.problem} " if self.problem else ""
        text += f"After “{self.text}” " if self.words else "At the beginning "
        text += f"{n_possible} {'word' if n_possible == 1 else 'words'} may follow in the world. "
        names = [word or "(the end)" for word, _, _ in rows]
        if self.has_model:
            text += f"The model expects {_likeliest(names, [guess for _, guess, _ in rows])}. "
        text += f"The world expects {_likeliest(names, [true for _, _, true in rows])}. "
        _, guess, true = rows[at]
        text += f"Chosen: “{names[at]}”, "
        text += f"model {_percent(guess)}, " if self.has_model else ""
        return text + (f"world {_percent(true)}." if true else "which the world never says here.")

    def picture(self) -> Picture:
        """Draw a bar of the model and one of the world for each word."""
        rows, left, high, wide = self.rows(), 150, 34 if self.has_model else 24, 440
        picture = Picture(760, 50 + high * len(rows))
        picture.text(12, 14, f"{self.text} …", size=14, bold=True)
        if self.has_model:
            picture.text(620, 14, "upper: model", color=ACCENT)
        picture.text(620, 32, "lower: world" if self.has_model else "world", color=WARN)
        for i, (word, guess, true) in enumerate(rows):
            y = 44 + high * i
            picture.text(left - 12, y + high / 2 - 4, word or "(the end)", anchor="rm")
            bars = ([(guess, ACCENT)] if self.has_model else []) + [(true, WARN)]
            for j, (share, color) in enumerate(bars):
                picture.rect(left, y + 13 * j, wide * share, 11, fill=color)
                words = "never" if not share else _percent(share)
                picture.text(left + wide * share + 6, y + 13 * j + 5, words, size=11, color=SOFT)
        return picture


def _percent(share: float) -> str:
    return f"{fixed(100 * share, 1)}%"


def _likeliest(names: list[str], shares: list[float]) -> str:
    """Name the three largest shares."""
    best = sorted(range(len(names)), key=lambda place: -shares[place])[:3]
    return ", ".join(f"“{names[place]}” {_percent(shares[place])}" for place in best if shares[place])


def next_word(
    source: Any = None,
    tokenizer: Tokenizer | None = None,
    beginnings: str | Sequence[str] = "Bonjour les",
    *,
    world: World | None = None,
    n_stored: int = 150,
) -> NextWordExplorer:
    """Write a beginning and see how a model and the world go on; press a word to go on with it.

    In a running notebook Python answers for any beginning. A page without a kernel has the likeliest ways on
    from the beginnings stored in it, and says where they end.

    Parameters
    ----------
    source : LanguageModel or PretrainResult, optional
        A model of the world's language; without one the world answers alone.
    tokenizer : Tokenizer, optional
        Of the model; a PretrainResult has its own.
    beginnings : str or sequence of str
        The first is shown first; all of them, and their beginnings, are stored.
    world : World, optional
        By default ``World()``, the French one.
    n_stored : int
        Beginnings kept for pages without a kernel, 1 to 400.

    Returns
    -------
    NextWordExplorer
        Its `rows` holds the words shown and their chances.

    Raises
    ------
    TypeError
        If a model comes without a tokenizer.
    ValueError
        If a beginning is none of the world, or `n_stored` is out of range.

    Examples
    --------
    >>> explorer = next_word("no model", n_stored=1)
    Traceback (most recent call last):
        ...
    TypeError: a model needs the tokenizer it was trained with, got NoneType
    >>> [(word, round(true, 2)) for word, _, true in next_word(n_stored=1).rows()]
    [('amis', 0.5), ('lecteurs', 0.5)]
    """
    texts = [beginnings] if isinstance(beginnings, str) else list(beginnings)
    if not texts:
        raise ValueError("beginnings must hold at least one text, got none")
    if not 1 <= n_stored <= 400:
        raise ValueError(f"n_stored must lie in 1..400, got {n_stored}")
    model, pieces = (None, None) if source is None else model_and_tokenizer(source, tokenizer)
    language = world or World()
    asked = Continuations(language, model, pieces)
    return NextWordExplorer(asked, [language.split(text) for text in texts], n_stored)
