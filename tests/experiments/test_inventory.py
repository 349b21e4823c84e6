"""The concept inventory is made of programs that run: stored items, who answers what, what is told apart."""

import sys

import pytest
import torch

from experiments.inventory import (
    ITEMS,
    MUSEUM,
    _letters,
    answerers,
    inventory,
    measured,
    separated_pairs,
    separation,
    sources_digest,
    table,
)
from experiments.inventory_items import FORMS, LETTERS, Question, lines_run, make_forms
from experiments.inventory_items import Item as Asked
from experiments.inventory_items import table as as_table
from tests.solutions import SOLUTIONS
from tests.solutions.inventory import wrong_solutions
from tinytx_course.results import read_results

STORED = read_results("inventory").data
RECORDS = {key: record for key, record in STORED.items() if key.startswith("laptop/")}
QUICK = [item for item in ITEMS.values() if not item.function.startswith(MUSEUM)]
WRONG = wrong_solutions()
each_item = pytest.mark.parametrize("item", QUICK, ids=lambda item: item.key)


@each_item
def test_stored_items_are_those_that_the_code_makes_today(item):
    number = list(ITEMS).index(item.key)
    letters = {form: _letters(form)[number] for form in FORMS}
    stored = dict(RECORDS[f"laptop/{item.key}"])
    del stored["origin"]
    made = measured(item, number + 1, letters, WRONG, smoke=True)
    for record in (made, stored):  # several programs make one mistake, and which are there may change
        record["answers"] = {(slug, *chosen) for slug, _, *chosen in record["answers"]}
    assert made == stored, "made otherwise than today: run `python -m tests.solutions.inventory`"


def answers_of_offered(form):
    """For each implementation of an offered mistake: the letter that it answers, and that of its option."""
    for item in QUICK:
        record = RECORDS[f"laptop/{item.key}"]
        options = record["forms"][form]["options"]
        letter = {option["reveals"]: x for x, option in zip(LETTERS, options, strict=True)}
        for answer in record["answers"]:
            if answer[0] in item.slugs:
                yield answer[2 + FORMS.index(form)], letter[answer[0]]


@pytest.mark.parametrize("form", FORMS)
def test_implementations_of_an_offered_mistake_answer_its_option(form):
    """Those of people and of checkers. A few make the mistake in another way; their answer is no option."""
    answered = list(answers_of_offered(form))
    assert all(given in (due, "other") for given, due in answered)
    assert sum(given == due for given, due in answered) >= 0.95 * len(answered)
    assert len(answered) >= 90


@each_item
def test_every_solution_of_the_function_has_been_run(item):
    _, wrong = answerers(item, WRONG)
    run = {who for several in wrong.values() for who, _ in several}
    own = {s.name for s in SOLUTIONS if s.exercise == item.function and s.slug not in (None, "time-limit")}
    assert own and own <= run


STEADY = [item for item in QUICK if item.function != "mask_tokens"]  # whose right solutions draw other words


@pytest.mark.parametrize("item", STEADY, ids=lambda item: item.key)
def test_right_solutions_answer_the_key(item):
    right, wrong = answerers(item, WRONG)
    forms = make_forms(item, right, {slug: wrong[slug][0][1] for slug in item.slugs})
    own = [s for s in SOLUTIONS if s.exercise == item.function and s.slug is None]
    solutions = [s for s in own if "half" not in s.name]  # in half precision, numbers are rounded early
    for form in forms.values():
        assert {form.chosen_by(solution.function) for solution in solutions} == {"0"}


# ---- what is told apart


def test_at_least_95_percent_of_the_pairs_are_separated_in_each_form():
    found = separation(RECORDS)
    assert found == STORED["laptop-separation"]
    assert (table(STORED)["wrongly"].iloc[:-1] >= 3).all()
    assert found["pairs_separated"] >= 0.95
    for form in found["in_form"].values():
        assert form["pairs"] == form["misconceptions"] * (form["misconceptions"] - 1) // 2
        n_missed = len(form["not separated"])
        assert form["separated"]["all"] == pytest.approx(1 - n_missed / form["pairs"], abs=1e-4)


