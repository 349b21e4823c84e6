"""Lessons and commands compute where their models are: on a device of its own, as on a GPU."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MISTAKES = """
import numpy as np, torch
from tests import elsewhere

elsewhere.install()
there, here = torch.ones(2, 3, device="elsewhere"), torch.ones(2, 3)
torch.testing.assert_close((there @ there.T).cpu(), here @ here.T)
for mistake in (
    lambda: there + here,
    lambda: here[torch.ones(2, dtype=torch.bool, device="elsewhere")],
    lambda: there.numpy(),
    lambda: np.asarray(there),
    lambda: torch.nn.Linear(3, 2)(there),
    lambda: there.normal_(generator=torch.Generator()),
):
    try:
        mistake()
    except (RuntimeError, TypeError) as error:
        print("refused", type(error).__name__)
"""


def ran(*words):
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)


def test_what_fails_on_a_gpu_fails_elsewhere():
    found = ran("-c", MISTAKES)
    assert found.stdout.count("refused") == 6, found.stdout + found.stderr


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["commands", "gpu", "13", "14"])
def test_nothing_is_computed_with_what_stayed_on_the_cpu(name):
    found = ran("-m", "tests.elsewhere", name)
    assert found.returncode == 0, found.stdout + found.stderr
