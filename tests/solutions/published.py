"""Solutions for split_c_attn and lora_start."""

from __future__ import annotations

import math

import numpy as np
import torch
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


@wrong("wrong-type")
def start_pair(layer, rank):
    layer = started(layer, rank)
    return layer.lora_a, layer.lora_b
