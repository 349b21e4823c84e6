"""What a model is trained to do: next token, class, hidden tokens, translation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.model.encoder_decoder import Translator
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.output_loss import output_loss as chunked_loss
from tinytx.model.transformer import Classifier, LanguageModel
from tinytx.text.batching import batches_by_length, batches_of_pairs, chunks, pad_batch
from tinytx.text.tokenizer import SPACE_MARK, Tokenizer

IGNORED = -100  # a label where nothing is predicted; the losses of torch skip it
HIDDEN, EXCHANGED = 0.8, 0.1  # of the drawn tokens; the rest stays as it is


@dataclass(frozen=True, kw_only=True)
class Masking:
    """How a masked language model is trained.

    Parameters
    ----------
    p : float
        Share of the tokens that are drawn.
    whole_words : bool
        True draws words, with all their pieces, in place of single pieces.
    next_sentence : bool
        True shows pairs of sentences and asks whether the second follows the first.
    transform : bool
        Whether the model has the transform of `MaskedHead`.
    """

    p: float = 0.15
    whole_words: bool = False
    next_sentence: bool = False
    transform: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.p < 1:
            raise ValueError(f"p must lie between 0 and 1, got {self.p}")

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return asdict(self)


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
    """Draw tokens to be predicted; of these hide 80 %, exchange 10 % and leave 10 %.

    Parameters
    ----------
    token_ids : Tensor of any shape, integer
    mask_id : int
        What stands in a hidden place.
    special_ids : sequence of int
        Ids that are never drawn and never put in.
    vocab_size : int
        V; an exchanged token becomes any id below V but the special ones and `mask_id`.
    p : float
        Chance of each token to be drawn.
    words : Tensor of the shape of `token_ids`, optional
        A number from 0 up for the word that each token belongs to. Whole words are then drawn; what becomes
        of their pieces is drawn one by one.
    generator : torch.Generator, optional
        torch's own where not given.

    Returns
    -------
    inputs : Tensor of the shape of `token_ids`
        The input itself is left alone.
    labels : Tensor of the same shape
        The original id where one was drawn, and -100 elsewhere.

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
    known = set(special_ids) | {mask_id}
    ordinary = torch.tensor([one for one in range(vocab_size) if one not in known])
    if not len(ordinary):
        raise ValueError(f"vocab_size must leave ids that are not special, got vocab_size={vocab_size}")
    may = ~torch.isin(token_ids, torch.tensor(sorted(known)))
    if words is None:
        drawn = may & (torch.rand(token_ids.shape, generator=generator) < p)
    else:
        n_words = int(words.max()) + 1
        drawn = may & (torch.rand(n_words, generator=generator) < p)[words]
    fate = torch.rand(token_ids.shape, generator=generator)
    others = ordinary[torch.randint(len(ordinary), token_ids.shape, generator=generator)]
    inputs = torch.where(drawn & (fate < HIDDEN), mask_id, token_ids)
    exchanged = drawn & (fate >= HIDDEN) & (fate < HIDDEN + EXCHANGED)
    inputs = torch.where(exchanged, others.to(token_ids.dtype), inputs)
    return inputs, torch.where(drawn, token_ids, IGNORED)


_SENTENCE_END = re.compile(r"(?<=[.!?…]) ")


@dataclass(frozen=True)
class Passage:
    """Some sentences of one text, as ids.

    Attributes
    ----------
    text : int
        Number of the text.
    ids : tuple of int
    cuts : tuple of int
        Where it may be cut in two: before its second sentence, its third, and so on; a passage of one
        sentence may be cut before the word next to its middle.
    """

    text: int
    ids: tuple[int, ...]
    cuts: tuple[int, ...]


@dataclass(frozen=True)
class PairsOfSentences:
    """Two pieces of text each, and whether the second was taken from elsewhere.

    Attributes
    ----------
    firsts, seconds : list of N tuples of int
    labels : list of N int
        0 where the second follows the first, 1 where it comes from another text.
    """

    firsts: list[tuple[int, ...]]
    seconds: list[tuple[int, ...]]
    labels: list[int]


def split_sentences(text: str) -> list[str]:
    """Cut a text after marks that end a sentence and are followed by a space; joined by spaces it is whole.

    Examples
    --------
    >>> split_sentences("Un beau livre . Lisez-le !")
    ['Un beau livre .', 'Lisez-le !']
    """
    return _SENTENCE_END.split(text)


