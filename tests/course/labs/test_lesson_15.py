"""Lesson 15: repeated texts, the bag of words, stored results of transfer."""

import pytest

from tinytx.text.corpora import Split
from tinytx_course.labs.lesson_15 import bag_of_words, display_name, kind_of, same_text, transfer_rows
from tinytx_course.results import read_results


def test_texts_are_the_same_whatever_case_spaces_and_punctuation():
    assert same_text("Un beau  livre !") == same_text("un beau livre") != same_text("un beau livret")
    assert same_text("l?amour") == same_text("l\u2019amour")


def test_a_bag_of_words_finds_the_word_that_decides():
    texts = tuple(f"le {noun} est {word}" for noun in ("chat", "livre", "vin") for word in ("bon", "laid"))
    train = Split(texts * 2, (1, 0) * 6)
    found = bag_of_words(train, ["ce film est bon", "ce film est laid", "bon"], seed=0)
    assert found.tolist() == [1, 0, 1]


def cells(condition, accuracies, *, budget="study", texts="a", n_folds=2):
    """Records of repetitions of two folds each."""
    found = {}
    for number, accuracy in enumerate(accuracies):
        repeat, fold = divmod(number, n_folds)
        found[f"mine/{budget}/{condition}/labels 50/repeat {repeat}/fold {fold}"] = {
            "condition": condition,
            "n_labels": 50,
            "origin": {"texts": texts, "n_folds": n_folds},
            "repeat": repeat,
            "fold": fold,
            "seed": number,
            "accuracy": accuracy,
        }
    return found


def test_rows_are_over_the_repetitions_that_all_have():
    records = cells("scratch", [0.5, 0.6, 0.7, 0.8]) | cells("masked:near", [0.6, 0.8, 0.9])
    records |= cells("counts", [0.9]) | cells("stars", [0.1, 0.1], budget="smoke")
    records |= cells("tfidf-bayes", [0.2, 0.2], texts="b")
    scratch, masked = transfer_rows(records)
    assert scratch.accuracies == (0.5, 0.6) and scratch.seeds == (0, 1) and scratch.gains == {}
    assert masked.accuracies == (0.6, 0.8)
    assert masked.gains["scratch"].mean == pytest.approx(0.15) and masked.gains["scratch"].n == 2
    assert transfer_rows({}) == []


def test_every_stored_condition_has_a_row_a_name_and_a_kind():
    rows = transfer_rows(read_results("transfer-cls-books").data)
    assert len(rows) > 50 and all(len(row.seeds) == len(rows[0].seeds) for row in rows)
    assert {kind_of(row.condition) for row in rows} == {"words", "nothing", "text", "neighbour"}
    names = {row.condition: display_name(row.condition) for row in rows}
    assert len(set(names.values())) == len(names)
