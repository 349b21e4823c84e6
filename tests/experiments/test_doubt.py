"""A conclusion is tried with twice the steps and fresh seeds; stored ones hold of their records."""

import importlib
import types

import pytest

from experiments.__main__ import DOUBTED, main
from experiments.harness import doubt
from tinytx_course.results import read_results


def test_a_doubt_takes_twice_the_steps_and_fresh_seeds_and_says_what_stays(settings):
    def toy(some):
        measured = {seed: {"seed": seed, "n_steps": 10 * some.longer} for seed in some.seeds(1)}
        for seed, record in measured.items():
            some.store.put(f"seed {seed}", record)

    def conclusions(records):
        few = all(one["n_steps"] == 10 for one in records.values())
        return {"it is learned": len(records) == 2, "ten steps are enough": few}

    toy(settings("toy", n_seeds=2))
    module = types.SimpleNamespace(toy=toy, conclusions=conclusions)
    stored = settings("toy").store.data
    found = doubt(settings("toy", n_seeds=2), "toy", module, stored).set_index("sentence")
    assert found["stored"].all() and found["stays"].tolist() == [True, False]
    fresh = settings("doubt-toy").store.data
    assert {one["seed"] for one in fresh.values()}.isdisjoint(one["seed"] for one in stored.values())
    assert {one["n_steps"] for one in fresh.values()} == {20} and settings("toy").store.data == stored


@pytest.mark.parametrize("name", DOUBTED)
def test_the_conclusions_hold_of_the_stored_records(name):
    module = importlib.import_module(f"experiments.{name.replace('-', '_')}")
    found = module.conclusions(read_results(name).data)
    assert [sentence for sentence, holds in found.items() if not holds] == []


def test_an_unknown_name_lists_those_that_can_be_doubted(tmp_path, capsys):
    assert main(["doubt", "astrology", "--results", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and all(name in said for name in ["astrology", *DOUBTED])
    assert main(["doubt", "ladder", "--results", str(tmp_path)]) == 2
    assert "`python -m experiments ladder`" in capsys.readouterr().err
