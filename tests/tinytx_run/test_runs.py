"""Runs that were killed, damaged, mixed up or short of room: what is resumed, and what is reported."""

import functools
import itertools
import random
import shutil
import subprocess
import sys
import warnings

import pytest
import torch

from tests.tinytx_run.interrupted import folder_bytes, press_ctrl_c
from tinytx.config import TransformerConfig
from tinytx.history import DivergenceError, TrainingInterrupted
from tinytx.loop import train
from tinytx.settings import TrainingSettings
from tinytx_run import runs
from tinytx_run.files import LOCK_FILE, json_bytes, read_json, write_folder
from tinytx_run.pretrain import causal_objective, new_language_model
from tinytx_run.recipes import plan
from tinytx_run.runs import Checkpoints, check_request, find_run, newest_complete, read_training

SETTINGS = TrainingSettings(n_steps=12, lr=1e-2, tokens_per_batch=256, checkpoint_every=4, precision="fp32")
PLAN = {"request": {"objective": "causal", "seed": 0}}
TENSORS = ("model.safetensors", "training.safetensors")
FILES = (*TENSORS, "model.json", "checksums.json", "tokenizer.model", "training.json")


@pytest.fixture(scope="module")
def run_in(corpus, tokenizer):
    """Train in a folder, as one call would; gives the warnings."""
    objective = causal_objective(tokenizer, corpus.train.texts, 24)
    sizes = {"vocab_size": tokenizer.vocab_size, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20}

    def run(folder, settings=SETTINGS, plan=PLAN, on_step=None, **changes):
        config = TransformerConfig(**sizes | {"max_len": 24, "dropout": 0.2} | changes)
        model = new_language_model(config, seed=3)
        checkpoints = Checkpoints(folder, plan, tokenizer)
        with warnings.catch_warnings(record=True) as warned, checkpoints.opened():
            train(model, objective, settings, checkpoints=checkpoints, on_step=on_step)
        return [str(one.message) for one in warned]

    return run


@pytest.fixture(scope="module")
def finished(run_in, tmp_path_factory):
    """Two finished runs: one to be damaged in copies, one with another model."""
    folder = tmp_path_factory.mktemp("finished")
    run_in(folder / "whole")
    other = {"request": {"objective": "causal", "seed": 1}}
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
            press_ctrl_c()

    return on_step


