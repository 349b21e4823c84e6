"""Status and reset: counts by hand, calibration, one line of advice, a stub to begin again."""

import pytest

import tinytx_course as course
from tinytx_course.exercises.checking import EXERCISES


def row(status, number):
    return next(cells for cells in status.rows if cells[0].startswith(number))


def test_nothing_done_names_the_first_exercise_and_judges_nothing(mine):
    status = course.status()
    assert row(status, "02")[1].startswith("0 of ") and row(status, "02")[2] == "none made"
    (advice,) = status.sentences
    first = min(EXERCISES.values(), key=lambda exercise: exercise.lesson)
    assert "Nothing to repeat" in advice and f"lesson {first.lesson:02d}" in advice


def test_counts_are_those_of_the_record(mine):
    mine.change("exercises", "causal_mask", {"passed": True, "mistake": None, "tries": 2})
    mine.change("predictions", "02.1", {"choice": "a", "sure": 0, "answer": "a", "right": True})
    mine.change("predictions", "02.2", {"choice": "a", "sure": 0, "answer": "b", "right": False})
    mine.change("predictions", "02.3", {"choice": "a", "sure": 90})
    key = course.quiz("masks").questions[0]["key"]
    mine.change("questions", key, {"choice": "x", "right": True, "missed": 0})
    n_exercises = sum(exercise.lesson == 2 for exercise in EXERCISES.values())
    n_questions = len(course.quiz("masks").questions)
    status = course.status()
    assert row(status, "02")[1:] == (f"1 of {n_exercises}", "1 of 2", f"1 of {n_questions}")
    for text in (repr(status), status._repr_html_()):
        assert "1 of 2" in text and status.sentences[-1] in text
    assert "lesson 02" in status.sentences[-1] and "wrong answers: 1" in status.sentences[-1]


@pytest.mark.parametrize(
    ("n_right", "sure", "verdict"), [(1, 90, "too sure"), (5, 50, "less sure"), (4, 90, "about as sure")]
)
def test_confidence_is_compared_with_how_many_were_right(mine, n_right, sure, verdict):
    for i in range(5):
        entry = {"choice": "a", "sure": sure, "answer": "a", "right": i < n_right}
        mine.change("predictions", f"03.{i + 1}", entry)
    levels, judgement, _ = course.status().sentences
    assert levels == f"{sure} % sure: {n_right} of 5 right."
    assert f"{sure} % sure on average, and right in {20 * n_right} %" in judgement and verdict in judgement


def test_few_predictions_are_counted_and_not_judged(mine):
    mine.change("predictions", "03.1", {"choice": "a", "sure": 70, "answer": "a", "right": True})
    assert course.status().sentences[:-1] == ("70 % sure: 1 of 1 right.",)


def test_an_exercise_that_was_tried_and_not_passed_is_to_be_repeated_with_its_mistake(mine):
    mine.change("exercises", "causal_mask", {"passed": False, "mistake": "reversed", "tries": 1})
    advice = course.status().sentences[-1]
    assert "causal_mask" in advice and "reversed" in advice and "02" in advice


@pytest.mark.parametrize("name", ["attention_row", "tiny_gpt"])
def test_reset_forgets_an_exercise_and_gives_its_stub(mine, name):
    mine.change("exercises", name, {"passed": True, "mistake": None, "tries": 1})
    answer = mine.file.parent / "answers" / f"{name}.py"
    answer.parent.mkdir()
    answer.touch()
    stub = course.reset(name)
    assert mine.part("exercises") == {} and not answer.exists()
    assert stub.program == EXERCISES[name].stub and stub.program in repr(stub)


def test_reset_of_an_unknown_name_says_the_nearest_and_changes_nothing(mine):
    mine.change("exercises", "causal_mask", {"passed": True})
    with pytest.raises(ValueError, match="got 'causal_mark'.*causal_mask"):
        course.reset("causal_mark")
    with pytest.raises(ValueError, match="got '02.7'"):
        course.reset("02.7")
    assert mine.part("exercises") == {"causal_mask": {"passed": True}}
