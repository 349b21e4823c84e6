"""Times of layers: every layer at every size, and exponents against those of the formulas."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tinytx.training.timing import Times
from tinytx_course.labs.layers import LAYERS, LayerTimes, time_layers


def test_every_layer_is_timed_at_every_size():
    measured = time_layers([(4, 8), (16, 8)], n_rounds=2)
    assert set(measured.times) == set(LAYERS)
    for name in LAYERS:
        assert [len(times.seconds) for times in measured.times[name]] == [2, 2]
        assert min(measured.medians(name)) > 0
        middle, low, high = measured.milliseconds(name)
        assert all(a <= b <= c for a, b, c in zip(low, middle, high, strict=True))
        assert measured.rate(name) == measured.flops(name)[1] / measured.medians(name)[1]


def test_the_number_that_varies_is_found():
    assert time_layers([(4, 8), (6, 8)], n_rounds=1).scale == (4, 6)
    assert time_layers([(4, 8), (4, 16)], n_rounds=1).scale == (8, 16)
    for sizes in ([(4, 8), (6, 16)], [(4, 8), (4, 8)]):
        with pytest.raises(ValueError, match="of length and width one must vary"):
            time_layers(sizes)


def test_exponents_of_known_times_and_of_the_formulas():
    lengths = [10, 1000, 100_000, 10_000_000]
    times = tuple(Times((n**1.5, 3 * n**1.5)) for n in lengths)
    measured = LayerTimes(tuple((n, 8) for n in lengths), dict.fromkeys(LAYERS, times))
    attention, recurrent = (measured.exponent(name, n_last=2) for name in ("attention", "GRU"))
    assert attention.paper == pytest.approx(2, abs=1e-3)  # pairs have long outgrown the maps
    assert recurrent.paper == pytest.approx(1)
    assert attention.measured.value == pytest.approx(1.5)


class _Calls(TorchDispatchMode):
    """Counts what torch is asked to do, one operation after another."""

    def __init__(self):
        super().__init__()
        self.n = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.n += 1
        return func(*args, **(kwargs or {}))


def n_calls(make, seq_len):
    layer = make(16)
    with torch.inference_mode(), _Calls() as calls:
        layer(torch.randn(1, seq_len, 16))
    return calls.n


@pytest.mark.parametrize("name", ["vanilla recurrent", "GRU"])
def test_a_recurrent_layer_goes_token_by_token(name):
    one, two, three = (n_calls(LAYERS[name][1], n) for n in (7, 7 + 5, 7 + 5 + 3 * 5))
    assert three - two == 3 * (two - one) > 0


@pytest.mark.parametrize("name", ["attention", "convolution, k = 3"])
def test_attention_and_convolution_take_all_tokens_at_once(name):
    assert n_calls(LAYERS[name][1], 7) == n_calls(LAYERS[name][1], 27)
