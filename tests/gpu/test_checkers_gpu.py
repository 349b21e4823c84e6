"""Checkers take results on a GPU, and work where a learner made it the default device."""

import pytest
import torch

import tinytx_course as course
from tests.gpu.device import DEVICE, PRETENDED
from tests.solutions import on_tensors
from tinytx_course.exercises import checking

pytestmark = pytest.mark.gpu
# Lists of the CPU as indices: a GPU takes them, and the pretended device does not.
INDEXED_BY_LISTS = ("last_argmax", "chain_matrix") if PRETENDED else ()
SOLUTIONS = [solution for solution in on_tensors() if solution.name not in INDEXED_BY_LISTS]


def test_results_on_a_gpu_pass():
    (attention, *_) = (solution.function for solution in on_tensors() if solution.exercise == "attention")

    def mask(n):
        return torch.ones(n, n, dtype=torch.bool, device=DEVICE).tril()

    assert course.check("causal_mask", mask, display=False).passed
    moved = course.check("attention", lambda *a: attention(*(x.to(DEVICE) for x in a)), display=False)
    assert moved.passed
    wrong = course.check("attention", lambda *a: attention(*(x.to(DEVICE) for x in a[:3])), display=False)
    assert wrong.mistake == "mask-ignored"


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda solution: solution.name)
def test_right_solutions_pass_with_the_gpu_as_default_device(solution, monkeypatch):
    if PRETENDED:  # each operation passes through Python there
        monkeypatch.setattr(checking, "TIME_LIMIT", 60.0)
    with torch.device(DEVICE):
        found = course.check(solution.exercise, solution.function, display=False)
    assert found.passed, str(found)