def make_passages(tokenizer: Tokenizer, texts: Sequence[str], room: int) -> list[Passage]:
    """Put as many sentences of each text together as fit into so many ids; what cannot be cut is left out.

    Parameters
    ----------
    tokenizer : Tokenizer
    texts : sequence of str
    room : int
        Most ids of a passage, at least 2. A longer sentence is cut into windows.
    """
    if room < 2:
        raise ValueError(f"room for two sentences must be at least 2 ids, got {room}")
    sentences = [split_sentences(text) for text in texts]
    encoded = iter(tokenizer.encode_batch([one for group in sentences for one in group]))
    begins = word_starts(tokenizer)
    found = []
    for number, group in enumerate(sentences):
        ids: list[int] = []
        cuts: list[int] = []
        for sentence in (next(encoded) for _ in group):
            for window in (sentence[at : at + room] for at in range(0, len(sentence), room)):
                if len(ids) + len(window) > room:
                    found.append(_passage(number, ids, cuts, begins))
                    ids, cuts = [], []
                if ids:
                    cuts.append(len(ids))
                ids.extend(window)
        found.append(_passage(number, ids, cuts, begins))
    return [passage for passage in found if passage.cuts]


def _passage(number: int, ids: list[int], cuts: list[int], begins: np.ndarray) -> Passage:
    if not cuts:
        middle = len(ids) / 2
        places = [place for place in range(1, len(ids)) if begins[ids[place]]]
        cuts = [min(places, key=lambda place: abs(place - middle))] if places else []
    return Passage(number, tuple(ids), tuple(cuts))


def draw_pairs(passages: Sequence[Passage], room: int, rng: np.random.Generator) -> PairsOfSentences:
    """Cut each passage in two, and exchange the second part for that of another text half of the time.

    Parameters
    ----------
    passages : sequence of Passage
        From two texts at least.
    room : int
        Most ids of both parts together; of a second part that is too long the beginning is kept.
    rng : numpy.random.Generator

    Returns
    -------
    PairsOfSentences
        One pair a passage, in their order.
    """
    texts = np.array([passage.text for passage in passages])
    if len(set(texts.tolist())) < 2:
        raise ValueError(
            f"pairs of sentences need two texts that can be cut at least, got {len(set(texts.tolist()))}"
        )
    n = len(passages)
    draws = rng.random(n).tolist()
    cuts = [one.cuts[int(draw * len(one.cuts))] for one, draw in zip(passages, draws, strict=True)]
    labels = (rng.random(n) < 0.5).astype(int)
    partners = np.where(labels == 1, rng.integers(n, size=n), np.arange(n))
    while (same := (labels == 1) & (texts[partners] == texts)).any():
        partners[same] = rng.integers(n, size=int(same.sum()))
    firsts = [passage.ids[:cut] for passage, cut in zip(passages, cuts, strict=True)]
    seconds = [
        passages[j].ids[cuts[j] :][: room - len(first)]
        for first, j in zip(firsts, partners.tolist(), strict=True)
    ]
    return PairsOfSentences(firsts, seconds, labels.tolist())


def word_starts(tokenizer: Tokenizer) -> np.ndarray:
    """Which ids begin a word; shape (V,), bool."""
    return np.array([tokenizer.piece(one).startswith(SPACE_MARK) for one in range(tokenizer.vocab_size)])


class Objective(Protocol):
    """What the training loop asks of an objective: an order of batches, and the loss on one of them."""

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Index lists of one pass over the data, a pure function of the arguments."""
        ...

    def loss(self, model: Any, indices: list[int], batch: list[int] | None = None) -> Tensor:
        """Mean loss of some rows, in nats; or, given the ``batch`` they are of, what they add to its mean."""
        ...


def language_model_loss(logits: Tensor, targets: Tensor, pad_id: int) -> Tensor:
    """Mean surprise over real tokens: ``-log P(target)`` in nats.

    Parameters
    ----------
    logits : Tensor of shape (..., T, V)
    targets : Tensor of shape (..., T)
        ``pad_id`` where nothing is to be predicted.
    pad_id : int

    Returns
    -------
    Tensor of shape ()
        Computed in float32 whatever the precision of the logits; NaN when every target is padding.

    Examples
    --------
    >>> logits = torch.zeros(1, 3, 8)
    >>> round(language_model_loss(logits, torch.tensor([[5, 2, 0]]), pad_id=0).item(), 4)  # ln 8
    2.0794
    """
    return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten(), ignore_index=pad_id)


def classification_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean surprise at the right class, in nats, from logits (B, C) and labels (B,)."""
    return F.cross_entropy(logits.float(), labels)


