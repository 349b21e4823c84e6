"""Lesson 06: derivations with one error each; published models equal to those of `transformers`."""

import pytest
import torch

from tinytx.counting import KINDS, count_parameters, parameter_table
from tinytx_course.counting.diagnosis import diagnose_count
from tinytx_course.labs.lesson_06 import DERIVATIONS, PUBLISHED, check

NAMES = ("Bert", "Roberta", "Camembert", "DistilBert", "GPT2", "MBart", "T5")
CLASSES = {name.lower(): name for name in NAMES}


@pytest.fixture(scope="module")
def transformers():
    module = pytest.importorskip("transformers", reason="the extra `parity` is not installed")
    module.logging.set_verbosity_error()
    return module


@pytest.mark.parametrize("name", PUBLISHED)
def test_totals_are_made_of_terms(name):
    table = PUBLISHED[name].table()
    assert sum(table.parts.values()) == sum(table.kinds.values()) == table.total
    assert set(table.kinds) <= set(KINDS)
    for row in table.rows:
        assert eval(row.numbers.replace("·", "*")) == row.count


@pytest.mark.parametrize("name", [name for name in PUBLISHED if PUBLISHED[name].family in CLASSES])
def test_totals_are_those_of_the_model_that_transformers_builds(transformers, name):
    published = PUBLISHED[name]
    family = CLASSES[published.family]
    config = getattr(transformers, f"{family}Config")(**published.settings)
    with torch.device("meta"):  # nothing is allocated, nothing is downloaded
        assert published.table().total == count_parameters(getattr(transformers, f"{family}Model")(config))


@pytest.mark.parametrize("name", [name for name in PUBLISHED if PUBLISHED[name].family == "transformer"])
def test_the_original_has_the_layers_of_torch_and_one_matrix(name):
    settings = PUBLISHED[name].settings
    names = ("d_model", "n_heads", "n_layers", "n_layers", "d_ff")
    with torch.device("meta"):
        stacks = torch.nn.Transformer(*(settings[name] for name in names), batch_first=True)
    stacks.encoder.norm = stacks.decoder.norm = None  # torch adds a norm that the paper has not
    matrix = settings["vocab_size"] * settings["d_model"]
    assert PUBLISHED[name].table().total == count_parameters(stacks) + matrix


def test_gaps_to_what_papers_state():
    gaps = {
        name: round(model.table().total / 1e6 - model.stated, 1)
        for name, model in PUBLISHED.items()
        if model.stated is not None and abs(model.table().total / 1e6 / model.stated - 1) > 0.02
    }
    gpt = {"GPT-2 small": 7.4, "GPT-2 medium": 9.8}
    assert gaps == {"Transformer base": -1.9, **gpt, "BARThez": -25.8, "mBART": -69.1}


SLIPS = {"A": "attention-as-heads-times-d2", "B": "norms-counted-once"}

each = pytest.mark.parametrize("name", DERIVATIONS)


@each
def test_every_line_but_the_wrong_one_is_right_and_all_reckon_rightly(name):
    derivation = DERIVATIONS[name]
    for line in derivation.lines:
        letters, _, numbers = line.working.rpartition(" = ")
        assert eval(numbers.replace("·", "*").replace("²", "**2").replace(",", "")) == line.number
        config = derivation.config
        sizes = {"V": config.vocab_size, "D": config.d_model, "F": config.d_ff}
        sizes |= {"H": config.n_heads, "C": derivation.n_classes}
        if letters:
            by_letters = eval(letters.replace("·", "*").replace("²", "**2"), {}, sizes)
            assert by_letters == line.number


@each
def test_mending_the_wrong_line_gives_the_right_total(name):
    derivation = DERIVATIONS[name]
    right = parameter_table(derivation.config, derivation.head, derivation.n_classes).total
    wrong = derivation.lines[derivation.wrong_line - 1]
    times = 1 if wrong.what in ("embedding", "output layer") else derivation.config.n_layers
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
    total = {"A": "1,574", "B": "1,805"}[name]
    assert said == f"{name}: found! {derivation.hint} The right total is {total}."
    assert "right result" in check(name, derivation.wrong_line)
    assert "not 7" in check(name, derivation.wrong_line, 7)
    assert "line above" in check(name, line=7) and "line above" in check(name, line=5)
    for line in (0, 8, "two", 2.5, [1]):
        assert "line must be a number from 1 to 7" in check(name, line=line)


def test_unknown_names_raise():
    with pytest.raises(ValueError, match="A, B, got 'E'"):
        check("E")
