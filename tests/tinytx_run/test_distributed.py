"""Two processes learn what one learns; what is unequal, interrupted or dead does no harm."""

import contextlib
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from tests.launching import launch
from tests.tinytx_run.interrupted import folder_bytes
from tests.tinytx_run.two_processes import CASES, RUNS, SETTINGS, gradients, half_way, make, run
from tinytx_run.checkpoint import load
from tinytx_run.cli import main
from tinytx_run.distributed import Processes, SharedStep

RANKS = (0, 1)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """History, weights and folder of the runs that one process makes, by optimizer."""
    found = {}
    for optimizer in ("adamw", "muon"):
        folder = tmp_path_factory.mktemp("alone") / "run"
        found[optimizer] = (*run(folder, optimizer=optimizer), folder)
    return found


@pytest.fixture(scope="module")
def two(alone, tmp_path_factory):
    """What two processes found, in one start of torchrun: answers and tensors of each, and their folder."""
    folder = tmp_path_factory.mktemp("two")
    for optimizer, layout, begun in RUNS:
        if begun == "resumed":
            half_way(alone[optimizer][2], folder / f"{optimizer}-{layout}-{begun}")
    assert launch(2, [folder], module="tests.tinytx_run.two_processes") == {"n": 2}
    answers = [json.loads((folder / f"answers-{rank}.json").read_text()) for rank in RANKS]
    return answers, [torch.load(folder / f"tensors-{rank}.pt") for rank in RANKS], folder


def under(prefix, tensors):
    """The tensors whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)}


@pytest.mark.parametrize("case", CASES)
def test_loss_and_gradients_are_those_of_one_process(two, case):
    answers, tensors, _ = two
    name, _, changes = CASES[case]
    numbers, grads = gradients(name, "alone", **changes)
    rounded = "precision" in changes
    for rank in RANKS:
        got = answers[rank]["gradients"][case]
        assert_close(got, numbers, rtol=0.02 if rounded else 0, atol=0 if rounded else 1e-6)
        assert_close(under(f"{case}/", tensors[rank]), grads, rtol=0, atol=0.01 if rounded else 1e-7)


@pytest.mark.parametrize(("optimizer", "layout", "begun"), RUNS)
def test_runs_end_where_that_of_one_process_ends(two, alone, optimizer, layout, begun):
    answers, tensors, folder = two
    history, model, _ = alone[optimizer]
    key = f"{optimizer}-{layout}-{begun}"
    for rank in RANKS:
        assert_close(under(f"{key}/", tensors[rank]), dict(model.state_dict()), rtol=0, atol=1e-6)
        got = answers[rank]["runs"][key]
        assert got["step"] == history.step and got["lr"] == history.lr
        assert_close(got["loss"], history.loss, rtol=0, atol=1e-5)
    saved = load(folder / key / "step-000008").model.double().state_dict()
    assert_close(saved, dict(model.state_dict()), rtol=0, atol=1e-6)


@pytest.mark.parametrize("layout", ["copies", "sharded"])
def test_what_two_processes_began_one_ends(two, alone, tmp_path, layout):
    folder = half_way(two[2] / f"adamw-{layout}-new", tmp_path / "run")
    history, model = run(folder)
    assert_close(dict(model.state_dict()), dict(alone["adamw"][1].state_dict()), rtol=0, atol=1e-6)
    assert_close(history.loss, alone["adamw"][0].loss, rtol=0, atol=1e-5)


def test_with_dropout_a_resumed_run_of_two_processes_ends_in_the_same_bytes(two):
    answers, _, folder = two
    files = folder_bytes(folder / "dropout")
    assert folder_bytes(folder / "dropout-resumed") == files and len(files) > 4
    assert answers[0]["looked at"] == [*range(1, 9), *range(5, 9)]
    assert answers[1]["looked at"] == []


def test_ctrl_c_in_one_process_stops_all_and_saves_once(two):
    answers, _, folder = two
    assert "after step 3: saved in" in answers[0]["stopped"] and "step-000003" in answers[0]["stopped"]
    assert "after step 3" in answers[1]["stopped"]
    assert [path.name for path in (folder / "poked").glob("step-*")] == ["step-000003"]


def test_processes_agree_on_flags_and_on_errors(two):
    for answers in two[0]:
        assert answers["any"] == [True, False]
        assert answers["refused"] == "as process 0 finds"


def test_each_process_draws_its_own_dropout(monkeypatch):
    def seed_of(rank):
        step = SharedStep(*make("causal"), SETTINGS)
        step.processes = Processes(rank, 2)
        with torch.random.fork_rng():
            step.backward([0, 1, 2])
            return torch.initial_seed()

    monkeypatch.setattr(Processes, "total", lambda self, values: values)
    assert seed_of(0) == seed_of(0) != seed_of(1)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="started by torchrun, got one"):
        run(None, shard=True)
    with pytest.raises(ValueError, match="on_step needs a model in one piece, got one that is sharded"):
        run(None, shard=True, on_step=lambda step, model: None)


def command(prose, out, *more):
    """A command that trains for a moment."""
    settings = ["--budget", "smoke", "--precision", "fp32", "--device", "cpu", "--out", out]
    return ["pretrain", "--corpus", prose, *settings, *more]


@pytest.mark.proof
def test_the_command_under_torchrun_answers_once_and_as_one_process_does(prose, tmp_path, capsys):
    answer = launch(2, [*command(prose, tmp_path / "two", "--steps", 6), "--json"])
    assert sum("parameters" in line for line in capsys.readouterr().err.splitlines()) == 1
    assert main([*map(str, command(prose, tmp_path / "one", "--steps", 6)), "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert answer.pop("path") != alone.pop("path")
    assert answer == pytest.approx(alone, abs=1e-4)


@pytest.mark.proof
def test_a_process_that_is_killed_is_named_and_the_run_goes_on(prose, tmp_path):
    out = tmp_path / "run"

    def kill_the_second():
        while not list(out.glob("step-*")):
            time.sleep(0.05)
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                is_ours = str(out).encode() in (entry / "cmdline").read_bytes()
                if is_ours and b"\0RANK=1\0" in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)

    killer = threading.Thread(target=kill_the_second)
    killer.start()
    with pytest.raises(RuntimeError, match=r"(?s)Root Cause.*rank +: 1 .*SIGKILL"):
        launch(2, command(prose, out, "--steps", 1000))
    killer.join()
    assert 0 < max(int(path.name[5:]) for path in out.glob("step-*")) < 1000
    assert main([str(word) for word in command(prose, out, "--steps", 1000, "--resume")]) == 0
    assert (out / "step-001000" / "model.json").is_file()
