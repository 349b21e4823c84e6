"""How good a translator is: BLEU and chrF by sacreBLEU, its loss, and grammar errors on the world."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from torch import Tensor

from tinytx.model.encoder_decoder import Translator
from tinytx.text.batching import pad_batch
from tinytx.text.pairs import PairCorpus, Pairs, load_pairs
from tinytx.text.tokenizer import Tokenizer, plain
from tinytx.training.beam import Search
from tinytx.training.inference import evaluate_rows, padding_mask_or_none, row_nats
from tinytx.training.intervals import Interval
from tinytx.training.objectives import TranslationObjective
from tinytx.training.translate import GREEDY, translate

ORDERS = 4  # BLEU counts n-grams of up to so many words


@dataclass(frozen=True)
class TranslationScore:
    """BLEU and chrF of some translations.

    Attributes
    ----------
    bleu : float
        Corpus BLEU, 0 to 100.
    interval : Interval
        Its 95 % bootstrap confidence interval over the sentences: how much another choice of test sentences
        would change it. It says nothing about other training seeds.
    signature : str
        The settings of sacreBLEU; scores compare only where signatures are equal.
    precisions : tuple of float
        N-gram precisions for n = 1, 2, 3, 4, in per cent.
    brevity : float
        Brevity penalty: below 1 for translations shorter than the references.
    chrf : float
        chrF2, 0 to 100, from character n-grams.
    chrf_signature : str
    n : int
        Sentences.
    """

    bleu: float
    interval: Interval
    signature: str
    precisions: tuple[float, ...]
    brevity: float
    chrf: float
    chrf_signature: str
    n: int

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        lists = {"interval": list(self.interval), "precisions": list(self.precisions)}
        return {**dataclasses.asdict(self), **lists}

    def __str__(self) -> str:
        low, high = self.interval
        precisions = "/".join(f"{share:.1f}" for share in self.precisions)
        return (
            f"BLEU {self.bleu:.1f} [{low:.1f}, {high:.1f}] ({precisions}, brevity {self.brevity:.3f}), "
            f"chrF {self.chrf:.1f}, {self.n:,} sentences ({self.signature})"
        )


def score_translations(
    translations: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> TranslationScore:
    """Score N translations against one or several references each; ValueError where one has none.

    Parameters
    ----------
    translations : sequence of N str
        Raw text: sacreBLEU splits it into words itself.
    references : sequence of N sequences of str
        At least one each; they may differ in number.
    n_resamples, seed : int
        Of the bootstrap.
    """
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise ValueError(
            "scoring translations needs the package sacrebleu: install tinytx with its extra [course]"
        ) from error
    if not translations or len(translations) != len(references) or not all(references):
        raise ValueError(
            "every translation needs a reference, "
            f"got {len(translations)} translations and {sum(map(bool, references))} with references"
        )
    # sacreBLEU takes the first reference of each sentence, the second of each or None, ...
    most = max(map(len, references))
    streams: list[list[Any]] = [
        [each[k] if k < len(each) else None for each in references] for k in range(most)
    ]
    bleu, chrf = metrics.BLEU(), metrics.CHRF()
    of_words, of_characters = (
        bleu.corpus_score(translations, streams),
        chrf.corpus_score(translations, streams),
    )
    return TranslationScore(
        of_words.score,
        _bootstrap_interval(metrics.BLEU, translations, references, n_resamples, seed),
        str(bleu.get_signature()),
        tuple(of_words.precisions),
        of_words.bp,
        of_characters.score,
        str(chrf.get_signature()),
        len(translations),
    )


def _bootstrap_interval(
    bleu: Any, translations: Sequence[str], references: Sequence[Sequence[str]], n_resamples: int, seed: int
) -> Interval:
    """Resample sentences by their n-gram counts: corpus BLEU is a function of the summed counts."""
    rows = []
    for translation, each in zip(translations, references, strict=True):
        sentence = bleu().corpus_score([translation], [[reference] for reference in each])
        rows.append([*sentence.counts, *sentence.totals, sentence.sys_len, sentence.ref_len])
    counts, n = np.array(rows), len(rows)  # (N, 2 * ORDERS + 2)
    rng, scores = np.random.default_rng(seed), []
    for _ in range(n_resamples):
        sums = (np.bincount(rng.integers(n, size=n), minlength=n) @ counts).tolist()
        right, total, (sys_len, ref_len) = sums[:ORDERS], sums[ORDERS : 2 * ORDERS], sums[2 * ORDERS :]
        scores.append(bleu.compute_bleu(right, total, sys_len, ref_len, smooth_method="exp").score)
    low, high = np.quantile(scores, [0.025, 0.975]).tolist()
    return Interval(low, high)


@dataclass(frozen=True)
class GrammarCount:
    """Grammar errors that `tinytx.world.checker.check_sentence` finds in translations.

    Attributes
    ----------
    n_errors : int
    n_sentences : int
        Translations with at least one.
    n_agreement : int
        Errors of agreement in gender and number among them.
    """

    n_errors: int
    n_sentences: int
    n_agreement: int


@cache
def _world() -> Any:
    from tinytx.world.world import World

    return World()


def count_mistakes(translations: Sequence[str]) -> GrammarCount:
    """Count the grammar errors in French sentences made of the world's words.

    Examples
    --------
    >>> count_mistakes(["L'histoire est belle.", "La histoire est beau."])
    GrammarCount(n_errors=2, n_sentences=1, n_agreement=1)
    """
    from tinytx.world.checker import check_sentence

    found = [check_sentence(_world().split(text)) for text in translations]
    n_agreement = sum("must agree" in error for errors in found for error in errors)
    return GrammarCount(sum(map(len, found)), sum(map(bool, found)), n_agreement)


@dataclass(frozen=True)
class TranslationEvaluation:
    """A translator on one split of a parallel corpus.

    Attributes
    ----------
    corpus, split : str
    search : Search
    nats_per_token : float or None
        See `pair_nats`.
    score : TranslationScore
        Each pair by itself, against its one reference.
    all_references : TranslationScore or None
        Each different source once, against all references that it has in the split; None where each source
        has one.
    grammar : GrammarCount or None
        On the world only.
    n_unfinished, n_cut : int
        Translations without an end mark, and sources translated in parts.
    translations : tuple of str
        One for each pair.
    """

    corpus: str
    split: str
    search: Search
    nats_per_token: float | None
    score: TranslationScore
    all_references: TranslationScore | None
    grammar: GrammarCount | None
    n_unfinished: int
    n_cut: int
    translations: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them; not the translations."""
        return {
            "kind": "translator",
            "corpus": self.corpus,
            "split": self.split,
            "search": self.search.to_dict(),
            "nats_per_token": self.nats_per_token,
            **self.score.to_dict(),
            "all_references": None if self.all_references is None else self.all_references.to_dict(),
            "grammar": None if self.grammar is None else vars(self.grammar),
            "n_unfinished": self.n_unfinished,
            "n_cut": self.n_cut,
        }

    def __str__(self) -> str:
        how = "greedy" if self.search.beam_size == 1 else f"beam of {self.search.beam_size}"
        lines = [f"{self.corpus}, {self.split} split, {how}: {self.score}"]
        if self.all_references is not None:
            lines.append(f"against all references of each source: {self.all_references}")
        if self.grammar is not None:
            count = self.grammar
            lines.append(
                f"grammar errors: {count.n_errors:,} in {count.n_sentences:,} translations, "
                f"{count.n_agreement:,} of them of agreement"
            )
        if self.n_cut:
            lines.append(f"{self.n_cut:,} sources were too long and translated in parts")
        return "\n".join(lines)


