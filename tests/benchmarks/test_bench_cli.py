"""`python -m benchmarks` from end to end with tiny sizes: what is kept has every field."""

import json
import sys

import pytest

from benchmarks import steps
from benchmarks.report import OURS, bench_table, line_of
from benchmarks.settings import BenchSettings
from tinytx.cli import main

TIMES = {"seconds", "processor_seconds", "seconds_by_round", "processor_seconds_by_round", "n_params"}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for part in ("steps", "reviews"):
        assert main(["bench", part, "--tiny", "--rounds", "2", "--results", str(folder)]) == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("part", ["steps", "reviews"])
def test_what_is_kept_has_every_field(kept, part):
    content = json.loads((kept / f"bench-{part}.json").read_text())
    assert content["runs"][0]["machine"]["cores"] >= 1
    records = content["records"]
    ceiling = records.pop("ceiling")
    assert min(*ceiling["gflops"].values(), ceiling["copied_gb_s"]) > 0
    assert records
    for record in records.values():
        assert {"config", "corpus", "precision", "threads", "n_rounds", "left_out"} <= record.keys()
        assert record["left_out"] == {}
        assert OURS in record["contestants"]
        for contestant in record["contestants"].values():
            assert contestant.keys() >= TIMES and len(contestant["seconds_by_round"]) == 2
        assert record["ratios"].keys() == record["contestants"].keys() - {OURS}
        for ratio in (*record["ratios"].values(), *record["fastest"].values()):
            assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"]


@pytest.mark.slow
def test_the_fastest_of_a_group_is_the_one_with_the_smallest_median(kept):
    for record in json.loads((kept / "bench-steps.json").read_text())["records"].values():
        for group, fastest in record.get("fastest", {}).items():
            rivals = [each for each in record["contestants"].values() if each.get("group") == group]
            mine = record["contestants"][fastest["name"]]
            assert mine["group"] == group
            assert mine["seconds"] == min(each["seconds"] for each in rivals)


@pytest.mark.slow
def test_the_table_has_a_row_a_comparison_and_every_ratio_in_its_column(kept):
    records = [
        record
        for part in ("steps", "reviews")
        for record in json.loads((kept / f"bench-{part}.json").read_text())["records"].values()
        if record.get("fastest")
    ]
    rows = bench_table(kept).splitlines()[2:]
    assert len(rows) == len(records)
    for row, record in zip(rows, records, strict=True):
        _, _, equal, as_it_comes, ourselves, _ = row.split("|")
        assert row.count("**") == 2 * len(record["fastest"])
        for group, each in record["fastest"].items():
            cell = (
                as_it_comes
                if group == "as it comes"
                else ourselves
                if "same model" in each["name"]
                else equal
            )
            assert f"**{each['median']:.1f}**" in cell


def test_the_table_says_how_good_a_model_was_how_soon(tmp_path):
    run = {"nats": 1.5, "unit": "character", "n_steps": 1_200, "seconds": 171.4}
    counts = {"nats": 2.0, "nats_by_order": {"2": 2.25, "3": 2.0}}
    records = {"ceiling": {}, "characters: counts": counts, "characters: tinytx": run}
    (tmp_path / "bench-speedrun.json").write_text(json.dumps({"records": records}))
    assert bench_table(tmp_path).splitlines()[2:] == [
        "| characters: counts | nats a character by characters of context 1: 2.250, 2: 2.000 |",
        "| characters: tinytx | 1.5000 nats a character after 1,200 steps, 171 s |",
    ]


def test_without_results_the_table_says_how_to_get_them(tmp_path):
    assert bench_table(tmp_path) == "Not measured yet: `make bench` does it."


def test_a_peer_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "x_transformers", None)
    case = steps.cases(tiny=True)[0]
    with pytest.raises(ImportError, match="x_transformers"):
        steps.peer_contestants("x-transformers", case, list(range(2, 99)), "fp32", BenchSettings().device)
    assert line_of("lab", {"left_out": {"x-transformers": "..."}}) == "lab: ; left out: x-transformers"


@pytest.mark.slow
def test_quality_is_compared_seed_by_seed(tmp_path):
    assert main(["bench", "quality", "--tiny", "--rounds", "1", "--results", str(tmp_path)]) == 0
    records = json.loads((tmp_path / "bench-quality.json").read_text())["records"]
    (record,) = (each for each in records.values() if each["kind"] == "quality")
    assert {len(nats) for nats in record["nats_per_token"].values()} == {2}
    if record["precision"] == "bf16":
        nats = record["nats_per_token"]
        lost = sum(nats["bf16"]) / 2 - sum(nats["fp32"]) / 2
        assert record["worse_by"]["mean"] == pytest.approx(lost, abs=1e-9)
        assert abs(lost) < 0.05


def test_an_unknown_part_and_no_round_are_refused(capsys):
    assert main(["bench", "everything"]) == 2
    assert "quality, speedrun or all, got 'everything'" in capsys.readouterr().err
    assert main(["bench", "--rounds", "0"]) == 2
    assert "rounds must be at least 1, got 0" in capsys.readouterr().err


def test_all_contestants_read_the_same_batches():
    for case in steps.cases(tiny=True):
        objective = steps._objective(case, list(range(2, 99)))
        for indices in steps._indices(case):
            inputs, targets = objective.batch(indices)
            assert inputs.shape == (case.batch_size, case.seq_len)
            assert (inputs[:, 1:] == targets[:, :-1]).all()
