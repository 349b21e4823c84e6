"""A training step hands its work to the GPU and goes on: it waits for no number."""

import contextlib

import pytest

from tests.gpu.device import DEVICE, no_wait
from tests.tinytx_run.two_processes import OBJECTIVES, SETTINGS, SecondOfThree, batches_of, make
from tinytx.loop import TrainingStep

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", [TrainingStep, SecondOfThree])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_training_step_makes_no_gpu_wait(name, kind, precision):
    model, objective = make(name)
    step = kind(model.float().to(DEVICE), objective, SETTINGS.replace(precision=precision))
    for number, batch in enumerate(batches_of(name, objective)):
        with no_wait() if number else contextlib.nullcontext():  # the first one sets things up
            TrainingStep.backward(step, step.part(batch))
            step.update(0.01)
