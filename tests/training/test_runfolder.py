"""Runs that were killed, damaged, mixed up or short of room: what can be gone on with, and what is said."""

import os
import random
import shutil
import signal
import subprocess
import sys

import pytest
import torch

from tests.training.interrupted import folder_bytes
from tinytx.model.config import TransformerConfig
from tinytx.training import checkpoint
from tinytx.training.checkpoint import SEAL_FILE, check_seal, locked, sealed, stored_tokenizer
from tinytx.training.files import json_bytes, read_json, write_file, write_folder
from tinytx.training.loop import TrainingInterrupted, train
from tinytx.training.runs import find_run, open_run
from tinytx.training.settings import TrainingSettings
from tinytx.training.tasks import causal_objective, new_language_model

SETTINGS = TrainingSettings(n_steps=12, lr=1e-2, tokens_per_batch=256, checkpoint_every=4, precision="fp32")
PLAN = {"request": {"command": "pretrain", "seed": 0}}
TENSORS = ("model.safetensors", "training.safetensors")
FILES = (*TENSORS, "model.json", "seal.json", "tokenizer.model", "training.json")


@pytest.fixture(scope="module")
def run_in(corpus, tokenizer):
    """Train in a folder, as one call would; gives the lines that were reported."""
    objective = causal_objective(tokenizer, corpus.train.texts, 24)
    sizes = {"vocab_size": tokenizer.vocab_size, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20}

    def run(folder, settings=SETTINGS, plan=PLAN, on_step=None, **changes):
        lines = []
        config = TransformerConfig(**sizes | {"max_len": 24, "dropout": 0.2} | changes)
        model = new_language_model(config, seed=3)
        with RunFolder.opened(folder, plan, tokenizer, lines.append) as opened:
            train(model, objective, settings, run=opened, on_step=on_step)
        return lines

    return run


@pytest.fixture(scope="module")
def finished(run_in, tmp_path_factory):
    """Two finished runs: one to be damaged in copies, one with another model."""
    folder = tmp_path_factory.mktemp("finished")
    run_in(folder / "whole")
    other = {"request": {"command": "pretrain", "seed": 1}}
    run_in(folder / "other", SETTINGS.replace(seed=1), plan=other, n_layers=1)
    return folder


@pytest.fixture
def whole(finished):
    return folder_bytes(finished / "whole")


@pytest.fixture
def run(finished, tmp_path):
    """A copy of the finished run."""
    return shutil.copytree(finished / "whole", tmp_path / "run")


def interrupt_at(wanted):
    def on_step(step, model):
        if step == wanted:
            os.kill(os.getpid(), signal.SIGINT)

    return on_step


def damaged(content, how, rng, other):
    if how == "cut":
        return content[: rng.randrange(1, len(content))]
    if how == "emptied":
        return b""
    if how == "another run's":
        return other
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


@pytest.mark.parametrize("how", ["cut", "emptied", "flipped bit", "another run's", "missing"])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named_and_the_checkpoint_before_it_used(run, run_in, finished, whole, name, how):
    file = run / "step-000012" / name
    other = (finished / "other" / "step-000012" / name).read_bytes()
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes(damaged(file.read_bytes(), how, random.Random(f"{name} {how}"), other))
    lines = run_in(run)
    assert folder_bytes(run) == whole
    if (how, name) == ("another run's", "tokenizer.model"):
        return  # both runs have the same one
    (told,) = lines
    assert "step-000012" in told and "going on from step-000008" in told
    if name != "seal.json" or how == "missing":
        assert f"step-000012/{name}" in told


def test_any_flipped_bit_is_noticed(run, tmp_path):
    folder, rng = run / "step-000012", random.Random(5)
    for name in FILES:
        content = (folder / name).read_bytes()
        for _ in range(20):
            (folder / name).write_bytes(damaged(content, "flipped bit", rng, None))
            with pytest.raises(ValueError, match="step-000012"):
                check_seal(folder)
        (folder / name).write_bytes(content)
    check_seal(folder)


