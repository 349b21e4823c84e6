"""Runs killed or refused what they ask for, by `make torture` in small: all end in the same bytes."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def torture(root, folder, *options):
    """The rows of its table, by manner of death or fault."""
    command = [sys.executable, "-m", "tests.torture", "--results", folder, *map(str, options)]
    # One thread: a process that has computed with several cannot be forked.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "torture.json").read_text())["records"]


@pytest.mark.proof
def test_runs_killed_in_every_manner_end_in_the_same_bytes(root, tmp_path):
    rows = torture(root, tmp_path, "--kills", 5, "--every", 20)
    kills = {manner: row["kills"] for manner, row in rows.items()}
    assert kills["at any moment"] >= 2 and kills["process of its own"] >= 1
    assert kills["before each file operation"] >= 4 and kills["no file operation"] >= 3
    assert kills["little room"] >= 1
    assert all(row["runs"] >= 1 for row in rows.values())
    lost = [row["most_steps_lost"] for row in rows.values() if row["most_steps_lost"] is not None]
    assert max(lost) <= 10
