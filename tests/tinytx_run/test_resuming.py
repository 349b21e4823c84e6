"""Training that is interrupted from outside: Ctrl-C on a command and in a notebook."""

import os
import shlex
import signal
import textwrap

import nbformat
import pytest

from tests.tinytx_run.interrupted import folder_bytes, in_step
from tinytx_run.cli import main

pytestmark = pytest.mark.usefixtures("one_thread")
TEXTS = [f"le {a} {b} un {c}" for a in ("chat", "chien") for b in ("voit", "mange") for c in "abcdefghijkl"]


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def prose(tmp_path):
    file = tmp_path / "some prose.txt"  # with a blank, which a command has to quote
    file.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return file


def command(prose, out):
    words = ["pretrain", "--corpus", prose, "--budget", "smoke", "--steps", "40", "--device", "cpu"]
    return [*map(str, [*words, "--out", out])]


def test_ctrl_c_names_the_command_that_resumes(tmp_path, prose, capsys):
    assert main(command(prose, tmp_path / "whole")) == 0
    capsys.readouterr()
    with in_step(13, press_ctrl_c):
        assert main(command(prose, tmp_path / "parts")) == 130
    line = capsys.readouterr().err
    assert f"after step 13: saved in {tmp_path}/parts/step-000013" in line and line.count("\n") == 1
    words = shlex.split(line.partition("; to resume: ")[2])
    assert words == ["tinytx", *command(prose, tmp_path / "parts"), "--resume"]
    with in_step(3, press_ctrl_c):
        assert main(words[1:]) == 130
    line = capsys.readouterr().err
    assert "after step 16" in line and shlex.split(line.partition("; to resume: ")[2]) == words
    assert main(words[1:]) == 0
    assert folder_bytes(tmp_path / "parts") == folder_bytes(tmp_path / "whole")


@pytest.mark.parametrize("step", [2, 13])
def test_ctrl_c_twice_stops_at_once(tmp_path, prose, capsys, step):
    with in_step(step, lambda: [press_ctrl_c(), press_ctrl_c()]):
        assert main(command(prose, tmp_path / "run")) == 130
    line = capsys.readouterr().err
    if step == 2:  # before anything is saved nothing can be resumed
        assert line == "tinytx: interrupted\n" and not (tmp_path / "run").exists()
    else:
        assert line.startswith("tinytx: interrupted; to resume: tinytx pretrain") and "--resume" in line
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["step-000010"]


@pytest.mark.proof
def test_ctrl_c_in_a_notebook_names_the_call_that_resumes(tmp_path, prose):
    """A kernel of its own, interrupted as JupyterLab does it."""
    from nbclient import NotebookClient

    out, changes = str(tmp_path / "run"), {"n_steps": 20000, "checkpoint_every": 10}
    train = f"""
        import os, signal, threading, time
        from tinytx_run.pretrain import pretrain

        def press_ctrl_c():
            while not os.path.isdir({out + "/step-000010"!r}):
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=press_ctrl_c, daemon=True).start()
        pretrain({str(prose)!r}, out={out!r}, training_changes={changes})
    """
    train = textwrap.dedent(train)
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(train)])
    NotebookClient(book, timeout=300, allow_errors=True).execute(cwd=str(tmp_path))
    (error,) = [output for output in book.cells[0].outputs if output.output_type == "error"]
    assert error.ename == "TrainingInterrupted"
    assert f"saved in {out}/step-" in error.evalue and "resume=True" in error.evalue
