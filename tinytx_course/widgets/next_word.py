"""The explorer of the next word: what a model and the world expect after a beginning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import traitlets

from tinytx.text.tokenizer import Tokenizer
from tinytx.world.reviews import NO_SPACE_BEFORE, write_out
from tinytx.world.world import World
from tinytx_course.widgets.base import Explorer, between
from tinytx_course.widgets.continuations import N_ROWS, Continuations, model_and_tokenizer


class NextWordExplorer(Explorer):
    """See `next_word`.

    The page writes `asked`, a request with its number; Python answers in `words`, `answer` and `problem`,
    then in `pong`, from which the page knows that there is a kernel, as it does after `ping`.
    """

    kind = "next_word"
    title = traitlets.Unicode("The next word").tag(sync=True)

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

    def summary(self) -> str:
        """Return what is shown, and the beginning."""
        text = write_out(self.words, self._continuations.world.language)
        who = "a trained model and the world itself" if self.has_model else "the world"
        return (
            f"The words that may come next, with the probability given by {who}. "
            f"The beginning: “{text}”, {self.answer['row'][0]} possible next words."
        )


def next_word(
    source: Any = None,
    tokenizer: Tokenizer | None = None,
    beginnings: str | Sequence[str] = "Bonjour les",
    *,
    world: World | None = None,
    n_stored: int = 150,
) -> NextWordExplorer:
    """Write a beginning and see what a model and the world expect next; press a word to append it.

    In a running notebook Python answers for any beginning. A page without a kernel holds the answers for the
    likeliest continuations, and says where they end.

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
        Beginnings stored for pages without a kernel, 1 to 400.

    Returns
    -------
    NextWordExplorer
        Its `answer` holds the row of the present beginning, as in `Continuations.row`.

    Raises
    ------
    TypeError
        If a model comes without a tokenizer.
    ValueError
        If no review begins like a beginning, or `n_stored` is out of range.

    Examples
    --------
    >>> next_word(n_stored=1).answer["row"]
    [2, 'amis', 0, 50000, 'lecteurs', 0, 50000]
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
