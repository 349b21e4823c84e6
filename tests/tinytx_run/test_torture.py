"""Runs killed by `kill -9`, by `make torture` in small: all end in the bytes of a run never interrupted."""

import json
import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def torture(root, folder, *options, module="tests.torture"):
    """The rows of its table, by manner of death or fault."""
    command = [sys.executable, "-m", module, "--results", folder, *map(str, options)]
    # One thread: a process that has computed with several cannot be forked.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / f"{module.split('.')[-1]}.json").read_text())["records"]


@pytest.mark.proof
def test_runs_killed_in_every_manner_end_in_the_same_bytes(root, tmp_path):
    rows = torture(root, tmp_path, "--kills", 5, "--every", 20)
    kills = {manner: row["kills"] for manner, row in rows.items()}
    assert kills["at any moment"] >= 2 and kills["while saving"] >= 1 and kills["process of its own"] >= 1
    assert kills["before each file operation"] >= 4
    assert all(row["runs"] >= 1 for row in rows.values())
    lost = [row["most_steps_lost"] for row in rows.values() if row["most_steps_lost"] is not None]
    assert max(lost) <= 10


@pytest.mark.proof
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, which lets system calls fail")
def test_no_fault_of_the_system_loses_anything(root, tmp_path):
    rows = torture(root, tmp_path, "--every", 12, "--n", 2, module="tests.torture.chaos")
    calls = {kind.split(":")[0] for kind in rows if ":" in kind}
    assert calls == {"write", "fsync", "rename", "mkdir", "unlink"}
    assert {"short write", "memory limit", "clock backwards", "two writers"} <= rows.keys()
    assert all(row["injected"] >= 1 and row["lost"] == 0 for row in rows.values())
