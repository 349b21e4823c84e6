"""Order tests at a price, and name the fault: ``patient.order`` and ``course.diagnose``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tinytx_course.exercises.verdict import Verdict
from tinytx_course.museum.examining import TESTS, OrderedTest, examine
from tinytx_course.museum.faults import FAULTS, PATIENTS, Fault, check_number, known, name_of
from tinytx_course.museum.patients import Patient
from tinytx_course.progress.record import Entry, record
from tinytx_course.results import read_results

if TYPE_CHECKING:
    import pandas as pd

WRONG_PRICE = 3
Stored = Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """What an ordered test gave."""

    test: str
    number: float  # what was measured
    sentence: str  # the number in words, and what healthy models have
    price: int

    def __repr__(self) -> str:
        return f"{self.test} (price {self.price}): {self.sentence}"


def order(patient: Patient, name: str) -> Finding:
    """Put a test to a patient; the first time, its price is noted.

    Parameters
    ----------
    patient : Patient
        It is trained now, if it is not yet.
    name : str
        One of `TESTS`.

    Raises
    ------
    ValueError
        If there is no such test, or it does not apply to the task of the patient.
    """
    test = known("test", name, TESTS)
    number = examine(patient, test)
    if patient.number:
        entry = _entry(patient.number)
        if name not in entry["ordered"]:
            _store(patient.number, {**entry, "ordered": [*entry["ordered"], name]})
    return Finding(name, number, f"{test.says.format(number)}. {_healthy(test, patient.task)}", test.price)


def price_list() -> str:
    """The tests as a table: name, price, question."""
    rows = [f"{test.name:<20}{test.price:>5}  {test.question}" for test in TESTS.values()]
    return "\n".join([f"{'test':<20}price  question", *rows])


def spent(number: int) -> int:
    """What a patient has cost: the tests ordered, each once, and 3 for each wrong diagnosis."""
    entry = _entry(number)
    return sum(TESTS[name].price for name in entry["ordered"]) + WRONG_PRICE * entry["wrong"]


def diagnose(patient: int, fault: Any, *, display: bool = True) -> Verdict:
    """Say what is wrong with a patient, and learn whether the evidence agrees.

    Parameters
    ----------
    patient : int
        Its number, 1 to 14, or 0 for the one that the lesson solves.
    fault : str
        One of `FAULTS`; ``...`` while you do not know.
    display : bool
        Whether to show the card, and to record the diagnosis.

    Returns
    -------
    Verdict
        A wrong diagnosis is answered with a test that contradicts it, and its number; it costs 3.

    Raises
    ------
    ValueError
        If there is no such patient or fault; the nearest name is suggested.

    Examples
    --------
    >>> diagnose(0, "gradient_cut", display=False).passed
    True
    """
    true = FAULTS[PATIENTS[check_number(patient)]]
    attempted = fault is not ...
    passed = attempted and known("fault", fault, FAULTS) is true
    if display and attempted and patient:
        entry = _entry(patient)
        wrong = entry["wrong"] + (not passed and not entry["passed"])
        changes = {"passed": passed or entry["passed"], "wrong": wrong, "tries": entry["tries"] + 1}
        _store(patient, {**entry, **changes, "mistake": None if passed else fault})
    parts: tuple[str, ...] = ()
    if attempted:
        parts = _right(patient, true) if passed else _wrong(patient, true, FAULTS[fault])
    verdict = Verdict(name_of(patient), passed, parts, attempted=attempted, finding="".join(parts[:1]))
    if display:
        verdict.show()
    return verdict


def _right(number: int, true: Fault) -> tuple[str, ...]:
    bill = f"The test `{true.test}` alone costs {TESTS[true.test].price}{_bill(number)}."
    return (f"Yes: {true.meaning}.", f"The one line:\n`- {true.healthy}`\n`+ {true.broken}`", bill)


def _wrong(number: int, true: Fault, guess: Fault) -> tuple[str, ...]:
    contradiction = contradicting(true, guess, tuple(_entry(number)["ordered"]))
    if contradiction is None:
        why = f"Here that is a fault of a {guess.task}, and {name_of(number)} is a {true.task}."
    else:
        test, value, expects = contradiction
        would = "would find something" if expects else "would find nothing"
        why = f"With `{guess.name}` the test `{test.name}` {would}. Here, {test.says.format(value)}."
    return (f"Not `{guess.name}`. {why}", f"A wrong diagnosis costs {WRONG_PRICE}{_bill(number)}.")


def _bill(number: int) -> str:
    return f"; you spent {spent(number)}" if number else ""  # the example is free


def contradicting(
    true: Fault, guess: Fault, ordered: tuple[str, ...] = ()
) -> tuple[OrderedTest, float, bool] | None:
    """A test whose result a guess cannot explain, its number in the patient, and what the guess expects.

    A test counts for a guess if it found something in all seeds, or in none. Tests that were ordered come
    first, then the one that is to find the guess, then the cheapest.
    """
    patient = stored_results()[true.name][0]["tests"]
    for name in sorted(TESTS, key=lambda n: (n not in ordered, n != guess.test, TESTS[n].price)):
        found = _answers(guess.name, name)
        if len(found) == 1 and name in patient and TESTS[name].finds(patient[name]) not in found:
            return TESTS[name], patient[name], found.pop()
    return None


def _answers(name: str, test: str) -> set[bool]:
    """What a test says of the models of a name, over seeds; nothing where it does not apply."""
    return {TESTS[test].finds(r["tests"][test]) for r in stored_results()[name] if test in r["tests"]}


@cache
def stored_results() -> dict[str, list[Stored]]:
    """The measured records by fault, one a seed; those of healthy models by ``healthy TASK``."""
    by_fault: dict[str, list[Stored]] = {}
    for key, one in read_results("museum").data.items():
        if key.startswith("laptop/"):
            by_fault.setdefault(key.split("/")[2], []).append(one)
    return by_fault


def shown(number: int) -> Stored:
    """What a colleague shows of a patient, as it was stored: see `tinytx_course.museum.evidence.collect`."""
    return stored_results()[PATIENTS[check_number(number)]][0]["evidence"]


def separation(records: Iterable[Stored] | None = None) -> pd.DataFrame:
    """In how many seeds each test finds something.

    Parameters
    ----------
    records : iterable of dict, optional
        Of the experiment; the stored ones where not given.

    Returns
    -------
    DataFrame
        One row a fault, by its name, then one for the healthy models of each task: ``task``, ``seeds``,
        ``named``, the test that is to find the fault, and a column a test, missing where it does not apply.
    """
    import pandas as pd

    if records is None:
        records = (one for group in stored_results().values() for one in group)
    rows: dict[str, dict[str, Any]] = {}
    for one in records:
        name = f"healthy {one['task']}" if one["fault"] == "healthy" else one["fault"]
        row = rows.setdefault(name, {"task": one["task"], "seeds": 0})
        row["seeds"] += 1
        row["named"] = FAULTS[name].test if name in FAULTS else ""
        for test, number in one["tests"].items():
            row[test] = row.get(test, 0) + int(TESTS[test].finds(number))
    frame = pd.DataFrame.from_dict(rows, orient="index").reindex(columns=["task", "seeds", "named", *TESTS])
    return frame.loc[sorted(rows, key=lambda name: name not in FAULTS)]


def told_apart(one: str, other: str) -> list[str]:
    """The tests that find one of two faults in all seeds, and the other in none."""
    opposite = [{True}, {False}], [{False}, {True}]
    return [test for test in TESTS if [_answers(one, test), _answers(other, test)] in opposite]


def _healthy(test: OrderedTest, task: str) -> str:
    """The range of healthy models of a task, in the words of the test."""
    numbers = [one["tests"][test.name] for one in stored_results()[f"healthy {task}"]]
    form = test.says[test.says.index("{") : test.says.index("}") + 1]
    return f"In {len(numbers)} healthy {task}s: {form.format(min(numbers))} to {form.format(max(numbers))}"


def _entry(number: int) -> Entry:
    new = {"passed": False, "wrong": 0, "tries": 0, "ordered": []}
    return new | record().entry("exercises", name_of(number))


def _store(number: int, entry: Entry) -> None:
    record().change("exercises", name_of(number), entry)
