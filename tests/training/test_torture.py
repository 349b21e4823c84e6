"""A few kills of `make torture`, so that the program that kills a hundred times is itself known to work."""

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_some_kills_lose_no_run(root, tmp_path):
    command = [sys.executable, "-m", "tests.torture", "--kills", "5", "--every", "40", "--results", tmp_path]
    # One thread: a process that has computed with several cannot be forked.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "torture.json").read_text())["records"]
    kills = {manner: row["kills"] for manner, row in rows.items()}
    assert kills["at any moment"] >= 2 and kills["while saving"] >= 1 and kills["process of its own"] >= 1
    assert kills["before each file operation"] >= 1
    assert all(row["runs"] >= 1 for row in rows.values())
    lost = [row["most_steps_lost"] for row in rows.values() if row["most_steps_lost"] is not None]
    assert max(lost) <= 10
