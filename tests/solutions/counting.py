"""Solutions for count_language_model, count_llama and count_gpt2."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("count_language_model")


@right
def lm_formula(vocab_size, d_model, n_layers, d_ff):
    attention = 4 * d_model * d_model + 4 * d_model
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norms = 2 * 2 * d_model
    head = d_model * vocab_size + vocab_size
    return vocab_size * d_model + n_layers * (attention + feed_forward + norms) + head


@right
def lm_module(vocab_size, d_model, n_layers, d_ff):
    layer = nn.TransformerEncoderLayer(d_model, 2, d_ff, batch_first=True, device="meta")
    encoder = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
    parts = [nn.Embedding(vocab_size, d_model), encoder, nn.Linear(d_model, vocab_size)]
    return sum(p.numel() for part in parts for p in part.parameters())


@right
def lm_loop(vocab_size, d_model, n_layers, d_ff):
    total = vocab_size * d_model
    for _ in range(n_layers):
        for rows, columns in [(d_model, d_model)] * 4 + [(d_model, d_ff), (d_ff, d_model)]:
            total += (rows + 1) * columns
        total += 4 * d_model
    return total + (d_model + 1) * vocab_size


@right
def lm_linear_helper(v, d, n, f):
    def linear(a, b):
        return a * b + b

    in_and_out = linear(d, 3 * d) + linear(d, d)
    return v * d + n * (in_and_out + linear(d, f) + linear(f, d) + 2 * (d + d)) + linear(d, v)


@right
def lm_as_float(vocab_size, d_model, n_layers, d_ff):
    per_layer = 4 * d_model**2 + 9 * d_model + 2 * d_model * d_ff + d_ff
    return vocab_size * d_model * 2.0 + vocab_size + n_layers * per_layer


wrong("norms-forgotten+all-biases-forgotten", lambda v, d, n, f: 2 * v * d + n * (4 * d**2 + 2 * d * f))
wrong("wrong-type", lambda v, d, n, f: f"{lm_formula(v, d, n, f):,}")


right, wrong = of("count_llama")


@right
def llama_formula(v, d, n, f, kv):
    return n * d * (2 * d + 2 * kv + 3 * f + 2) + d * (2 * v + 1)


@right
def llama_shapes(vocab_size, d_model, n_layers, d_ff, kv_dim):
    d, f = d_model, d_ff
    block = [(d, d), (kv_dim, d), (kv_dim, d), (d, d), (f, d), (f, d), (d, f), (d,), (d,)]
    shapes = [(vocab_size, d)] + n_layers * block + [(d,), (vocab_size, d)]
    return sum(int(np.prod(shape)) for shape in shapes)


@right
def llama_modules(vocab_size, d_model, n_layers, d_ff, kv_dim):
    with torch.device("meta"):
        widths = [d_model, kv_dim, kv_dim, d_model]
        parts = [nn.Embedding(vocab_size, d_model), nn.Linear(d_model, vocab_size, bias=False)]
        block = [nn.Linear(d_model, width, bias=False) for width in widths]
        block += [nn.Linear(d_model, d_ff, bias=False) for _ in range(3)]
        norms = [nn.LayerNorm(d_model, bias=False) for _ in range(3)]
    sizes = {m: sum(p.numel() for p in m.parameters()) for m in (*parts, *block, *norms)}
    each = sum(sizes[m] for m in (*block, *norms[:2]))
    return sum(sizes[m] for m in parts) + n_layers * each + sizes[norms[2]]


@right
def llama_loop(vocab_size, d_model, n_layers, d_ff, kv_dim):
    total = vocab_size * d_model
    for _ in range(n_layers):
        for rows, columns in [(d_model, d_model + 2 * kv_dim), (d_model, d_model)] + [(d_model, d_ff)] * 3:
            total += rows * columns
        total += 2 * d_model
    return total + d_model + vocab_size * d_model


right(lambda v, d, n, f, kv: float(llama_formula(v, d, n, f, kv)))
wrong("wrong-type", lambda v, d, n, f, kv: f"{llama_formula(v, d, n, f, kv):,}")
wrong("wrong-parameters", lambda v, d, n, f: llama_formula(v, d, n, f, d))
wrong("final-norm-forgotten+norms-with-shifts", llama_formula, {"3 * f + 2": "3 * f + 4", " + 1": ""})
wrong("norms-forgotten", llama_formula, {"3 * f + 2": "3 * f", " + 1": ""})


right, wrong = of("count_gpt2")


@right
def gpt2_formula(vocab_size, max_len, d_model, n_heads, n_layers):
    block = 12 * d_model**2 + 13 * d_model
    return (vocab_size + max_len) * d_model + n_layers * block + 2 * d_model


@right
def gpt2_module(vocab_size, max_len, d_model, n_heads, n_layers):
    layer = nn.TransformerEncoderLayer(d_model, n_heads, 4 * d_model, norm_first=True, device="meta")
    norm = nn.LayerNorm(d_model, device="meta")
    stack = nn.TransformerEncoder(layer, n_layers, norm=norm, enable_nested_tensor=False)
    tables = [nn.Embedding(n, d_model, device="meta") for n in (vocab_size, max_len)]
    return sum(p.numel() for part in [stack, *tables] for p in part.parameters())


@right
def gpt2_shapes(v, t, d, h, n):
    block = [(d, 3 * d), (3 * d,), (d, d), (d,), (d, 4 * d), (4 * d,), (4 * d, d), (d,)] + [(d,)] * 4
    shapes = [(v, d), (t, d)] + block * n + [(d,), (d,)]
    return sum(int(np.prod(shape)) for shape in shapes)


@right
def gpt2_head_by_head(vocab_size, max_len, d_model, n_heads, n_layers):
    head_dim = d_model // n_heads
    total = vocab_size * d_model + max_len * d_model
    for _ in range(n_layers):
        for _ in range(n_heads):
            total += 3 * (d_model * head_dim + head_dim)
        total += d_model * d_model + d_model
        total += (d_model + 1) * 4 * d_model + (4 * d_model + 1) * d_model
        total += 2 * 2 * d_model
    return total + 2 * d_model


@right
def gpt2_as_tensor(vocab_size, max_len, d_model, n_heads, n_layers):
    per_block = torch.tensor([4 * d_model**2 + 4 * d_model, 8 * d_model**2 + 5 * d_model, 4 * d_model])
    return per_block.sum() * n_layers + (vocab_size + max_len + 2) * d_model


wrong("wrong-type", lambda v, t, d, h, n: f"{gpt2_formula(v, t, d, h, n) / 1e6:.0f} M")
