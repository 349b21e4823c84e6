"""Training that is interrupted from outside: Ctrl-C on a command."""

import shlex

import pytest

from tests.tinytx_run.interrupted import folder_bytes, in_step, press_ctrl_c
from tinytx_run.cli import main


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
