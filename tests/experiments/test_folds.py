"""Folds: every text tested once, nothing learned from what is tested, classes in balance."""

import pytest

from experiments.transfer_data import distinct_texts, readable, same_text, stratified_folds
from tinytx.text.corpora import Corpus, Split


def test_every_text_is_tested_once_and_never_learned_from(reviews):
    split, _ = distinct_texts(reviews)
    for repeat in (0, 1):
        folds = stratified_folds(split, 7, repeat)
        tested = [text for fold in folds for text in fold.tested.texts]
        assert sorted(tested) == sorted(split.texts)
        for fold in folds:
            assert not set(fold.tested.texts) & set(fold.train.texts)
            assert len(fold.tested) + len(fold.train) == len(split)


def test_labels_stay_with_their_texts_and_classes_are_spread_evenly(reviews):
    split, _ = distinct_texts(reviews)
    label_of = dict(zip(split.texts, split.labels, strict=True))
    for fold in stratified_folds(split, 7):
        assert all(
            label_of[text] == label for text, label in zip(fold.tested.texts, fold.tested.labels, strict=True)
        )
        assert abs(2 * sum(fold.tested.labels) - len(fold.tested)) <= 2


def test_repetitions_draw_other_folds_and_seeds_differ(reviews):
    split, _ = distinct_texts(reviews)
    first, second = stratified_folds(split, 3, 0), stratified_folds(split, 3, 1)
    assert first == stratified_folds(split, 3, 0)
    assert set(first[0].tested.texts) != set(second[0].tested.texts)
    assert [fold.seed for fold in first + second] == list(range(6))


def test_repeated_texts_stand_once_whatever_their_case_and_punctuation(reviews):
    split, n_repeated = distinct_texts(reviews)
    assert n_repeated == 1 and len(split) == 150
    assert len({same_text(text) for text in split.texts}) == 150


def test_a_text_with_two_labels_is_left_out_and_the_test_split_untouched():
    corpus = Corpus(
        "c", Split(("a b", "c d", "e f"), (0, 1, 0)), Split(("A, b!", "g h"), (1, 1)), Split(("x",), (0,))
    )
    split, n_repeated = distinct_texts(corpus)
    assert split.texts == ("c d", "e f", "g h") and n_repeated == 2


def test_apostrophes_are_mended_and_questions_kept():
    assert readable("d?abord l\u2019idée\u00a0? oui?") == "d'abord l'idée ? oui?"


@pytest.mark.parametrize("n_folds", [1, 4])
def test_impossible_numbers_of_folds_are_refused(n_folds):
    split = Split(tuple("abcdefg"), (0, 1, 0, 1, 0, 1, 0))
    with pytest.raises(ValueError, match=f"from 2 to 3, the smallest class, got {n_folds}"):
        stratified_folds(split, n_folds)
