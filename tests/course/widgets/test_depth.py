"""The depth explorer: its numbers compared with blocks of the package and with one plain backward pass."""

import math

import pytest
import torch
from traitlets import TraitError

import tinytx_course as course
from tests.course.widgets.conftest import changed, close
from tinytx.transformer import Block
from tinytx_course.labs.lesson_05 import size_of, variety_of
from tinytx_course.widgets.depth import _SETTINGS, DEPTHS, NORMS, _stack, measure, step

SETTINGS = [(norm, residual) for norm in NORMS for residual in (False, True)]
SERIES = "(({ size, difference, gradient }) => [size, difference, gradient])(js.seriesOf(get))"


def climb(norm, residual, n_layers):
    """Levels 0 to n_layers of the stack, and the sizes of the gradients that arrive there."""
    blocks, x, sent = _stack(0)
    levels = [x.clone().requires_grad_()]
    for attn, ff in blocks[:n_layers]:
        levels.append(step(step(levels[-1], attn, norm, residual), ff, norm, residual))
    return levels, [size_of(each) for each in torch.autograd.grad(levels[-1], levels, sent)]


@pytest.mark.parametrize(("norm", "name"), [("pre", "first"), ("post", "last")])
def test_with_residual_and_norm_it_is_the_block_of_the_package(norm, name):
    (attn, ff), x = _stack(0)[0][3], torch.randn(2, 7, 32).double()
    block = Block(_SETTINGS.replace(norm=name)).double()
    block.attn, block.ff = attn, ff
    close(step(step(x, attn, norm, True), ff, norm, True).tolist(), block(x).detach())


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_page_shows_what_a_plain_backward_pass_gives(node, setting):
    norm, residual = setting
    explorer = course.widgets.depth(norm, residual=residual)
    depths = (1, 3, 12)
    answers = node("depth", SERIES, *(explorer.state() | {"n_layers": depth} for depth in depths))
    for n_layers, (sizes, differences, gradients) in zip(depths, answers, strict=True):
        levels, arrived = climb(norm, residual, n_layers)
        assert len(sizes) == len(differences) == len(gradients) == n_layers + 1
        close(sizes, torch.tensor([size_of(level) for level in levels]).log10(), rtol=1e-4, atol=1e-4)
        close(gradients, torch.tensor(arrived).log10(), rtol=1e-4, atol=1e-4)
        for seen, level in zip(differences, levels, strict=True):
            variety = variety_of(level.detach())
            assert abs(seen - math.log10(variety)) < 1e-3 or max(10**seen, variety) < 1e-13


def test_the_stack_of_fewer_blocks_is_the_lower_part_of_the_higher():
    for norm, residual in SETTINGS[2:]:
        gradients = measure(norm, residual, 1)[2]
        assert [len(each) for each in gradients] == [depth + 1 for depth in DEPTHS]
        assert len({float(each[-1]) for each in gradients}) == 1  # the same gradient is sent in


def test_what_leaves_the_range_of_numbers_is_said(describe):
    wild, tame = course.widgets.depth(residual=True, n_layers=64), course.widgets.depth("pre", residual=True)
    texts = describe(wild, tame, changed(course.widgets.depth(), n_layers=64, level=7))
    assert "the gradient explodes" in texts[0] and "over" not in texts[0]  # its squares would overflow
    assert texts[1].startswith("Pre-norm, with residual, 12 layers. Signal and gradient survive.")
    assert "The tokens become alike and the gradient vanishes." in texts[2]
    assert "At level 7: size " in texts[2].split("\n")[0]


def test_powers_become_numbers_by_hand(node):
    by_hand = {
        "js.sized(0)": "1",
        "js.sized(Math.log10(0.0361))": "0.036",
        "js.sized(Math.log10(280))": "280",
        "js.sized(-16)": "1.0·10⁻¹⁶",
        "js.sized(5.5)": "3.2·10⁵",
        "js.sized(-300)": "under 10⁻³⁰⁰",
        "js.decades([[-0.4, 0.3]])": [[-1, 1], [-1, 0, 1]],
        "js.decades([[0, 156]], [-300, 300])": [[-1, 156], [0, 27, 54, 81, 108, 135]],
        "js.decades([[-40, 0], [0, 2.5]])": [[-12, 3], [-12, -9, -6, -3, 0, 3]],
        "js.inside([0, -1], [-2, 1])": {"points": [[0, 0], [1, -1]]},
        "js.inside([0, -4, -9], [-2, 1])": {"points": [[0, 0], [0.5, -2]], "last": -2},
        "js.inside([3, 0], [-2, 1])": {"points": [[0.6666666666666667, 1], [1, 0]], "first": 1},
    }
    assert node("depth", f"[{', '.join(by_hand)}]") == [list(by_hand.values())]


def test_names_far_apart_stay_and_close_ones_move_apart(node):
    (places,) = node(
        "depth", "[js.spread([10, 60], 0, 100), js.spread([52, 50, 51], 0, 100), js.spread([99, 99], 0, 100)]"
    )
    assert places[0] == [10, 60]
    assert places[1][1] + 32 == places[1][2] + 16 == places[1][0]
    assert sorted(places[2]) == [84, 100]


def test_a_norm_that_is_none_of_these_is_refused():
    with pytest.raises(TraitError, match="norm"):
        course.widgets.depth("first")
