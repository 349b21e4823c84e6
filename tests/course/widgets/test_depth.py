"""The depth explorer: its numbers compared with blocks of the package and with one plain backward pass."""

import math

import pytest
import torch

import tinytx_course as course
from tests.course.widgets.conftest import changed, close
from tinytx.transformer import Block
from tinytx_course.labs.lesson_05 import size_of, variety_of
from tinytx_course.widgets.depth import _SETTINGS, NORMS, _stack, step

SETTINGS = [(norm, residual) for norm in NORMS for residual in (False, True)]
SERIES = "(({ size, variety, gradient }) => [size, variety, gradient])(js.seriesOf(get))"


def climb(norm, residual, n_layers):
    """Levels 0 to n_layers of the stack, and the sizes of the gradients that arrive there."""
    blocks, x, sent = _stack()
    levels = [x.clone().requires_grad_()]
    for attn, ff in blocks[:n_layers]:
        levels.append(step(step(levels[-1], attn, norm, residual), ff, norm, residual))
    return levels, [size_of(each) for each in torch.autograd.grad(levels[-1], levels, sent)]


@pytest.mark.parametrize(("norm", "name"), [("pre", "first"), ("post", "last")])
def test_with_residual_and_norm_it_is_the_block_of_the_package(norm, name):
    (attn, ff), x = _stack()[0][3], torch.randn(2, 7, 32).double()
    block = Block(_SETTINGS.replace(norm=name)).double()
    block.attn, block.ff = attn, ff
    close(step(step(x, attn, norm, True), ff, norm, True).tolist(), block(x).detach())


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_page_shows_what_a_plain_backward_pass_gives(node, setting):
    norm, residual = setting
    explorer = changed(course.widgets.depth(), norm=norm, residual=residual)
    depths = (1, 3, 12)
    answers = node("depth", SERIES, *(explorer.state() | {"n_layers": depth} for depth in depths))
    for n_layers, (sizes, varieties, gradients) in zip(depths, answers, strict=True):
        levels, arrived = climb(norm, residual, n_layers)
        assert len(sizes) == len(varieties) == len(gradients) == n_layers + 1
        close(sizes, torch.tensor([size_of(level) for level in levels]).log10(), rtol=1e-4, atol=1e-4)
        close(gradients, torch.tensor(arrived).log10(), rtol=1e-4, atol=1e-4)
        for seen, level in zip(varieties, levels, strict=True):
            variety = variety_of(level.detach())
            assert abs(seen - math.log10(variety)) < 1e-3 or max(10**seen, variety) < 1e-13


def test_what_leaves_the_range_of_numbers_is_said(describe):
    wild = changed(course.widgets.depth(), residual=True, n_layers=64)
    tame = changed(course.widgets.depth(), residual=True, norm="pre")
    texts = describe(wild, tame, changed(course.widgets.depth(), n_layers=64))
    assert "the gradient explodes" in texts[0] and "over" not in texts[0]  # its squares would overflow
    assert texts[1].startswith("Pre-norm, with residual, 12 layers. Signal and gradient survive.")
    assert "The tokens become alike and the gradient vanishes." in texts[2]
    finding = texts[2].split("\n")[0]
    assert " At the top: size " in finding and "; gradient at the input " in finding
