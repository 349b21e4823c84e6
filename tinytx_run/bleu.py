"""How good a translator is: BLEU and chrF by sacreBLEU, its loss, and grammar errors on the world."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from tinytx.batching import pad_batch
from tinytx.beam import Search
from tinytx.encoder_decoder import Translator
from tinytx.inference import evaluate_rows, padding_mask_or_none, row_nats
from tinytx.objectives import TranslationObjective
from tinytx.settings import require
from tinytx.tokenizer import Tokenizer, plain, warn_of_unknown
from tinytx.translate import GREEDY, translate
from tinytx_run.files import library
from tinytx_run.intervals import Interval
from tinytx_run.pairs import PairCorpus, Pairs
from tinytx_run.splits import TextHashes

ORDERS = 4  # BLEU counts n-grams of up to so many words
N_RESAMPLES, RESAMPLING_SEED = 1_000, 0  # of the bootstrap


@dataclass(frozen=True)
class TranslationScore:
    """BLEU and chrF of some translations.

    Attributes
    ----------
    bleu, chrf : float
        Corpus BLEU, and chrF2 from character n-grams, 0 to 100.
    interval : Interval
        95 % bootstrap confidence interval of BLEU over the sentences: how much another choice of test
        sentences would change it. It says nothing about other training seeds.
    signature, chrf_signature : str
        The settings of sacreBLEU; scores compare only where signatures are equal.
    precisions : tuple of float
        N-gram precisions for n = 1, 2, 3, 4, in per cent.
    brevity : float
        Brevity penalty: below 1 for translations shorter than the references.
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

    def __str__(self) -> str:
        low, high = self.interval
        precisions = "/".join(f"{share:.1f}" for share in self.precisions)
        return (
            f"BLEU {self.bleu:.1f} [{low:.1f}, {high:.1f}] ({precisions}, brevity {self.brevity:.3f}), "
            f"chrF {self.chrf:.1f}, {self.n:,} sentences ({self.signature})"
        )


def score_translations(translations: Sequence[str], references: Sequence[Sequence[str]]) -> TranslationScore:
    """Score N translations against one or several references each; ValueError where one has none.

    Parameters
    ----------
    translations : sequence of N str
        Raw text: sacreBLEU splits it into words itself.
    references : sequence of N sequences of str
        At least one each; they may differ in number.
    """
    metrics = library("sacrebleu", "scoring translations").metrics
    if isinstance(translations, str) or any(isinstance(each, str) for each in references):
        raise TypeError("references must be a sequence of str for each translation, got one str")
    n, n_referred = len(translations), sum(map(bool, references))
    got = f"{n} translations and {n_referred} with references"
    require(n == len(references) == n_referred > 0, "every translation needs a reference", got)
    # sacreBLEU takes the first reference of each sentence, then the second of each or None, ...
    streams: Any = list(map(list, itertools.zip_longest(*references)))
    bleu, chrf = metrics.BLEU(), metrics.CHRF()
    whole, of_characters = (metric.corpus_score(translations, streams) for metric in (bleu, chrf))
    return TranslationScore(
        bleu=whole.score,
        interval=_bootstrap_interval(metrics.BLEU, translations, references),
        signature=str(bleu.get_signature()),
        precisions=tuple(whole.precisions),
        brevity=whole.bp,
        chrf=of_characters.score,
        chrf_signature=str(chrf.get_signature()),
        n=len(translations),
    )


