"""Results that are texts: tokens and pairs are compared exactly and shown as they are."""

import pytest

import tinytx_course as course
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.comparing import token_pairs, tokens
from tinytx_course.exercises.observation import Failure


def check(name, function):
    return course.check(name, function, display=False)


@pytest.mark.parametrize(
    ("one", "other"),
    [(["ab"], ["a", "b"]), (["a"], ["a", ""]), ([""], []), (["é"], ["e\u0301"]), (["a", "b"], ["b", "a"])],
)
def test_lists_of_tokens_agree_only_when_they_are_equal(one, other):
    assert tokens(one).agrees_with(tokens(list(one))) and tokens(one).agrees_with(tokens(tuple(one)))
    assert not tokens(one).agrees_with(tokens(other))


def test_pairs_agree_only_when_each_half_does():
    due = [("l", "e"), ("le", "s")]
    assert token_pairs(due).agrees_with(token_pairs([["l", "e"], ["le", "s"]]))
    for other in (due[:1], due[::-1], [("l", "e"), ("l", "es")], []):
        assert not token_pairs(due).agrees_with(token_pairs(other))


@pytest.mark.parametrize(
    "value", [["le"], [("l", "e", "s")], [("l", 1)], "le", {("l", "e"): 1}, [[("l", "e"), 2]]]
)
def test_what_is_no_list_of_pairs_is_a_wrong_type(value):
    found = token_pairs(value)
    assert isinstance(found, Failure) and found.mistake == "wrong-type"


def test_a_message_shows_the_tokens_and_marks_those_that_differ():
    message = check("encode_bpe", lambda word, merges: list(word)).message
    assert "expected    yours" in message
    assert " le " in message and "[l]" in message and "[e]" in message


def test_a_dict_that_is_emptied_is_reported_and_restored_for_the_next_call():
    def emptied(words, n_merges):
        copied = dict(words)
        words.clear()
        return solution(copied, n_merges)

    solution = EXERCISES["learn_merges"].solve
    found = check("learn_merges", emptied)
    assert found.mistake == "input-modified" and "`words`" in found.message
