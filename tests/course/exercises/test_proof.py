"""The checkers against solutions as people write them: right ones pass, wrong ones are rejected and named."""

import dataclasses
import re

import pytest

from tests.solutions import __main__ as command
from tests.solutions import try_all
from tests.solutions.collection import SOLUTIONS
from tinytx_course.exercises.checking import check
from tinytx_course.exercises.judging import read_known


@pytest.fixture(scope="module", params=[0, pytest.param(1, marks=pytest.mark.proof)], ids=str)
def trials(request):
    return list(
        try_all([request.param], [solution for solution in SOLUTIONS if solution.slug != "time-limit"])
    )


def test_right_solutions_pass_wrong_ones_do_not_and_nine_of_ten_get_their_name(exercise, trials):
    own = [trial for trial in trials if trial.solution.exercise == exercise.name]
    right = [trial for trial in own if trial.solution.slug is None]
    wrong = [trial for trial in own if trial.solution.slug is not None]
    assert len({t.solution.name for t in right}) >= 4
    assert [(t.solution.name, t.seed, t.mistake) for t in right if not t.passed] == []
    assert [(t.solution.name, t.seed) for t in wrong if t.passed] == []
    otherwise = [(t.solution.name, t.seed, t.mistake) for t in wrong if not t.named]
    assert len(otherwise) <= 0.1 * len(wrong), otherwise


def test_known_mistakes_differ_from_the_right_answer_with_other_seeds(exercise):
    for seed in (1, 2):  # with the first they are refused, see below
        calls = list(exercise.calls(seed))
        right = [read_known(exercise, exercise.solve, call) for call in calls]
        for mistake in exercise.mistakes:
            for wrong in mistake.wrongs if "+" not in mistake.slug else ():  # some pairs undo each other
                pairs = (
                    (read_known(exercise, wrong, call), due) for call, due in zip(calls, right, strict=True)
                )
                assert any(got is None or not got.agrees_with(due) for got, due in pairs), mistake.slug


def test_every_implementation_of_a_mistake_is_refused_and_named(exercise):
    """Also where another one computes the same; so a wrong solution need not repeat an implementation."""
    for mistake in exercise.mistakes:
        for wrong in mistake.wrongs if "+" not in mistake.slug else ():
            found = check(exercise.name, wrong, display=False)
            assert not found.passed, mistake.slug
            assert found.mistake == mistake.slug or mistake.words in found.message, (mistake.slug, found)
            alike = "Or this, which comes to the same" in found.message  # two ways to one count
            assert not alike or exercise.name == "count_language_model", (mistake.slug, found)


def test_the_command_prints_a_row_an_exercise_and_ends_with_0_unless_a_wrong_one_passes(monkeypatch, capsys):
    names = ["causal_mask", "perplexity"]
    few = [one for one in SOLUTIONS if one.exercise in names]
    monkeypatch.setattr("tests.solutions.EXERCISES", names)
    monkeypatch.setattr(command, "SOLUTIONS", few)
    monkeypatch.setattr("sys.argv", ["solutions", "--seeds", "1"])
    assert command.main() == 0
    assert re.findall(r"^(\w+) +\d+/", capsys.readouterr().out, re.M) == names
    right = next(one for one in few if one.slug is None)
    few.append(dataclasses.replace(right, slug="transposed"))
    assert command.main() == 1