def _bootstrap_interval(
    bleu: Any, translations: Sequence[str], references: Sequence[Sequence[str]]
) -> Interval:
    """Resample sentences by their n-gram counts: corpus BLEU is a function of the summed counts."""
    if len(translations) == 1:
        return Interval(0.0, 100.0)  # one sentence says nothing about others
    rows = []
    for translation, each in zip(translations, references, strict=True):
        sentence = bleu().corpus_score([translation], [[reference] for reference in each])
        rows.append([*sentence.counts, *sentence.totals, sentence.sys_len, sentence.ref_len])
    counts, n = np.array(rows), len(rows)  # (N, 2 * ORDERS + 2)
    rng, scores = np.random.default_rng(RESAMPLING_SEED), []
    for _ in range(N_RESAMPLES):
        sums = (np.bincount(rng.integers(n, size=n), minlength=n) @ counts).tolist()
        right, total, (sys_len, ref_len) = sums[:ORDERS], sums[ORDERS : 2 * ORDERS], sums[2 * ORDERS :]
        scores.append(bleu.compute_bleu(right, total, sys_len, ref_len, smooth_method="exp").score)
    low, high = np.quantile(scores, [0.025, 0.975]).tolist()
    return Interval(low, high)


@dataclass(frozen=True)
class GrammarCount:
    """Grammar errors that `tinyworld.checker.check_sentence` finds in translations."""

    n_errors: int
    n_sentences: int  # with at least one
    n_agreement: int  # errors of agreement in gender and number


def count_mistakes(translations: Sequence[str]) -> GrammarCount:
    """Count the grammar errors in French sentences made of the world's words.

    Examples
    --------
    >>> count_mistakes(["L'histoire est belle.", "La histoire est beau."])
    GrammarCount(n_errors=2, n_sentences=1, n_agreement=1)
    """
    from tinyworld.checker import check_sentence
    from tinyworld.world import World

    world = World()
    found = [check_sentence(world.split(text)) for text in translations]
    n_agreement = sum("must agree" in error for errors in found for error in errors)
    return GrammarCount(sum(map(len, found)), sum(map(bool, found)), n_agreement)


@dataclass(frozen=True)
class Seen:
    """How many of the texts of an evaluation the model has learned, by `canonical_text`.

    If there are any, the evaluation is no test. ``str()`` says so.
    """

    n_texts: int
    n_seen: int  # in its training
    n_seen_before: int  # at least, in a training of its body before that, without these labels

    @classmethod
    def of(cls, learned: Sequence[TextHashes], texts: Sequence[str]) -> Seen | None:
        """Those of some texts, for what a `Checkpoint` has learned; None where that is not known."""
        if not learned:
            return None
        n_seen, *before = (hashes.count(texts) for hashes in learned)
        return cls(len(texts), n_seen, max(before, default=0))

    def __str__(self) -> str:
        words = f"no test: trained on {self.n_seen:,}" if self.n_seen else "trained on none"
        before = f", pretrained on {self.n_seen_before:,}" if self.n_seen_before else ""
        return f" ({words}{before} of these {self.n_texts:,} texts)"