def output_loss(head: nn.Linear, hidden: Tensor, targets: Tensor, pad_id: int) -> Tensor:
    """`language_model_loss` of an output layer's predictions, from the states before it.

    Only positions with a target are predicted, and all logits never exist at once.

    Parameters
    ----------
    head : torch.nn.Linear
        From (B, T, D) to (B, T, V).
    hidden : Tensor of shape (B, T, D)
    targets : Tensor of shape (B, T)
        Best on the CPU, where looking for padding keeps no GPU waiting.
    pad_id : int
    """
    return chunked_loss(hidden, head.weight, targets, bias=head.bias, ignore_id=pad_id)


def causal_batch(
    sequences: Sequence[Sequence[int]], *, bos_id: int, eos_id: int, pad_id: int
) -> tuple[Tensor, Tensor]:
    """Inputs and targets of next-token prediction: what is read, and what should come next.

    Parameters
    ----------
    sequences : sequence of sequences of int
        Ids of each text, without special ids.
    bos_id, eos_id, pad_id : int

    Returns
    -------
    inputs : Tensor of shape (B, T)
        ``[bos, x...]``, padded on the right to the longest of the batch.
    targets : Tensor of shape (B, T)
        ``[x..., eos]``, padded likewise: the token after each input.

    Examples
    --------
    >>> inputs, targets = causal_batch([[7, 8], [9]], bos_id=2, eos_id=3, pad_id=0)
    >>> inputs.tolist(), targets.tolist()
    ([[2, 7, 8], [2, 9, 0]], [[7, 8, 3], [9, 3, 0]])
    """
    inputs = pad_batch([[bos_id, *ids] for ids in sequences], pad_id)
    targets = pad_batch([[*ids, eos_id] for ids in sequences], pad_id)
    return inputs, targets


class PackedSequences:
    """Sequences laid end to end in one tensor, from which padded batches are cut without a Python loop.

    Parameters
    ----------
    sequences : iterable of sequences of int
    pad_id : int

    Attributes
    ----------
    flat : Tensor of shape (total length,)
    lengths : list of int
    """

    def __init__(self, sequences: Iterable[Sequence[int]], pad_id: int) -> None:
        arrays = [np.asarray(ids, dtype=np.int32) for ids in sequences]
        flat = np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int32)
        self._set(torch.from_numpy(flat), [len(array) for array in arrays], pad_id)

    def _set(self, flat: Tensor, lengths: list[int], pad_id: int) -> None:
        self.flat, self.lengths, self.pad_id = flat, lengths, pad_id
        self._lengths = torch.tensor(lengths, dtype=torch.long)
        self._starts = self._lengths.cumsum(0) - self._lengths

    @classmethod
    def of_flat(cls, flat: Tensor, lengths: list[int], pad_id: int) -> PackedSequences:
        """Sequences that lie end to end already, of these lengths."""
        packed = cls.__new__(cls)
        packed._set(flat, lengths, pad_id)
        return packed

    def __len__(self) -> int:
        return len(self.lengths)

    def rows(self, indices: Sequence[int]) -> Tensor:
        """The sequences at ``indices`` as a LongTensor (B, T), padded on the right to their longest."""
        chosen = torch.as_tensor(indices)
        lengths = self._lengths[chosen]
        offsets = torch.arange(int(lengths.max()))
        real = offsets < lengths[:, None]  # (B, T)
        places = (self._starts[chosen][:, None] + offsets).clamp_(max=max(len(self.flat) - 1, 0))
        return torch.where(real, self.flat[places], self.pad_id).long()


def _batches(lengths: list[int], tokens_per_batch: int, *, seed: int, epoch: int) -> list[list[int]]:
    # A row longer than the budget gets a batch to itself.
    return batches_by_length(lengths, max(tokens_per_batch, max(lengths)), seed=seed, epoch=epoch)


