"""Tests find what they are for, a diagnosis is judged by the evidence, and what is spent is counted."""

import pkgutil
import re

import pytest

import tinytx_course as course
from tinytx_course import museum
from tinytx_course.lessons import project_root
from tinytx_course.museum.diagnosing import WRONG_PRICE, contradicting
from tinytx_course.museum.faults import FAULTS, PATIENTS
from tinytx_course.museum.patients import RECIPES, Patient

#: What its test finds in a model that took three steps: promises that no training keeps or breaks.
AT_ONCE = (
    *("mask_transposed", "mask_after_softmax", "no_scale", "positions_missing", "padding_read"),
    *("dropout_in_evaluation", "norm_on_wrong_axis", "tied_weights_too_large", "gradient_cut"),
)
STORED = museum.stored_results()


# ---- the tests


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_broken_promise_is_found_without_training_and_only_in_the_patient(name):
    fault, test = FAULTS[name], museum.TESTS[FAULTS[name].test]
    assert test.finds(museum.examine(Patient(name), test))
    assert not test.finds(museum.examine(museum.healthy(fault.task), test))


@pytest.mark.parametrize("name", FAULTS)
def test_the_named_test_found_the_fault_in_all_seeds_and_nothing_in_healthy_models(name):
    """And what was measured was the program as it is now."""
    from experiments.museum import _origin

    fault, healthy = FAULTS[name], STORED[f"healthy {FAULTS[name].task}"]
    finds = museum.TESTS[fault.test].finds
    assert [finds(one["tests"][fault.test]) for one in STORED[name]] == [True] * 5
    assert [finds(one["tests"][fault.test]) for one in healthy] == [False] * 5
    assert all(one["origin"] == _origin(name, fault.task, False) for one in STORED[name])


def test_faults_of_one_task_are_told_apart():
    for one in FAULTS.values():
        for other in FAULTS.values():
            if one.task == other.task and one is not other:
                assert museum.told_apart(one.name, other.name), (one.name, other.name)


@pytest.mark.proof
@pytest.mark.slow
@pytest.mark.parametrize("name", ["evaluation_data_in_training", "softmax_twice", "targets_not_shifted"])
def test_what_only_training_shows_is_found_again(monkeypatch, name):
    monkeypatch.setenv("TINYTX_BUDGET", "laptop")
    fault, patient = FAULTS[name], Patient(name)
    test = museum.TESTS[fault.test]
    assert test.finds(museum.examine(patient, test))
    loss, stored = patient.history.held_out[-1][1], STORED[name][0]["held_out_loss"]
    assert loss == pytest.approx(stored, rel=0.2, abs=0.05)


def test_a_test_that_does_not_exist_or_does_not_apply_is_refused():
    with pytest.raises(ValueError, match="got 'leek'; did you mean 'leak'"):
        museum.order(museum.patient(2), "leek")
    with pytest.raises(ValueError, match="language model or translator, got a classifier"):
        museum.order(museum.patient(1), "leak")


# ---- the diagnosis


@pytest.mark.parametrize("number", range(1, 15))
def test_the_right_fault_is_accepted_with_its_line_and_every_other_refused_without_it(number):
    true = FAULTS[PATIENTS[number]]
    right = course.diagnose(number, true.name, display=False)
    assert right and true.broken in right.message and true.healthy in right.message
    for guess in FAULTS.values():
        if guess is not true:
            wrong = course.diagnose(number, guess.name, display=False)
            assert not wrong.passed and guess.name in wrong.message
            assert not re.search(rf"`{true.name}`", wrong.message) and true.broken not in wrong.message


@pytest.mark.parametrize("true", FAULTS)
def test_what_contradicts_a_guess_is_a_test_with_another_answer(true):
    for guess in FAULTS:
        found = contradicting(FAULTS[true], FAULTS[guess])
        if true == guess:
            assert found is None
        elif found is not None:
            test, number, expects = found
            assert test.finds(number) is not expects
            assert {test.finds(one["tests"][test.name]) for one in STORED[guess]} == {expects}
        else:
            assert FAULTS[true].task != FAULTS[guess].task


