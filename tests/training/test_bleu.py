"""BLEU: sacreBLEU's own figures, several references, an interval that is a function of the seed."""

import random
import sys

import pytest
from sacrebleu.metrics import BLEU, CHRF

from tinytx.training.bleu import score_translations

WORDS = ["le", "la", "un", "chat", "chien", "mange", "voit", "bien", "très", "peu", "souvent", "."]


def noisy(n, seed):
    rng = random.Random(seed)
    references = [" ".join(rng.choice(WORDS) for _ in range(rng.randint(4, 12))) for _ in range(n)]
    return [" ".join(w for w in r.split() if rng.random() > 0.1) for r in references], references


def test_equals_sacrebleu_called_directly():
    translations, references = noisy(60, 1)
    score = score_translations(translations, [[r] for r in references])
    bleu, chrf = BLEU(), CHRF()
    whole = bleu.corpus_score(translations, [references])
    assert (score.bleu, score.brevity, list(score.precisions)) == (whole.score, whole.bp, whole.precisions)
    assert score.chrf == chrf.corpus_score(translations, [references]).score
    assert score.signature == str(bleu.get_signature())
    assert score.interval.low < score.bleu < score.interval.high
    assert score == score_translations(translations, [[r] for r in references])
    assert score.interval != score_translations(translations, [[r] for r in references], seed=1).interval


def test_references_may_differ_in_number():
    translations, references = noisy(20, 2)
    several = [[r, "autre chose"] if i % 3 else [r] for i, r in enumerate(references)]
    streams = [references, [None if i % 3 == 0 else "autre chose" for i in range(20)]]
    score = score_translations(translations, several, n_resamples=10)
    assert score.bleu == BLEU().corpus_score(translations, streams).score
    assert score_translations(
        references, [["rien", r] for r in references], n_resamples=10
    ).bleu == pytest.approx(100)


def test_the_interval_is_that_of_resampled_test_sets():
    translations, references = noisy(40, 3)
    score = score_translations(translations, [[r] for r in references], n_resamples=200, seed=5)
    # The same with whole texts in place of counts.
    import numpy as np

    rng = np.random.default_rng(5)
    scores = []
    for _ in range(200):
        rows = rng.integers(40, size=40)
        scores.append(
            BLEU().corpus_score([translations[i] for i in rows], [[references[i] for i in rows]]).score
        )
    assert tuple(score.interval) == pytest.approx(tuple(np.quantile(scores, [0.025, 0.975])))


def test_what_cannot_be_scored_is_refused(monkeypatch):
    for translations, references in (([], []), (["a"], [[]]), (["a", "b"], [["a"]])):
        with pytest.raises(ValueError, match="every translation needs a reference"):
            score_translations(translations, references)
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(
        ValueError, match=r"needs the package sacrebleu: install tinytx with its extra \[course\]"
    ):
        score_translations(["a"], [["a"]])
