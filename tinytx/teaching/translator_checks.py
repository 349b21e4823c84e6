"""A translator under examination: does it read its source, how long does it write, what was measured."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tinytx.model import Translator
from tinytx.teaching.results import Results, read_results
from tinytx.text import Tokenizer
from tinytx.text.pairs import LAB_SENTENCES, PairCorpus, Pairs
from tinytx.training import Search, TranslatorResult, train_translator
from tinytx.training.translation.scoring import pair_nats
from tinytx.training.translation.translating import translate_ids

WIDTH = 88  # characters of a line that a page shows


class SourceLosses(NamedTuple):
    """Nats a target piece, given the sentence's own source and given that of another sentence."""

    own: float
    other: float


def source_losses(model: Translator, tokenizer: Tokenizer, pairs: Pairs) -> SourceLosses:
    """How surprised a translator is by the right translations, given the right sources and wrong ones.

    Each sentence gets its neighbour's source. A model for which both losses are equal does not read.

    Raises
    ------
    ValueError
        If there is but one pair, or every pair is too long for the model.
    """
    if len(pairs) < 2:
        raise ValueError(f"pairs must be at least 2, to exchange their sources, got {len(pairs)}")
    wrong = Pairs(pairs.sources[1:] + pairs.sources[:1], pairs.targets)
    own, other = (pair_nats(model, tokenizer, each) for each in (pairs, wrong))
    if own is None or other is None:
        raise ValueError(f"pairs must fit into max_len={model.config.max_len} pieces, got only longer ones")
    return SourceLosses(own, other)


def writing_seconds(
    model: Translator, lengths: Sequence[int], *, cached: bool, n_sources: int = 4, n_tries: int = 2
) -> list[float]:
    """Processor time to write exactly so many pieces, the best of some tries.

    Other programs that run meanwhile change it less than they change the time on the wall.

    Parameters
    ----------
    model : Translator
        What it writes does not matter; `max_len` must allow the lengths.
    lengths : sequence of int
        From 2 on.
    cached : bool
        As in `tinytx.training.translate`.
    n_sources : int
        Translated side by side, of 20 pieces each.
    n_tries : int
    """
    source, seconds = [model.config.vocab_size - 1] * 20, []
    for n in lengths:
        # No end mark before piece n, which is the last one.
        exactly = Search(max_factor=0.0, max_extra=n, read_on=n / len(source))
        tries = []
        for _ in range(n_tries):
            begin = time.process_time()
            found = translate_ids(model, [source] * n_sources, search=exactly, cached=cached)
            tries.append(time.process_time() - begin)
            if {len(one.token_ids) for one in found} != {n}:
                raise ValueError(f"lengths must be at most max_len={model.config.max_len}, got {n}")
        seconds.append(min(tries))
    return seconds


def short_race(
    pairs: PairCorpus, *, norm: str, warmup_steps: int, lr: float, dropout: float, n_steps: int
) -> TranslatorResult:
    """Train a small translator on short sentences, with ingredients of one's choice, by AdamW.

    Parameters
    ----------
    pairs : PairCorpus
        Only its pairs with sources of at most 32 characters are learned from.
    norm, dropout, warmup_steps, lr, n_steps
        As in `TransformerConfig` and `TrainingSettings`.
    """
    rows = zip(pairs.train.sources, pairs.train.targets, strict=True)
    short = [row for row in rows if len(row[0]) <= 32]
    learned = Pairs(tuple(a for a, _ in short), tuple(b for _, b in short))
    return train_translator(
        PairCorpus(pairs.name, learned, pairs.valid),
        budget="smoke",
        model_changes={"d_model": 64, "n_heads": 4, "d_ff": 256, "norm": norm, "dropout": dropout},
        training_changes={
            "n_steps": n_steps,
            "tokens_per_batch": 500,
            "optimizer": "adamw",
            "lr": lr,
            "warmup_steps": warmup_steps,
        },
        search=None,
        progress=False,
        report=lambda line: None,
    )


def told_translation(corpus: str, folder: str | Path | None = None) -> str:
    """What `tinytx experiment translation` measured on a corpus, as lines; or the command that does it."""
    command = f"tinytx experiment translation --corpus {corpus} --budget study --data-dir DATA"
    kept = _kept(f"translation-{corpus}", folder)
    if kept is None:
        return f"{corpus}: not measured here yet. The command that does it:\n  {command}"
    lines = [textwrap.fill(f"{corpus}: {kept.source_line()}", WIDTH)]
    for key, record in kept.data.items():
        lines.append(f"  {key}: {record['n_params']:,} parameters, {record['n_steps']:,} steps")
        for how, score in record["scores"].items():
            low, high = score["interval"]
            line = f"    {how:<10} BLEU {score['bleu']:.1f} [{low:.1f}, {high:.1f}], chrF {score['chrf']:.1f}"
            several = score["all_references"]
            lines += [line + (f", all references {several['bleu']:.1f}" if several else "")]
            lines += [f"      {score['signature']}"]
        if corpus == "tatoeba-en-fr":
            lines += _told_sentences(record["sentences"])
    return "\n".join(lines)


def told_faults(folder: str | Path | None = None) -> str:
    """What `tinytx experiment broken-translation` measured, as lines; or the command that does it."""
    kept = _kept("broken-translation", folder)
    if kept is None:
        return "not measured here yet. The command that does it:\n  tinytx experiment broken-translation"
    lines = [textwrap.fill(kept.source_line(), WIDTH)]
    for record in kept.data.values():
        bleu = "diverged" if record["bleu"] is None else f"BLEU {record['bleu']:5.1f}"
        lines.append(f"  seed {record['seed']}  {record['name']:<22}{bleu}")
    return "\n".join(lines)


def _kept(name: str, folder: str | Path | None) -> Results | None:
    try:
        return read_results(name, folder)
    except FileNotFoundError:
        return None


def _told_sentences(sentences: dict[str, dict[str, Any]]) -> list[str]:
    lines = []
    for sentence in LAB_SENTENCES:
        lines.append(f"    {sentence}")
        lines += [f"      {how:<10} {text}" for how, text in sentences[sentence].items()]
    return lines
