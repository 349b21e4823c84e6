"""Pairs of sentences: half of them follow one another, the others come from different texts."""

import numpy as np
import pytest

from tinytx.text.tokenizer import Tokenizer
from tinytx.training.masking import draw_pairs, make_passages, split_sentences

TEXTS = ["le chat . la table ! un chien", "un chat", "la", "une table . une table . une table . une table ."]
TOKENIZER = Tokenizer.train(TEXTS * 5, vocab_size=25)


def text_of(ids):
    return TOKENIZER.decode(ids)


def test_sentences_joined_by_spaces_are_the_text():
    for text in [*TEXTS, "Vraiment ?! Oui... non  . Fin", "  a . ", ""]:
        assert " ".join(split_sentences(text)) == text
    assert split_sentences(TEXTS[0]) == ["le chat .", "la table !", "un chien"]


def test_passages_hold_whole_texts_and_are_cut_between_sentences():
    passages = make_passages(TOKENIZER, TEXTS, room=100)
    assert [one.text for one in passages] == [0, 1, 3]  # one word cannot be cut in two
    assert [text_of(one.ids) for one in passages] == [TEXTS[0], TEXTS[1], TEXTS[3]]
    first, words, last = passages
    assert [text_of(first.ids[cut:]) for cut in first.cuts] == ["la table ! un chien", "un chien"]
    assert [text_of(words.ids[cut:]) for cut in words.cuts] == ["chat"]
    assert len(last.cuts) == 3


def test_what_is_too_long_is_spread_over_passages_and_nothing_is_lost():
    room = 7
    passages = make_passages(TOKENIZER, [TEXTS[3], " ".join(["chien"] * 30)], room)
    assert all(len(one.ids) <= room for one in passages)
    assert text_of([i for one in passages if one.text == 0 for i in one.ids]) == TEXTS[3]


def test_half_of_the_seconds_come_from_another_text():
    texts = [f"{a} chat . {b} table ." for a in ("le", "un", "la", "une") for b in ("la", "une")]
    passages = make_passages(TOKENIZER, texts * 200, room=60)
    pairs = draw_pairs(passages, 60, np.random.default_rng(0))
    assert abs(np.mean(pairs.labels) - 0.5) < 5 * 0.5 / len(passages) ** 0.5
    for passage, first, second, label in zip(
        passages, pairs.firsts, pairs.seconds, pairs.labels, strict=True
    ):
        assert first == passage.ids[: len(first)]
        if label == 0:
            assert first + second == passage.ids
    again = draw_pairs(passages, 60, np.random.default_rng(0))
    assert again == pairs and draw_pairs(passages, 60, np.random.default_rng(1)) != pairs


def test_a_strange_second_is_never_of_the_same_text():
    passages = make_passages(TOKENIZER, ["le chien . " * 4 + "la", "un chat . une table ."], 9)
    assert len(passages) > 2
    for seed in range(20):
        pairs = draw_pairs(passages, 9, np.random.default_rng(seed))
        for passage, second, label in zip(passages, pairs.seconds, pairs.labels, strict=True):
            own_words = {"le", "chien"} if passage.text == 0 else {"un", "chat", "une"}
            if label == 1:
                assert not own_words & set(text_of(second).split())


def test_both_parts_fit_together():
    passages = make_passages(TOKENIZER, TEXTS, room=14)
    for seed in range(20):
        pairs = draw_pairs(passages, 14, np.random.default_rng(seed))
        assert all(len(x) + len(y) <= 14 and y for x, y in zip(pairs.firsts, pairs.seconds, strict=True))


def test_a_single_text_makes_no_pairs():
    with pytest.raises(ValueError, match="two texts that can be cut at least, got 1"):
        draw_pairs(make_passages(TOKENIZER, TEXTS[:1], 50), 50, np.random.default_rng(0))
    with pytest.raises(ValueError, match="at least 2 ids, got 1"):
        make_passages(TOKENIZER, TEXTS, 1)
