"""`python -m benchmarks speedrun` with tiny sizes: what is stored, what is counted, when the clock stops."""

import json
import math
import time
from collections import Counter

import pytest
import torch

from benchmarks import speedrun
from benchmarks.settings import BenchSettings
from tinytx.cli import main
from tinytx.text.corpora import load_corpus


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "tinyshakespeare").mkdir()
    text = "\n\n".join(load_corpus("world").train.texts[:150])
    (folder / "tinyshakespeare" / "input.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def records(data_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    arguments = ["bench", "speedrun", "--tiny", "--rounds", "1", "--data-dir", str(data_dir)]
    assert main([*arguments, "--results", str(folder)]) == 0
    return json.loads((folder / "bench-speedrun.json").read_text())["records"]


@pytest.mark.slow
def test_every_run_has_its_curve_and_the_time_it_took(records):
    runs = [record for record in records.values() if record["kind"] == "speedrun"]
    assert [run["unit"] for run in runs] == ["character"] * 4 + ["token"]
    for run in runs:
        steps, seconds = ([point[key] for point in run["curve"]] for key in ("step", "seconds"))
        assert steps == sorted(steps) and steps[0] == 1 and steps[-1] == run["n_steps"]
        assert seconds == sorted(seconds) and seconds[0] > 0 and seconds[-1] <= run["seconds"]
        assert run["curve"][-1]["nats"] < run["curve"][0]["nats"]
    for run in runs[:4]:
        # No more is looked at than there is, so the last look and the judgement at the end are one.
        assert run["curve"][-1]["nats"] == pytest.approx(run["nats"], abs=1e-6)
        assert run["nats_side_by_side"] != run["nats"]
    world = runs[4]
    assert world["above_floor"] == pytest.approx(world["nats"] / world["floor"] - 1) and world["floor"] > 1


@pytest.mark.slow
def test_counts_are_those_of_a_dictionary(records):
    text = "\n\n".join(load_corpus("world").train.texts[:150])
    n = int(0.9 * len(text))
    train, valid = text[:n][:5_000], text[n:][:500]
    vocab_size = max(map(sorted(set(text)).index, train + valid)) + 1 + 4
    ends = ["<eos>"]

    def unigram(counts: Counter, symbol: str) -> float:
        return (counts[symbol] + len(counts) / vocab_size) / (counts.total() + len(counts))

    singles, pairs = Counter([*train, *ends]), Counter(zip(["<bos>", *train], [*train, *ends], strict=True))
    kinds, totals = Counter(first for first, _ in pairs), Counter()
    for (first, _), number in pairs.items():
        totals[first] += number
    nats = 0.0
    for first, second in zip(["<bos>", *valid], [*valid, *ends], strict=True):
        below = unigram(singles, second)
        share = (
            (pairs[first, second] + kinds[first] * below) / (totals[first] + kinds[first])
            if kinds[first]
            else below
        )
        nats -= math.log(share)
    found = records["characters: counting models"]["nats_by_order"]
    assert found["2"] == pytest.approx(nats / (len(valid) + 1), rel=1e-9)


def test_the_clock_stands_still_while_a_model_is_judged():
    clock = speedrun._Clock(torch.device("cpu"))
    started = time.perf_counter()
    clock.start()
    time.sleep(0.02)
    clock.stop()
    time.sleep(0.2)
    clock.start()
    clock.stop()
    assert 0.02 <= clock.seconds <= time.perf_counter() - started - 0.2  # however slow the machine is


def test_ours_looks_no_further_than_it_may_and_the_peer_is_as_published():
    ours, with_adamw, published, as_long = speedrun.contestants(65, BenchSettings())
    assert ours.config.max_len == ours.seq_len and ours.seconds == as_long.seconds == 180
    assert with_adamw.config == ours.config and with_adamw.seconds == ours.seconds
    assert published.seconds is None and published.settings.n_steps == 2_000
    assert (published.seq_len, published.settings.tokens_per_batch // published.seq_len) == (64, 12)
    assert {(one.config.n_layers, one.config.d_model) for one in (ours, published, as_long)} == {(4, 128)}


def test_without_the_text_the_command_that_brings_it_is_named(tmp_path, capsys):
    arguments = ["bench", "speedrun", "--tiny", "--rounds", "1", "--data-dir", str(tmp_path)]
    assert main([*arguments, "--results", str(tmp_path)]) == 2
    assert "`tinytx data get tinyshakespeare" in capsys.readouterr().err