def test_where_no_checkpoint_is_whole_all_are_named_and_nothing_is_touched(run, run_in):
    for step in (8, 12):
        file = run / f"step-{step:06d}" / "training.safetensors"
        file.write_bytes(file.read_bytes()[:-1])
    before = folder_bytes(run)
    with pytest.raises(ValueError, match=r"step-000012/.* is cut short.*step-000008/.* is cut short"):
        run_in(run)
    assert folder_bytes(run) == before


def test_a_checkpoint_of_another_run_is_put_aside(run, run_in, finished, whole):
    stranger = shutil.copytree(finished / "other" / "step-000012", run / "step-000016")
    # The tokenizer of the run is not taken from it either.
    (stranger / "tokenizer.model").write_bytes(b"of another run")
    (stranger / "seal.json").unlink()
    plan = stored_plan(run, resume=True)
    assert stored_tokenizer(run, plan).to_bytes() == whole["step-000012/tokenizer.model"]
    # It was written after step 12, which its name denies; under its right name the plan tells.
    (told,) = run_in(run)
    assert "step-000016 was written after step 12" in told
    shutil.rmtree(run / "step-000012")
    shutil.copytree(finished / "other" / "step-000012", run / "step-000012")
    (told,) = run_in(run)
    assert "step-000012 was written by a run with another plan; going on from step-000008" in told
    found = folder_bytes(run)
    aside = {name: found.pop(name) for name in list(found) if name.startswith("other-")}
    assert found == whole
    assert {name.split("/")[0] for name in aside} == {"other-step-000012", "other-step-000016"}
    assert (
        aside["other-step-000012/model.json"]
        == (finished / "other" / "step-000012" / "model.json").read_bytes()
    )


def test_ctrl_c_after_a_damaged_checkpoint_keeps_what_it_saves(run, run_in, whole):
    (run / "step-000012" / "model.safetensors").write_bytes(b"")
    with pytest.raises(
        TrainingInterrupted, match=r"after step 10: saved in .*step-000010; to go on: pretrain"
    ):
        run_in(run, on_step=interrupt_at(10))
    assert sorted(path.name for path in run.iterdir()) == ["plan.json", "step-000008", "step-000010"]
    assert run_in(run) == []
    assert folder_bytes(run) == whole


def test_killed_before_the_last_tidying_up_ends_in_the_same_bytes(run, run_in, whole):
    shutil.copytree(run / "step-000008", run / "step-000004")  # older than the two that are kept
    (run / ".step-000000.gone").mkdir()
    (run / ".step-000016.part").mkdir()
    (run / ".step-000016.part" / "model.json").write_bytes(b"{")
    (run / ".plan.json.part").write_bytes(b"{")
    assert run_in(run) == []
    assert folder_bytes(run) == whole
    assert sorted(path.name for path in run.iterdir()) == ["plan.json", "step-000008", "step-000012"]


def test_killed_while_writing_its_plan_a_run_begins_afresh(tmp_path, run_in, whole):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".plan.json.part").write_bytes(b'{"requ')
    assert stored_plan(tmp_path / "run", resume=True) is None
    assert stored_plan(tmp_path / "run", resume=False) is None
    run_in(tmp_path / "run")
    assert folder_bytes(tmp_path / "run") == whole


@pytest.mark.parametrize("content", [b"", b'{"request": {', b"\xff\xfe", None])
def test_a_torn_plan_is_read_from_a_checkpoint_and_written_anew(run, run_in, whole, content):
    if content is None:
        (run / "plan.json").unlink()
    else:
        (run / "plan.json").write_bytes(content)
    assert stored_plan(run, resume=True) == PLAN
    lines = run_in(run)
    assert content is None or ("plan.json" in lines[0] and "written anew" in lines[0])
    assert folder_bytes(run) == whole


def test_a_torn_plan_without_a_checkpoint_is_named(tmp_path):
    (tmp_path / "plan.json").write_bytes(b"{")
    with pytest.raises(ValueError, match=r"plan.json is cut short"):
        stored_plan(tmp_path, resume=True)


