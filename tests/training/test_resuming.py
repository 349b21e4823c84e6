"""Every way to train: equal calls give equal bytes, in one piece or in two, and say how to go on."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap

import nbformat
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from tests.training.interrupted import folder_bytes
from tinytx.cli import main
from tinytx.text.pairs import PairCorpus, Pairs
from tinytx.training.fit import fit

TINY = {"d_model": 12, "n_heads": 3, "n_layers": 2, "max_len": 24, "dropout": 0.2}
SHORT = {"n_steps": 14, "checkpoint_every": 5, "tokens_per_batch": 200}
TEXTS = [f"le {a} {b} un {c}" for a in ("chat", "chien") for b in ("voit", "mange") for c in "abcdefghijkl"]


class Killed(BaseException):
    """Ends training as abruptly as a test can without ending the test."""


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@contextlib.contextmanager
def at_step(wanted, act):
    """Do something in the middle of a step: when the weights are new and nothing is recorded."""
    n_steps = 0

    def count(*_):
        nonlocal n_steps
        n_steps += 1
        if n_steps == wanted:
            act()

    handle = register_optimizer_step_post_hook(count)
    try:
        yield
    finally:
        handle.remove()


def kill():
    raise Killed


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(scope="module")
def calls(corpus):
    """Each way to train, as a function of its folder."""
    pretrained = pretrain(corpus, budget="smoke", device="cpu", model_changes=TINY, training_changes=SHORT)
    pairs = Pairs(tuple(TEXTS), tuple(text.upper() for text in TEXTS))
    pairs = PairCorpus("toy", pairs, Pairs(pairs.sources[:4], pairs.targets[:4]))
    quick = {"budget": "smoke", "device": "cpu", "seed": 1, "resume": True, "report": lambda line: None}

    def calls(how, precision):
        changes = {"model_changes": TINY, "training_changes": SHORT | {"precision": precision}}
        if how == "translation":
            return lambda out: train_translator(pairs, out=out, search=None, **changes, **quick)
        if how == "fine-tuning":
            changes = {"n_epochs": 4, "tokens_per_batch": 200}
            return lambda out: finetune(pretrained, corpus, out=out, recipe_changes=changes, **quick)
        return lambda out: pretrain(corpus, objective=how, out=out, **changes, **quick)

    return calls


WAYS = [
    *[
        (how, precision)
        for how in ("causal", "masked", "masked+nsp", "translation")
        for precision in ("fp32", "bf16")
    ],
    ("fine-tuning", "auto"),
]


@pytest.mark.parametrize(("how", "precision"), WAYS)
def test_equal_calls_give_equal_bytes_in_one_piece_or_killed_and_resumed(tmp_path, calls, how, precision):
    call = calls(how, precision)
    whole = call(tmp_path / "whole")
    call(tmp_path / "again")
    wanted = folder_bytes(tmp_path / "whole")
    assert folder_bytes(tmp_path / "again") == wanted
    with at_step(8, kill), pytest.raises(Killed):
        call(tmp_path / "parts")
    parts = call(tmp_path / "parts")
    assert folder_bytes(tmp_path / "parts") == wanted
    torch.testing.assert_close(parts.model.state_dict(), whole.model.state_dict(), rtol=0, atol=0)
    assert parts.history == whole.history


def test_a_tuple_among_the_changes_is_no_other_request(tmp_path, corpus):
    changes = {**SHORT, "betas": (0.9, 0.95)}
    for _ in range(2):
        pretrain(
            corpus, budget="smoke", device="cpu", model_changes=TINY, training_changes=changes,
            out=tmp_path / "run", resume=True,
        )  # fmt: skip


@pytest.fixture
def prose(tmp_path):
    file = tmp_path / "some prose.txt"  # with a blank, which a command has to quote
    file.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return file


def command(prose, out):
    sizes = ["--d-model", "12", "--n-heads", "3", "--n-layers", "2", "--max-len", "24"]
    words = ["pretrain", "--corpus", prose, "--budget", "smoke", "--steps", "40", "--device", "cpu", *sizes]
    return [*map(str, [*words, "--out", out])]


def test_ctrl_c_tells_the_very_command_that_goes_on(tmp_path, prose, capsys):
    assert main(command(prose, tmp_path / "whole")) == 0
    capsys.readouterr()
    with at_step(13, press_ctrl_c):
        assert main(command(prose, tmp_path / "parts")) == 130
    told = capsys.readouterr().err
    saved, _, go_on = told.strip().partition("; to go on: ")
    assert saved == f"tinytx: training stopped by hand after step 13: saved in {tmp_path}/parts/step-000013"
    words = shlex.split(go_on)
    assert words == ["tinytx", *command(prose, tmp_path / "parts"), "--resume"]
    with at_step(3, press_ctrl_c):
        assert main(words[1:]) == 130
    assert "after step 16" in (told := capsys.readouterr().err)
    assert told.strip().endswith(go_on)  # --resume is not said twice
    assert main(words[1:]) == 0
    assert folder_bytes(tmp_path / "parts") == folder_bytes(tmp_path / "whole")


def test_ctrl_c_twice_stops_at_once_and_still_tells(tmp_path, prose, capsys):
    def twice():
        press_ctrl_c()
        press_ctrl_c()

    with at_step(13, twice):
        assert main(command(prose, tmp_path / "run")) == 130
    told = capsys.readouterr().err
    assert told.startswith("tinytx: stopped by hand; to go on: tinytx pretrain") and "--resume" in told
    assert (tmp_path / "run" / "step-000010").is_dir() and not (tmp_path / "run" / "step-000013").exists()


def test_ctrl_c_before_anything_is_saved_promises_nothing(tmp_path, prose, capsys):
    def twice():
        press_ctrl_c()
        press_ctrl_c()

    with at_step(2, twice):
        assert main(command(prose, tmp_path / "run")) == 130
    assert capsys.readouterr().err == "tinytx: stopped by hand\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_ctrl_c_in_a_notebook_tells_the_call_that_goes_on(tmp_path, prose):
    """A kernel of its own, interrupted as JupyterLab does it once training is on its way."""
    from nbclient import NotebookClient

    out, changes = str(tmp_path / "run"), {"n_steps": 20000, "checkpoint_every": 10}
    train = f"""
        import os, signal, threading, time
        from tinytx.training import pretrain

        def press_ctrl_c():
            while not os.path.isdir({out + "/step-000010"!r}):
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=press_ctrl_c, daemon=True).start()
        pretrain({str(prose)!r}, out={out!r}, model_changes={TINY}, training_changes={changes})
    """
    train = textwrap.dedent(train)
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(train)])
    NotebookClient(book, timeout=300, allow_errors=True).execute(cwd=str(tmp_path))
    (error,) = [output for output in book.cells[0].outputs if output.output_type == "error"]
    assert error.ename == "TrainingInterrupted"
    assert error.evalue.endswith(f"; to go on: pretrain(..., out={out!r}, resume=True)")


def can_mount():
    words = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return shutil.which("unshare") is not None and subprocess.run(words, capture_output=True).returncode == 0


@pytest.mark.slow
def test_a_full_disk_is_told_and_training_goes_on_once_there_is_room(tmp_path, root, prose):
    """A real one: a file system of its own with room for the first checkpoint and half of the second."""
    if not can_mount():
        pytest.skip("this machine lets nobody mount a disk of their own")
    assert main(command(prose, tmp_path / "whole")) == 0
    wanted = folder_bytes(tmp_path / "whole")
    pages = sum(-(-len(content) // 4096) for name, content in wanted.items() if "step-000040" in name)
    disk = tmp_path / "disk"
    disk.mkdir()
    line = shlex.join([sys.executable, "-m", "tinytx.cli", *command(prose, disk / "run"), "--resume"])
    script = f"""
        mount -t tmpfs -o size={round(1.6 * pages) * 4}k tmpfs {disk} || exit 9
        {line}; echo "status $?"; ls -a {disk}/run
        mount -o remount,size=64m {disk} && {line} && cp -r {disk}/run {tmp_path}/copy
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=root, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "status 2" in done.stdout
    (told,) = [line for line in done.stderr.splitlines() if "No space left" in line]
    assert "No space left on device, so step 20 was not saved" in told
    assert f"{disk}/run/step-000010 stays usable, and resuming goes on from there" in told
    assert ".step" not in done.stdout  # what had been written of the next one makes room again
    assert folder_bytes(tmp_path / "copy") == wanted
