"""BLEU and chrF of translations, by sacreBLEU, with its signature and an interval over the test sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinytx.training.intervals import Interval

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
            "scoring translations needs the package sacrebleu: install tinytx with its extra [eval]"
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
