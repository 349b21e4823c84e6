"""Tasks without Python: right and wrong answers are those of the checkers, and the page names them."""

import math

import pytest
import torch

import tinytx as tx
from tests.course.widgets.conftest import changed
from tinytx_course.widgets.by_hand import by_hand, tasks


def verdicts(node, *explorers):
    return node("by_hand", "js.verdictOf(get)", *explorers)


def answered(name, value):
    explorer = by_hand(name)
    return changed(explorer, **{"cells" if explorer.rows else "typed": value, "report": "check"})


def shown(name, value):
    """A number as a person types it, no more precise than asked for."""
    task = tasks()[name]
    return value if task.rows or not task.within else f"{float(value):.{len(str(task.within)) - 2}f}"


def test_the_page_accepts_the_right_answer_and_names_every_known_mistake(node):
    cases = [(name, *answer) for name, task in tasks().items() for answer in task.answers()]
    found = verdicts(node, *(answered(name, shown(name, value)) for name, value, _, _ in cases))
    assert [one["mistake"] for one in found] == [slug for _, _, slug, _ in cases]
    assert all(words in one["text"] for one, (*_, words) in zip(found, cases, strict=True))
    names = [name for name, *_ in cases]
    assert set(names) == set(tasks()) and min(map(names.count, tasks())) >= 7


def test_right_masks_are_those_of_the_package():
    ids = torch.tensor([[7, 2, 5, 4, 4]])
    both = tx.combine_masks(tx.causal_mask(5), tx.padding_mask(ids, 4)[:, None, :])
    cells = tasks()["both"].answers()[0][0]
    assert [int(cell) for cell in cells] == both.int().flatten().tolist()
    assert tasks()["causal"].answers()[0][0] == "1000011000111001111011111"


def test_a_mask_or_number_that_nobody_foresaw_is_met_with_where_or_how_it_differs(node):
    odd = verdicts(
        node,
        answered("causal", "1000011000110001111011111"),
        answered("padded", "1000"),
        answered("padded", "1,000"),
        answered("padded", "many"),
    )
    assert "1 cell of 25 is wrong" in odd[0]["text"] and "row 3, “est”, column 3, “est”" in odd[0]["text"]
    assert odd[1] == odd[2] and "too large" in odd[1]["text"]
    assert "no number" in odd[3]["text"]


def test_numbers_are_read_as_people_write_them(node):
    both = {"1 234": 1234, "6,91": 6.91, "−0.5": -0.5, "1,234.5": 1234.5, "0,881": 0.881, "": None}
    for within, comma in ((0, 1234), (0.01, 1.234)):
        typed = {**both, "1,234": comma, "−1,234": -comma, "1,234,567": 1234567}
        found = node("by_hand", f"{list(typed)!r}.map((typed) => js.numberOf(typed, {within}))")
        assert found == [list(typed.values())]


@pytest.mark.parametrize("name", [name for name, task in tasks().items() if not task.rows])
def test_the_sum_that_is_shown_gives_the_right_number(name):
    answer = float(tasks()[name].answers()[0][0])
    assert eval(tasks()[name].sum, {"exp": math.exp, "ln": math.log}) == pytest.approx(answer, rel=1e-4)
