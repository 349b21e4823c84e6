"""A translator against a parallel corpus: BLEU, chrF, loss, and on the world the mistakes of grammar."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from tinytx.model.encoder_decoder import Translator
from tinytx.text.pairs import PairCorpus, Pairs, load_pairs
from tinytx.text.tokenizer import Tokenizer, plain
from tinytx.training.beam import Search
from tinytx.training.intervals import Interval
from tinytx.training.objectives import TranslationObjective
from tinytx.training.translate import GREEDY, translate

N_RESAMPLES = 1000
ORDERS = 4


@dataclass(frozen=True)
class TranslationScore:
    """How near translations come to those of people.

    Attributes
    ----------
    bleu : float
        Corpus BLEU, 0 to 100.
    interval : Interval
        Of BLEU at 95 %: the middle of its values over test sets drawn from this one with replacement. It
        says how much another choice of sentences would change the figure, and nothing about other seeds.
    signature : str
        What sacreBLEU did; figures compare only where signatures are equal.
    precisions : tuple of float
        Shares of right runs of 1, 2, 3 and 4 words, in per cent.
    brevity : float
        The factor below 1 that translations pay which are shorter than the references.
    chrf : float
        chrF2, 0 to 100, from runs of characters.
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
        return {
            **dataclasses.asdict(self),
            "interval": list(self.interval),
            "precisions": list(self.precisions),
        }

    def __str__(self) -> str:
        low, high = self.interval
        parts = "/".join(f"{share:.1f}" for share in self.precisions)
        return (
            f"BLEU {self.bleu:.1f} [{low:.1f}, {high:.1f}] ({parts}, brevity {self.brevity:.3f}), "
            f"chrF {self.chrf:.1f}, {self.n:,} sentences ({self.signature})"
        )


