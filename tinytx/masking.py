"""What a masked language model reads: masked tokens, and pairs of sentences."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
import torch
from torch import Tensor

from tinytx.fast import IGNORE_ID
from tinytx.settings import require
from tinytx.tokenizer import SPACE_MARK, Tokenizer

MASKED, REPLACED = 0.8, 0.1  # of the chosen tokens; the rest stays as it is


@dataclass(frozen=True, kw_only=True)
class Masking:
    """How a masked language model is trained, or, with a `causal_share` above 0, a hybrid causal one."""

    p: float = 0.15  # share of the tokens that are chosen
    whole_words: bool = False  # choose words, with all their tokens, in place of single tokens
    next_sentence: bool = False  # show pairs of sentences, and ask whether the second follows the first
    transform: bool = True  # whether the model has the transform of `MaskedHead`
    causal_share: float = 0.0  # share of batches that predict the next token, see `HybridObjective`

    def __post_init__(self) -> None:
        p, share = self.p, self.causal_share
        require(isinstance(p, Real) and 0 < p < 1, "p must lie between 0 and 1", repr(p))
        fits = isinstance(share, Real) and 0 <= share < 1
        require(fits, "causal_share must be from 0 to below 1", repr(share))
        single = not (self.causal_share and (self.whole_words or self.next_sentence))
        got = f"whole_words={self.whole_words}, next_sentence={self.next_sentence}"
        require(single, "a hybrid model masks single tokens of single texts", got)


def mask_tokens(
    token_ids: Tensor,
    *,
    mask_id: int,
    special_ids: Sequence[int],
    vocab_size: int,
    p: float = 0.15,
    words: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Choose tokens to predict: mask 80 % of them, replace 10 % by a random token, leave 10 %.

    Parameters
    ----------
    token_ids : Tensor of any shape, integer
    special_ids : sequence of int
        Ids that are never chosen and never put in, apart from `mask_id`.
    p : float
        Probability of each token to be chosen.
    words : Tensor of the shape of `token_ids`, optional
        The number, from 0 up, of the word that each token belongs to: whole words are then chosen.

    Returns
    -------
    inputs, labels : Tensor of the shape of `token_ids`
        A label is the original id where one was chosen, and -100 elsewhere.

    References
    ----------
    Devlin et al., "BERT", arXiv 1810.04805, section 3.1 and appendix A.1; whole words as in its authors'
    later code.

    Examples
    --------
    >>> rule = dict(mask_id=4, special_ids=[0], vocab_size=9)
    >>> inputs, labels = mask_tokens(torch.tensor([[7, 8, 0]]), **rule, p=1.0)
    >>> labels
    tensor([[   7,    8, -100]])
    """
    require(isinstance(p, Real) and 0 <= p <= 1, "p must lie in [0, 1]", repr(p))
    token_ids = token_ids.long()  # no narrow type can hold the label -100
    special = torch.tensor([*special_ids, mask_id])
    vocabulary = torch.arange(vocab_size)
    ordinary = vocabulary[~torch.isin(vocabulary, special)]
    require(len(ordinary), "vocab_size must leave ids that are not special", f"vocab_size={vocab_size}")
    if words is None:
        draws = torch.rand(token_ids.shape, generator=generator)
    else:
        n_words = int(words.max()) + 1 if words.numel() else 0
        draws = torch.rand(n_words, generator=generator)[words]
    chosen = (draws < p) & ~torch.isin(token_ids, special)
    fate = torch.rand(token_ids.shape, generator=generator)
    others = ordinary[torch.randint(len(ordinary), token_ids.shape, generator=generator)]
    inputs = torch.where(chosen & (fate < MASKED), mask_id, token_ids)
    replaced = chosen & (fate >= MASKED) & (fate < MASKED + REPLACED)
    inputs = torch.where(replaced, others, inputs)
    return inputs, torch.where(chosen, token_ids, IGNORE_ID)


_SENTENCE_END = re.compile(r"(?<=[.!?…]) ")


@dataclass(frozen=True)
class Passage:
    """Some sentences of one text, as ids.

    It may be cut in two before each sentence but the first; if it has only one, before the word next to its
    middle.
    """

    text: int
    ids: tuple[int, ...]
    cuts: tuple[int, ...]


@dataclass(frozen=True)
class PairsOfSentences:
    """N pairs of passages' parts; a label is 0 where the second follows the first, 1 where it does not."""

    firsts: list[tuple[int, ...]]
    seconds: list[tuple[int, ...]]
    labels: list[int]


def make_passages(tokenizer: Tokenizer, texts: Sequence[str], room: int) -> list[Passage]:
    """Join as many sentences of each text as fit into `room` ids, at least 2.

    A longer sentence is cut into windows; what cannot be cut in two is left out.
    """
    require(room >= 2, "room for two sentences must be at least 2 ids", room)
    sentences = [_SENTENCE_END.split(text) for text in texts]
    encoded = iter(tokenizer.encode_batch(list(itertools.chain(*sentences))))
    starts = word_starts(tokenizer)
    passages: list[Passage] = []
    for number, of_text in enumerate(sentences):
        ids: list[int] = []
        cuts: list[int] = []
        for sentence in itertools.islice(encoded, len(of_text)):
            for window in (sentence[at : at + room] for at in range(0, len(sentence), room)):
                if len(ids) + len(window) > room:
                    passages.append(_passage(number, ids, cuts, starts))
                    ids, cuts = [], []
                if ids:
                    cuts.append(len(ids))
                ids.extend(window)
        passages.append(_passage(number, ids, cuts, starts))
    return [passage for passage in passages if passage.cuts]


def _passage(text: int, ids: list[int], cuts: list[int], starts: np.ndarray) -> Passage:
    """A passage; if it has no cuts, it gets one near its middle."""
    if not cuts:
        inner = (at for at in range(1, len(ids)) if starts[ids[at]])
        cuts = sorted(inner, key=lambda at: abs(at - len(ids) / 2))[:1]
    return Passage(text, tuple(ids), tuple(cuts))


def draw_pairs(passages: Sequence[Passage], room: int, rng: np.random.Generator) -> PairsOfSentences:
    """Cut each passage, of two texts at least, in two; exchange half of the second parts across texts.

    Both parts together have at most `room` ids: a second part that is too long loses its end.
    """
    texts, n = np.array([passage.text for passage in passages]), len(passages)
    n_texts = len(np.unique(texts))
    require(n_texts >= 2, "pairs of sentences need two texts that can be cut at least", n_texts)
    draws = rng.random(n).tolist()
    cuts = [passage.cuts[int(u * len(passage.cuts))] for passage, u in zip(passages, draws, strict=True)]
    exchanged = rng.random(n) < 0.5
    partners = np.where(exchanged, rng.integers(n, size=n), np.arange(n))
    while (same := exchanged & (texts[partners] == texts)).any():
        partners[same] = rng.integers(n, size=int(same.sum()))
    firsts = [passage.ids[:cut] for passage, cut in zip(passages, cuts, strict=True)]
    seconds = [
        passages[partner].ids[cuts[partner] :][: room - len(first)]
        for first, partner in zip(firsts, partners.tolist(), strict=True)
    ]
    return PairsOfSentences(firsts, seconds, exchanged.astype(int).tolist())


def word_starts(tokenizer: Tokenizer) -> np.ndarray:
    """Which ids begin a word; shape (V,), bool."""
    return np.array([tokenizer.piece(i).startswith(SPACE_MARK) for i in range(tokenizer.vocab_size)])
