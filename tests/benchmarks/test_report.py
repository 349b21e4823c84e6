"""`python -m benchmarks` from end to end with tiny sizes: records have every field, tables every ratio."""

import json
import sys

import pytest
import torch

from benchmarks import steps
from benchmarks.__main__ import main
from benchmarks.report import OURS, PAGE, bench_table, line_of
from tinytx_course.results import with_table

TIMES = {"seconds", "processor_seconds", "seconds_by_round", "processor_seconds_by_round", "n_params"}


@pytest.mark.proof
def test_records_have_every_field_and_the_table_every_ratio(tmp_path):
    compared = []
    for part in ("steps", "reviews"):
        assert main([part, "--tiny", "--rounds", "2", "--results", str(tmp_path)]) == 0
        records = json.loads((tmp_path / f"bench-{part}.json").read_text())["records"]
        ceiling = records.pop("ceiling")
        assert min(*ceiling["gflops"].values(), ceiling["copied_gb_s"]) > 0
        compared += records.values()
    rows = bench_table(tmp_path).splitlines()[2:]
    for row, record in zip(rows, compared, strict=True):
        assert {"config", "corpus", "precision", "threads", "n_rounds"} <= record.keys()
        assert record["left_out"] == {} and OURS in record["contestants"]
        for candidate in record["contestants"].values():
            assert candidate.keys() >= TIMES and len(candidate["seconds_by_round"]) == 2
        assert record["ratios"].keys() == record["contestants"].keys() - {OURS}
        _, _, equal, as_it_comes, ourselves, _ = row.split("|")
        for group, fastest in record["fastest"].items():
            assert 0 < fastest["low"] <= fastest["median"] <= fastest["high"]
            same = [one for one in record["contestants"].values() if one.get("group") == group]
            assert record["contestants"][fastest["name"]]["seconds"] == min(one["seconds"] for one in same)
            is_ours = "same model" in fastest["name"]
            cell = as_it_comes if group == "as it comes" else ourselves if is_ours else equal
            assert f"**{fastest['median']:.1f}**" in cell


@pytest.mark.proof
def test_quality_is_compared_seed_by_seed(tmp_path):
    assert main(["quality", "--tiny", "--rounds", "1", "--results", str(tmp_path)]) == 0
    records = json.loads((tmp_path / "bench-quality.json").read_text())["records"]
    (record,) = (one for one in records.values() if one["kind"] == "quality")
    nats = record["nats_per_token"]
    assert {len(values) for values in nats.values()} == {2}
    if record["precision"] == "bf16":
        assert record["worse_by"]["mean"] == pytest.approx(sum(nats["bf16"]) / 2 - sum(nats["fp32"]) / 2)


def test_growth_has_the_exponents_that_its_sizes_and_counts_say(tmp_path, capsys):
    assert main(["growth", "--tiny", "--rounds", "2", "--results", str(tmp_path)]) == 0
    records = json.loads((tmp_path / "bench-growth.json").read_text())["records"]
    del records["ceiling"]
    assert set(records) == {"length", "batch", "texts", "processes"}
    said = capsys.readouterr().out
    for name, record in records.items():
        assert f"{name}: time exponent" in said
        assert len(record["sizes"]) == len(record["seconds"]) and min(record["seconds"]) > 0
    assert records["batch"]["counted_exponent"] == pytest.approx(1)  # all work is done for each row
    assert 1 < records["length"]["counted_exponent"] < 2  # maps for each token, scores for each pair
    assert records["processes"]["sizes"][:2] == [1, 2] and records["processes"]["counted_exponent"] == -1
    assert records["texts"]["n_parts"] == [1, 1] and min(records["texts"]["peak_bytes"]) > 10**8


def test_nothing_measured_is_said(tmp_path):
    assert "make bench" in bench_table(tmp_path)


def test_the_page_has_the_tables_that_follow_from_the_results(root):
    page = PAGE.read_text(encoding="utf-8")
    again = "run `python -m benchmarks.report`"
    assert with_table(page, "bench", bench_table(root / "results")) == page, again


def test_a_peer_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "x_transformers", None)
    case = steps.cases(tiny=True)[0]
    with pytest.raises(ImportError, match="x_transformers"):
        steps.peer_candidates("x-transformers", case, list(range(2, 99)), "fp32", torch.device("cpu"))
    peer = {"name": "peer", "median": 1.5, "low": 1.25, "high": 2.0}
    line = line_of("lab", {"fastest": {"as it comes": peer}, "left_out": {"x-transformers": "..."}})
    assert "1.50 [1.25, 2.00]" in line and "x-transformers" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["everything"], "'everything'"), (["--rounds", "0"], "got 0"), (["--against", "none"], "got none")],
)
def test_bad_requests_are_refused(capsys, arguments, words):
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_all_candidates_read_the_same_batches():
    for case in steps.cases(tiny=True):
        objective = steps._objective(case, list(range(2, 99)))
        for indices in steps._indices(case):
            inputs, targets = objective.batch(indices)
            assert inputs.shape == (case.batch_size, case.seq_len)
            assert (inputs[:, 1:] == targets[:, :-1]).all()
