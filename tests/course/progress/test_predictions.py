"""Predict and resolve: the first choice that is resolved counts; a page holds nothing personal."""

import pytest

import tinytx_course as course
from tinytx_course.progress.predictions import OutcomeCard, _verdict

OPTIONS = ["falls", "rises", "stays"]


def chosen(card, choice, sure=0):
    """What the page sends when a reader picks an option."""
    card.set_state(
        {"answers": {card.questions[0]["key"]: {"choice": choice, "sure": sure, "checked": False}}}
    )


def test_a_choice_is_recorded_shown_again_and_compared(mine):
    card = course.predict("02.1", "Does `x` fall?", OPTIONS)
    assert repr(card).startswith("Predict 02.1. Does x fall?\n  A. falls\n  B. rises\n  C. stays\n")
    chosen(card, 1)
    chosen(card, 1, sure=70)
    assert mine.entry("predictions", "02.1") == {"choice": "rises", "sure": 70}
    again = course.predict("02.1", "?", OPTIONS)
    assert again.answers["02.1"]["choice"] == 1 and again.answers["02.1"]["sure"] == 70
    outcome = course.resolve("02.1", "falls", "From 2.3 to 1.9.")
    assert "rises" in repr(outcome) and "From 2.3 to 1.9." in repr(outcome)
    assert mine.entry("predictions", "02.1")["right"] is False


def test_the_first_choice_that_was_resolved_counts(mine):
    card = course.predict("02.1", "?", OPTIONS)
    chosen(card, 1)
    course.resolve("02.1", "falls", "It falls.")
    chosen(card, 0)
    assert card.answers["02.1"]["choice"] == 1
    assert course.resolve("02.1", "falls", "It falls.").choice == "rises"
    assert mine.entry("predictions", "02.1")["right"] is False
    course.reset("02.1")
    chosen(course.predict("02.1", "?", OPTIONS), 0, sure=90)
    course.resolve("02.1", "falls", "It falls.")
    assert mine.entry("predictions", "02.1") == {
        "choice": "falls", "sure": 90, "answer": "falls", "right": True
    }  # fmt: skip


def test_without_a_choice_answer_and_finding_are_shown_and_nothing_recorded(mine):
    course.predict("02.1", "?", OPTIONS)
    assert course.resolve("02.1", "falls", "It falls.").summary() == "Answer: “falls”. It falls."
    assert mine.part("predictions") == {}


def test_a_choice_of_an_earlier_wording_is_not_compared(mine):
    chosen(course.predict("02.1", "?", OPTIONS), 1)
    card = course.predict("02.1", "?", ["shrinks", "grows"])
    assert card.answers == {}
    assert course.resolve("02.1", "grows", "It grows.").summary() == "Answer: “grows”. It grows."


def test_no_page_holds_what_a_reader_chose(mine):
    card = course.predict("02.1", "?", OPTIONS)
    empty = card.to_html()
    chosen(card, 1, sure=90)
    assert card.to_html() == empty
    state = course.resolve("02.1", "falls", "It falls.").state()
    assert (state["choice"], state["sure"], state["live"]) == ("", 0, False)


@pytest.mark.parametrize("number", ["2.1", "02", "02.0", "02.01", "99.1", "predict"])
def test_a_number_of_another_form_is_refused(mine, number):
    for call in (
        lambda: course.predict(number, "?", OPTIONS),
        lambda: course.resolve(number, "falls", "So."),
    ):
        with pytest.raises(ValueError, match=f"got '{number}'"):
            call()


@pytest.mark.parametrize("options", [["one"], ["a", "a"], ["a", " "], ["a", "a "], ["a", "open"]])
def test_options_must_differ(mine, options):
    with pytest.raises(ValueError, match="two different"):
        course.predict("02.1", "?", options)


def test_an_answer_that_is_no_option_and_an_empty_finding_are_refused(mine):
    course.predict("02.1", "?", OPTIONS)
    with pytest.raises(ValueError, match="falls, rises, stays, got 'fell'"):
        course.resolve("02.1", "fell", "It fell.")
    with pytest.raises(ValueError, match="finding"):
        course.resolve("02.1", "falls", " ")


LIMITS = {"thresholds": (2, 4)}


@pytest.mark.parametrize(
    ("value", "between", "answer"),
    [
        (1.9, None, "falls"), (2.0, None, "open"), (3.0, (2.1, 3.9), "rises"), (5, (4.5, 9), "stays"),
        (3.0, (2.1, 4.0), "open"), (1.0, (0, 5), "open"), (2.5, (2.0, 3.0), "open"),
    ],
)  # fmt: skip
def test_a_range_that_holds_a_threshold_leaves_the_outcome_open(mine, value, between, answer):
    chosen(course.predict("02.1", "?", OPTIONS), 1)
    outcome = course.resolve("02.1", value, "So.", between=between, **LIMITS)
    assert outcome.answer == answer
    entry = mine.entry("predictions", "02.1")
    assert entry.get("right") == (None if answer == "open" else answer == "rises")
    assert ("does not decide" in outcome.summary()) == (answer == "open")


@pytest.mark.parametrize(
    ("value", "how", "words"),
    [
        (3, {"between": (1, 2), **LIMITS}, "value=3, between="),
        (3, {}, r"thresholds=\[\]"),
        (3, {"thresholds": (4, 2)}, r"\[4, 2\]"),
        (3, {"thresholds": (2, 2)}, r"\[2, 2\]"),
    ],
)
def test_a_value_outside_its_range_and_thresholds_that_do_not_divide_are_refused(mine, value, how, words):
    course.predict("02.1", "?", OPTIONS)
    with pytest.raises(ValueError, match=words):
        course.resolve("02.1", value, "So.", **how)


def test_page_and_python_say_the_same(node):
    cases = [
        ("", 0, "open"),
        ("a", 50, "open"),
        ("", 0, "a"),
        ("a", 0, "a"),
        ("a", 70, "a"),
        ("b", 90, "a"),
        ("b `c`", 0, "a `d`"),
    ]
    cards = [
        OutcomeCard(number="02.1", answer=answer, finding="It is `so`.", choice=choice, sure=sure)
        for choice, sure, answer in cases
    ]
    states = [{**card.state(), "choice": card.choice, "sure": card.sure} for card in cards]
    assert node("outcome", "js.describe(get)", *states) == [card.summary() for card in cards]
    assert node("outcome", "js.verdict('b', 90, 'a')") == [_verdict("b", 90, "a")]


def test_the_page_counts_what_was_checked_and_repeats_the_prediction(node, mine):
    quiz = course.quiz("masks")
    first, second = quiz.questions[:2]
    right = next(i for i, choice in enumerate(first["choices"]) if choice["right"])
    wrong = next(i for i, choice in enumerate(second["choices"]) if not choice["right"])
    answers = {
        first["key"]: {"choice": right, "sure": 0, "checked": True},
        second["key"]: {"choice": wrong, "sure": 0, "checked": True},
    }
    (said,) = node("questions", "js.describe(get)", {**quiz.state(), "answers": answers})
    assert said == f"2 of {len(quiz.questions)} checked, 1 right."
    card = course.predict("02.1", "?", OPTIONS)
    answers = {"02.1": {"choice": 2, "sure": 50, "checked": False}}
    (said,) = node("questions", "js.describe(get)", {**card.state(), "answers": answers})
    assert "stays" in said and "50 %" in said
