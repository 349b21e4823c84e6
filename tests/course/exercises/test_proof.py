"""The checkers against solutions as people write them: right ones pass, wrong ones are rejected and named."""

import subprocess
import sys

import pytest

from tests.solutions import try_all
from tests.solutions.collection import SOLUTIONS
from tinytx_course.exercises.checking import EXERCISES, check


@pytest.fixture(scope="module", params=[(0,), pytest.param((1, 2, 3), marks=pytest.mark.proof)], ids=str)
def trials(request):
    return list(try_all(request.param, [solution for solution in SOLUTIONS if solution.slug != "time-limit"]))


@pytest.mark.parametrize("name", EXERCISES)
def test_every_right_solution_passes(name, trials):
    right = [t for t in trials if t.solution.exercise == name and t.solution.slug is None]
    assert len({t.solution.name for t in right}) >= 4
    assert [(t.solution.name, t.seed, t.mistake) for t in right if not t.passed] == []


@pytest.mark.parametrize("name", EXERCISES)
def test_every_wrong_solution_is_rejected(name, trials):
    wrong = [t for t in trials if t.solution.exercise == name and t.solution.slug is not None]
    assert len({t.solution.name for t in wrong}) >= 8
    assert [(t.solution.name, t.seed) for t in wrong if t.passed] == []


@pytest.mark.parametrize("name", EXERCISES)
def test_nine_mistakes_of_ten_get_their_name(name, trials):
    wrong = [t for t in trials if t.solution.exercise == name and t.solution.slug is not None]
    otherwise = [(t.solution.name, t.seed, t.mistake) for t in wrong if not t.named]
    assert len(otherwise) <= 0.1 * len(wrong), otherwise


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.proof) for seed in (1, 2))])
def test_known_mistakes_differ_from_the_right_answer_with_every_seed(name, seed):
    for mistake in EXERCISES[name].mistakes:
        if "+" not in mistake.slug:  # some pairs undo each other
            for wrong in mistake.wrongs:
                assert not check(name, wrong, seed=seed, display=False).passed, mistake.slug


@pytest.mark.proof
def test_the_command_prints_a_row_an_exercise_and_ends_with_0():
    done = subprocess.run(
        [sys.executable, "-m", "tests.solutions", "--seeds", "1", "--without-endless"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(any(line.startswith(name) for line in done.stdout.splitlines()) for name in EXERCISES)
