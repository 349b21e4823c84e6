"""Solutions for split_by_head and lora_start."""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from torch import nn

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("split_by_head")


@right
def split_loops(weight, n_heads):
    k = weight.shape[1] // n_heads
    starts = [[(3 * h + i) * k for h in range(n_heads)] for i in range(3)]
    return torch.stack([torch.cat([weight[s : s + k] for s in of_one]) for of_one in starts])


@right
def split_chunks(weight, n_heads):
    heads = [head.chunk(3) for head in weight.chunk(n_heads)]
    return torch.stack([torch.cat(part) for part in zip(*heads, strict=True)])


@right
def split_numpy(weight, n_heads):
    d = weight.shape[1]
    order = np.arange(3 * d).reshape(n_heads, 3, d // n_heads).swapaxes(0, 1).ravel()
    return torch.from_numpy(weight.numpy()[order].reshape(3, d, d))


wrong("wrong-type", lambda weight, n_heads: dict(zip("qkv", split_chunks(weight, n_heads), strict=True)))


@wrong("error")
def split_columns(weight, n_heads):
    return weight.view(weight.shape[0], n_heads, 3, -1).permute(2, 1, 3, 0).flatten(1, 2)


right(lambda weight, n_heads: weight.unflatten(0, (n_heads, 3, -1)).transpose(0, 1).flatten(1, 2))


right, wrong = of("lora_start")


@right
def start_plain(layer, rank):
    layer.requires_grad_(False)
    layer.lora_a = nn.Parameter(torch.randn(rank, layer.in_features))
    layer.lora_b = nn.Parameter(torch.zeros(layer.out_features, rank))
    return layer


right(start_plain, {"torch.randn(rank, layer.in_features)": "torch.randn(rank, layer.in_features).sign()"})
right(start_plain, {"torch.zeros(layer.out_features, rank)": "torch.empty(layer.out_features, rank).zero_()"})
right(start_plain, {"torch.randn(": "torch.empty(", "in_features)": "in_features).random_(-3, 4)"})
right(start_plain, {"    layer.lora_a =": "    # not nn.Parameter(torch.empty(...))\n    layer.lora_a ="})


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


wrong("copy-returned", lambda layer, rank: start_plain(copy.deepcopy(layer), rank))
wrong("wrong-type", start_plain, {"return layer": "return layer.lora_a, layer.lora_b"})
