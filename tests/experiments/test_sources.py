"""Unlabelled text: what is tested is never read, and what is missing is named."""

import json

import pytest

from experiments.transfer_data import ELSEWHERE, ReviewSources, distinct_texts, same_text

WORDS = dict.fromkeys(ELSEWHERE, 10**6)


def test_reviews_of_the_task_are_left_out_of_every_source(reviews, data_dir):
    texts = distinct_texts(reviews)[0].texts
    assert len(ReviewSources(data_dir).rated) == 81 and len(ReviewSources(data_dir, texts).rated) == 80
    keys = {same_text(text) for text in texts}
    assert not any(
        same_text(text) in keys for text in ReviewSources(data_dir, texts).elsewhere("around", WORDS)
    )


def test_around_is_all_of_elsewhere_and_words_are_counted(data_dir):
    sources = ReviewSources(data_dir)
    whole = [text for name in ELSEWHERE for text in sources.elsewhere(name, WORDS)]
    assert sources.elsewhere("around", WORDS) == whole
    few = sources.elsewhere("novels", {"novels": 50})
    assert 50 <= sum(len(text.split()) for text in few) < 50 + max(len(text.split()) for text in few)
    assert few == sources.elsewhere("novels", {"novels": 50}) and not any("english" in text for text in whole)


def test_missing_folders_and_broken_lines_are_named(tmp_path):
    with pytest.raises(ValueError, match="data_dir must be the folder that holds the texts, got None"):
        ReviewSources(None)
    with pytest.raises(ValueError, match="must hold the folder eltec-fra"):
        ReviewSources(tmp_path).elsewhere("novels", WORDS)
    with pytest.raises(ValueError, match="one of novels, tatoeba, readers or around, got 'news'"):
        ReviewSources(tmp_path).elsewhere("news", WORDS)
    (tmp_path / "reader-reviews-fr").mkdir()
    (tmp_path / "reader-reviews-fr" / "a.jsonl").write_text(json.dumps({"reader_review": "très bon livre"}))
    with pytest.raises(ValueError, match="line 1: must be JSON with reader_review and rating"):
        _ = ReviewSources(tmp_path).rated
