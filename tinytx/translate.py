"""Translate texts: batches of similar length, long texts in parts, results in the order of the texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tinytx.batching import pad_batch
from tinytx.beam import Hypothesis, Search, TranslatorSteps, beam_search
from tinytx.encoder_decoder import Translator
from tinytx.fast import laid_out
from tinytx.generate import check_vocabulary, unwritten_ids
from tinytx.inference import TOKENS_PER_BATCH, eval_mode, shown
from tinytx.settings import require
from tinytx.tokenizer import Tokenizer, plain, several, warn_of_unknown

GREEDY = Search()
SENTENCE_END = re.compile(r"(?<=[.!?\u2026])\s+")


@dataclass(frozen=True)
class Translation:
    """A text and its translation by a model; ``str()`` gives the translation."""

    source: str
    text: str
    token_ids: tuple[int, ...]  # the end mark included
    log_prob: float  # in nats
    finished: bool  # whether the model ended it itself
    n_parts: int  # more than 1 where the source was longer than the model reads; 0 for an empty one

    def __str__(self) -> str:
        return self.text


def translate(
    model: Translator,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    search: Search = GREEDY,
    report: Callable[[str], None] = print,
    first_line: int = 1,
) -> list[Translation]:
    """Translate texts in batches of similar length; each result is that of the text alone.

    Parameters
    ----------
    tokenizer : Tokenizer
        The one that the model was trained with.
    texts : sequence of N str
        Their typography is normalised first (`plain`). A text longer than the model reads is cut at sentence
        ends, or within a sentence where that is still too long, translated in parts, and reported.
    search : Search
        Beam search and its settings; greedy by default.
    report : callable
        Gets one line for each text that was cut, in which the first text has number `first_line`.

    Returns
    -------
    list of N Translation
        In the order of the texts; an empty one for an empty text.

    Examples
    --------
    >>> import tinytx as tx
    >>> from tinytx_run.pairs import PairCorpus, Pairs
    >>> pairs = Pairs(("the cat sleeps", "a dog eats"), ("le chat dort", "un chien mange"))
    >>> corpus = PairCorpus("two", pairs, pairs)
    >>> run = tx.train_translator(corpus, search=None, budget="smoke", training_changes={"n_steps": 60})
    1 layers of width 32, ...; 60 steps of ...
    >>> print(*translate(run.model, run.tokenizer, ["a dog eats", "the cat sleeps"]), sep=", ")
    un chien mange, le chat dort
    """
    require(isinstance(model, Translator), "translating needs a Translator", f"a {type(model).__name__}")
    check_vocabulary(model, tokenizer)
    texts = several(texts)
    n_marks = sum(map(len, tokenizer.source_frame))  # they are read too
    limit = model.config.max_len - n_marks
    require(limit >= 1, f"max_len must be at least {n_marks + 1} to translate", model.config.max_len)
    plain_texts = [plain(text) for text in texts]
    warn_of_unknown(tokenizer, plain_texts, "the texts to translate")
    parts_of = [_parts(tokenizer, text, limit) for text in plain_texts]
    for number, parts in enumerate(parts_of, start=first_line):
        if len(parts) > 1:
            report(
                f"line {number}: {sum(map(len, parts))} tokens are more than the {limit} that the model "
                f"reads; translated in {len(parts)} parts, cut at sentence ends where there are any"
            )
    every_part = [part for parts in parts_of for part in parts]
    hypotheses = iter(translate_ids(model, every_part, search=search, tokenizer=tokenizer))
    return [
        _joined(tokenizer, text, [next(hypotheses) for _ in parts])
        for text, parts in zip(texts, parts_of, strict=True)
    ]


def translate_ids(
    model: Translator,
    sources: Sequence[Sequence[int]],
    *,
    search: Search = GREEDY,
    tokenizer: Tokenizer | type[Tokenizer] = Tokenizer,
) -> list[Hypothesis]:
    """Translate sources given as ids without special tokens; parameters as in `translate`.

    Of the tokenizer only the special ids matter; by default they are those of `Tokenizer`.
    """
    hypotheses: dict[int, Hypothesis] = {}
    batches: list[list[int]] = []
    before, after = tokenizer.source_frame
    for index in sorted(range(len(sources)), key=lambda i: len(sources[i])):
        # Sorted by length, so the newest sets the width.
        room = TOKENS_PER_BATCH // ((len(sources[index]) + 1) * search.beam_size)
        if not batches or len(batches[-1]) >= room:
            batches.append([])
        batches[-1].append(index)
    with eval_mode(model) as device, laid_out(model, search.beam_size * len(sources)):
        for indices in shown(batches, "translation"):
            batch = [sources[i] for i in indices]
            src_ids = pad_batch([[*before, *ids, *after] for ids in batch], tokenizer.pad_id).to(device)
            max_tokens = [search.max_tokens(len(ids), model.config.max_len) for ids in batch]
            src_mask = src_ids != tokenizer.pad_id  # (N, S)
            best = beam_search(
                TranslatorSteps(model, src_ids, src_mask, search.beam_size, max(max_tokens)),
                max_tokens,
                bos_id=tokenizer.bos_id,
                eos_id=tokenizer.eos_id,
                search=search,
                min_tokens=[search.min_tokens(len(ids)) for ids in batch],
                forbidden_ids=unwritten_ids(tokenizer),
                forced_ids=tokenizer.forced_ids,
            )
            hypotheses |= dict(zip(indices, best, strict=True))
    return [hypotheses[i] for i in range(len(sources))]


def _joined(tokenizer: Tokenizer, source: str, parts: Sequence[Hypothesis]) -> Translation:
    return Translation(
        source,
        " ".join(tokenizer.decode(part.token_ids) for part in parts),
        tuple(token_id for part in parts for token_id in part.token_ids),
        sum(part.log_prob for part in parts),
        all(part.finished for part in parts),
        len(parts),
    )


def _parts(tokenizer: Tokenizer, text: str, limit: int) -> list[list[int]]:
    """The ids of a text in parts of at most `limit`: the whole, sentences, or words."""
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
        if len(parts[-1]) > limit:  # a single word that is too long
            word = parts.pop()
            parts += [word[at : at + limit] for at in range(0, len(word), limit)]
    return parts
