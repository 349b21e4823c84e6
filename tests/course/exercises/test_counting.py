"""Counts that are wrong in several ways at once, and how far they are off."""

from functools import partial
from itertools import combinations

import pytest

import tinytx_course as course
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.counting import count_with

LM = "count_language_model"


def counter(*slips):
    """A count, from the table of misconceptions, with some of them made."""
    return partial(count_with, slips=frozenset(slips))


def check(name, function, seed=0):
    return course.check(name, function, seed=seed, display=False)


def test_two_slips_are_found_though_one_explains_a_size():
    # With width 200 and inner width 200, biases D + d_ff of the network weigh as much as one norm, 2 D.
    slips = {"feed-forward-biases-forgotten", "norms-counted-once"}
    for seed in range(3):
        found = check(LM, counter(*slips), seed)
        assert not found.passed and set(found.mistake.split("+")) == slips
        assert "2 things at once" in found.message


PAIRED = (
    "attention-biases-forgotten",
    "feed-forward-biases-forgotten",
    "output-projection-forgotten",
    "head-bias-forgotten",
    "norms-counted-once",
    "norms-forgotten",
)


@pytest.mark.parametrize("pair", [p for p in combinations(PAIRED, 2) if p != PAIRED[-2:]], ids="+".join)
def test_pairs_of_common_slips_get_a_name_that_gives_the_same_counts(pair):
    learners = counter(*pair)
    found = check(LM, learners)
    assert found.mistake is not None
    named = counter(*found.mistake.split("+"))
    assert all(learners(*call.arguments) == named(*call.arguments) for call in EXERCISES[LM].calls(0))


@pytest.mark.parametrize(("off", "said"), [(-18, "That is 18 too few."), (1234, "That is 1,234 too many.")])
def test_a_wrong_count_says_how_far_it_is_off(off, said):
    assert said in check(LM, lambda *sizes: count_with(*sizes) + off).message


def test_a_count_without_end_is_off_by_nothing_that_could_be_said():
    found = check(LM, lambda v, d, n, f: float("inf"))
    assert not found.passed and "That is" not in found.message