def score_translations(
    translations: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> TranslationScore:
    """Score translations against one or several references each.

    Parameters
    ----------
    translations : sequence of N str
        Raw text: sacreBLEU splits it into words itself.
    references : sequence of N sequences of str
        At least one for each; they need not be equally many.
    n_resamples : int
        Test sets drawn for the interval.
    seed : int
        Of that drawing.

    Raises
    ------
    ValueError
        If sacreBLEU is not installed, there is nothing to score, or a sentence has no reference.
    """
    metrics = _sacrebleu()
    if not translations or len(translations) != len(references) or not all(references):
        raise ValueError(
            "every translation needs a reference, "
            f"got {len(translations)} translations and {sum(map(bool, references))} with references"
        )
    streams = _streams(references)
    bleu, chrf = metrics.BLEU(), metrics.CHRF()
    whole, characters = bleu.corpus_score(translations, streams), chrf.corpus_score(translations, streams)
    return TranslationScore(
        whole.score,
        _interval(metrics, translations, references, n_resamples, seed),
        str(bleu.get_signature()),
        tuple(whole.precisions),
        whole.bp,
        characters.score,
        str(chrf.get_signature()),
        len(translations),
    )


def _sacrebleu() -> Any:
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise ValueError(
            "scoring translations needs the package sacrebleu: install tinytx with its extra [course]"
        ) from error
    return metrics


def _streams(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """References as sacreBLEU takes them: the first of each sentence, the second of each or None, ..."""
    most = max(map(len, references))
    return [[refs[k] if k < len(refs) else None for refs in references] for k in range(most)]


def _interval(
    metrics: Any,
    translations: Sequence[str],
    references: Sequence[Sequence[str]],
    n_resamples: int,
    seed: int,
) -> Interval:
    """Resample the counts of the sentences: a corpus score is a function of their sums."""
    rows = []
    for translation, refs in zip(translations, references, strict=True):
        one = metrics.BLEU().corpus_score([translation], [[ref] for ref in refs])
        rows.append([*one.counts, *one.totals, one.sys_len, one.ref_len])
    counts = np.array(rows)  # (N, 2 * ORDERS + 2)
    rng = np.random.default_rng(seed)
    n = len(counts)
    scores = []
    for _ in range(n_resamples):
        sums = np.bincount(rng.integers(n, size=n), minlength=n) @ counts
        scores.append(
            metrics.BLEU.compute_bleu(
                correct=sums[:ORDERS].tolist(),
                total=sums[ORDERS : 2 * ORDERS].tolist(),
                sys_len=int(sums[-2]),
                ref_len=int(sums[-1]),
                smooth_method="exp",
            ).score
        )
    low, high = np.quantile(scores, [0.025, 0.975]).tolist()
    return Interval(low, high)


@dataclass(frozen=True)
class GrammarCount:
    """Mistakes of grammar in translations into the language of the world.

    Attributes
    ----------
    n_errors : int
        All mistakes that `tinytx.world.checker.check_sentence` names.
    n_sentences : int
        Translations with at least one.
    n_agreement : int
        Mistakes of agreement in gender and number among them.
    """

    n_errors: int
    n_sentences: int
    n_agreement: int


@dataclass(frozen=True)
class TranslationEvaluation:
    """What a translator makes of one split of a parallel corpus.

    Attributes
    ----------
    corpus, split : str
    search : Search
        How translations were searched for.
    nats_per_token : float or None
        Mean surprise at the pieces of the references, the end mark included, without label smoothing; over
        pairs that the model can read.
    score : TranslationScore
        Each pair by itself, against its one reference.
    all_references : TranslationScore or None
        Each different source once, against all references that it has in the split; None where each source
        has one.
    grammar : GrammarCount or None
        On the world only.
    n_unfinished, n_cut : int
        Translations that the model did not end, and sources that were too long to be read at once.
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
                f"mistakes of grammar: {count.n_errors:,} in {count.n_sentences:,} translations, "
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
    """Translate a split and score it.

    Parameters
    ----------
    model : Translator
    tokenizer : Tokenizer
    corpus : str, path or PairCorpus
    split : {"train", "valid", "test"}, optional
        By default the test split, or valid where there is none.
    search : Search
    data_dir : path, optional
        Folder that holds one folder a corpus.

    Notes
    -----
    References are compared as they stand in the corpus; only what the model reads is made plain.
    """
    data = corpus if isinstance(corpus, PairCorpus) else load_pairs(corpus, data_dir)
    chosen = split or ("valid" if data.test is None else "test")
    if chosen not in data.splits:
        raise ValueError(f"split must be one of {', '.join(data.splits)}, got {chosen!r}")
    pairs = data.splits[chosen]
    references = pairs.references()
    sources = list(references)
    found = translate(model, tokenizer, sources, search=search, report=lambda line: None)
    text_of = {source: one.text for source, one in zip(sources, found, strict=True)}
    translations = tuple(text_of[source] for source in pairs.sources)
    several = len(sources) < len(pairs)
    return TranslationEvaluation(
        corpus=data.name,
        split=chosen,
        search=search,
        nats_per_token=pair_nats(model, tokenizer, pairs),
        score=score_translations(translations, [[target] for target in pairs.targets]),
        all_references=score_translations([one.text for one in found], list(references.values()))
        if several
        else None,
        grammar=count_mistakes(translations) if data.name == "world" else None,
        n_unfinished=sum(not one.finished for one in found),
        n_cut=sum(one.n_parts > 1 for one in found),
        translations=translations,
    )


@torch.no_grad()
def pair_nats(
    model: Translator, tokenizer: Tokenizer, pairs: Pairs, *, tokens_per_batch: int = 4096
) -> float | None:
    """Mean nats a target piece, its end mark included; None where every pair is too long to be read."""
    objective = translation_objective(tokenizer, pairs, model.config.max_len)
    if objective is None:
        return None
    was_training = model.training
    model.eval()
    total = 0.0
    for indices in objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=tokens_per_batch):
        total += objective.nats(model, indices).item() * objective.n_predictions(indices)
    model.train(was_training)
    return total / objective.n_tokens


def translation_objective(
    tokenizer: Tokenizer, pairs: Pairs, max_len: int, label_smoothing: float = 0.0
) -> TranslationObjective | None:
    """What is to be learned from some pairs, in plain typography; None where every pair is too long."""
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


@cache
def _world() -> Any:
    from tinytx.world.world import World

    return World()


def count_mistakes(translations: Sequence[str]) -> GrammarCount:
    """Count the mistakes of grammar in French sentences made of the world's words.

    Examples
    --------
    >>> count_mistakes(["L'histoire est belle.", "La histoire est beau."])
    GrammarCount(n_errors=2, n_sentences=1, n_agreement=1)
    """
    from tinytx.world.checker import check_sentence

    found = [check_sentence(_world().split(text)) for text in translations]
    return GrammarCount(
        sum(map(len, found)),
        sum(map(bool, found)),
        sum("must agree" in mistake for mistakes in found for mistake in mistakes),
    )
