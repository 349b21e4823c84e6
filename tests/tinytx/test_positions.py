"""Positions: the formula term by term, tables worked by hand, rotations, and the models of `transformers`."""

import math

import pytest
import torch
from torch.testing import assert_close

from tinytx.positions import (
    AlibiPositions,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    alibi_bias,
    alibi_slopes,
    rotate,
    shift_matrix,
    sinusoidal_positions,
)

B, H, T, S, K = 2, 3, 5, 7, 14


def vectors(seq_len):
    return torch.randn(B, H, seq_len, K, dtype=torch.float64)


@pytest.mark.parametrize("base", [7.0, 10_000.0])
def test_every_entry_is_the_formula_of_the_paper(base):
    table = sinusoidal_positions(11, 6, base, dtype=torch.float64)
    for pos in range(11):
        for i in range(3):
            angle = pos / base ** (2 * i / 6)
            assert table[pos, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-12)
            assert table[pos, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)
    assert_close(table.norm(dim=1), torch.full((11,), math.sqrt(3), dtype=torch.float64))


def test_angles_are_computed_in_float64_even_for_a_float32_table():
    table, far = sinusoidal_positions(100_001, 2), math.sin(100_000)
    assert table.dtype == torch.float32
    assert table[100_000, 0].item() == pytest.approx(far, abs=1e-7)
    rotated = rotate(torch.tensor([[0.0, 1.0]]), torch.tensor([100_000]))
    assert rotated.dtype == torch.float32 and rotated[0, 0].item() == pytest.approx(far, abs=1e-7)
    assert RotaryPositions(100_001, 2).sin[100_000, 0].item() == pytest.approx(far, abs=1e-7)


@pytest.mark.parametrize(("d_model", "base"), [(6, 100.0), (200, 10_000.0)])
def test_a_rotation_shifts_every_position_by_every_distance(d_model, base):
    table = sinusoidal_positions(512, d_model, base).double()
    for k in (*range(0, 512, 37), 511):
        shifted = table[: 512 - k] @ shift_matrix(k, d_model, base).T
        assert_close(shifted, table[k:], rtol=0, atol=1e-6)


@pytest.mark.parametrize("base", [100.0, 10_000.0])
def test_rotating_is_the_matrix_that_shifts_sinusoidal_positions(base):
    x, positions = vectors(T), torch.tensor([0, 1, 511, -3, 8])
    before = x.clone()
    rotated = rotate(x, positions, base)
    for t, position in enumerate(positions.tolist()):
        assert_close(rotated[:, :, t], x[:, :, t] @ shift_matrix(position, K, base).T)
    assert_close(rotated.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(x, before)


def test_biases_are_those_of_bloom_up_to_a_constant_in_each_row():
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    for n_heads in (*range(1, 18), 32, 71, 112):
        # (H, 1, S): the position of the query is left out, since softmax ignores it.
        theirs = bloom.build_alibi_tensor(torch.ones(1, S, dtype=torch.long), n_heads, torch.float32)
        for t in range(S):
            # Over the keys that a causal query may attend to.
            difference = (alibi_bias(n_heads, S) - theirs)[:, t, : t + 1]
            assert_close(difference, difference[:, :1].expand(n_heads, t + 1))


def test_biases_are_minus_slope_times_distance_on_both_sides():
    bias = alibi_bias(H, T)
    for h, slope in enumerate(alibi_slopes(H).tolist()):
        for t in range(T):
            for s in range(T):
                assert bias[h, t, s].item() == pytest.approx(-slope * abs(t - s), abs=1e-7)


def test_alibi_module_leaves_queries_and_keys_alone():
    q, k = vectors(T), vectors(T)
    same_q, same_k, bias = AlibiPositions(H)(q, k, start=2)
    assert same_q is q and same_k is k
    assert_close(bias, alibi_bias(H, T + 2)[:, 2:].double())  # behind two cached keys
    assert AlibiPositions(H)(q.bfloat16(), k.bfloat16())[2].dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("call", "values"),
    [
        (lambda: sinusoidal_positions(3, 7), "d_model=7"),
        (lambda: shift_matrix(1, -2), "d_model=-2"),
        (lambda: sinusoidal_positions(0, 2), "got 0"),
        (lambda: sinusoidal_positions(3, 2, base=-1), "base=-1"),
        (lambda: rotate(torch.ones(T, 7)), "head_dim=7"),
        (lambda: rotate(torch.ones(T, K), base=0), "base=0"),
        (lambda: rotate(torch.ones(T, K), torch.arange(S)), r"\(5,\), got \(7,\)"),
        (lambda: RotaryPositions(11, 7), "head_dim=7"),
        (lambda: RotaryPositions(0, K), "got 0"),
        (lambda: RotaryPositions(6, K)(vectors(S), vectors(S)), "max_len=6 .* 7"),
        (lambda: SinusoidalPositions(T, 2)(torch.ones(1, 2, 2), start=T - 1), "max_len=5 .* 6"),
        (lambda: LearnedPositions(T, 2, offset=2)(torch.ones(1, 2, 2), start=T - 1), "max_len=5 .* 6"),
        (lambda: RotaryPositions(T, 2)(*torch.ones(2, 2, 2), start=T - 1), "max_len=5 .* 6"),
        (lambda: alibi_slopes(0), "got 0"),
        (lambda: alibi_bias(H, 0), "seq_len must be at least 1, got 0"),
    ],
)
def test_errors_name_rule_and_value(call, values):
    with pytest.raises(ValueError, match=values):
        call()


def test_learned_positions_start_at_length_about_1():
    table = LearnedPositions(200, 60).table
    assert table.norm(dim=1).mean().item() == pytest.approx(1, abs=0.1)
