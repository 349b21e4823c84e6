"""Two questions of earlier lessons: those missed first, else a choice that follows from the lesson."""

import pytest

import tinytx_course as course
from tinytx_course.lessons import LESSONS


def keys(card):
    return [question["key"] for question in card.questions]


def answer(card, key, right):
    """What the page sends when a reader checks a choice."""
    choices = next(question["choices"] for question in card.questions if question["key"] == key)
    choice = next(i for i, one in enumerate(choices) if one["right"] is right)
    card.set_state({"answers": {**card.answers, key: {"choice": choice, "sure": 0, "checked": True}}})


@pytest.mark.parametrize("lesson", LESSONS[3:], ids=lambda lesson: lesson.slug)
def test_without_a_record_two_questions_of_two_earlier_lessons_always_the_same(lesson):
    first, second = keys(course.recall(lesson.number))
    assert [first, second] == keys(course.recall(f"{lesson.number:02d}"))
    slugs = [first.split("/")[0], second.split("/")[0]]
    assert len(set(slugs)) == 2
    assert all(slug in [one.slug for one in LESSONS[: lesson.number]] for slug in slugs)
    assert not any("(Further)" in question["prompt"] for question in course.recall(lesson.number).questions)


def test_lessons_open_with_different_questions():
    assert len({tuple(keys(course.recall(lesson.number))) for lesson in LESSONS[3:]}) > len(LESSONS) / 2


def test_missed_questions_come_first_until_they_are_answered_right(mine):
    usual = keys(course.recall("05"))
    quiz = course.quiz("tokens")
    missed = [key for key in keys(quiz) if key not in usual][:2]
    for key in missed:
        answer(quiz, key, right=False)
    card = course.recall("05")
    assert set(keys(card)) == set(missed) and card.answers == {}
    for key in missed:
        answer(card, key, right=True)
        assert mine.entry("questions", key)["right"] and mine.entry("questions", key)["missed"] == 1
    answer(course.quiz("tokens"), missed[0], right=False)
    assert keys(course.recall("05"))[0] == missed[0]


def test_choosing_without_checking_is_no_answer(mine):
    quiz = course.quiz("tokens")
    quiz.set_state({"answers": {keys(quiz)[0]: {"choice": 0, "sure": 0, "checked": False}}})
    assert mine.part("questions") == {}


def test_a_quiz_shows_what_was_answered_before_and_a_page_does_not(mine):
    quiz = course.quiz("tokens")
    answer(quiz, keys(quiz)[1], right=True)
    again = course.quiz("tokens")
    assert again.answers == quiz.answers != {}
    assert again.state()["answers"] == {} and again.remembered and not course.recall("05").remembered


@pytest.mark.parametrize("lesson", ["00", "99", "five", None])
def test_a_lesson_with_nothing_before_it_or_unknown_is_refused(lesson):
    with pytest.raises(ValueError, match=f"got {lesson!r}"):
        course.recall(lesson)
