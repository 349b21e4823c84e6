"""The tokenizer explorer: a text cut into characters, into subwords merge by merge, and into words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import traitlets

from tinytx.bpe import Merge, learn_merges, segment
from tinytx.tokenizer import SPACE_MARK, SPECIAL_PIECES
from tinytx_course.widgets.base import Explorer, bounded
from tinyworld.world import World

_LONGEST = 160  # characters of a text
_N_LEARNED, _N_MADE = 400, 60  # merges
_SAMPLES = (
    "La fin est inoubliable .",
    "Le romancier est incroyablement drôle .",
    "Un livre à 20 € : wow !",
    "The end is unforgettable .",
)


class TokenizerExplorer(Explorer):
    """See `tokenizer`.

    Ids: the special tokens of the course come first, then `characters`, then what `merges` make, in their
    order; among words, the special tokens, then `words`.
    """

    kind = "tokenizer"
    title = traitlets.Unicode("Tokenizer explorer").tag(sync=True)

    text = traitlets.Unicode().tag(sync=True)
    n_merges = bounded(0, 0, lambda its: len(its.merges))
    samples = traitlets.List(traitlets.Unicode()).tag(sync=True)
    characters = traitlets.Unicode().tag(sync=True)
    merges = traitlets.List(traitlets.List()).tag(sync=True)  # [left, right, count]
    words = traitlets.List(traitlets.Unicode()).tag(sync=True)
    n_special = traitlets.Int(len(SPECIAL_PIECES)).tag(sync=True)
    unk_id = traitlets.Int(SPECIAL_PIECES.index("<unk>")).tag(sync=True)
    longest = traitlets.Int(_LONGEST).tag(sync=True)

    @traitlets.validate("text")
    def _check_text(self, proposal: Any) -> str:
        if len(proposal.value) > _LONGEST:
            raise ValueError(f"text must have at most {_LONGEST} characters, got {len(proposal.value)}")
        return proposal.value

    def summary(self) -> str:
        """Return what is shown, and the sizes of the vocabularies."""
        return (
            "A text as characters, as subwords of byte-pair encoding after any number of merges, and as "
            f"words, with ids. “{self.text}”, {self.n_merges} of {len(self.merges)} merges; vocabularies, "
            f"{self.n_special} special tokens in each: {len(self.characters) + self.n_special} characters, "
            f"{len(self.words) + self.n_special} words."
        )


def tokenizer(
    texts: Sequence[str] | None = None,
    samples: str | Sequence[str] = _SAMPLES,
) -> TokenizerExplorer:
    """Cut a text with three tokenizers: characters, byte-pair encoding merge by merge, and words.

    All learn from the same corpus: of merges the first 400, or fewer if every word becomes one token before.
    At first 60 are made, or a few more, so many that the last changes the sample. The page cuts what the
    reader types as `tinytx.bpe.segment` does.

    Parameters
    ----------
    texts : sequence of str, optional
        The corpus, its words separated by spaces; by default 300 reviews of the French world.
    samples : str or sequence of str
        Texts to choose from, at most 160 characters each; the first is shown first.

    Raises
    ------
    ValueError
        If there is no sample, or one is too long.

    Examples
    --------
    >>> explorer = tokenizer(["elle belle", "elle"], "elle")
    >>> explorer.merges[:2], explorer.words
    ([['e', 'l', 3], ['l', 'e', 3]], ['elle', 'belle'])
    """
    known = [samples] if isinstance(samples, str) else list(samples)
    if not known:
        raise ValueError("samples must hold at least one text, got none")
    if texts is None:
        texts = [" ".join(review.words) for review in World().reviews(300, seed=0)]
    merges = learn_merges(texts, _N_LEARNED)
    counts = Counter(word for text in texts for word in text.split(" ") if word)
    return TokenizerExplorer(
        characters="".join(sorted({SPACE_MARK, *"".join(counts)})),
        merges=[[merge.left, merge.right, merge.count] for merge in merges],
        words=[word for word, _ in counts.most_common()],
        samples=known,
        text=known[0],
        n_merges=_first_shown(known[0], merges),
    )


def _first_shown(text: str, merges: Sequence[Merge]) -> int:
    """The first number of merges from `_N_MADE` on of which the last changes how a text is cut."""
    n_made = min(_N_MADE, len(merges))
    counts = [len(segment(text, merges[:n])) for n in range(n_made - 1, len(merges) + 1)] if n_made else []
    return next((n for n, (a, b) in enumerate(pairwise(counts), n_made) if b < a), n_made)
