"""Solutions for sinusoidal_positions and shift_matrix."""

from __future__ import annotations

import math

import numpy as np
import torch

from tests.solutions.collection import right, wrong

# mypy: ignore-errors


@right("sinusoidal_positions")
def positions_loop(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    for pos in range(max_len):
        for i in range(0, d_model, 2):
            pe[pos, i] = math.sin(pos / 10000 ** (i / d_model))
            pe[pos, i + 1] = math.cos(pos / 10000 ** (i / d_model))
    return pe


@right("sinusoidal_positions")
def positions_exp(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    position = torch.arange(max_len).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


@right("sinusoidal_positions")
def positions_stack(max_len, d_model, base=10_000):
    i = torch.arange(d_model // 2, dtype=torch.float64)
    angles = torch.arange(max_len, dtype=torch.float64)[:, None] / base ** (2 * i / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=2).reshape(max_len, d_model)


@right("sinusoidal_positions")
def positions_numpy(max_len, d_model):
    angle = np.outer(np.arange(max_len), 1 / 10000 ** (np.arange(d_model) // 2 * 2 / d_model))
    return torch.tensor(np.where(np.arange(d_model) % 2, np.cos(angle), np.sin(angle)))


@right("sinusoidal_positions")
def positions_complex(max_len, d_model):
    speeds = torch.pow(10000.0, -torch.arange(0, d_model, 2) / d_model)
    z = torch.polar(torch.ones(max_len, d_model // 2), torch.outer(torch.arange(max_len).float(), speeds))
    return torch.view_as_real(z).flip(-1).flatten(1)


@right("sinusoidal_positions")
def positions_phase(max_len, d_model):
    j = torch.arange(d_model)
    angle = torch.arange(max_len)[:, None] / 10000 ** ((j - j % 2) / d_model)
    return torch.sin(angle + (j % 2) * math.pi / 2)


@wrong("sinusoidal_positions", "halves")
def positions_cat(max_len, d_model):
    div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    angle = torch.arange(max_len)[:, None] * div
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1)


@wrong("sinusoidal_positions", "sine-and-cosine-exchanged")
def positions_swapped(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    pe[:, 0::2] = angle.cos()
    pe[:, 1::2] = angle.sin()
    return pe


@wrong("sinusoidal_positions", "exponent-without-2")
def positions_i_over_d(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    for pos in range(max_len):
        for i in range(d_model // 2):
            pe[pos, 2 * i] = math.sin(pos / 10000 ** (i / d_model))
            pe[pos, 2 * i + 1] = math.cos(pos / 10000 ** (i / d_model))
    return pe


@wrong("sinusoidal_positions", "exponent-doubled")
def positions_doubled(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    for pos in range(max_len):
        for i in range(0, d_model, 2):
            pe[pos, i] = math.sin(pos / 10000 ** (2 * i / d_model))
            pe[pos, i + 1] = math.cos(pos / 10000 ** (2 * i / d_model))
    return pe


@wrong("sinusoidal_positions", "cosine-has-own-speed")
def positions_every_column(max_len, d_model):
    angle = torch.arange(max_len)[:, None] / torch.pow(10000, torch.arange(d_model) / d_model)
    pe = angle.clone()
    pe[:, 0::2] = torch.sin(angle[:, 0::2])
    pe[:, 1::2] = torch.cos(angle[:, 1::2])
    return pe


@wrong("sinusoidal_positions", "even-tokens")
def positions_even_rows(max_len, d_model):
    speeds = 10000 ** (-(torch.arange(d_model) // 2) * 2 / d_model)
    rows = [torch.sin(pos * speeds) if pos % 2 == 0 else torch.cos(pos * speeds) for pos in range(max_len)]
    return torch.stack(rows)


@wrong("sinusoidal_positions", "speeds-inverted")
def positions_multiplied(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    div = torch.exp(torch.arange(0, d_model, 2) * (math.log(10000.0) / d_model))
    angle = torch.arange(max_len).unsqueeze(1) * div
    pe[:, ::2], pe[:, 1::2] = torch.sin(angle), torch.cos(angle)
    return pe


@wrong("sinusoidal_positions", "positions-from-one")
def positions_one_based(max_len, d_model):
    angle = torch.arange(1, max_len + 1)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)


@wrong("sinusoidal_positions", "base-1000")
def positions_base(max_len, d_model):
    angle = torch.arange(max_len)[:, None] / 1000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)


@wrong("sinusoidal_positions", "one-speed")
def positions_same_speed(max_len, d_model):
    angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2) // d_model)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)


@wrong("sinusoidal_positions", "sine-everywhere")
def positions_sine(max_len, d_model):
    j = torch.arange(d_model)
    return torch.sin(torch.arange(max_len)[:, None] / 10000 ** ((j - j % 2) / d_model))


@wrong("sinusoidal_positions", "last-frequency-off-by-one")
def positions_stretched(max_len, d_model):
    n = d_model // 2
    speeds = torch.exp(-math.log(10000) * torch.arange(n) / max(n - 1, 1))
    angle = torch.outer(torch.arange(max_len).float(), speeds)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)


@wrong("sinusoidal_positions", "extra-axes")
def positions_batched(max_len, d_model):
    angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1).unsqueeze(0)


@wrong("sinusoidal_positions", "not-floating-point")
def positions_whole(max_len, d_model):
    pe = torch.zeros(max_len, d_model, dtype=torch.long)
    for pos in range(max_len):
        for i in range(0, d_model, 2):
            pe[pos, i] = int(math.sin(pos / 10000 ** (i / d_model)))
            pe[pos, i + 1] = int(math.cos(pos / 10000 ** (i / d_model)))
    return pe


@right("shift_matrix")
def shift_loop(k, d_model):
    m = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        w = k / 10000 ** (i / d_model)
        m[i, i], m[i, i + 1] = math.cos(w), math.sin(w)
        m[i + 1, i], m[i + 1, i + 1] = -math.sin(w), math.cos(w)
    return m


@right("shift_matrix")
def shift_blocks(k, d_model):
    angles = [k * 10000 ** (-2 * i / d_model) for i in range(d_model // 2)]
    blocks = [torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]) for a in angles]
    return torch.block_diag(*blocks)


@right("shift_matrix")
def shift_power(k, d_model):
    one = torch.zeros(d_model, d_model, dtype=torch.float64)
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    even, odd = torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)
    one[even, even] = one[odd, odd] = w.cos()
    one[even, odd], one[odd, even] = w.sin(), -w.sin()
    return torch.linalg.matrix_power(one, k)


@right("shift_matrix")
def shift_exponential(k, d_model):
    generator = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        w = 10000 ** (-2 * i / d_model)
        generator[2 * i, 2 * i + 1], generator[2 * i + 1, 2 * i] = w, -w
    return torch.matrix_exp(k * generator)


@right("shift_matrix")
def shift_least_squares(k, d_model):
    pe = positions_stack(200 + k, d_model)
    return torch.linalg.lstsq(pe[:200], pe[k:]).solution.T


@wrong("shift_matrix", "turned-backwards")
def shift_back(k, d_model):
    m = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        w = k / 10000 ** (i / d_model)
        m[i, i], m[i, i + 1] = math.cos(w), -math.sin(w)
        m[i + 1, i], m[i + 1, i + 1] = math.sin(w), math.cos(w)
    return m


@wrong("shift_matrix", "minus-forgotten")
def shift_no_minus(k, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = k * 10000 ** (-2 * i / d_model)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)


@wrong("shift_matrix", "halves")
def shift_halves(k, d_model):
    w = k * 10000 ** (-torch.arange(0, d_model, 2) / d_model)
    c, s = torch.diag(w.cos()), torch.diag(w.sin())
    return torch.cat([torch.cat([c, s], 1), torch.cat([-s, c], 1)], 0)


@wrong("shift_matrix", "one-speed")
def shift_one_speed(k, d_model):
    block = torch.tensor([[math.cos(k), math.sin(k)], [-math.sin(k), math.cos(k)]])
    return torch.block_diag(*[block] * (d_model // 2))


@wrong("shift_matrix", "identity")
def shift_eye(k, d_model):
    return torch.eye(d_model)


@wrong("shift_matrix", "rows-rolled")
def shift_rolled(k, d_model):
    return torch.roll(torch.eye(d_model), shifts=k, dims=1)


@wrong("shift_matrix", "one-step")
def shift_ignores_k(k, d_model):
    return shift_loop(1, d_model)


@wrong("shift_matrix", "k-times-one-step")
def shift_k_times(k, d_model):
    return k * shift_blocks(1, d_model)


@wrong("shift_matrix", "power-of-entries")
def shift_entrywise(k, d_model):
    return shift_loop(1, d_model) ** k


@wrong("shift_matrix", "sine-and-cosine-exchanged")
def shift_swapped(k, d_model):
    m = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        w = k / 10000 ** (i / d_model)
        m[i, i], m[i, i + 1] = math.sin(w), math.cos(w)
        m[i + 1, i], m[i + 1, i + 1] = -math.cos(w), math.sin(w)
    return m


@wrong("shift_matrix", "exponent-without-2")
def shift_half_exponent(k, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = k / 10000 ** (i / d_model)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)


@wrong("shift_matrix", "one-block")
def shift_two_by_two(k, d_model):
    return torch.tensor([[math.cos(k), math.sin(k)], [-math.sin(k), math.cos(k)]])