@dataclass(frozen=True)
class TranslationEvaluation:
    """A translator on one split of a parallel corpus."""

    corpus: str
    split: str
    search: Search
    nats_per_token: float | None  # see `pair_nats`
    score: TranslationScore  # each pair by itself, against its one reference
    all_references: TranslationScore | None  # each source once; None where each has one reference
    grammar: GrammarCount | None  # on the world only
    n_unfinished: int  # translations without an end mark
    n_cut: int  # sources translated in parts
    translations: tuple[str, ...]  # one for each pair
    seen: Seen | None = None  # of the sources

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them; not the translations."""
        fields = dataclasses.asdict(self)
        del fields["translations"]
        return {"kind": "translator", **fields.pop("score"), **(fields.pop("seen") or {}), **fields}

    def __str__(self) -> str:
        how = "greedy" if self.search.beam_size == 1 else f"beam of {self.search.beam_size}"
        lines = [f"{self.corpus}, {self.split} split{self.seen or ''}, {how}: {self.score}"]
        if self.all_references is not None:
            lines.append(f"against all references of each source: {self.all_references}")
        if self.grammar is not None:
            n_errors, n_sentences, n_agreement = dataclasses.astuple(self.grammar)
            where = f"in {n_sentences:,} translations, {n_agreement:,} of them of agreement"
            lines.append(f"grammar errors: {n_errors:,} {where}")
        if self.n_cut:
            lines.append(f"{self.n_cut:,} sources were too long and translated in parts")
        return "\n".join(lines)


def evaluate_translator(
    model: Translator,
    tokenizer: Tokenizer,
    corpus: PairCorpus,
    *,
    split: str | None = None,
    search: Search = GREEDY,
) -> TranslationEvaluation:
    """Translate a split and score it; parameters as in `tinytx_run.evaluate.evaluate`.

    References are compared as the corpus has them; only what the model reads is normalised.
    """
    chosen = corpus.reported if split is None else split
    require(chosen in corpus.splits, f"split must be one of {', '.join(corpus.splits)}", repr(chosen))
    pairs = corpus.splits[chosen]
    references = pairs.references()
    warn_of_unknown(tokenizer, [plain(text) for text in pairs.targets], "the reference translations")
    found = translate(model, tokenizer, list(references), search=search, report=lambda line: None)
    text_of = {each.source: each.text for each in found}
    translations = tuple(text_of[source] for source in pairs.sources)
    all_references = None
    if len(references) < len(pairs):
        all_references = score_translations([each.text for each in found], list(references.values()))
    return TranslationEvaluation(
        corpus=corpus.name,
        split=chosen,
        search=search,
        nats_per_token=pair_nats(model, tokenizer, pairs),
        score=score_translations(translations, [[target] for target in pairs.targets]),
        all_references=all_references,
        grammar=count_mistakes(translations) if corpus.name == "world" else None,
        n_unfinished=sum(not each.finished for each in found),
        n_cut=sum(each.n_parts > 1 for each in found),
        translations=translations,
    )


def pair_nats(model: Translator, tokenizer: Tokenizer, pairs: Pairs) -> float | None:
    """Mean loss of a target token, its end mark included, in nats and without label smoothing.

    Pairs longer than ``max_len`` are left out; None where all are.
    """
    after, max_len = tokenizer.source_frame[1], model.config.max_len
    both = [([*source, *after], target) for source, target in zip(*_encoded(tokenizer, pairs), strict=True)]
    both = [pair for pair in both if len(pair[0]) <= max_len and len(pair[1]) < max_len]
    if not both:
        return None

    def pair_losses(src_ids: Tensor, indices: list[int]) -> Tensor:
        inputs = pad_batch([[tokenizer.bos_id, *both[i][1]] for i in indices], tokenizer.pad_id)
        logits = model(src_ids, inputs.to(src_ids.device), padding_mask_or_none(src_ids, tokenizer.pad_id))
        return row_nats(logits, [[*both[i][1], tokenizer.eos_id] for i in indices], tokenizer.pad_id)

    nats = evaluate_rows(model, [source for source, _ in both], pair_losses, pad_id=tokenizer.pad_id)
    return nats.sum().item() / sum(len(target) + 1 for _, target in both)


def translation_objective(
    tokenizer: Tokenizer, pairs: Pairs, max_len: int, label_smoothing: float = 0.0
) -> TranslationObjective:
    """The objective of some pairs, with normalised typography; ValueError where every pair is too long."""
    return TranslationObjective(
        *_encoded(tokenizer, pairs),
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
        pad_id=tokenizer.pad_id,
        max_len=max_len,
        label_smoothing=label_smoothing,
    )


def _encoded(tokenizer: Tokenizer, pairs: Pairs) -> tuple[list[list[int]], list[list[int]]]:
    """The ids of sources and targets, with normalised typography and what they begin with."""
    sources = tokenizer.encode_batch([plain(text) for text in pairs.sources])
    targets = tokenizer.encode_targets([plain(text) for text in pairs.targets])
    before, prefix = tokenizer.source_frame[0], tokenizer.target_prefix
    return [[*before, *ids] for ids in sources], [[*prefix, *ids] for ids in targets]
