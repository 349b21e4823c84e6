"""The stored items: two parallel forms, keys in no pattern, nothing in the form of an option that tells."""

import re
from itertools import chain

import pytest
from scipy.stats import binom

from tinytx_course.inventory.items import FORMS, LETTERS, drawn, in_words, read_items, top_of

ITEMS = read_items()
CONCEPTS = {
    "masks", "attention", "scaling", "positions", "heads", "norm and residual", "counting", "loss and shift",
    "padding", "transfer", "masked against causal", "decoding", "leakage",
}  # fmt: skip
each_item = pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item['number']}-{item['function']}")


def cells(option):
    return list(chain.from_iterable(option["cells"]))


def numbers(option):
    """Its cells as numbers, where all are."""
    try:
        return [float(str(cell).replace("−", "-").replace(",", "")) for cell in cells(option)]
    except ValueError:
        return None


# ---- what is asked


def test_every_concept_is_asked_about_and_there_are_enough_items():
    assert len(ITEMS) >= 24 and {item["concept"] for item in ITEMS} == CONCEPTS
    assert [item["number"] for item in ITEMS] == list(range(1, len(ITEMS) + 1))


@each_item
@pytest.mark.parametrize("form", FORMS)
def test_four_options_differ_as_they_are_shown_and_one_is_the_key(item, form):
    asked = item["forms"][form]
    assert len({in_words(option) for option in asked["options"]}) == len(LETTERS)
    revealed = [option["reveals"] for option in asked["options"]]
    assert revealed[LETTERS.index(asked["key"])] is None and revealed.count(None) == 1
    assert set(revealed) - {None} == set(item["words"])


@each_item
def test_forms_are_parallel(item):
    a, b = (item["forms"][form] for form in FORMS)
    assert len(a["prompt"].split()) == len(b["prompt"].split())
    assert {o["reveals"] for o in a["options"]} == {o["reveals"] for o in b["options"]}
    by_slug = [{o["reveals"]: o for o in asked["options"]} for asked in (a, b)]
    for slug, option in by_slug[0].items():
        assert option["kind"] == by_slug[1][slug]["kind"]
        assert [len(row) for row in option["cells"]] == [len(row) for row in by_slug[1][slug]["cells"]]
    sizes = [[[len(row) for row in shown["cells"]] for shown in asked["given"]] for asked in (a, b)]
    assert sizes[0] == sizes[1]
    assert (a["prompt"], a["given"], a["options"]) != (b["prompt"], b["given"], b["options"])


# ---- what a guesser sees


def length(option, asked):
    return len("".join(map(str, cells(option)))) if option["kind"] == "table" else 0


def size(option, asked):
    return sum(map(abs, numbers(option) or [0.0]))


def total(option, asked):
    return sum(numbers(option) or [0.0])


def middle(option, asked):
    """How near its sum is to the mean of all sums."""
    sums = [total(other, asked) for other in asked["options"]]
    return -abs(total(option, asked) - sum(sums) / len(sums))


def shared(option, asked):
    """How many of its cells the other options have at the same place."""
    others = [cells(other) for other in asked["options"] if other is not option]
    return sum(a == b for other in others for a, b in zip(cells(option), other, strict=False))


def likeness(option, asked):
    """How near its numbers are to those of the others."""
    mine = numbers(option)
    others = [numbers(other) for other in asked["options"]]
    if mine is None or None in others:
        return shared(option, asked)
    return -sum(abs(a - b) for other in others for a, b in zip(mine, other, strict=False))


def overlap(option, asked):
    """How many of its words are in the question."""
    words = set(re.findall(r"\w+", asked["prompt"] + " ".join(in_words(shown) for shown in asked["given"])))
    return len(words & set(re.findall(r"\w+", in_words(option))))


def variety(option, asked):
    return len(set(map(str, cells(option))))


CUES = {cue.__name__: cue for cue in (length, size, total, middle, shared, likeness, overlap, variety)}


