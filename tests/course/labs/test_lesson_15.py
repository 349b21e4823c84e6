"""Lesson 15: repeated texts, and which stored cells of pretraining are compared."""

from tinytx_course.labs.lesson_15 import measured
from tinytx_run.intervals import paired_interval


def cells(condition, accuracies, *, dose=0, corpus="films", budget="study"):
    """Records of draws of two folds each."""
    found = {}
    for number, accuracy in enumerate(accuracies):
        draw, fold = divmod(number, 2)
        found[f"{corpus}/{budget}/{condition}/labels 50/fold {fold}/draw {draw}"] = {
            "condition": condition, "n_labels": 50, "dose": dose, "draw": draw, "fold": fold,
            "accuracy": accuracy, "origin": {"n_folds": 2},
        }  # fmt: skip
    return found


def test_conditions_are_compared_on_the_draws_that_both_have():
    records = cells("tfidf-words", [0.5, 0.6, 0.7, 0.8, 0.9]) | cells("scratch/tuned", [0.6, 0.8, 0.9])
    records |= cells("scratch/probe", [0.9]) | cells("tfidf-words", [0.1, 0.1], corpus="books")
    records |= cells("tfidf-letters", [0.2, 0.2], budget="smoke")
    found = measured(records, "films")[50]
    assert found.accuracies == {"tfidf-words": [50, 60, 70, 80], "scratch/tuned": [60, 80]}
    assert "scratch/probe" not in found and "scratch/tuned" in found
    expected = paired_interval([10, 20], test_share=1)
    assert found.gain("scratch/tuned", "tfidf-words") == expected
    assert found.interval("tfidf-words").mean == 65
    assert measured({}) == measured(cells("scratch/probe", [0.9]), "films") == {}


def test_doses_come_in_their_order_with_the_tokens_that_were_read():
    records = {}
    for dose in (30_000_000, 1_000_000, 3_000_000):
        records |= cells(f"causal/tuned/{dose}", [0.5, 0.6], dose=dose)
        records[f"films/study/pretraining causal/{dose}"] = {"objective": "causal", "n_tokens": dose + 7}
    found = measured(records, "films")[50]
    tokens = [found.tokens[name] for name in found.doses("causal", "tuned")]
    assert tokens == [1_000_007, 3_000_007, 30_000_007] and found.doses("causal", "probe") == []
