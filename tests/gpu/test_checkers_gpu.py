"""Checkers take results on a GPU, and work where a learner made it the default device."""

import pytest
import torch

import tinytx_course as course
from tests.solutions import on_tensors

pytestmark = pytest.mark.gpu


def test_results_on_a_gpu_pass():
    (attention, *_) = (solution.function for solution in on_tensors() if solution.exercise == "attention")

    def mask(n):
        return torch.ones(n, n, dtype=torch.bool, device="cuda").tril()

    assert course.check("causal_mask", mask, display=False).passed
    moved = course.check("attention", lambda *a: attention(*(x.cuda() for x in a)), display=False)
    assert moved.passed
    wrong = course.check("attention", lambda *a: attention(*(x.cuda() for x in a[:3])), display=False)
    assert wrong.mistake == "mask-ignored"


@pytest.mark.parametrize("solution", on_tensors(), ids=lambda solution: solution.name)
def test_right_solutions_pass_with_the_gpu_as_default_device(solution):
    torch.set_default_device("cuda")
    try:
        found = course.check(solution.exercise, solution.function, display=False)
    finally:
        torch.set_default_device(None)
    assert found.passed, str(found)