def test_another_request_does_not_slip_into_a_run_that_began_meanwhile(run, run_in):
    with pytest.raises(ValueError, match="got another seed: it began with 0, now 7"):
        run_in(run, plan={"request": {"command": "pretrain", "seed": 7}})


def test_other_threads_and_versions_are_told_when_going_on(tmp_path, run_in):
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with pytest.raises(TrainingInterrupted):
            run_in(tmp_path / "run", on_step=interrupt_at(5))
        torch.set_num_threads(2)
        with pytest.raises(TrainingInterrupted):
            run_in(tmp_path / "run", on_step=interrupt_at(6))
        state = tmp_path / "run" / "step-000006" / "training.json"
        state.write_bytes(json_bytes(read_json(state) | {"torch": "1.0"}))
        kept = {file.name: file.read_bytes() for file in state.parent.iterdir() if file.name != SEAL_FILE}
        (state.parent / SEAL_FILE).write_bytes(sealed(kept)[SEAL_FILE])
        torch.set_num_threads(1)
        (told,) = run_in(tmp_path / "run")
    finally:
        torch.set_num_threads(threads)
    assert "threads 2 before, 1 now" in told and f"torch 1.0 before, {torch.__version__} now" in told
    assert run_in(tmp_path / "run") == []  # finished: nothing is computed any more


def test_one_process_at_a_time(run, run_in):
    pytest.importorskip("fcntl")  # absent on Windows, where folders cannot be locked
    words = f"one process at a time trains in a folder, got {run}"
    with locked(run), pytest.raises(ValueError, match=words):
        run_in(run)
    holder = "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDONLY); fcntl.flock(f, fcntl.LOCK_EX)"
    command = [sys.executable, "-c", f"{holder}; print('held', flush=True); input()", str(run)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(ValueError, match=words):
            run_in(run)
        other.kill()  # a dead process holds nothing
    run_in(run)


def test_a_full_disk_in_the_middle_of_a_save_leaves_the_checkpoint_before(tmp_path, run_in, whole):
    """The system itself refuses to write the larger of the two tensor files, as a full disk would."""
    resource = pytest.importorskip("resource")  # absent on Windows
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(step, model):
        if step == 7:
            weights = (tmp_path / "run" / "step-000004" / "model.safetensors").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (weights + 100, before[1]))

    try:
        with pytest.raises(OSError) as caught:
            run_in(tmp_path / "run", on_step=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    told = str(caught.value)
    assert "File too large, so step 8 was not saved" in told and "training.safetensors" in told
    assert f"{tmp_path}/run/step-000004 stays usable, and resuming goes on from there" in told
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["plan.json", "step-000004"]
    run_in(tmp_path / "run")
    assert folder_bytes(tmp_path / "run") == whole


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_file_on_a_full_device_keeps_its_old_content(tmp_path):
    (tmp_path / "plan.json").write_bytes(b"old")
    (tmp_path / ".plan.json.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: .*\.plan\.json\.part"):
        write_file(tmp_path / "plan.json", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("plan.json", b"old")]


def test_everything_is_on_disk_before_the_name_changes_and_the_name_before_it_returns(tmp_path, monkeypatch):
    """Without this order a power cut may leave a folder with its name and without its content."""
    order = []
    fsync, replace = os.fsync, os.replace

    def spy_fsync(handle):
        order.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    def spy_replace(source, target):
        order.append("rename")
        replace(source, target)

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    monkeypatch.setattr(checkpoint.os, "fsync", spy_fsync)
    monkeypatch.setattr(checkpoint.os, "replace", spy_replace)
    write_folder(tmp_path / "new" / "box", {"a": b"1", "b": b"2"})
    part, parent = f"{tmp_path}/new/.box.part", f"{tmp_path}/new"
    assert order == [str(tmp_path), f"{part}/a", f"{part}/b", part, "rename", parent]
    order.clear()
    write_file(tmp_path / "new" / "c", b"3")
    assert order == [f"{parent}/.c.part", "rename", parent]
