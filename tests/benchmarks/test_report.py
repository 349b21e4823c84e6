"""`python -m benchmarks` from end to end with tiny sizes: records have every field, tables every ratio."""

import json
import sys

import pytest
import torch

from benchmarks import steps
from benchmarks.__main__ import main
from benchmarks.report import OURS, PAGE, bench_table
from tinytx_course.results import with_table

TIMES = {"seconds", "processor_seconds", "seconds_by_round", "processor_seconds_by_round", "n_params"}


@pytest.mark.proof
def test_records_have_every_field_and_the_table_every_ratio(tmp_path):
    compared = []
    for part in ("steps", "reviews"):
        assert main([part, "--tiny", "--rounds", "2", "--results", str(tmp_path)]) == 0
        compared += json.loads((tmp_path / f"bench-{part}.json").read_text())["records"].values()
    rows = bench_table(tmp_path).partition("\n\n")[0].splitlines()[2:]
    for row, record in zip(rows, compared, strict=True):
        assert {"config", "corpus", "precision", "threads", "n_rounds"} <= record.keys()
        assert record["left_out"] == {} and OURS in record["contestants"]
        for candidate in record["contestants"].values():
            assert candidate.keys() >= TIMES and len(candidate["seconds_by_round"]) == 2
        _, _, equal, as_it_comes, ourselves, _ = row.split("|")
        for group, fastest in record["fastest"].items():
            assert 0 < fastest["low"] <= fastest["median"] <= fastest["high"]
            same = [one for one in record["contestants"].values() if one.get("group") == group]
            assert record["contestants"][fastest["name"]]["seconds"] == min(one["seconds"] for one in same)
            is_ours = "same model" in fastest["name"]
            cell = as_it_comes if group == "as it comes" else ourselves if is_ours else equal
            assert f"**{fastest['median']:.1f}**" in cell


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


@pytest.mark.parametrize(
    ("arguments", "words"), [(["everything"], "'everything'"), (["--rounds", "0"], "got 0")]
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