def test_programs_of_one_mistake_that_answer_differently_separate_nothing():
    answers = [["one", "one 1", "B", "B"], ["two", "two 1", "C", "C"]]
    forms = {form: {"key": "A"} for form in FORMS}
    asked = {"number": 1, "function": "f", "forms": forms, "answers": answers}
    found = []
    for _ in range(2):
        ((*_, numbers),) = separated_pairs([asked], "A")
        found.append(numbers)
        answers.append(["one", "another", "C", "C"])
    assert found == [[1], []]


# ---- making forms


WRONG_DOUBLES = {"squared": lambda n: n**2, "tripled": lambda n: 3 * n, "same": lambda n: n}


def doubling(rng):
    n = rng.randint(1, 9)
    return Question(f"Twice {n}?", lambda function: as_table(function(n), digits=0))


def forms_of(ask, key="x"):
    return make_forms(Asked(key, "c", "f", tuple(WRONG_DOUBLES), ask), lambda n: 2 * n, WRONG_DOUBLES)


def test_both_forms_have_other_answers_and_equal_steps():
    forms = forms_of(doubling)
    assert forms["A"].options[0].cells != forms["B"].options[0].cells
    assert forms["A"].chosen_by(lambda n: n + n) == "0" and forms["A"].chosen_by(lambda n: 3.0 * n) == "2"
    assert forms["A"].chosen_by(lambda n: -1) == "other" and forms["A"].chosen_by(lambda n: n / 0) is None

    def ask(rng):
        n = rng.randint(1, 9)
        work = range(n % 3)  # one more table for each: other lines are run

        def answer(function):
            return [as_table(function(n), digits=0) for _ in (0, *work)][0]

        return Question(f"Twice {n}?", answer)

    for key in "uvwxyz":
        forms = forms_of(ask, key)
        a, b = (int(form.question.prompt[6:-1]) for form in forms.values())
        assert a != b and a % 3 == b % 3 and forms["A"].steps == forms["B"].steps


def test_an_implementation_that_draws_answers_the_same_each_time_and_leaves_the_generator_alone():
    form = forms_of(doubling)["A"]
    torch.manual_seed(7)
    answers = {form.chosen_by(lambda n: (2 * n, 3 * n)[int(torch.rand(()) < 0.5)]) for _ in range(20)}
    assert len(answers) == 1 and torch.initial_seed() == 7


def test_longer_work_takes_more_lines():
    counts = [lines_run(lambda n=n: [as_table(1.0) for _ in range(n)]) for n in (1, 2, 3)]
    assert counts[1] - counts[0] == counts[2] - counts[1] > 0
    assert lines_run(lambda: sorted([3, 1, 2])) == 0 and sys.gettrace() is None


# ---- the command


def test_without_solutions_nothing_is_measured_and_the_command_that_has_them_is_named(settings):
    chosen = settings("inventory")
    with pytest.raises(ValueError, match="got none: .*tests.solutions.inventory"):
        inventory(chosen)
    assert chosen.store.data == {}


def test_an_item_is_measured_again_where_a_solution_of_its_function_changed():
    item, other = QUICK[0], next(one for one in QUICK if one.function != QUICK[0].function)
    more = [*WRONG, (item.function, item.slugs[0], "one of another module", pytest.approx)]
    assert sources_digest(item, WRONG) != sources_digest(item, more)
    assert sources_digest(other, WRONG) == sources_digest(other, more)


@pytest.mark.slow
def test_the_smallest_budget_makes_items_and_measures_nothing_twice(settings, stop_after, monkeypatch):
    """Those that train, and two of those that are made above."""
    some = {key: item for key, item in ITEMS.items() if item not in QUICK[2:]}
    monkeypatch.setattr("experiments.inventory.ITEMS", some)
    chosen = settings("inventory")
    found = inventory(chosen, WRONG)
    assert len(found) == len(some) + 1 > 3 and (found["wrongly"].iloc[:-1] >= 3).all()
    curves = chosen.store.data["smoke/curve-of-a-leak"]["forms"]["A"]["options"]
    assert len({str(curve["cells"]) for curve in curves}) == len(LETTERS)
    stop_after(1)  # the separation is computed again
    assert inventory(chosen, WRONG).equals(found)
