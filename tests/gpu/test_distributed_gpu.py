"""Several processes on GPUs learn what one learns on one."""

from functools import partial

import pytest
import torch

from tests import launching

pytestmark = [pytest.mark.gpu, pytest.mark.slow]
SETTINGS = ["--budget", "smoke", "--steps", 20, "--precision", "fp32", "--device", "cuda"]
launch = partial(launching.launch, module="tests.gpu.limited")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process without torch's sharding answers."""
    out = tmp_path_factory.mktemp("alone") / "run"
    return launch(1, ["pretrain", "--corpus", "world", *SETTINGS, "--out", out])


def assert_same(answer, alone):
    assert answer["first_loss"] == pytest.approx(alone["first_loss"], abs=1e-5)
    assert answer["last_loss"] == pytest.approx(alone["last_loss"], abs=1e-3)
    assert answer["nats_per_token"] == pytest.approx(alone["nats_per_token"], abs=1e-3)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("layout", [[], ["--shard"]])
def test_two_gpus_learn_what_one_learns(alone, tmp_path, layout):
    answer = launch(2, ["pretrain", "--corpus", "world", *SETTINGS, *layout, "--out", tmp_path / "run"])
    assert_same(answer, alone)


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_one_gpu_with_a_sharded_model_learns_and_resumes(alone, tmp_path, objective):
    command = ["pretrain", "--corpus", "world", "--objective", objective, *SETTINGS]
    plain = alone if objective == "causal" else launch(1, [*command, "--out", tmp_path / "plain"])
    sharded = launch(1, [*command, "--shard", "--out", tmp_path / "sharded"])
    assert_same(sharded, plain)
    again = launch(1, [*command, "--out", tmp_path / "sharded", "--resume"])
    assert again["nats_per_token"] == pytest.approx(sharded["nats_per_token"], abs=1e-5)


def test_more_processes_than_gpus_are_refused(tmp_path):
    n_processes = torch.cuda.device_count() + 1
    with pytest.raises(RuntimeError, match="processes must be at most as many as GPUs"):
        launch(n_processes, ["pretrain", "--corpus", "world", *SETTINGS, "--out", tmp_path / "run"])