def evaluate_translator(
    model: Translator,
    tokenizer: Tokenizer,
    corpus: str | os.PathLike[str] | PairCorpus,
    *,
    split: str | None = None,
    search: Search = GREEDY,
    data_dir: str | os.PathLike[str] | None = None,
) -> TranslationEvaluation:
    """Translate a split and score it; parameters as in `tinytx.training.evaluate.evaluate`.

    References are compared as the corpus has them; only what the model reads is normalised.
    """
    data = corpus if isinstance(corpus, PairCorpus) else load_pairs(corpus, data_dir)
    chosen = split or ("valid" if data.test is None else "test")
    if chosen not in data.splits:
        raise ValueError(f"split must be one of {', '.join(data.splits)}, got {chosen!r}")
    pairs = data.splits[chosen]
    references = pairs.references()
    sources = list(references)
    found = translate(model, tokenizer, sources, search=search, report=lambda line: None)
    text_of = {each.source: each.text for each in found}
    translations = tuple(text_of[source] for source in pairs.sources)
    all_references = None
    if len(sources) < len(pairs):
        all_references = score_translations([each.text for each in found], list(references.values()))
    return TranslationEvaluation(
        corpus=data.name,
        split=chosen,
        search=search,
        nats_per_token=pair_nats(model, tokenizer, pairs),
        score=score_translations(translations, [[target] for target in pairs.targets]),
        all_references=all_references,
        grammar=count_mistakes(translations) if data.name == "world" else None,
        n_unfinished=sum(not each.finished for each in found),
        n_cut=sum(each.n_parts > 1 for each in found),
        translations=translations,
    )


def pair_nats(model: Translator, tokenizer: Tokenizer, pairs: Pairs) -> float | None:
    """Mean loss of a target token, its end mark included, in nats and without label smoothing.

    Pairs longer than ``max_len`` are left out; None where all are.
    """
    sources = tokenizer.encode_batch([plain(text) for text in pairs.sources])
    targets = tokenizer.encode_targets([plain(text) for text in pairs.targets])
    both = [
        (a, b) for a, b in zip(sources, targets, strict=True) if max(len(a), len(b)) < model.config.max_len
    ]
    if not both:
        return None

    def pair_losses(src_ids: Tensor, indices: list[int]) -> Tensor:
        inputs = pad_batch([[tokenizer.bos_id, *both[i][1]] for i in indices], tokenizer.pad_id)
        logits = model(src_ids, inputs.to(src_ids.device), padding_mask_or_none(src_ids, tokenizer.pad_id))
        return row_nats(logits, [[*both[i][1], tokenizer.eos_id] for i in indices], tokenizer.pad_id)

    rows = [[*source, tokenizer.eos_id] for source, _ in both]
    nats = evaluate_rows(model, rows, pair_losses, pad_id=tokenizer.pad_id)
    return nats.sum().item() / sum(len(target) + 1 for _, target in both)


def translation_objective(
    tokenizer: Tokenizer, pairs: Pairs, max_len: int, label_smoothing: float = 0.0
) -> TranslationObjective | None:
    """The objective of some pairs, with normalised typography; None where every pair is too long."""
    sources = tokenizer.encode_batch([plain(text) for text in pairs.sources])
    targets = tokenizer.encode_targets([plain(text) for text in pairs.targets])
    if all(max(len(a), len(b)) >= max_len for a, b in zip(sources, targets, strict=True)):
        return None
    return TranslationObjective(
        sources,
        targets,
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
        pad_id=tokenizer.pad_id,
        max_len=max_len,
        label_smoothing=label_smoothing,
    )
