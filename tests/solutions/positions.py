"""Solutions for sinusoidal_positions, score_new_token, rotate and alibi_bias."""

from __future__ import annotations

import math

import numpy as np
import torch

import tinytx as tx
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


wrong("not-floating-point", positions_loop, {"d_model)\n    for": "d_model, dtype=torch.long)\n    for"})


right, wrong = of("score_new_token")


@right
def new_token_with_all(q, k, turned_keys):
    t = len(turned_keys)
    rows = tx.rotate(torch.stack([q, k]), torch.tensor([t, t], device=q.device))
    return torch.cat([turned_keys @ rows[0], (rows[0] @ rows[1])[None]])


@right
def new_token_own_score_needs_no_turn(q, k, turned_keys):
    query = tx.rotate(q[None], torch.tensor([turned_keys.shape[0]], device=q.device))[0]
    return torch.cat([turned_keys @ query, (q @ k)[None]])  # turned alike: their distance is 0


@right
def new_token_by_complex_numbers(q, k, turned_keys):
    t, width = turned_keys.shape
    speeds = 10_000 ** (-torch.arange(0, width, 2, device=q.device) / width)
    turn = torch.polar(torch.ones_like(speeds), -t * speeds)
    query, key = (torch.view_as_complex(x.reshape(-1, 2)) * turn for x in (q, k))
    keys = torch.cat([turned_keys, torch.view_as_real(key).reshape(1, -1)])
    return torch.einsum("k,sk->s", torch.view_as_real(query).flatten(), keys)


@right
def new_token_loops(q, k, turned_keys):
    def turn(x):
        out = torch.zeros_like(x)
        for i in range(0, len(x), 2):
            angle = len(turned_keys) / 10_000 ** (i / len(x))
            out[i] = math.cos(angle) * x[i] + math.sin(angle) * x[i + 1]
            out[i + 1] = math.cos(angle) * x[i + 1] - math.sin(angle) * x[i]
        return out

    query = turn(q)
    return torch.stack([key @ query for key in [*turned_keys, turn(k)]])


@right
def new_token_turned_back(q, k, turned_keys):
    t = len(turned_keys)
    back = tx.rotate(turned_keys, torch.full((t,), -t, device=q.device))
    return torch.cat([back, k[None]]) @ q


wrong("wrong-shape", new_token_with_all, {"[None]])": "[None]])[None]"})


@wrong("input-modified")
def new_token_in_place(q, k, turned_keys):
    at = torch.tensor([len(turned_keys)], device=q.device)
    q[:] = tx.rotate(q[None], at)[0]
    return torch.cat([turned_keys, tx.rotate(k[None], at)]) @ q


wrong("wrong-type", lambda q, k, turned_keys: new_token_with_all(q, k, turned_keys).tolist())


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


def shift_blocks(k, d_model):
    angles = [k * 10000 ** (-2 * i / d_model) for i in range(d_model // 2)]
    blocks = [torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]) for a in angles]
    return torch.block_diag(*blocks)


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


@wrong("input-modified")
def rotate_in_place(x, positions):
    x[...] = rotate_slices(x, positions)
    return x


wrong("numpy-array", rotate_slices, {"return out": "return out.numpy()"})


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


wrong("not-floating-point", alibi_loops, {"seq_len)\n    for": "seq_len, dtype=torch.long)\n    for"})