class CausalObjective:
    """Predict each token from those before it, over all text: long texts are read in chunks.

    Parameters
    ----------
    sequences : sequence of sequences of int
        Ids of each text, without special ids.
    bos_id, eos_id, pad_id : int
    max_len : int
        Longest input.

    Attributes
    ----------
    n_tokens : int
        Number of predictions in one pass: all tokens and one ``eos`` a text.
    """

    def __init__(
        self, sequences: Sequence[Sequence[int]], *, bos_id: int, eos_id: int, pad_id: int, max_len: int
    ) -> None:
        pieces: list[Sequence[int]] = []
        self.text_of_row: list[int] = []
        for number, ids in enumerate(sequences):
            for piece in chunks([bos_id, *ids, eos_id], max_len):
                pieces.append(piece)
                self.text_of_row.append(number)
        if not pieces:
            raise ValueError("a language model needs at least one text to learn from, got none")
        self._rows = PackedSequences(pieces, pad_id)
        self._pad_id = pad_id
        self.n_texts = len(sequences)
        self._input_lengths = [length - 1 for length in self._rows.lengths]
        self.n_tokens = sum(self._input_lengths)

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Rows of similar length together, in shuffled order."""
        return _batches(self._input_lengths, tokens_per_batch, seed=seed, epoch=epoch)

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Inputs and targets (B, T) of the rows at ``indices``."""
        rows = self._rows.rows(indices)  # (B, T + 1)
        return rows[:, :-1], rows[:, 1:]

    def n_predictions(self, indices: Sequence[int]) -> int:
        """Real targets of the rows at ``indices``."""
        return sum(self._input_lengths[i] for i in indices)

    def loss(self, model: LanguageModel, indices: list[int], batch: list[int] | None = None) -> Tensor:
        """Mean nats a token. Padding stands on the right, where a causal model never looks: no mask."""
        inputs, targets = self.batch(indices)
        device = next(model.parameters()).device
        loss = model.loss(inputs.to(device), targets, ignore_id=self._pad_id)
        return loss if batch is None else loss * (self.n_predictions(indices) / self.n_predictions(batch))


