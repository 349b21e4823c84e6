"""Half precision is chosen where it was measured to pay."""

import pytest
import torch

from tinytx.training import choose_precision, precision


@pytest.fixture
def afresh():
    precision.bf16_pays_on_cpu.cache_clear()
    yield
    precision.bf16_pays_on_cpu.cache_clear()


@pytest.mark.parametrize(("seconds", "wanted"), [(0.5, "bf16"), (0.9, "fp32"), (4.0, "fp32")])
def test_auto_means_what_is_faster(monkeypatch, afresh, seconds, wanted):
    times = {torch.float32: 1.0, torch.bfloat16: seconds}
    monkeypatch.setattr(precision, "_seconds", times.get)
    assert choose_precision("auto", torch.device("cpu")) == wanted


def test_the_measurement_agrees_with_the_instructions_of_the_processor(afresh):
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()
    tiles = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)()
    if not (supported or tiles):
        pytest.skip("this processor does not say that it has instructions for bfloat16")
    assert precision.bf16_pays_on_cpu()


def test_what_is_asked_for_is_not_measured(monkeypatch, afresh):
    monkeypatch.setattr(precision, "_seconds", lambda dtype: 1 / 0)
    assert choose_precision("fp32", torch.device("cpu")) == "fp32"
    assert choose_precision("bf16", torch.device("cpu")) == "bf16"


def test_the_number_of_threads_is_left_as_it_was(afresh):
    before = torch.get_num_threads()
    precision.bf16_pays_on_cpu()
    assert torch.get_num_threads() == before
