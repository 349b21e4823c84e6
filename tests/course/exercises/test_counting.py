"""Counts that are wrong in several ways at once, and how far they are off."""

from itertools import combinations

import pytest

import tinytx_course as course
from tinytx.model.config import TransformerConfig
from tinytx.model.diagnosis import Question


def counter(head, *slips):
    """A count, from the table of misconceptions, with some of them made."""

    def count(vocab_size, d_model, n_layers, d_ff, n_classes=2):
        config = TransformerConfig(
            vocab_size=vocab_size, d_model=d_model, n_heads=2, n_layers=n_layers, d_ff=d_ff, norm="last"
        )
        return Question(config, head, n_classes, "total").count(frozenset(slips))

    if head == "lm":
        return lambda vocab_size, d_model, n_layers, d_ff: count(vocab_size, d_model, n_layers, d_ff)
    return lambda vocab_size, d_model, n_layers, d_ff, n_classes: count(
        vocab_size, d_model, n_layers, d_ff, n_classes
    )


def check(head, function, seed=0):
    name = "count_language_model" if head == "lm" else "count_classifier"
    return course.check(name, function, seed=seed, display=False)


@pytest.mark.parametrize("head", ["lm", "classifier"])
def test_two_slips_are_found_though_one_explains_a_size(head):
    # With width 200 and inner width 200, biases D + d_ff of the network weigh as much as one norm, 2 D.
    slips = {"feed-forward-biases-forgotten", "norms-counted-once"}
    for seed in range(3):
        found = check(head, counter(head, *slips), seed)
        assert not found.passed and set(found.mistake.split("+")) == slips
        assert "2 things at once" in found.message


def same_everywhere(one, other):
    sizes = ((5, 2, 2, 3), (11, 6, 2, 7), (100, 200, 4, 200), (37, 14, 3, 23), (101, 34, 6, 59))
    return all(one(*some) == other(*some) for some in sizes)


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
    learners = counter("lm", *pair)
    found = check("lm", learners)
    assert found.mistake is not None
    assert same_everywhere(learners, counter("lm", *found.mistake.split("+")))


@pytest.mark.parametrize(("off", "said"), [(-18, "That is 18 too few."), (1234, "That is 1,234 too many.")])
def test_a_wrong_count_says_how_far_it_is_off(off, said):
    assert said in check("lm", lambda *sizes: counter("lm")(*sizes) + off).message


def test_a_count_without_end_is_off_by_nothing_that_could_be_said():
    found = check("lm", lambda v, d, n, f: float("inf"))
    assert not found.passed and "That is" not in found.message
