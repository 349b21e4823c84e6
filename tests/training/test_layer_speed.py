"""Times of layers: every layer at every size, and exponents against those of the formulas."""

import pytest

from tinytx.training.layer_speed import LAYERS, LayerTimes, time_layers
from tinytx.training.timing import Times


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


@pytest.mark.slow
def test_a_recurrent_layer_takes_time_in_proportion_to_the_text():
    measured = time_layers([(n, 16) for n in (64, 256, 1024)], n_rounds=5)
    for name in ("vanilla recurrent", "GRU", "GRU, torch's loop"):
        assert measured.exponent(name, n_last=3).measured.value == pytest.approx(1, abs=0.35)
