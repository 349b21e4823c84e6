"""Solutions for sinusoidal_positions, shift_matrix, rotate and alibi_bias."""

from __future__ import annotations

import math

import numpy as np
import torch

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("sinusoidal_positions")


@right
def positions_loop(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    for pos in range(max_len):
        for i in range(0, d_model, 2):
            pe[pos, i] = math.sin(pos / 10000 ** (i / d_model))
            pe[pos, i + 1] = math.cos(pos / 10000 ** (i / d_model))
    return pe


@right
def positions_exp(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    position = torch.arange(max_len).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


@right
def positions_stack(max_len, d_model, base=10_000):
    i = torch.arange(d_model // 2, dtype=torch.float64)
    angles = torch.arange(max_len, dtype=torch.float64)[:, None] / base ** (2 * i / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=2).reshape(max_len, d_model)


@right
def positions_numpy(max_len, d_model):
    angle = np.outer(np.arange(max_len), 1 / 10000 ** (np.arange(d_model) // 2 * 2 / d_model))
    return torch.tensor(np.where(np.arange(d_model) % 2, np.cos(angle), np.sin(angle)))


@right
def positions_complex(max_len, d_model):
    speeds = torch.pow(10000.0, -torch.arange(0, d_model, 2) / d_model)
    z = torch.polar(torch.ones(max_len, d_model // 2), torch.outer(torch.arange(max_len).float(), speeds))
    return torch.view_as_real(z).flip(-1).flatten(1)


@right
def positions_phase(max_len, d_model):
    j = torch.arange(d_model)
    angle = torch.arange(max_len)[:, None] / 10000 ** ((j - j % 2) / d_model)
    return torch.sin(angle + (j % 2) * math.pi / 2)


@wrong("halves")
def positions_cat(max_len, d_model):
    div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    angle = torch.arange(max_len)[:, None] * div
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1)


@wrong("sine-and-cosine-exchanged")
def positions_swapped(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    pe[:, 0::2] = angle.cos()
    pe[:, 1::2] = angle.sin()
    return pe


@wrong("exponent-without-2")
def positions_i_over_d(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    for pos in range(max_len):
        for i in range(d_model // 2):
            pe[pos, 2 * i] = math.sin(pos / 10000 ** (i / d_model))
            pe[pos, 2 * i + 1] = math.cos(pos / 10000 ** (i / d_model))
    return pe


@wrong("exponent-doubled")
def positions_doubled(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    for pos in range(max_len):
        for i in range(0, d_model, 2):
            pe[pos, i] = math.sin(pos / 10000 ** (2 * i / d_model))
            pe[pos, i + 1] = math.cos(pos / 10000 ** (2 * i / d_model))
    return pe


@wrong("cosine-has-own-speed")
def positions_every_column(max_len, d_model):
    angle = torch.arange(max_len)[:, None] / torch.pow(10000, torch.arange(d_model) / d_model)
    pe = angle.clone()
    pe[:, 0::2] = torch.sin(angle[:, 0::2])
    pe[:, 1::2] = torch.cos(angle[:, 1::2])
    return pe


@wrong("even-tokens")
def positions_even_rows(max_len, d_model):
    speeds = 10000 ** (-(torch.arange(d_model) // 2) * 2 / d_model)
    rows = [torch.sin(pos * speeds) if pos % 2 == 0 else torch.cos(pos * speeds) for pos in range(max_len)]
    return torch.stack(rows)


@wrong("speeds-inverted")
def positions_multiplied(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    div = torch.exp(torch.arange(0, d_model, 2) * (math.log(10000.0) / d_model))
    angle = torch.arange(max_len).unsqueeze(1) * div
    pe[:, ::2], pe[:, 1::2] = torch.sin(angle), torch.cos(angle)
    return pe


@wrong("positions-from-one")
def positions_one_based(max_len, d_model):
    angle = torch.arange(1, max_len + 1)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)


@wrong("sine-everywhere")
def positions_sine(max_len, d_model):
    j = torch.arange(d_model)
    return torch.sin(torch.arange(max_len)[:, None] / 10000 ** ((j - j % 2) / d_model))


@wrong("last-frequency-off-by-one")
def positions_stretched(max_len, d_model):
    n = d_model // 2
    speeds = torch.exp(-math.log(10000) * torch.arange(n) / max(n - 1, 1))
    angle = torch.outer(torch.arange(max_len).float(), speeds)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)


@wrong("extra-axes")
def positions_batched(max_len, d_model):
    angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1).unsqueeze(0)


@wrong("not-floating-point")
def positions_whole(max_len, d_model):
    pe = torch.zeros(max_len, d_model, dtype=torch.long)
    for pos in range(max_len):
        for i in range(0, d_model, 2):
            pe[pos, i] = int(math.sin(pos / 10000 ** (i / d_model)))
            pe[pos, i + 1] = int(math.cos(pos / 10000 ** (i / d_model)))
    return pe


wrong("base-1000", positions_batched, {"10000": "1000", ".unsqueeze(0)": ""})
wrong("one-speed", positions_batched, {"/ d_model": "// d_model", ".unsqueeze(0)": ""})


right, wrong = of("shift_matrix")


@right
def shift_loop(k, d_model):
    m = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        w = k / 10000 ** (i / d_model)
        m[i, i], m[i, i + 1] = math.cos(w), math.sin(w)
        m[i + 1, i], m[i + 1, i + 1] = -math.sin(w), math.cos(w)
    return m


@right
def shift_blocks(k, d_model):
    angles = [k * 10000 ** (-2 * i / d_model) for i in range(d_model // 2)]
    blocks = [torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]) for a in angles]
    return torch.block_diag(*blocks)


@right
def shift_power(k, d_model):
    one = torch.zeros(d_model, d_model, dtype=torch.float64)
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    even, odd = torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)
    one[even, even] = one[odd, odd] = w.cos()
    one[even, odd], one[odd, even] = w.sin(), -w.sin()
    return torch.linalg.matrix_power(one, k)


@right
def shift_exponential(k, d_model):
    generator = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(d_model // 2):
        w = 10000 ** (-2 * i / d_model)
        generator[2 * i, 2 * i + 1], generator[2 * i + 1, 2 * i] = w, -w
    return torch.matrix_exp(k * generator)


@right
def shift_least_squares(k, d_model):
    pe = positions_stack(200 + k, d_model)
    return torch.linalg.lstsq(pe[:200], pe[k:]).solution.T


@wrong("minus-forgotten")
def shift_no_minus(k, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = k * 10000 ** (-2 * i / d_model)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)


@wrong("halves")
def shift_halves(k, d_model):
    w = k * 10000 ** (-torch.arange(0, d_model, 2) / d_model)
    c, s = torch.diag(w.cos()), torch.diag(w.sin())
    return torch.cat([torch.cat([c, s], 1), torch.cat([-s, c], 1)], 0)


@wrong("one-speed")
def shift_one_speed(k, d_model):
    block = torch.tensor([[math.cos(k), math.sin(k)], [-math.sin(k), math.cos(k)]])
    return torch.block_diag(*[block] * (d_model // 2))


@wrong("rows-rolled")
def shift_rolled(k, d_model):
    return torch.roll(torch.eye(d_model), shifts=k, dims=1)


@wrong("sine-and-cosine-exchanged")
def shift_swapped(k, d_model):
    m = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        w = k / 10000 ** (i / d_model)
        m[i, i], m[i, i + 1] = math.sin(w), math.cos(w)
        m[i + 1, i], m[i + 1, i + 1] = -math.cos(w), math.sin(w)
    return m


@wrong("exponent-without-2")
def shift_half_exponent(k, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = k / 10000 ** (i / d_model)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)


wrong(
    "turned-backwards",
    shift_swapped,
    {"math.sin(w), math.cos": "math.cos(w), -math.sin", "-math.cos(w), math.sin": "math.sin(w), math.cos"},
)
wrong("identity", lambda k, d_model: torch.eye(d_model))
wrong("one-step", lambda k, d_model: shift_loop(1, d_model))
wrong("k-times-one-step", lambda k, d_model: k * shift_blocks(1, d_model))
wrong("power-of-entries", lambda k, d_model: shift_loop(1, d_model) ** k)
wrong("one-block", lambda k, d_model: torch.tensor([[math.cos(k), math.sin(k)], [-math.sin(k), math.cos(k)]]))


right, wrong = of("rotate")


@right
def rotate_loops(x, positions):
    flat = x.reshape(-1, *x.shape[-2:])
    out = torch.zeros_like(flat)
    for b in range(flat.shape[0]):
        for t in range(x.shape[-2]):
            for i in range(0, x.shape[-1], 2):
                a = positions[t].item() / 10000 ** (i / x.shape[-1])
                first, second = flat[b, t, i].item(), flat[b, t, i + 1].item()
                out[b, t, i] = math.cos(a) * first + math.sin(a) * second
                out[b, t, i + 1] = math.cos(a) * second - math.sin(a) * first
    return out.reshape(x.shape)


@right
def rotate_slices(x, positions):
    speeds = 10000 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = positions[:, None] * speeds
    out = torch.empty_like(x)
    out[..., 0::2] = angles.cos() * x[..., 0::2] + angles.sin() * x[..., 1::2]
    out[..., 1::2] = angles.cos() * x[..., 1::2] - angles.sin() * x[..., 0::2]
    return out


@right
def rotate_complex(x, positions):
    speeds = torch.pow(10000.0, -torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = torch.outer(positions.float(), speeds)
    z = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(z * torch.polar(torch.ones_like(angles), -angles)).flatten(-2)


@right
def rotate_matrices(x, positions):
    blocks = torch.stack([shift_blocks(pos.item(), x.shape[-1]) for pos in positions])  # (T, K, K)
    return torch.einsum("tij,...tj->...ti", blocks.to(x.dtype), x)


@right
def rotate_repeat(x, positions):
    speeds = 1.0 / 10000 ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1])
    angles = torch.einsum("t,i->ti", positions.float(), speeds).repeat_interleave(2, dim=-1)
    swapped = torch.stack((x[..., 1::2], -x[..., 0::2]), dim=-1).reshape(x.shape)
    return x * angles.cos() + swapped * angles.sin()


@right
def rotate_exponential(x, positions):
    k = x.shape[-1]
    generator = torch.zeros(k, k, dtype=torch.float64)
    for i in range(k // 2):
        w = 10000 ** (-2 * i / k)
        generator[2 * i, 2 * i + 1], generator[2 * i + 1, 2 * i] = w, -w
    turns = torch.matrix_exp(positions.double()[:, None, None] * generator)  # (T, K, K)
    return (turns @ x.double()[..., None])[..., 0]


@wrong("first-overwritten")
def rotate_in_two_lines(x, positions):
    speeds = 10000 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles, out = positions[:, None] * speeds, x.clone()
    out[..., 0::2] = angles.cos() * out[..., 0::2] + angles.sin() * out[..., 1::2]
    out[..., 1::2] = angles.cos() * out[..., 1::2] - angles.sin() * out[..., 0::2]
    return out


@wrong("turned-backwards")
def rotate_as_the_paper(x, positions):
    speeds = 10000 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = positions[:, None] * speeds
    first, second = x[..., 0::2], x[..., 1::2]
    pair = (first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin())
    return torch.stack(pair, dim=-1).flatten(-2)


@wrong("turned-backwards+halves")
def rotate_as_llama(x, positions):
    speeds = 10000 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = torch.cat([positions[:, None] * speeds] * 2, dim=-1)
    first, second = x.chunk(2, dim=-1)
    return x * angles.cos() + torch.cat((-second, first), dim=-1) * angles.sin()


@wrong("halves")
def rotate_halves(x, positions):
    k = x.shape[-1]
    angles = positions[:, None] * 10000 ** (-torch.arange(0, k, 2) / k)
    first, second = x[..., : k // 2], x[..., k // 2 :]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos * first + sin * second, cos * second - sin * first), dim=-1)


@wrong("not-interleaved")
def rotate_cat(x, positions):
    angles = positions[:, None] * 10000 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    first, second, cos, sin = x[..., ::2], x[..., 1::2], angles.cos(), angles.sin()
    return torch.cat((cos * first + sin * second, cos * second - sin * first), dim=-1)


@wrong("exponent-without-2")
def rotate_i_over_k(x, positions):
    angles = positions[:, None] / 10000 ** (torch.arange(x.shape[-1] // 2) / x.shape[-1])
    first, second, cos, sin = x[..., ::2], x[..., 1::2], angles.cos(), angles.sin()
    return torch.stack((cos * first + sin * second, cos * second - sin * first), dim=-1).flatten(-2)


@wrong("only-cosines")
def rotate_cosines(x, positions):
    angles = positions[:, None] * 10000 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    return x * angles.cos().repeat_interleave(2, dim=-1)


@wrong("sinusoids-added")
def rotate_adds(x, positions):
    return x + positions_exp(int(positions.max()) + 1, x.shape[-1])[positions]


@wrong("sine-and-cosine-exchanged")
def rotate_swapped(x, positions):
    angles = positions[:, None] * 10000 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    first, second, sin, cos = x[..., ::2], x[..., 1::2], angles.cos(), angles.sin()
    return torch.stack((cos * first + sin * second, cos * second - sin * first), dim=-1).flatten(-2)


@wrong("input-modified")
def rotate_in_place(x, positions):
    x[...] = rotate_slices(x, positions)
    return x


@wrong("numpy-array")
def rotate_numpy(x, positions):
    x, pos = x.numpy(), positions.numpy()
    angle = np.outer(pos, 10000.0 ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1]))
    out = np.empty(x.shape)
    out[..., 0::2] = np.cos(angle) * x[..., 0::2] + np.sin(angle) * x[..., 1::2]
    out[..., 1::2] = np.cos(angle) * x[..., 1::2] - np.sin(angle) * x[..., 0::2]
    return out


wrong("minus-forgotten", rotate_swapped, {"sin, cos": "cos, sin", "- sin": "+ sin"})
wrong(
    "one-speed", rotate_i_over_k, {" / 10000 ** (torch.arange(x.shape[-1] // 2) / x.shape[-1])": ".float()"}
)
wrong("positions-ignored", lambda x, positions: rotate_slices(x, torch.arange(x.shape[-2])))


right, wrong = of("alibi_bias")


@right
def alibi_loops(n_heads, seq_len):
    bias = torch.zeros(n_heads, seq_len, seq_len)
    for h in range(n_heads):
        for t in range(seq_len):
            for s in range(seq_len):
                bias[h, t, s] = -(2 ** (-8 * (h + 1) / n_heads)) * abs(t - s)
    return bias


@right
def alibi_broadcast(n_heads, seq_len):
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    t = torch.arange(seq_len)
    return -slopes[:, None, None] * (t[:, None] - t[None, :]).abs()


@right
def alibi_einsum(n_heads, seq_len):
    ratio = 2 ** (-8 / n_heads)
    slopes = torch.tensor([ratio ** (h + 1) for h in range(n_heads)], dtype=torch.float64)
    t = torch.arange(seq_len, dtype=torch.float64)
    return torch.einsum("h,ts->hts", slopes, torch.minimum(t[:, None] - t, t - t[:, None]))


@right
def alibi_numpy(n_heads, seq_len):
    slopes = np.exp2(-8 * np.arange(1, n_heads + 1) / n_heads)
    distance = np.abs(np.subtract.outer(np.arange(seq_len), np.arange(seq_len)))
    return torch.from_numpy(np.multiply.outer(slopes, -distance))


@right
def alibi_cdist(n_heads, seq_len):
    t = torch.arange(seq_len).float()[:, None]
    slopes = torch.logspace(-8 / n_heads, -8, n_heads, base=2)
    return torch.cdist(t, t, p=1).neg().expand(n_heads, -1, -1) * slopes.view(-1, 1, 1)


@wrong("sign-forgotten")
def alibi_positive(n_heads, seq_len):
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    t = torch.arange(seq_len)
    return slopes[:, None, None] * (t[:, None] - t).abs()


@wrong("eight-heads-assumed")
def alibi_halves(n_heads, seq_len):
    t = torch.arange(seq_len)
    distance = (t[:, None] - t).abs()
    return torch.stack([-distance / 2 ** (h + 1) for h in range(n_heads)])


@wrong("one-slope-for-all")
def alibi_one_slope(n_heads, seq_len):
    t = torch.arange(seq_len)
    bias = -(2 ** (-8 / n_heads)) * (t[:, None] - t).abs()
    return bias.repeat(n_heads, 1, 1)


@wrong("slope-missing")
def alibi_distance_only(n_heads, seq_len):
    t = torch.arange(seq_len)
    return -(t[:, None] - t).abs().float().repeat(n_heads, 1, 1)


@wrong("future-blocked")
def alibi_causal(n_heads, seq_len):
    bias = alibi_loops(n_heads, seq_len)
    return bias.masked_fill(torch.ones(seq_len, seq_len).triu(1).bool(), float("-inf"))


@wrong("key-position-only")
def alibi_of_keys(n_heads, seq_len):
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    return -slopes[:, None, None] * torch.arange(seq_len).expand(seq_len, seq_len)


@wrong("heads-last")
def alibi_heads_last(n_heads, seq_len):
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    t = torch.arange(seq_len)
    return -(t[:, None] - t).abs()[..., None] * slopes


@wrong("not-floating-point")
def alibi_whole_numbers(n_heads, seq_len):
    bias = torch.zeros(n_heads, seq_len, seq_len, dtype=torch.long)
    for h in range(n_heads):
        for t in range(seq_len):
            for s in range(seq_len):
                bias[h, t, s] = int(-(2 ** (-8 * (h + 1) / n_heads)) * abs(t - s))
    return bias


wrong("distance-signed", alibi_broadcast, {"(t[:, None] - t[None, :]).abs()": "(t[:, None] - t)"})
wrong("slopes-from-zero", alibi_loops, {"(h + 1)": "h"})
wrong("slopes-inverted", alibi_broadcast, {"-8": "8", "t[None, :]": "t"})
wrong("base-e", alibi_broadcast, {"2.0 ** ": "torch.exp", "t[None, :]": "t"})
wrong("future-zero", alibi_loops, {"s in range(seq_len):": "s in range(t):", "abs": ""})
wrong("one-head-only", alibi_one_slope, {"bias =": "return", "return bias.repeat(n_heads, 1, 1)": ""})
wrong("distance-squared", alibi_broadcast, {"(t[:, None] - t[None, :]).abs()": "(t[:, None] - t) ** 2"})
