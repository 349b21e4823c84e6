"""Solutions for split_c_attn, lora_start and lora_forward."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("split_c_attn")


@right
def split_chunks(weight):
    q, k, v = weight.chunk(3, dim=1)
    return torch.stack([q.T, k.T, v.T])


@right
def split_sliced(weight):
    d = weight.shape[0]
    return torch.stack([weight[:, i * d : (i + 1) * d].t() for i in range(3)])


@right
def split_numpy(weight):
    return torch.from_numpy(np.stack(np.split(weight.numpy().T, 3)))


@wrong("values-first")
def split_vkq(weight):
    v, k, q = (part.T for part in weight.chunk(3, dim=1))
    return torch.stack([q, k, v])


@wrong("wrong-type")
def split_as_dict(weight):
    q, k, v = weight.chunk(3, dim=1)
    return {"q_proj": q.T, "k_proj": k.T, "v_proj": v.T}


@wrong("error")
def split_wrong_axis(weight):
    q, k, v = weight.T.split(weight.shape[0], dim=1)
    return torch.stack([q, k, v])


right(lambda weight: weight.T.reshape(3, len(weight), len(weight)))
right(lambda weight: weight.view(weight.shape[0], 3, -1).permute(1, 2, 0))
wrong("not-transposed", lambda weight: torch.stack(weight.split(weight.shape[0], dim=1)))
wrong("cut-by-rows", lambda weight: weight.reshape(3, weight.shape[0], weight.shape[0]))
wrong("cut-by-rows", lambda weight: weight.reshape(3, weight.shape[0], -1).mT)
wrong("every-third-column", lambda weight: torch.stack([weight[:, start::3].T for start in (0, 1, 2)]))
wrong("every-third-column", lambda weight: weight.view(weight.shape[0], -1, 3).permute(2, 0, 1))
wrong("keys-first", split_vkq, {"v, k, q": "k, q, v"})
wrong("not-cut", lambda weight: weight.T)
wrong("not-cut", lambda weight: torch.cat([part.T for part in weight.chunk(3, dim=1)]))
wrong("axis-of-maps-last", lambda weight: torch.stack([part.T for part in weight.chunk(3, dim=1)], -1))
wrong("axis-of-maps-in-the-middle", lambda weight: weight.reshape(weight.shape[0], 3, weight.shape[0]))
wrong("queries-only", lambda weight: weight[:, : weight.shape[0]].T)


right, wrong = of("lora_start")


@right
def start_plain(layer, rank):
    layer.requires_grad_(False)
    layer.lora_a = nn.Parameter(torch.randn(rank, layer.in_features))
    layer.lora_b = nn.Parameter(torch.zeros(layer.out_features, rank))
    return layer


@right
def start_kaiming(layer, rank):
    for parameter in layer.parameters():
        parameter.requires_grad = False
    a = torch.empty(rank, layer.weight.shape[1])
    nn.init.kaiming_uniform_(a, a=math.sqrt(5))
    layer.lora_a = nn.Parameter(a)
    layer.lora_b = nn.Parameter(layer.weight.new_zeros(layer.weight.shape[0], rank))
    return layer


@right
def start_registered(layer, rank):
    layer.register_parameter("lora_a", nn.Parameter(0.01 * torch.rand(rank, layer.in_features)))
    layer.register_parameter("lora_b", nn.Parameter(torch.zeros(layer.out_features, rank)))
    layer.weight.requires_grad_(False)
    if layer.bias is not None:
        layer.bias.requires_grad_(False)
    return layer


@right
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


@wrong("nothing-frozen")
def start_eval(layer, rank):
    with torch.no_grad():  # neither of the two freezes anything
        layer.eval()
        return started(layer, rank, frozen=False)


@wrong("bias-trained")
def start_weight_only(layer, rank):
    layer = started(layer, rank, frozen=False)
    layer.weight.requires_grad_(False)
    return layer


@wrong("reversed")
def start_flags_turned(layer, rank):
    layer = started(layer, rank)
    for parameter in layer.parameters():
        parameter.requires_grad_(not parameter.requires_grad)
    return layer


@wrong("b-frozen")
def start_b_without_gradient(layer, rank):
    layer = started(layer, rank)
    layer.lora_b.requires_grad = False
    return layer


@wrong("transposed")
def start_in_by_out(layer, rank):
    layer.requires_grad_(False)
    layer.lora_a = nn.Parameter(torch.randn(layer.in_features, rank))
    layer.lora_b = nn.Parameter(torch.zeros(rank, layer.out_features))
    return layer


@wrong("widths-exchanged")
def start_b_reads(layer, rank):
    layer.requires_grad_(False)
    layer.lora_a = nn.Parameter(torch.randn(rank, layer.out_features))
    layer.lora_b = nn.Parameter(torch.zeros(layer.in_features, rank))
    return layer


@wrong("plain-tensors")
def start_tensors(layer, rank):
    layer.requires_grad_(False)
    layer.lora_a = torch.randn(rank, layer.in_features, requires_grad=True)
    layer.lora_b = torch.zeros(layer.out_features, rank, requires_grad=True)
    return layer


@wrong("layers-for-parameters")
def start_modules(layer, rank):
    layer.requires_grad_(False)
    layer.lora_a = nn.Linear(layer.in_features, rank, bias=False)
    layer.lora_b = nn.Linear(rank, layer.out_features, bias=False)
    nn.init.zeros_(layer.lora_b.weight)
    return layer


@wrong("b-random+everything-frozen")
def start_random_and_frozen_late(layer, rank):
    return started(layer, rank, b=torch.randn).requires_grad_(False)


@wrong("wrong-type")
def start_pair(layer, rank):
    layer = started(layer, rank)
    return layer.lora_a, layer.lora_b


wrong("both-zero", lambda layer, rank: started(layer, rank, a=torch.zeros))
wrong("b-random", lambda layer, rank: started(layer, rank, b=lambda *shape: torch.randn(shape) * 0.01))
wrong("zero-and-random-exchanged", lambda layer, rank: started(layer, rank, a=torch.zeros, b=torch.rand))
wrong("a-constant", lambda layer, rank: started(layer, rank, a=torch.ones))
wrong("nothing-frozen", lambda layer, rank: started(layer, rank, frozen=False))
wrong("everything-frozen", lambda layer, rank: started(layer, rank).requires_grad_(False))
wrong("rank-ignored", lambda layer, rank: started(layer, 1))
wrong("both-zero+nothing-frozen", lambda layer, rank: started(layer, rank, a=torch.zeros, frozen=False))


right, wrong = of("lora_forward")


@right
def forward_linear(x, weight, a, b, alpha):
    update = F.linear(F.linear(x, a), b)
    return F.linear(x, weight) + update * (alpha / len(a))


@right
def forward_einsum(x, weight, a, b, alpha):
    base = torch.einsum("bti,oi->bto", x, weight)
    return base + torch.einsum("bti,ri,or->bto", x, a, b) * alpha / a.size(0)


@right
def forward_loop(x, weight, a, b, alpha):
    out = x @ weight.T
    for row, column in zip(a, b.T, strict=True):
        out = out + alpha / len(a) * (x @ row)[..., None] * column
    return out


@wrong("divided-by-input-width")
def forward_columns_of_a(x, weight, a, b, alpha):
    return x @ weight.T + alpha / a.shape[-1] * (x @ a.T @ b.T)


@wrong("activation-between")
def forward_bottleneck(x, weight, a, b, alpha):
    return x @ weight.T + alpha / len(a) * torch.relu(x @ a.T) @ b.T


@wrong("residual-added")
def forward_residual(x, weight, a, b, alpha):
    return x + F.linear(x, weight) + alpha / len(a) * (x @ a.T @ b.T)


right(lambda x, weight, a, b, alpha: x @ weight.T + alpha / a.shape[0] * (x @ a.T) @ b.T)
right(lambda x, weight, a, b, alpha: F.linear(x, weight.detach() + (alpha / b.size(1)) * (b @ a)))
wrong("scale-missing", lambda x, weight, a, b, alpha: F.linear(x, weight) + F.linear(F.linear(x, a), b))
wrong("alpha-alone", lambda x, weight, a, b, alpha: F.linear(x, weight) + alpha * (x @ a.T @ b.T))
wrong("upside-down", lambda x, weight, a, b, alpha: x @ weight.T + a.shape[0] / alpha * (x @ a.T @ b.T))
wrong("root-of-the-rank", forward_columns_of_a, {"a.shape[-1]": "math.sqrt(len(a))"})
wrong(
    "divided-by-output-width", lambda x, weight, a, b, alpha: x @ weight.T + alpha / len(b) * (x @ a.T @ b.T)
)
wrong("everything-scaled", lambda x, weight, a, b, alpha: alpha / len(a) * (x @ weight.T + x @ a.T @ b.T))
wrong("frozen-part-missing", lambda x, weight, a, b, alpha: x @ (alpha / len(a) * b @ a).T)
wrong("a-and-b-exchanged", lambda x, weight, a, b, alpha: x @ weight.T + alpha / len(a) * (x @ b @ a))
wrong("weight-not-transposed", lambda x, weight, a, b, alpha: x @ weight + alpha / len(a) * (x @ a.T @ b.T))
wrong("matrix-returned", lambda x, weight, a, b, alpha: weight + alpha / a.shape[0] * b @ a)
wrong("multiplied", lambda x, weight, a, b, alpha: (x @ weight.T) * (alpha / len(a) * (x @ a.T @ b.T)))
wrong("scale-missing+weight-not-transposed", lambda x, weight, a, b, alpha: x @ weight + x @ a.T @ b.T)
