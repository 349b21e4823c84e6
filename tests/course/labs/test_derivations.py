"""The reading exercise of lesson 06: one slip each, which is what the reader is told."""

import re

import pytest

from tinytx.model.counting import parameter_table
from tinytx.model.diagnosis import diagnose_count
from tinytx_course.labs.lesson_06 import DERIVATIONS, check

SLIPS = {
    "A": "attention-as-heads-times-d2",
    "B": "norms-counted-once",
    "C": "feed-forward-biases-forgotten",
    "D": "heads-for-norms",
}

each = pytest.mark.parametrize("name", DERIVATIONS)


def test_there_are_four():
    assert set(DERIVATIONS) == set(SLIPS)


@each
def test_every_line_but_the_wrong_one_is_right_and_all_reckon_rightly(name):
    derivation = DERIVATIONS[name]
    for number, line in enumerate(derivation.lines, 1):
        letters, _, numbers = line.working.rpartition(" = ")
        lost_biases = name == "C" and number == derivation.wrong_line
        assert eval(numbers.replace("·", "*").replace("²", "**2")) == line.number
        config = derivation.config
        sizes = {"V": config.vocab_size, "D": config.d_model, "F": config.d_ff}
        sizes |= {"H": config.n_heads, "C": derivation.n_classes}
        if letters:
            by_letters = eval(letters.replace("·", "*").replace("²", "**2"), {}, sizes)
            assert (by_letters == line.number) is not lost_biases


@each
def test_mending_the_wrong_line_gives_the_right_total(name):
    derivation = DERIVATIONS[name]
    right = parameter_table(derivation.config, derivation.head, derivation.n_classes).total
    wrong = derivation.lines[derivation.wrong_line - 1]
    times = 1 if wrong.what in ("embedding", "head") else derivation.config.n_layers
    assert derivation.claimed + times * (derivation.right_number - wrong.number) == right
    assert derivation.claimed != right


@each
def test_the_slip_is_among_those_that_the_number_gives_away(name):
    derivation = DERIVATIONS[name]
    diagnosis = diagnose_count(
        derivation.config, derivation.head, derivation.claimed, n_classes=derivation.n_classes
    )
    assert frozenset({SLIPS[name]}) in diagnosis.explanations


@each
def test_the_check_confirms_only_the_right_line_with_the_right_number(name):
    derivation = DERIVATIONS[name]
    assert check(name) == check(name, line=None) == f"{name}: not attempted yet."
    for line in range(1, len(derivation.lines) + 1):
        answer = check(name, line=line, number=derivation.right_number)
        assert ("found!" in answer) == (line == derivation.wrong_line)
    said = check(name, derivation.wrong_line, derivation.right_number)
    assert said == f"{name}: found! {derivation.hint}"
    assert "What should it arrive at?" in check(name, derivation.wrong_line)
    assert "should not arrive at 7" in check(name, derivation.wrong_line, 7)
    assert "further up" in check(name, line=7) and "further up" in check(name, line=5)
    for line in (0, 8, "two", 2.5, [1]):
        assert "line must be a number from 1 to 7" in check(name, line=line)


@each
def test_it_is_written_out_with_numbered_lines(name):
    text = str(DERIVATIONS[name]).splitlines()
    assert re.match(r"(language model|classifier with 5 classes): V = \d+, D = ", text[0])
    assert [line.split()[0] for line in text[1:]] == [f"{number}." for number in range(1, 8)]
    assert text[-1].endswith(f"{DERIVATIONS[name].claimed:,}")


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="^name must be one of A, B, C, D, got 'E'$"):
        check("E")
