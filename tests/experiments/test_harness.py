"""Records are measured once; tables hold means and paired differences; the command prints what is stored."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.__main__ import main as benchmarks_main
from experiments.__main__ import main
from experiments.harness import mean_table
from experiments.inventory import inventory
from experiments.looking_inside import looking_inside
from experiments.lora import lora
from experiments.mask_off import mask_off
from experiments.museum import museum
from experiments.world_minute import world_minute
from tests.experiments.dying import mortal
from tinytx_course.results import Results
from tinytx_run.intervals import paired_interval


def test_a_record_is_measured_again_only_when_its_origin_changes(settings):
    some = settings()
    assert some.cached("a", {"seed": 0}, lambda: {"loss": 2.5}) == {"loss": 2.5, "origin": {"seed": 0}}
    assert some.cached("a", {"seed": 0}, lambda: {"loss": 9.0})["loss"] == 2.5
    assert some.cached("a", {"seed": 1}, lambda: {"loss": 9.0})["loss"] == 9.0


def test_an_interrupted_run_resumes_with_what_is_missing(settings, stop_after):
    def run(n_records):
        left = stop_after(n_records)
        cells = [(a, b) for a in "xyz" for b in (1, 2)]
        origin, measure = (lambda a, b: {"range": (b, 9)}), (lambda a, b: {"found": a * b})
        return left, settings().measured("toy", cells, "{}/{}".format, origin, measure)

    with pytest.raises(ConnectionAbortedError):
        run(4)
    assert list(settings().store.data) == ["x/1", "x/2", "y/1", "y/2"]
    left, records = run(2)
    assert left == [0] and records["z/2"] == {"found": "zz", "origin": {"range": [2, 9]}}
    assert run(0)[1] == records == settings().store.data


def test_a_worker_that_dies_is_named_and_its_cell_left_empty(settings):
    lines = []
    some, cells = settings(report=lines.append), [(0,), (1,), (2,), (3,)]
    found = some.measured("toy", cells, "seed {}".format, lambda seed: {}, mortal, n_threads=1)
    assert [*found] == [*some.store.data] == ["seed 0", "seed 2", "seed 3"]
    assert len(lines) == 1 and "seed 1" in lines[0]
    assert found["seed 2"]["process"] == found["seed 3"]["process"] != found["seed 0"]["process"]


def test_settings_are_checked(settings):
    for changes, words in (({"n_seeds": 0}, "n_seeds.*got 0"), ({"budget": "huge"}, "'huge'")):
        with pytest.raises(ValueError, match=words):
            settings(**changes)


@pytest.mark.parametrize("experiment", [inventory, looking_inside, lora, mask_off, museum, world_minute])
def test_a_budget_that_an_experiment_does_not_know_is_refused(settings, experiment):
    with pytest.raises(ValueError, match="smoke or laptop, got study"):
        experiment(settings(budget="study"))


def test_differences_are_paired_by_seed_and_a_single_run_has_no_interval():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        [(n, name, seed, rng.normal()) for n in (5, 7) for name in ("base", "new") for seed in (3, 1, 2)]
        + [(5, "new", 4, 100.0), (5, "once", 1, 0.0)],
        columns=["n_labels", "variant", "seed", "accuracy"],
    ).sample(frac=1, random_state=0)
    found = mean_table(data, "accuracy", by=("n_labels",), variant="variant", baselines=("base",))
    found = found.set_index(["n_labels", "variant"])
    runs = data.set_index(["n_labels", "variant", "seed"])["accuracy"].sort_index()
    for n in (5, 7):
        pairs = paired_interval([runs[n, "new", seed] - runs[n, "base", seed] for seed in (1, 2, 3)])
        row = found.loc[n, "new"]
        assert row["mean"] == pytest.approx(runs[n, "new"].mean())
        ends = row[["minus base", "minus base low", "minus base high"]].tolist()
        assert ends == pytest.approx([pairs.mean, pairs.low, pairs.high])
    assert found.loc[(5, "new"), "n"] == 4 and np.isnan(found.loc[(7, "base"), "minus base"])
    assert found.loc[(5, "once"), ["low", "minus base low"]].isna().all()


def test_json_prints_what_is_stored_and_measures_nothing(tmp_path, capsys, stop_after):
    counted = {"measure": "counts", "model": "4-gram", "n_params": 9}
    counted |= {"valid": 2.0, "test": 1.75, "bound": 1.5}
    Results("ladder", tmp_path).put("4-gram/counts", {**counted, "origin": {"texts": "aa"}})
    stop_after(0)
    assert main(["ladder", "--json", "--results", str(tmp_path)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["name"] == "ladder" and "measured 20" in answer["source"]
    assert [row["equal"] for row in answer["rows"]] == ["parameters", "time"]
    assert answer["rows"][0]["above"] == 0.25 and answer["rows"][0]["std"] is None


@pytest.mark.parametrize("command", [main, benchmarks_main], ids=["experiments", "benchmarks"])
def test_results_that_cannot_be_written_are_refused_before_anything_is_measured(tmp_path, capsys, command):
    (tmp_path / "file").write_text("mine")
    name = "ladder" if command is main else "race"
    assert command([name, "--results", str(tmp_path / "file" / "results")]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and "a folder that can be written to, got " in said.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["objectives", "--json"], "objectives.json"),
        (["translation", "--json", "--corpus", "multi30k-en-fr"], "translation-multi30k-en-fr.json"),
        (["ladder", "--seeds", "0"], "got 0"),
        (["objectives", "--budget", "9"], "got 9.0"),
        (["transfer", "--variants", "scratch"], "--variants"),
        (["pretraining", "--variants", "guess", "--budget", "30"], "got 30.0"),
        (["everything"], "everything"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(tmp_path, capsys, arguments, words):
    results = ["--results", str(tmp_path)] if arguments != ["everything"] else []
    assert main([*arguments, *results]) == 2
    said = capsys.readouterr()
    assert words in said.err and said.err.count("\n") == 1 and said.out == ""
    assert not list(tmp_path.iterdir())
