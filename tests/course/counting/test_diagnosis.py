"""Wrong counts and what is behind them: the numbers of the lab, planted mistakes, an exhaustive search."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.tinytx.test_counting import configurations
from tinytx.config import PRESETS
from tinytx.counting import parameter_table
from tinytx_course.counting.diagnosis import (
    MISCONCEPTIONS,
    PARTS,
    WORDS,
    Question,
    _says_too_much,
    diagnose_count,
)

LAB = PRESETS["seed-lab"]
LARGER = LAB.replace(vocab_size=5_000, n_layers=6)
OTHER_HEADS = LAB.replace(n_heads=4)


def explanations(*arguments, **options):
    return {tuple(sorted(slips)) for slips in diagnose_count(*arguments, **options).explanations}


NO_MORE_THAN_HEADS = ("attention-as-heads-times-d2", "feed-forward-forgotten", "head-bias-forgotten")
WRONG_NUMBERS_OF_THE_LAB = [
    (LAB, "lm", 360_000, "total", (*NO_MORE_THAN_HEADS, "norms-forgotten")),
    (LAB, "classifier", 340_400, "total", (*NO_MORE_THAN_HEADS, "norms-forgotten")),
    (LARGER, "lm", 3_440_000, "total", ("all-biases-forgotten", "norms-forgotten")),
    (LARGER, "classifier", 2_440_400, "total", ("all-biases-forgotten", "norms-forgotten")),
    (LAB, "lm", 400, "norms", ("norms-counted-once",)),
    (OTHER_HEADS, "lm", 2 * 200 * 4, "norms", ("heads-for-norms",)),
    (OTHER_HEADS, "lm", 200 * 201 * 4, "feed_forward", ("heads-for-feed-forward-matrices",)),
    (LAB, "lm", 2 * 200 * 200, "attention", ("attention-as-heads-times-d2",)),
]


@pytest.mark.parametrize(("config", "head", "claimed", "part", "slips"), WRONG_NUMBERS_OF_THE_LAB)
def test_every_wrong_number_of_the_lab_is_explained(config, head, claimed, part, slips):
    diagnosis = diagnose_count(config, head, claimed, part)
    assert not diagnosis.correct
    assert frozenset(slips) in diagnosis.explanations
    assert all(WORDS[slug] in str(diagnosis) for slug in slips)


# By hand, for the model of the lab (V = 100, D = F = 200, H = 2, 4 layers, norm last) and its variants.
BY_HAND = {
    "embedding-counted-twice": (LAB, "lm", 1_008_100 + 20_000),
    "embedding-forgotten": (LAB, "lm", 1_008_100 - 20_000),
    "positions-counted-as-learned": (LAB, "lm", 1_008_100 + 512 * 200),
    "positions-forgotten": (LAB.replace(positions="learned"), "lm", 1_008_100),
    "segments-forgotten": (LAB.replace(n_segments=3), "lm", 1_008_100),
    "attention-as-heads-times-d2": (LAB, "lm", 1_008_100 - 4 * (160_800 - 80_000)),
    "heads-for-attention-matrices": (LAB, "lm", 1_008_100 - 4 * 80_400),
    "heads-for-qkv-matrices": (LAB.replace(n_heads=5), "lm", 1_008_100 + 4 * 80_400),
    "output-projection-forgotten": (LAB, "lm", 1_008_100 - 4 * 40_200),
    "attention-biases-forgotten": (LAB, "lm", 1_008_100 - 4 * 800),
    "query-key-value-biases-forgotten": (LAB, "lm", 1_008_100 - 4 * 600),
    "output-projection-bias-forgotten": (LAB, "lm", 1_008_100 - 4 * 200),
    "feed-forward-forgotten": (LAB, "lm", 1_008_100 - 4 * 80_400),
    "feed-forward-width-4d": (LAB, "lm", 1_008_100 + 4 * (2 * 200 * 600 + 600)),
    "heads-for-feed-forward-matrices": (OTHER_HEADS, "lm", 1_008_100 + 4 * 80_400),
    "feed-forward-biases-forgotten": (LAB, "lm", 1_008_100 - 4 * 400),
    "norms-forgotten": (LAB.replace(norm="first"), "lm", 1_008_100 - 4 * 800),
    "block-norms-forgotten": (LAB.replace(norm="first"), "lm", 1_008_500 - 4 * 800),
    "embedding-norm-forgotten": (LAB.replace(embed_norm=True), "lm", 1_008_100),
    "norms-counted-once": (LAB, "lm", 1_008_100 - 4 * 400),
    "heads-for-norms": (OTHER_HEADS, "lm", 1_008_100 + 4 * 800),
    "norm-shifts-forgotten": (LAB, "lm", 1_008_100 - 4 * 400),
    "final-norm-forgotten": (LAB.replace(norm="first"), "lm", 1_008_100),
    "all-biases-forgotten": (LAB, "lm", 1_008_100 - 4 * (800 + 400) - 100),
    "all-biases-and-shifts-forgotten": (LAB, "lm", 1_008_100 - 4 * (800 + 400 + 400) - 100),
    "one-layer-too-few": (LAB, "lm", 1_008_100 - 242_000),
    "one-layer-too-many": (LAB, "lm", 1_008_100 + 242_000),
    "embedding-tied": (LAB, "lm", 1_008_100 - 20_000),
    "other-head": (LAB, "lm", 988_402),
    "head-bias-forgotten": (LAB, "lm", 1_008_000),
    "head-forgotten": (LAB, "lm", 1_008_100 - 20_100),
}


@pytest.mark.parametrize("slug", WORDS)
def test_every_misconception_is_found_in_a_number_worked_out_by_hand(slug):
    config, head, claimed = BY_HAND[slug]
    diagnosis = diagnose_count(config, head, claimed)
    assert frozenset({slug}) in diagnosis.explanations
    assert all(len(slips) == 1 for slips in diagnosis.explanations)


BY_HAND_IN_PARTS = [
    ("embedding", LAB.replace(positions="learned"), "lm", 20_000, {("positions-forgotten",)}),
    ("embedding", LAB, "lm", 40_000, {("embedding-counted-twice",)}),
    ("attention", LAB, "lm", 160_000, {("attention-biases-forgotten",)}),
    ("attention", LAB, "lm", 120_000, {
        ("attention-biases-forgotten", "heads-for-qkv-matrices"),
        ("attention-biases-forgotten", "output-projection-forgotten"),
    }),
    ("attention", LAB, "lm", 120_600, {("heads-for-qkv-matrices",), ("output-projection-forgotten",)}),
    ("feed_forward", LAB, "lm", 321_000, {("feed-forward-width-4d",)}),
    ("feed_forward", LAB, "lm", 0, {("feed-forward-forgotten",)}),
    ("norms", LAB.replace(norm="first"), "lm", 0, {("norms-forgotten",)}),
    ("norms", LAB.replace(norm="first"), "lm", 400, {("norms-counted-once",)}),
    ("layer", LAB, "lm", 242_000 - 1_200, {("all-biases-forgotten",)}),
    ("head", LAB, "lm", 402, {("other-head",)}),
    ("head", LAB, "classifier", 400, {("head-bias-forgotten",)}),
    ("head", LAB, "classifier", 20_000, {("head-bias-forgotten", "other-head")}),
    ("head", LAB, "lm", 100, {("embedding-tied",)}),
    ("head", LAB.replace(tie_embeddings=True), "lm", 20_100, {("embedding-counted-twice",)}),
]  # fmt: skip


@pytest.mark.parametrize(("part", "config", "head", "claimed", "expected"), BY_HAND_IN_PARTS)
def test_parts_are_diagnosed_alone(part, config, head, claimed, expected):
    assert explanations(config, head, claimed, part) >= expected
    assert len(next(iter(expected))) == min(map(len, explanations(config, head, claimed, part)))


def test_what_is_right_needs_no_explanation_and_what_nothing_explains_has_none():
    right, diagnosis = (diagnose_count(LAB, "lm", claimed) for claimed in (1_008_100, 1_008_101))
    assert right.correct and right.explanations == () and "1,008,100 is right for the total" in str(right)
    assert not diagnosis.correct and diagnosis.explanations == ()
    assert "1,008,100" not in str(diagnosis)  # the right number is left for the reader to find


def possible_slugs(asked):
    return [slug for group in MISCONCEPTIONS for slug in asked.slugs(group)]


def ask(asked, claimed):
    return diagnose_count(asked.config, asked.head, claimed, asked.part, asked.n_classes)


HEADS = st.sampled_from(["lm", "classifier"])


@given(configurations(), HEADS, st.integers(1, 9), st.sampled_from(["total", *PARTS]), st.data())
def test_an_exhaustive_search_over_sets_finds_the_same(config, head, n_classes, part, data):
    asked = Question(config, head, n_classes, part)
    slugs = possible_slugs(asked)
    assume(slugs)
    planted = data.draw(st.frozensets(st.sampled_from(slugs), min_size=1, max_size=3))
    claimed = asked.count(planted)
    assume(not _says_too_much(asked, planted) and claimed != asked.count(frozenset()))
    for size in range(1, len(planted) + 1):
        sets = map(frozenset, combinations(slugs, size))
        found = {slips for slips in sets if asked.count(slips) == claimed}
        if found:
            break
    answer = set(ask(asked, claimed).explanations)
    assert answer <= found
    # What is left out says "all biases" where only one part has any; the slug of that part is there.
    assert all(any("all-biases" in slug for slug in slips) for slips in found - answer) and answer


@settings(max_examples=15)
@given(configurations(), HEADS, st.integers(1, 9))
def test_models_of_every_kind_are_counted_and_each_misconception_about_them_is_found(config, head, n_classes):
    asked = Question(config, head, n_classes, "total")
    assert asked.count(frozenset()) == parameter_table(config, head, n_classes).total
    for slug in possible_slugs(asked):
        found = ask(asked, asked.count(frozenset({slug})))
        assert found.correct or frozenset({slug}) in found.explanations or slug == "all-biases-forgotten"


def test_whole_numbers_of_any_kind_are_taken():
    assert diagnose_count(LAB, "lm", np.int64(1_008_100)).correct
    assert diagnose_count(LAB, None, 988_000).correct


@pytest.mark.parametrize(
    ("arguments", "error", "values"),
    [
        (("lm", 1, "body"), ValueError, "total, .*, head, got 'body'"),
        (("mlm", 1), ValueError, "'mlm'"),
        (("lm", 1, "total", 0), ValueError, "n_classes .* 0"),
        *((("lm", claimed), TypeError, "claimed") for claimed in (1.0, "1", None, True)),
    ],
)
def test_bad_arguments_are_refused(arguments, error, values):
    with pytest.raises(error, match=values):
        diagnose_count(LAB, *arguments)