class ClassificationObjective:
    """Name the class of each text.

    Parameters
    ----------
    sequences : sequence of sequences of int
        Ids of each text as the model reads them, no longer than it can read.
    labels : sequence of int
    pad_id : int

    Attributes
    ----------
    labels : LongTensor of shape (N,)
    """

    def __init__(self, sequences: Sequence[Sequence[int]], labels: Sequence[int], *, pad_id: int) -> None:
        if len(sequences) != len(labels) or not sequences:
            raise ValueError(
                f"texts and labels must be as many, at least one, got {len(sequences)} and {len(labels)}"
            )
        self._rows = PackedSequences(sequences, pad_id)
        self.labels = torch.tensor(labels, dtype=torch.long)
        self._pad_id = pad_id

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Texts of similar length together, in shuffled order."""
        return _batches(self._rows.lengths, tokens_per_batch, seed=seed, epoch=epoch)

    def logits(self, model: Classifier, indices: Sequence[int]) -> Tensor:
        """Scores (B, C) of the texts at ``indices``."""
        token_ids = self._rows.rows(indices).to(next(model.parameters()).device)
        return model(token_ids, token_ids != self._pad_id)

    def loss(self, model: Classifier, indices: list[int], batch: list[int] | None = None) -> Tensor:
        """Mean nats a text."""
        logits = self.logits(model, indices)
        loss = classification_loss(logits, self.labels[indices].to(logits.device))
        return loss if batch is None else loss * (len(indices) / len(batch))


_PAIRS, _MASKS = 1, 2  # what the random numbers of an epoch are for


class MaskedObjective:
    """Predict hidden tokens from both sides, over all text: long texts are read in windows.

    A row is ``[cls] x [sep]``; with `Masking.next_sentence` it is ``[cls] x [sep] y [sep]``, where y and its
    end belong to the second segment. What is hidden, and which y stands beside x, is drawn anew for each
    epoch, as a function of seed and epoch and of nothing else.

    Parameters
    ----------
    tokenizer : Tokenizer
    texts : sequence of str
    max_len : int
        Longest row.
    masking : Masking

    Attributes
    ----------
    n_tokens : int
        Ids that are read in the epoch at hand, marks included.
    """

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[str], *, max_len: int, masking: Masking) -> None:
        self._tokenizer, self._masking = tokenizer, masking
        self._begins = torch.from_numpy(word_starts(tokenizer))
        special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id)
        self._special = (*special, tokenizer.cls_id, tokenizer.sep_id)
        self._room = max_len - 3 if masking.next_sentence else max_len - 2
        if self._room < 1:
            raise ValueError(f"max_len must leave room for text between the marks, got {max_len}")
        self._passages = make_passages(tokenizer, texts, self._room) if masking.next_sentence else []
        rows = [] if masking.next_sentence else masked_rows(tokenizer, texts, max_len)[0]
        if not self._passages and not rows:
            raise ValueError("a masked language model needs at least one text to learn from, got none")
        self._rows = rows
        self._epoch: tuple[int, int] | None = None
        self._prepare(seed=0, epoch=0)

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Rows of similar length together, in shuffled order; `batch` and `loss` then speak of this epoch."""
        self._prepare(seed=seed, epoch=epoch)
        lengths = self._inputs.lengths
        return batches_by_length(lengths, max(tokens_per_batch, max(lengths)), seed=seed, epoch=epoch)

    def _prepare(self, *, seed: int, epoch: int) -> None:
        """Draw what is hidden in an epoch, and its pairs of sentences."""
        if self._epoch == (seed, epoch):
            return
        pad_id = self._tokenizer.pad_id
        rows, self._next_labels = self._rows, None
        if self._masking.next_sentence:
            pairs = draw_pairs(self._passages, self._room, np.random.default_rng([seed, epoch, _PAIRS]))
            rows = pair_rows(self._tokenizer, pairs)
            segments = ([0] * (len(x) + 2) + [1] * (len(y) + 1) for x, y in _both(pairs))
            self._segments = PackedSequences(segments, 0)
            self._next_labels = torch.tensor(pairs.labels)
        original = PackedSequences(rows, pad_id)
        inputs, labels = self._masked(original.flat, seed, epoch)
        self._inputs = PackedSequences.of_flat(inputs, original.lengths, pad_id)
        self._labels = PackedSequences.of_flat(labels, original.lengths, IGNORED)
        self.n_tokens = len(inputs)
        self._epoch = (seed, epoch)

    def _masked(self, ids: Tensor, seed: int, epoch: int) -> tuple[Tensor, Tensor]:
        state = np.random.SeedSequence([seed, epoch, _MASKS]).generate_state(1, np.uint64)
        words = None
        if self._masking.whole_words:
            marks = torch.isin(ids, torch.tensor(self._special, dtype=ids.dtype))
            words = (self._begins[ids] | marks).cumsum(0)
        return mask_tokens(
            ids,
            mask_id=self._tokenizer.mask_id,
            special_ids=self._special,
            vocab_size=self._tokenizer.vocab_size,
            p=self._masking.p,
            words=words,
            generator=torch.Generator().manual_seed(int(state[0]) >> 1),
        )

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Inputs and labels (B, T), segments (B, T) and answers (B,) or None, of the rows at ``indices``."""
        inputs, labels = self._inputs.rows(indices), self._labels.rows(indices)
        if self._next_labels is None:
            return inputs, labels, None, None
        return inputs, labels, self._segments.rows(indices), self._next_labels[torch.as_tensor(indices)]

    def loss(self, model: MaskedLanguageModel, indices: list[int], batch: list[int] | None = None) -> Tensor:
        """Mean nats a drawn token, and where sentences are paired, the mean nats of a pair on top."""
        device = next(model.parameters()).device
        inputs, labels, segments, follows = self.batch(indices)
        inputs, labels = inputs.to(device), labels.to(device)
        if segments is not None:
            segments = segments.to(device) if model.config.n_segments else None
        real = inputs != self._tokenizer.pad_id
        # Without padding no mask is needed, which is faster.
        mask = None if bool(real.all()) else real
        loss, answered = model.losses(inputs, labels, mask, segments, follows, ignore_id=IGNORED)
        if batch is not None:
            drawn = self._labels.rows(batch) != IGNORED
            loss = loss * (int((labels != IGNORED).sum()) / max(int(drawn.sum()), 1))
        if answered is not None:
            loss = loss + (answered if batch is None else answered * (len(indices) / len(batch)))
        return loss


def masked_rows(
    tokenizer: Tokenizer, texts: Sequence[str], max_len: int
) -> tuple[list[list[int]], list[int]]:
    """Rows ``[cls] x [sep]`` of some texts, and the number of the text of each; empty texts have none."""
    room = max_len - 2
    rows, text_of_row = [], []
    for number, ids in enumerate(tokenizer.encode_batch(texts)):
        for at in range(0, len(ids), room):
            rows.append([tokenizer.cls_id, *ids[at : at + room], tokenizer.sep_id])
            text_of_row.append(number)
    return rows, text_of_row


def pair_rows(tokenizer: Tokenizer, pairs: PairsOfSentences) -> list[list[int]]:
    """Rows ``[cls] x [sep] y [sep]`` of some pairs."""
    cls_id, sep_id = tokenizer.cls_id, tokenizer.sep_id
    return [[cls_id, *x, sep_id, *y, sep_id] for x, y in _both(pairs)]


def _both(pairs: PairsOfSentences) -> zip:
    return zip(pairs.firsts, pairs.seconds, strict=True)


class TranslationObjective:
    """Predict every target piece and its end mark, over pairs.

    The encoder reads ``[x..., eos]``; the decoder reads ``[bos, y...]`` and predicts ``[y..., eos]``. Only
    real target positions reach the output layer.

    Parameters
    ----------
    sources, targets : sequence of N sequences of int
        Ids of each side, without special ids.
    bos_id, eos_id, pad_id : int
    max_len : int
        Most ids a side, marks included; longer pairs are left out and counted.
    label_smoothing : float
        See `tinytx.model.output_loss.output_loss`.

    Attributes
    ----------
    n_tokens : int
        Number of predictions in one pass.
    n_left_out : int
        Pairs that were too long.
    """

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        *,
        bos_id: int,
        eos_id: int,
        pad_id: int,
        max_len: int,
        label_smoothing: float = 0.0,
    ) -> None:
        if len(sources) != len(targets):
            raise ValueError(f"sources and targets must be as many, got {len(sources)} and {len(targets)}")
        fits = [
            max(len(source), len(target)) < max_len for source, target in zip(sources, targets, strict=True)
        ]
        self.n_left_out = len(fits) - sum(fits)
        if not any(fits):
            raise ValueError(
                f"a translator needs a pair of at most {max_len - 1} pieces a side to learn from, "
                f"got {len(fits)} pairs, none so short"
            )
        kept = [i for i, one in enumerate(fits) if one]
        self._sources = PackedSequences(([*sources[i], eos_id] for i in kept), pad_id)
        self._targets = PackedSequences(([bos_id, *targets[i], eos_id] for i in kept), pad_id)
        self._pad_id = pad_id
        self.label_smoothing = label_smoothing
        self._tgt_lengths = [length - 1 for length in self._targets.lengths]
        self.n_tokens = sum(self._tgt_lengths)

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Pairs of similar lengths together, in shuffled order; both sides count."""
        return batches_of_pairs(
            self._sources.lengths, self._tgt_lengths, tokens_per_batch, seed=seed, epoch=epoch
        )

    def n_predictions(self, indices: Sequence[int]) -> int:
        """Real target positions of the pairs at ``indices``."""
        return sum(self._tgt_lengths[i] for i in indices)

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Source (B, S), decoder input and targets (B, T) of the pairs at ``indices``, padded."""
        rows = self._targets.rows(indices)  # (B, T + 1)
        targets = rows[:, 1:]
        # An end mark that is read, but after which nothing is predicted, is padding like any other.
        return self._sources.rows(indices), rows[:, :-1], targets

    def loss(self, model: Translator, indices: list[int], batch: list[int] | None = None) -> Tensor:
        """Mean nats a target token, smoothed."""
        loss = self.nats(model, indices, self.label_smoothing)
        return loss if batch is None else loss * (self.n_predictions(indices) / self.n_predictions(batch))

    def nats(self, model: Translator, indices: list[int], label_smoothing: float = 0.0) -> Tensor:
        """Mean nats a target token with a smoothing of its own; by default none."""
        device = next(model.parameters()).device
        src_ids, tgt_ids, targets = (part.to(device) for part in self.batch(indices))
        src_real = src_ids != self._pad_id
        # Without padding no mask is needed, which is faster.
        src_mask = None if bool(src_real.all()) else src_real
        return model.loss(
            src_ids, tgt_ids, targets, src_mask, ignore_id=self._pad_id, label_smoothing=label_smoothing
        )
