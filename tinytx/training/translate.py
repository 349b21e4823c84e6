"""Translating texts with a trained translator: batches by length, lines too long in parts, order kept."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tinytx.hf.tokenizer import PretrainedTokenizer
from tinytx.model.encoder_decoder import Translator
from tinytx.model.kv_cache import is_as_built
from tinytx.text.batching import pad_batch
from tinytx.text.tokenizer import Tokenizer, plain
from tinytx.training.beam import CachedSteps, Found, Search, Steps, WholeSteps, beam_search
from tinytx.training.generate import unwritten_ids

GREEDY = Search()
SENTENCE_END = re.compile(r"(?<=[.!?\u2026])\s+")
UNWRITTEN = unwritten_ids(Tokenizer)
Report = Callable[[str], None]


@dataclass(frozen=True)
class Translation:
    """A text and what a model made of it; ``str()`` gives the translation.

    Attributes
    ----------
    source, text : str
    token_ids : tuple of int
        Ids of the translation, its end mark included.
    log_prob : float
        Their log-probability, in nats.
    finished : bool
        Whether the model ended it itself.
    n_parts : int
        More than 1 where the source was too long to be read at once; 0 for an empty one.
    """

    source: str
    text: str
    token_ids: tuple[int, ...]
    log_prob: float
    finished: bool
    n_parts: int = 1

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return {**dataclasses.asdict(self), "token_ids": list(self.token_ids)}


def translate(
    model: Translator,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    search: Search = GREEDY,
    tokens_per_batch: int = 4096,
    cached: bool = True,
    report: Report = print,
) -> list[Translation]:
    """Translate texts, one by one as far as the result goes, in batches of similar length.

    Parameters
    ----------
    model : Translator
    tokenizer : Tokenizer
        The one it was trained with.
    texts : sequence of N str
        Their typography is made plain first (`plain`). A text longer than the model can read is cut at
        sentence ends, or within a sentence where even that is too long, translated in parts, and reported.
    search : Search
    tokens_per_batch : int
        Changes memory and speed, not the result.
    cached : bool
        Keep keys and values of what is written already; False computes them anew at each step.
    report : callable
        Told, in one line, of each text that was cut.

    Returns
    -------
    list of N Translation
        In the order of the texts; an empty one for an empty text.
    """
    if not isinstance(model, Translator):
        raise ValueError(f"translating needs a Translator, got a {type(model).__name__}")
    if tokenizer.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"tokenizer and model must have one vocabulary, got {tokenizer.vocab_size} pieces "
            f"and vocab_size={model.config.vocab_size}"
        )
    if isinstance(tokenizer, PretrainedTokenizer) and tokenizer.frame != (tokenizer.eos_id,):
        frame = [tokenizer.piece(token_id) for token_id in tokenizer.frame]
        raise ValueError(f"a source must be read with an end mark only, got a tokenizer that adds {frame}")
    limit = model.config.max_len - 1  # the end mark is read too
    parts_of = []
    for number, text in enumerate(texts, start=1):
        parts_of.append(_parts(tokenizer, plain(text), limit))
        if len(parts_of[-1]) > 1:
            n_pieces = sum(map(len, parts_of[-1]))
            report(
                f"line {number}: {n_pieces} pieces are more than the {limit} that the model reads; "
                f"translated in {len(parts_of[-1])} parts, cut at sentence ends where there are any"
            )
    flat = [part for parts in parts_of for part in parts]
    how: dict[str, Any] = {"search": search, "tokens_per_batch": tokens_per_batch, "cached": cached}
    found = iter(translate_ids(model, flat, marks=tokenizer, **how))
    return [
        _joined(tokenizer, text, [next(found) for _ in parts])
        for text, parts in zip(texts, parts_of, strict=True)
    ]


def translate_lines(
    model: Translator,
    tokenizer: Tokenizer,
    lines: Iterable[str],
    *,
    lines_per_block: int = 256,
    report: Report = print,
    **how: Any,
) -> Iterator[Translation]:
    """Translate lines as they come, a block at a time; parameters as in `translate`.

    An error while reading is raised only after what was read before it is translated.
    """
    stream, count, failure = iter(lines), 0, None
    while failure is None:
        block: list[str] = []
        try:
            while len(block) < lines_per_block:
                block.append(next(stream))
        except (StopIteration, ValueError) as stop:
            failure = stop

        def numbered(message: str, before: int = count) -> None:
            number, words = message.removeprefix("line ").split(":", 1)
            report(f"line {before + int(number)}:{words}")

        yield from translate(model, tokenizer, block, report=numbered, **how)
        count += len(block)
    if isinstance(failure, ValueError):
        raise failure


@torch.no_grad()
def translate_ids(
    model: Translator,
    sources: Sequence[Sequence[int]],
    *,
    search: Search = GREEDY,
    tokens_per_batch: int = 4096,
    cached: bool = True,
    marks: Tokenizer | type[Tokenizer] = Tokenizer,
) -> list[Found]:
    """Translate ids without any mark, in batches of similar length; parameters as in `translate`.

    The marks are those of ours, unless a tokenizer with others is given.
    """
    was_training = model.training
    model.eval()
    found: dict[int, Found] = {}
    for indices in _by_length(sources, search.beam_size, tokens_per_batch):
        answers = _translate_batch(model, [sources[i] for i in indices], search, cached, marks)
        found |= dict(zip(indices, answers, strict=True))
    model.train(was_training)
    return [found[i] for i in range(len(sources))]


def _translate_batch(
    model: Translator,
    sources: Sequence[Sequence[int]],
    search: Search,
    cached: bool,
    marks: Tokenizer | type[Tokenizer],
) -> list[Found]:
    device = next(model.parameters()).device
    src_ids = pad_batch([[*ids, marks.eos_id] for ids in sources], marks.pad_id).to(device)  # (N, S)
    most = [search.most_pieces(len(ids), model.config.max_len) for ids in sources]
    kind: type[CachedSteps] | type[WholeSteps] = CachedSteps if cached and is_as_built(model) else WholeSteps
    steps: Steps = kind(model, src_ids, src_ids != marks.pad_id, search.beam_size, max(most))
    return beam_search(
        steps,
        most,
        bos_id=marks.bos_id,
        eos_id=marks.eos_id,
        search=search,
        fewest=[search.fewest_pieces(len(ids)) for ids in sources],
        forbidden_ids=unwritten_ids(marks),
    )


def _by_length(sources: Sequence[Sequence[int]], beam_size: int, tokens_per_batch: int) -> list[list[int]]:
    batches: list[list[int]] = []
    for index in sorted(range(len(sources)), key=lambda i: len(sources[i])):
        # Sorted by length, so the newcomer sets the width.
        room = tokens_per_batch // ((len(sources[index]) + 1) * beam_size)
        if not batches or len(batches[-1]) >= room:
            batches.append([])
        batches[-1].append(index)
    return batches


def _joined(tokenizer: Tokenizer, source: str, found: Sequence[Found]) -> Translation:
    return Translation(
        source,
        " ".join(tokenizer.decode(one.token_ids) for one in found),
        tuple(token_id for one in found for token_id in one.token_ids),
        sum(one.log_prob for one in found),
        all(one.finished for one in found),
        len(found),
    )


def _parts(tokenizer: Tokenizer, text: str, limit: int) -> list[list[int]]:
    """The ids of a text, in parts that the model can read: whole, by sentences, or by words."""
    if not text:
        return []
    whole = tokenizer.encode(text)
    if len(whole) <= limit:
        return [whole]
    parts = []
    for sentence in SENTENCE_END.split(text):
        ids = tokenizer.encode(sentence)
        parts += [ids] if len(ids) <= limit else _by_words(tokenizer, sentence, limit)
    return parts


def _by_words(tokenizer: Tokenizer, sentence: str, limit: int) -> list[list[int]]:
    parts: list[list[int]] = [[]]
    for ids in tokenizer.encode_batch(sentence.split()):
        if len(parts[-1]) + len(ids) > limit and parts[-1]:
            parts.append([])
        parts[-1] += ids
        while len(parts[-1]) > limit:  # one word that is too long by itself
            parts[-1:] = [parts[-1][:limit], parts[-1][limit:]]
    return parts
