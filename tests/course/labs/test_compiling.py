"""A trial of the compiler gives figures, or a reason in one line; the function is what torch has."""

import pytest
import torch
import torch.nn.functional as F

from tinytx_course.labs.compiling import Compiled, CompileTrial, NotCompiledError, norm_and_gelu


def test_norm_and_gelu_is_what_torch_has():
    x, scale, shift = torch.randn(3, 7), torch.randn(7), torch.randn(7)
    expected = F.gelu(F.layer_norm(x, (7,), scale, shift), approximate="tanh")
    torch.testing.assert_close(norm_and_gelu(x, scale, shift), expected)


def test_calls_to_repay():
    assert Compiled(10.0, 3.0, 1.0, 0.0).calls_to_repay == 5.0
    assert Compiled(10.0, 1.0, 3.0, 0.0).calls_to_repay == float("inf")


def test_what_takes_too_long_is_ended():
    trial = CompileTrial(3, 5)
    with pytest.raises(NotCompiledError, match=r"within 0\.01 seconds"):
        trial.result(limit=0.01)


def test_a_failure_is_told_in_a_line():
    with pytest.raises(NotCompiledError, match=r"got: .*Error"):
        CompileTrial(3, 5, "nowhere").result(limit=300)


@pytest.mark.slow
def test_it_compiles_or_says_why_not():
    try:
        found = CompileTrial(64, 64).result(limit=900)
    except NotCompiledError as problem:
        assert len(str(problem)) > 20
    else:
        assert found.difference < 1e-5
        assert min(found.seconds_to_compile, found.plain, found.compiled) > 0
