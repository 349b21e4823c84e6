"""Solutions for split_c_attn, lora_start and lora_forward."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.solutions.collection import right, wrong

# mypy: ignore-errors


@right("split_c_attn")
def split_chunks(weight):
    q, k, v = weight.chunk(3, dim=1)
    return torch.stack([q.T, k.T, v.T])


@right("split_c_attn")
def split_reshaped(weight):
    return weight.T.reshape(3, len(weight), len(weight))


@right("split_c_attn")
def split_permuted(weight):
    return weight.view(weight.shape[0], 3, -1).permute(1, 2, 0)


@right("split_c_attn")
def split_sliced(weight):
    d = weight.shape[0]
    return torch.stack([weight[:, i * d : (i + 1) * d].t() for i in range(3)])


@right("split_c_attn")
def split_numpy(weight):
    return torch.from_numpy(np.stack(np.split(weight.numpy().T, 3)))


@wrong("split_c_attn", "not-transposed")
def split_untransposed(weight):
    return torch.stack(weight.split(weight.shape[0], dim=1))


@wrong("split_c_attn", "cut-by-rows")
def split_viewed(weight):
    return weight.reshape(3, weight.shape[0], weight.shape[0])


@wrong("split_c_attn", "cut-by-rows")
def split_viewed_and_turned(weight):
    return weight.reshape(3, weight.shape[0], -1).mT


@wrong("split_c_attn", "every-third-column")
def split_strided(weight):
    return torch.stack([weight[:, start::3].T for start in (0, 1, 2)])


@wrong("split_c_attn", "every-third-column")
def split_last_axis(weight):
    return weight.view(weight.shape[0], -1, 3).permute(2, 0, 1)


@wrong("split_c_attn", "keys-first")
def split_kqv(weight):
    k, q, v = (part.T for part in weight.chunk(3, dim=1))
    return torch.stack([q, k, v])


@wrong("split_c_attn", "values-first")
def split_vkq(weight):
    v, k, q = (part.T for part in weight.chunk(3, dim=1))
    return torch.stack([q, k, v])


@wrong("split_c_attn", "not-cut")
def split_transposed_only(weight):
    return weight.T


@wrong("split_c_attn", "not-cut")
def split_concatenated(weight):
    return torch.cat([part.T for part in weight.chunk(3, dim=1)])


@wrong("split_c_attn", "axis-of-maps-last")
def split_stacked_last(weight):
    return torch.stack([part.T for part in weight.chunk(3, dim=1)], -1)


@wrong("split_c_attn", "axis-of-maps-in-the-middle")
def split_middle(weight):
    return weight.reshape(weight.shape[0], 3, weight.shape[0])


@wrong("split_c_attn", "queries-only")
def split_first(weight):
    return weight[:, : weight.shape[0]].T


@wrong("split_c_attn", "wrong-type")
def split_as_dict(weight):
    q, k, v = weight.chunk(3, dim=1)
    return {"q_proj": q.T, "k_proj": k.T, "v_proj": v.T}


@wrong("split_c_attn", "error")
def split_wrong_axis(weight):
    q, k, v = weight.T.split(weight.shape[0], dim=1)
    return torch.stack([q, k, v])


@right("lora_start")
def start_plain(layer, rank):
    layer.requires_grad_(False)
    layer.lora_a = nn.Parameter(torch.randn(rank, layer.in_features))
    layer.lora_b = nn.Parameter(torch.zeros(layer.out_features, rank))
    return layer


@right("lora_start")
def start_kaiming(layer, rank):
    for parameter in layer.parameters():
        parameter.requires_grad = False
    a = torch.empty(rank, layer.weight.shape[1])
    nn.init.kaiming_uniform_(a, a=math.sqrt(5))
    layer.lora_a = nn.Parameter(a)
    layer.lora_b = nn.Parameter(layer.weight.new_zeros(layer.weight.shape[0], rank))
    return layer


@right("lora_start")
def start_registered(layer, rank):
    layer.register_parameter("lora_a", nn.Parameter(0.01 * torch.rand(rank, layer.in_features)))
    layer.register_parameter("lora_b", nn.Parameter(torch.zeros(layer.out_features, rank)))
    layer.weight.requires_grad_(False)
    if layer.bias is not None:
        layer.bias.requires_grad_(False)
    return layer


@right("lora_start")
def start_initialised(layer, rank):
    for name, shape in (("lora_a", (rank, layer.in_features)), ("lora_b", (layer.out_features, rank))):
        setattr(layer, name, nn.Parameter(torch.empty(shape)))
    nn.init.normal_(layer.lora_a, std=0.02)
    nn.init.zeros_(layer.lora_b)
    for name, parameter in layer.named_parameters():
        parameter.requires_grad_(name.startswith("lora"))
    return layer


def started(layer, rank, a=torch.randn, b=torch.zeros, frozen=True):
    layer.requires_grad_(not frozen)
    layer.lora_a = nn.Parameter(a(rank, layer.in_features))
    layer.lora_b = nn.Parameter(b(layer.out_features, rank))
    return layer


@wrong("lora_start", "both-zero")
def start_zeros(layer, rank):
    return started(layer, rank, a=torch.zeros)


@wrong("lora_start", "b-random")
def start_random(layer, rank):
    return started(layer, rank, b=lambda *shape: torch.randn(shape) * 0.01)


@wrong("lora_start", "zero-and-random-exchanged")
def start_swapped(layer, rank):
    return started(layer, rank, a=torch.zeros, b=torch.rand)


@wrong("lora_start", "a-constant")
def start_ones(layer, rank):
    return started(layer, rank, a=torch.ones)


@wrong("lora_start", "nothing-frozen")
def start_thawed(layer, rank):
    return started(layer, rank, frozen=False)


@wrong("lora_start", "nothing-frozen")
def start_eval(layer, rank):
    with torch.no_grad():  # neither of the two freezes anything
        layer.eval()
        return started(layer, rank, frozen=False)


@wrong("lora_start", "bias-trained")
def start_weight_only(layer, rank):
    layer = started(layer, rank, frozen=False)
    layer.weight.requires_grad_(False)
    return layer


@wrong("lora_start", "everything-frozen")
def start_frozen_late(layer, rank):
    return started(layer, rank).requires_grad_(False)


@wrong("lora_start", "reversed")
def start_flags_turned(layer, rank):
    layer = started(layer, rank)
    for parameter in layer.parameters():
        parameter.requires_grad_(not parameter.requires_grad)
    return layer


@wrong("lora_start", "b-frozen")
def start_b_without_gradient(layer, rank):
    layer = started(layer, rank)
    layer.lora_b.requires_grad = False
    return layer


@wrong("lora_start", "transposed")
def start_in_by_out(layer, rank):
    layer.requires_grad_(False)
    layer.lora_a = nn.Parameter(torch.randn(layer.in_features, rank))
    layer.lora_b = nn.Parameter(torch.zeros(rank, layer.out_features))
    return layer


@wrong("lora_start", "widths-exchanged")
def start_b_reads(layer, rank):
    layer.requires_grad_(False)
    layer.lora_a = nn.Parameter(torch.randn(rank, layer.out_features))
    layer.lora_b = nn.Parameter(torch.zeros(layer.in_features, rank))
    return layer


@wrong("lora_start", "rank-ignored")
def start_rank_one(layer, rank):
    return started(layer, 1)


@wrong("lora_start", "plain-tensors")
def start_tensors(layer, rank):
    layer.requires_grad_(False)
    layer.lora_a = torch.randn(rank, layer.in_features, requires_grad=True)
    layer.lora_b = torch.zeros(layer.out_features, rank, requires_grad=True)
    return layer


@wrong("lora_start", "layers-for-parameters")
def start_modules(layer, rank):
    layer.requires_grad_(False)
    layer.lora_a = nn.Linear(layer.in_features, rank, bias=False)
    layer.lora_b = nn.Linear(rank, layer.out_features, bias=False)
    nn.init.zeros_(layer.lora_b.weight)
    return layer


@wrong("lora_start", "both-zero+nothing-frozen")
def start_two_slips(layer, rank):
    return started(layer, rank, a=torch.zeros, frozen=False)


@wrong("lora_start", "b-random+everything-frozen")
def start_random_and_frozen_late(layer, rank):
    return started(layer, rank, b=torch.randn).requires_grad_(False)


@wrong("lora_start", "wrong-type")
def start_pair(layer, rank):
    layer = started(layer, rank)
    return layer.lora_a, layer.lora_b


@right("lora_forward")
def forward_plain(x, weight, a, b, alpha):
    return x @ weight.T + alpha / a.shape[0] * (x @ a.T) @ b.T


@right("lora_forward")
def forward_linear(x, weight, a, b, alpha):
    update = F.linear(F.linear(x, a), b)
    return F.linear(x, weight) + update * (alpha / len(a))


@right("lora_forward")
def forward_merged(x, weight, a, b, alpha):
    return F.linear(x, weight.detach() + (alpha / b.size(1)) * (b @ a))


@right("lora_forward")
def forward_einsum(x, weight, a, b, alpha):
    base = torch.einsum("bti,oi->bto", x, weight)
    return base + torch.einsum("bti,ri,or->bto", x, a, b) * alpha / a.size(0)


@right("lora_forward")
def forward_loop(x, weight, a, b, alpha):
    out = x @ weight.T
    for row, column in zip(a, b.T, strict=True):
        out = out + alpha / len(a) * (x @ row)[..., None] * column
    return out


@wrong("lora_forward", "scale-missing")
def forward_unscaled(x, weight, a, b, alpha):
    return F.linear(x, weight) + F.linear(F.linear(x, a), b)


@wrong("lora_forward", "alpha-alone")
def forward_alpha(x, weight, a, b, alpha):
    return F.linear(x, weight) + alpha * (x @ a.T @ b.T)


@wrong("lora_forward", "upside-down")
def forward_inverted(x, weight, a, b, alpha):
    return x @ weight.T + a.shape[0] / alpha * (x @ a.T @ b.T)


@wrong("lora_forward", "root-of-the-rank")
def forward_stabilised(x, weight, a, b, alpha):
    return x @ weight.T + alpha / math.sqrt(len(a)) * (x @ a.T @ b.T)


@wrong("lora_forward", "divided-by-input-width")
def forward_columns_of_a(x, weight, a, b, alpha):
    return x @ weight.T + alpha / a.shape[-1] * (x @ a.T @ b.T)


@wrong("lora_forward", "divided-by-output-width")
def forward_rows_of_b(x, weight, a, b, alpha):
    return x @ weight.T + alpha / len(b) * (x @ a.T @ b.T)


@wrong("lora_forward", "everything-scaled")
def forward_all_scaled(x, weight, a, b, alpha):
    return alpha / len(a) * (x @ weight.T + x @ a.T @ b.T)


@wrong("lora_forward", "frozen-part-missing")
def forward_update_only(x, weight, a, b, alpha):
    return x @ (alpha / len(a) * b @ a).T


@wrong("lora_forward", "a-and-b-exchanged")
def forward_b_first(x, weight, a, b, alpha):
    return x @ weight.T + alpha / len(a) * (x @ b @ a)


@wrong("lora_forward", "weight-not-transposed")
def forward_upright(x, weight, a, b, alpha):
    return x @ weight + alpha / len(a) * (x @ a.T @ b.T)


@wrong("lora_forward", "activation-between")
def forward_bottleneck(x, weight, a, b, alpha):
    return x @ weight.T + alpha / len(a) * torch.relu(x @ a.T) @ b.T


@wrong("lora_forward", "residual-added")
def forward_residual(x, weight, a, b, alpha):
    return x + F.linear(x, weight) + alpha / len(a) * (x @ a.T @ b.T)


@wrong("lora_forward", "matrix-returned")
def forward_weight(x, weight, a, b, alpha):
    return weight + alpha / a.shape[0] * b @ a


@wrong("lora_forward", "multiplied")
def forward_gated(x, weight, a, b, alpha):
    return (x @ weight.T) * (alpha / len(a) * (x @ a.T @ b.T))


@wrong("lora_forward", "scale-missing+weight-not-transposed")
def forward_two_slips(x, weight, a, b, alpha):
    return x @ weight + x @ a.T @ b.T