def test_a_test_that_was_ordered_is_the_first_to_contradict():
    test, _, expects = contradicting(FAULTS["mask_transposed"], FAULTS["no_scale"], ("leak",))
    assert test.name == "leak" and expects is False


def test_dots_are_no_attempt_and_bad_names_are_answered(mine):
    verdict = course.diagnose(3, ...)
    assert not verdict.passed and not verdict.attempted and mine.part("exercises") == {}
    with pytest.raises(ValueError, match="got 'mask_transpose'; did you mean 'mask_transposed'"):
        course.diagnose(3, "mask_transpose")
    with pytest.raises(ValueError, match=r"from 1 to 14, got 'patient 33'; did you mean 'patient 3'"):
        course.diagnose("patient 33", "no_scale")


def test_healthy_numbers_are_written_as_that_of_the_patient():
    said = museum.order(museum.patient(1), "first_loss").sentence
    patient, *healthy = re.findall(r"[+-]\d\.\d\d(?=\D)", said + " ")
    numbers = [one["tests"]["first_loss"] for one in STORED["healthy classifier"]]
    assert patient == "+0.00" and healthy == [f"{min(numbers):+.2f}", f"{max(numbers):+.2f}"]


def test_what_is_spent_counts_each_test_once_and_each_wrong_diagnosis(mine):
    patient = museum.patient(2)
    for _ in range(2):
        assert museum.order(patient, "attention_sums").number < 1e-5
    museum.order(patient, "gradients")
    assert museum.spent(2) == 1 + 2
    course.diagnose(2, "no_scale")
    assert museum.spent(2) == 3 + WRONG_PRICE and not mine.entry("exercises", "patient 2")["passed"]
    course.diagnose(2, PATIENTS[2])
    course.diagnose(2, "no_scale")
    assert museum.spent(2) == 3 + WRONG_PRICE, "what is solved stays solved"
    assert mine.entry("exercises", "patient 2")["passed"]


def test_patients_count_as_exercises_of_their_lesson(mine):
    def row():
        return next(row for row in course.status().rows if row[0].startswith("18"))

    assert row()[1] == "0 of 14"
    course.diagnose(2, "no_scale")
    assert "patient 2" in course.status().sentences[-1]
    course.diagnose(2, PATIENTS[2])
    course.diagnose(0, PATIENTS[0])
    assert row()[1] == "1 of 14"
    course.reset("patient 2")
    assert row()[1] == "0 of 14"


# ---- what is shown


def test_the_evidence_of_a_patient_is_plain_and_names_no_fault():
    for number in range(1, 15):
        shown = museum.shown(number)
        assert not set(str(shown).split()) & set(FAULTS)
        assert shown["task"] in RECIPES and len(shown["held_out"]) == len(shown["steps"])
    live = museum.collect(museum.patient(7))
    assert live.keys() == museum.shown(7).keys() and len(live["samples"]) == 3
    assert "->" in museum.as_text(live)


def test_healthy_classifiers_end_about_as_high_as_the_one_that_reads_padding():
    read, healthy = (
        [one["held_out_loss"] for one in STORED[name]] for name in ("padding_read", "healthy classifier")
    )
    assert max(min(read), min(healthy)) < min(max(read), max(healthy))  # the ranges overlap


def test_no_module_hides_a_name_of_the_museum():
    modules = {module.name for module in pkgutil.iter_modules(museum.__path__)}
    assert not modules & {*museum.__all__}  # once imported, it would take the name's place


def test_the_printed_page_is_the_checklist_and_has_every_fault():
    page = (project_root() / "notebooks" / "bug_checklist.html").read_text(encoding="utf-8")
    assert page == museum.checklist().page()
    assert all(name in page and fault.test in page for name, fault in FAULTS.items())


def test_the_folded_solutions_of_the_lesson_are_right_and_complete():
    source = (project_root() / "notebooks" / "src" / "18_bug_museum.py").read_text(encoding="utf-8")
    solutions = dict(re.findall(r"^# - Patient (\d+): `(\w+)`", source, re.M))
    assert {int(number): name for number, name in solutions.items()} == dict(enumerate(PATIENTS[1:], 1))
    asked = re.findall(r"^course\.diagnose\((\d+), \.\.\.\)", source, re.M)
    assert sorted(map(int, asked)) == list(range(1, 15))