def hits(items, form, cue, sign):
    """Right answers of somebody who picks the option with most (or least) of a cue; ties are shared."""
    found = 0.0
    for item in items:
        asked = item["forms"][form]
        scores = [sign * cue(option, asked) for option in asked["options"]]
        best = [place for place, score in enumerate(scores) if score == max(scores)]
        found += (LETTERS.index(asked["key"]) in best) / len(best)
    return found


def bound(n, tries=1):
    """What a guesser among four reaches with less than one chance in 40, corrected for several tries."""
    return binom.ppf(1 - 0.025 / tries, n, 1 / len(LETTERS))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sign", [1, -1], ids=["most", "least"])
@pytest.mark.parametrize("cue", CUES.values(), ids=CUES)
def test_no_cue_of_form_predicts_the_key(cue, sign, form):
    assert hits(ITEMS, form, cue, sign) <= bound(len(ITEMS))


def test_a_cue_that_gives_keys_away_would_be_found():
    def planted(option, asked):
        return len(option["caption"]) if "caption" in option else 0

    marked = [
        {**item, "forms": {"A": {**asked, "options": [
            {**option, "caption": "really" if option["reveals"] is None and item["number"] % 2 else ""}
            for option in asked["options"]
        ]}}}
        for item in ITEMS for asked in [item["forms"]["A"]]
    ]  # fmt: skip
    assert hits(marked, "A", planted, 1) > bound(len(ITEMS))


@pytest.mark.parametrize("form", FORMS)
def test_keys_are_at_each_letter_equally_often_and_in_no_pattern(form):
    keys = "".join(item["forms"][form]["key"] for item in ITEMS)
    assert {letter: keys.count(letter) for letter in LETTERS} == dict.fromkeys(LETTERS, len(ITEMS) // 4)
    assert not re.search(r"(.)\1\1\1", keys)
    after = sum((LETTERS.index(b) - LETTERS.index(a)) % 4 == 1 for a, b in zip(keys, keys[1:], strict=False))
    assert after <= bound(len(keys) - 1)


def test_the_letters_of_one_form_do_not_tell_those_of_the_other():
    same = sum(len({item["forms"][form]["key"] for form in FORMS}) == 1 for item in ITEMS)
    assert same <= bound(len(ITEMS))


@each_item
@pytest.mark.parametrize("form", FORMS)
def test_no_option_says_more_than_an_answer(item, form):
    for option in item["forms"][form]["options"]:
        words = set(re.findall(r"[a-z]+", in_words(option).lower()))
        assert not words & {"all", "none", "always", "never", "only", "both", "above", "every"}


# ---- how it is drawn


@pytest.mark.parametrize("form", FORMS)
def test_masks_and_curves_have_their_numbers_as_text(form):
    pictures = [o for item in ITEMS for o in item["forms"][form]["options"] if o["kind"] != "table"]
    assert {picture["kind"] for picture in pictures} == {"mask", "curve"}
    for picture in pictures:
        html = drawn(picture, top_of([picture]))
        said = re.search(r'aria-label="([^"]+)"', html)[1]
        shown = (
            [f"{cell[1]:.2f}" for cell in picture["cells"]]
            if picture["kind"] == "curve"
            else picture["cells"][0]
        )
        assert all(number in said for number in shown)
        filled = sum(cell == "1" for cell in cells(picture))
        assert html.count('class="on"') == (filled if picture["kind"] == "mask" else 0)


def test_a_curve_goes_down_where_the_loss_falls():
    curve = {"kind": "curve", "cells": [[0, 4.0], [10, 2.0], [20, 1.0]], "bound": 0.5}
    points = re.search(r'points="([^"]+)"', drawn(curve))[1].split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights == sorted(heights) and heights[0] == 8.0
    assert heights[1] - heights[0] == pytest.approx(2 * (heights[2] - heights[1]))
