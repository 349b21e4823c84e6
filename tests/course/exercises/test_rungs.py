"""Practice in rungs: what is made of each exercise's file, and what a learner is offered."""

import pytest

import tinytx_course as course
from tinytx_course.exercises.catalogue import Program
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.practice import fill
from tinytx_course.exercises.rungs import RUNGS, blanks, labelled, lowest_left, program_lines, rungs_of

BLANKS = [(exercise, blank) for exercise in EXERCISES.values() for blank in blanks(exercise)]


def filled(exercise, blank, text):
    lines = program_lines(exercise.solve)
    lines[blank.number] = blank.before + text + blank.after
    return lines


@pytest.mark.parametrize(
    ("exercise", "blank"), BLANKS, ids=[f"{one.name}-{blank.number}" for one, blank in BLANKS]
)
def test_a_blank_tells_two_mistakes_apart_and_each_wrong_choice_is_the_mistake_that_it_names(exercise, blank):
    """As a program: `test_proof` sees to it that each is refused, and gets this name."""
    assert 2 <= len({mistake.words for mistake in blank.wrong.values()}) == len(blank.wrong) <= 3
    assert filled(exercise, blank, blank.right) == program_lines(exercise.solve)
    for text, mistake in blank.wrong.items():
        assert mistake in exercise.mistakes and "+" not in mistake.slug
        assert filled(exercise, blank, text) in [program_lines(wrong) for wrong in mistake.wrongs], text


def test_every_exercise_has_all_rungs(exercise):
    assert rungs_of(exercise) == RUNGS
    space = Program(exercise.name, labelled(exercise), "a labelled program")
    assert program_lines(space) == program_lines(exercise.solve) and "  # 1. " in space.text
    assert [course.practise(exercise.name, rung).title[:4] for rung in RUNGS[1:3]] == ["Orde", "Fill"]


def test_the_lowest_rung_that_is_not_passed_is_shown_and_what_is_passed_is_recorded(mine):
    explorer = course.practise("attention")
    explorer.report = "check"
    assert explorer.kind == "parsons" and lowest_left(EXERCISES["attention"]) == "order"
    explorer.report = "right"
    card = course.practise("attention")
    assert card.kind == "questions" and lowest_left(EXERCISES["attention"]) == "fill"
    right = {
        one["key"]: {
            "choice": [way["right"] for way in one["choices"]].index(True),
            "sure": 0,
            "checked": True,
        }
        for one in card.questions
    }
    card.answers = dict(list(right.items())[1:])
    assert lowest_left(EXERCISES["attention"]) == "fill"
    card.answers = right
    assert "def attention(q, k, v, mask):\n    ..." in repr(course.practise("attention"))
    assert course.check("attention", EXERCISES["attention"].mistakes[0].wrongs[0]).passed is False
    assert mine.entry("exercises", "attention")["rungs"] == ["fill", "order"]
    assert course.status().rows[2][3].startswith("0 of ")  # a blank is no question of a quiz


def test_the_right_program_is_shown_after_two_tries_or_a_pass_or_to_who_asks_for_it_anyway(mine, capsys):
    wrong, right = lambda token_ids, pad_id: token_ids == pad_id, "token_ids != pad_id  # 1. returned"
    assert right in repr(course.practise("padding_mask", "watch", anyway=True))
    for _ in range(2):
        assert "anyway=True" in repr(course.practise("padding_mask", "watch"))
        course.check("padding_mask", wrong)
    assert right in course.practise("padding_mask", "watch")._repr_html_()
    course.reset("padding_mask")
    course.check("padding_mask", lambda token_ids, pad_id: pad_id != token_ids)
    assert right in repr(course.practise("padding_mask", "watch"))
    assert (
        capsys.readouterr().out.count('Put its lines in order first: `course.practise("padding_mask")`.') == 2
    )


def test_a_card_of_blanks_shows_the_program_and_not_what_is_missing():
    exercise = EXERCISES["attention"]
    card = fill(exercise)
    assert "scores = __1__\n" in card.summary() and "scores = __1__\n" in card.to_html()
    assert all(blank.right not in card.questions[0]["program"] for blank in blanks(exercise))


def test_a_rung_that_is_not_known_is_answered_with_all():
    with pytest.raises(ValueError, match="rung of padding_mask must be one of watch, .*, write, got 'read'"):
        course.practise("padding_mask", "read")
