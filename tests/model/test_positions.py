"""Positions: the formula term by term, a table worked by hand, and the rotation that shifts a position."""

import math

import pytest
import torch
from torch.testing import assert_close

from tinytx.model.positions import LearnedPositions, SinusoidalPositions, shift_matrix, sinusoidal_positions


def test_table_worked_by_hand_for_four_words():
    """The words "I am a Robot" with d_model = 4 and base = 100, to two decimals."""
    expected = torch.tensor(
        [
            [0.00, 1.00, 0.00, 1.00],
            [0.84, 0.54, 0.10, 1.00],
            [0.91, -0.42, 0.20, 0.98],
            [0.14, -0.99, 0.30, 0.96],
        ]
    )
    assert_close(sinusoidal_positions(4, 4, base=100).round(decimals=2), expected)


@pytest.mark.parametrize("base", [7.0, 100.0, 10_000.0])
def test_every_entry_is_the_formula_of_the_paper(base):
    table = sinusoidal_positions(11, 6, base, dtype=torch.float64)
    for pos in range(11):
        for i in range(3):
            angle = pos / base ** (2 * i / 6)
            assert table[pos, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-12)
            assert table[pos, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)


def test_angles_are_computed_in_float64_even_for_a_float32_table():
    table = sinusoidal_positions(100_001, 2)
    assert table.dtype == torch.float32
    assert table[100_000, 0].item() == pytest.approx(math.sin(100_000), abs=1e-7)


def test_dtype_follows_the_default_of_torch():
    torch.set_default_dtype(torch.float64)
    try:
        assert sinusoidal_positions(3, 2).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_every_position_has_the_same_length():
    table = sinusoidal_positions(512, 14, dtype=torch.float64)
    assert_close(table.norm(dim=1), torch.full((512,), math.sqrt(7), dtype=torch.float64))


@pytest.mark.parametrize(("d_model", "base"), [(6, 100.0), (200, 10_000.0)])
def test_a_rotation_shifts_every_position_by_every_distance(d_model, base):
    table = sinusoidal_positions(512, d_model, base).double()
    for k in range(512):
        shifted = table[: 512 - k] @ shift_matrix(k, d_model, base).T
        assert_close(shifted, table[k:], rtol=0, atol=1e-6)


def test_shifts_are_rotations_that_add_up():
    identity = torch.eye(6, dtype=torch.float64)
    assert_close(shift_matrix(5, 6) @ shift_matrix(5, 6).T, identity)
    assert_close(shift_matrix(-5, 6), shift_matrix(5, 6).T)
    assert_close(shift_matrix(2, 6) @ shift_matrix(3, 6), shift_matrix(5, 6))
    assert torch.linalg.det(shift_matrix(5, 6)).item() == pytest.approx(1)


@pytest.mark.parametrize("d_model", [7, 0, -2])
def test_width_must_be_even_and_positive(d_model):
    for build in (lambda: sinusoidal_positions(3, d_model), lambda: shift_matrix(1, d_model)):
        with pytest.raises(ValueError, match=f"^d_model must be even and positive, got d_model={d_model}$"):
            build()


def test_other_arguments_are_checked():
    with pytest.raises(ValueError, match="^max_len must be at least 1, got 0$"):
        sinusoidal_positions(0, 2)
    with pytest.raises(ValueError, match="^base must be positive, got base=-1$"):
        sinusoidal_positions(3, 2, base=-1)


def test_sinusoidal_module_adds_the_table_and_learns_nothing():
    module, x = SinusoidalPositions(max_len=11, d_model=6), torch.randn(2, 5, 6)
    before = x.clone()
    assert_close(module(x) - x, sinusoidal_positions(5, 6).expand(2, 5, 6))
    assert_close(x, before, rtol=0, atol=0)
    assert list(module.parameters()) == [] and module.state_dict() == {}


def test_learned_module_adds_its_vectors_and_trains_only_those_it_used():
    module, x = LearnedPositions(max_len=11, d_model=6), torch.randn(2, 5, 6)
    module(x).sum().backward()
    assert_close(module(x) - x, module.table[:5].expand(2, 5, 6))
    assert_close(module.table.grad[:5], torch.full((5, 6), 2.0))  # once for each of the two rows
    assert_close(module.table.grad[5:], torch.zeros(6, 6))


def test_an_offset_leaves_the_first_rows_unread():
    module, x = LearnedPositions(max_len=11, d_model=6, offset=2), torch.randn(2, 5, 6)
    assert module.table.shape == (13, 6)
    assert_close(module(x) - x, module.table[2:7].expand(2, 5, 6))
    assert_close(module(x[:, 3:], start=3), module(x)[:, 3:])
    module(x).sum().backward()
    assert not module.table.grad[:2].any() and not module.table.grad[7:].any()