def test_a_run_folder_holds_the_two_newest_checkpoints_and_nothing_else(whole):
    names = itertools.product(("step-000008", "step-000012"), FILES)
    assert set(whole) == {f"{folder}/{file}" for folder, file in names}


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *itertools.product(TENSORS, ["cut", "another run's", "missing"]),
        *itertools.product(("model.json", "training.json"), ["emptied", "another run's"]),
        *itertools.product(("checksums.json", "tokenizer.model"), ["cut", "missing"]),
    ],
)
def test_a_damaged_file_is_named_and_the_checkpoint_before_it_used(run, run_in, finished, whole, name, how):
    file = run / "step-000012" / name
    content, other = file.read_bytes(), (finished / "other" / "step-000012" / name).read_bytes()
    file.unlink()
    if how != "missing":
        file.write_bytes({"cut": content[: len(content) // 3], "emptied": b"", "another run's": other}[how])
    (warning,) = run_in(run)
    assert folder_bytes(run) == whole
    assert f"step-000012/{name}" in warning and "step-000008, the checkpoint before it" in warning


def test_any_flipped_bit_is_noticed(run):
    folder, rng = run / "step-000012", random.Random(5)
    for name in FILES:
        content = (folder / name).read_bytes()
        for _ in range(20):
            flipped, at = bytearray(content), rng.randrange(len(content))
            flipped[at] ^= 1 << rng.randrange(8)
            (folder / name).write_bytes(flipped)
            with pytest.raises(ValueError, match="step-000012"):
                read_training(folder)
        (folder / name).write_bytes(content)
    read_training(folder)


def test_where_no_checkpoint_is_complete_all_are_named_and_nothing_is_touched(run, run_in):
    for step in (8, 12):
        file = run / f"step-{step:06d}" / "training.safetensors"
        file.write_bytes(file.read_bytes()[:-1])
    before = folder_bytes(run)
    with pytest.raises(ValueError, match=r"step-000012/.* is damaged.*step-000008/.* is damaged"):
        run_in(run)
    assert folder_bytes(run) == before


def test_a_checkpoint_of_another_run_is_refused_and_stays(run, run_in, finished):
    stranger = shutil.copytree(finished / "other" / "step-000012", run / "step-000016")
    # It was written after step 12, which its name denies.
    (warning,) = run_in(run)
    assert "step-000016 was written after step 12" in warning and stranger.is_dir()
    shutil.rmtree(run / "step-000012")
    shutil.move(stranger, run / "step-000012")
    before = folder_bytes(run)
    with pytest.raises(ValueError, match=r"cannot resume: request\.seed was 1, now 0"):
        run_in(run)
    assert folder_bytes(run) == before


def test_foreign_files_are_never_removed(run, run_in):
    shutil.copytree(run / "step-000008", run / "step-000004")  # no longer needed, but for what is in it
    for file in (run / "notes.txt", run / "step-000004" / "notes.txt", run / ".mydata.old" / "notes.txt"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
    shutil.rmtree(run / "step-000012")
    run_in(run)
    assert len(list(run.rglob("notes.txt"))) == 3


def test_ctrl_c_after_a_damaged_checkpoint_keeps_what_it_saves(run, run_in, whole):
    (run / "step-000012" / "model.safetensors").write_bytes(b"")
    with pytest.raises(TrainingInterrupted, match=r"after step 10: saved in .*step-000010; .*resume=True"):
        run_in(run, on_step=interrupt_at(10))
    assert newest_complete(run).name == "step-000010"
    run_in(run)
    assert folder_bytes(run) == whole


def test_a_run_killed_before_its_first_checkpoint_starts_afresh(tmp_path, run_in, whole):
    leftover = tmp_path / "run" / ".step-000004.tinytx-new"
    leftover.mkdir(parents=True)
    (leftover / "model.json").write_text("{")
    (tmp_path / "run" / LOCK_FILE).touch()
    assert find_run(tmp_path / "run", resume=True) is None
    assert find_run(tmp_path / "run", resume=False) is None
    run_in(tmp_path / "run")
    assert folder_bytes(tmp_path / "run") == whole


def test_a_folder_that_is_no_run_is_refused(tmp_path, run):
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "diary.txt").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for out, resume, words in (
        (tmp_path / "file", True, "got the file"),
        (tmp_path / "file" / "run", False, "got the file .*file$"),
        (tmp_path / "full", True, "holds other files"),
        (tmp_path / "link", False, "got the link to nothing"),
        (run, False, "already holds a run"),
        (None, True, "resume needs out"),
    ):
        with pytest.raises(ValueError, match=words):
            find_run(out, resume)
    assert read_training(find_run(run, True))["plan"] == PLAN and find_run(None, False) is None


@pytest.mark.parametrize("at", [("settings",), ("state",), ("state", "history"), ("plan", "recipe")])
def test_a_run_of_another_version_is_named(run, run_in, at):
    for step in run.iterdir():
        files = {file.name: file.read_bytes() for file in step.iterdir() if file.name != "checksums.json"}
        training = read_json(step / "training.json")
        training["plan"]["recipe"] = plan("world", budget="smoke").to_dict()
        functools.reduce(dict.__getitem__, at, training)["of_another_version"] = 1
        write_folder(step, {**files, "training.json": json_bytes(training)})
    with pytest.raises(ValueError, match=r"training.json must be of a run of this version.*of_another_v"):
        run_in(run)


def test_what_differs_from_the_stored_request_or_settings_is_named(run, run_in):
    check_request({"a": (1, 2), "b": {"c": 0}}, {"a": [1, 2], "b": {"c": 0}})
    for now, words in (({"a": 1, "b": {"c": 2}}, r"b\.c was 0, now 2"), ({"a": 1}, r"b\.c was 0, now None")):
        with pytest.raises(ValueError, match=f"cannot resume: {words}"):
            check_request({"a": 1, "b": {"c": 0}}, now)
    with pytest.raises(ValueError, match="cannot resume: objective was causal, now None"):
        check_request({"objective": "causal"}, {"fresh": False})
    with pytest.raises(ValueError, match=r"cannot resume: lr was 0\.01, now 0\.5"):
        run_in(run, SETTINGS.replace(lr=0.5))


def test_other_threads_and_versions_are_reported(tmp_path, run_in):
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with pytest.raises(TrainingInterrupted):
            run_in(tmp_path / "run", on_step=interrupt_at(5))
        folder = tmp_path / "run" / "step-000005"
        files = {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "checksums.json"}
        files["training.json"] = json_bytes(read_json(folder / "training.json") | {"torch": "1.0"})
        write_folder(folder, files)
        torch.set_num_threads(2)
        (warning,) = run_in(tmp_path / "run")
    finally:
        torch.set_num_threads(threads)
    assert "threads 1 before, 2 now" in warning and f"torch 1.0 before, {torch.__version__} now" in warning
    assert run_in(tmp_path / "run") == []  # finished: nothing is computed any more


def test_a_finished_run_is_left_alone(run, run_in):
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    assert run_in(run) == []
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_a_finished_run_is_read_where_nothing_can_be_written(run, run_in, monkeypatch):
    def locked(*given):
        raise OSError("Read-only file system")

    monkeypatch.setattr(runs, "is_writable", lambda folder: False)
    monkeypatch.setattr(runs, "locked", locked)
    assert run_in(run) == []
    shutil.rmtree(run / "step-000012")
    with pytest.raises(OSError, match="Read-only"):
        run_in(run)


def test_one_process_at_a_time(run, run_in):
    words = f"one process at a time trains in a folder, got {run}"
    holder = "import filelock, sys; lock = filelock.FileLock(sys.argv[1]); lock.acquire()"
    command = [sys.executable, "-c", f"{holder}; print('held', flush=True); input()", str(run / LOCK_FILE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(ValueError, match=words):
            run_in(run)
        other.kill()  # a dead process holds nothing
    run_in(run)


def test_a_model_that_cannot_be_saved_has_not_diverged(tmp_path, run_in):
    with pytest.raises(ValueError, match="vocab.*step 4 was not saved") as refusal:
        run_in(tmp_path / "run", vocab_size=1_000)
    assert not isinstance(refusal.value, DivergenceError)


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
    message = str(caught.value)
    assert "File too large, so step 8 was not saved" in message and "training.safetensors" in message
    assert f"{tmp_path}/run/step-000004 stays usable" in message
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["step-000004"]
    run_in(tmp_path / "run")
    assert folder_bytes(tmp_path / "run") == whole
