"""Lesson 12: path lengths, times of layers."""

import pytest
import torch
from torch import nn

from tinytx.attention import MultiHeadAttention
from tinytx_course.labs.lesson_12 import (
    LAYERS,
    ConvolutionLayer,
    GRULayer,
    LayerTimes,
    RecurrentLayer,
    path_length,
    time_layers,
)

PATHS = [
    (MultiHeadAttention(d_model=4, n_heads=1), lambda n: 1),
    (RecurrentLayer(4), lambda n: n),
    (GRULayer(4), lambda n: n),
    *((ConvolutionLayer(4, k), lambda n, k=k: -(-(n - 1) // (k - 1))) for k in (3, 4, 5)),
]


@pytest.mark.parametrize(("layer", "expected"), PATHS)
def test_path_lengths_are_those_of_the_paper(layer, expected):
    for n in (2, 9, 12):
        assert path_length(layer, n, 4) == expected(n)
    assert all(p.dtype == torch.float32 and p.grad is None for p in layer.parameters())


@pytest.mark.parametrize("layer", [nn.Linear(4, 4), ConvolutionLayer(4, 1)])
def test_a_layer_that_never_looks_back_has_no_path(layer):
    with pytest.raises(ValueError, match="within 5 rounds"):
        path_length(layer, 5, 4)


def test_every_layer_is_timed_at_every_size():
    measured = time_layers([(2, 4), (6, 4)], n_rounds=2)
    assert set(measured.times) == set(LAYERS)
    for name in LAYERS:
        assert [len(times.seconds) for times in measured.times[name]] == [2, 2]
        assert min(times.median for times in measured.times[name]) > 0
        middle, low, high = measured.milliseconds(name)
        assert all(a <= b <= c for a, b, c in zip(low, middle, high, strict=True))


def test_one_of_length_and_width_varies():
    assert LayerTimes(((4, 8), (6, 8)), {}).scale == (4, 6)
    assert LayerTimes(((4, 8), (4, 16)), {}).scale == (8, 16)
    for sizes in ([(4, 8), (6, 16)], [(4, 8), (4, 8)]):
        with pytest.raises(ValueError, match="got sizes"):
            time_layers(sizes)
