"""This checkout against another one: each side imports its own code, and every row is measured."""

import pytest

from benchmarks import against
from benchmarks.against import NEW, OLD, ROWS, Side, measure_against
from benchmarks.settings import BenchSettings

HOW = {"threads": 1, "precision": "fp32", "device": "cpu", "tiny": True}


@pytest.mark.proof
def test_every_row_is_measured_on_both_sides(tmp_path):
    records = measure_against(against.ROOT, BenchSettings(n_rounds=2, tiny=True), tmp_path)
    assert list(records) == list(ROWS)
    for record in records.values():
        old, new = (record["times"][name]["seconds_by_round"] for name in (OLD, NEW))
        assert record["ratio"]["median"] == pytest.approx(
            sum(a / b for a, b in zip(old, new, strict=True)) / 2
        )
        assert record["ratio"]["low"] <= record["ratio"]["median"] <= record["ratio"]["high"]


def test_a_side_imports_from_its_own_folder_and_passes_errors_on(tmp_path):
    (tmp_path / "tinytx").mkdir()
    (tmp_path / "tinytx" / "__init__.py").write_text("print('noise')")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "generation.py").write_text("raise ValueError('of that side')")
    side = Side(tmp_path, HOW)
    with pytest.raises(RuntimeError, match="ValueError: of that side"):
        side.ask("build", "greedy generation, 64 tokens")
    assert side.ask("run")["wall"] >= 0  # it still answers
    side.close()
    with pytest.raises((RuntimeError, ValueError)):
        side.ask("run")


def test_code_of_another_folder_is_refused(tmp_path):
    side = Side(tmp_path, HOW)
    with pytest.raises(RuntimeError, match="tinytx"):
        side.ask("build", next(iter(ROWS)))
    side.close()
