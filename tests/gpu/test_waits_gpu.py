"""A training step hands its work to the GPU and goes on: it waits for no number."""

import pytest
import torch

from tests.tinytx_run.two_processes import OBJECTIVES, SETTINGS, batches_of, make
from tinytx.loop import TrainingStep

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_training_step_makes_no_gpu_wait(name, accumulate, precision):
    model, objective = make(name)
    step = TrainingStep(model.float().cuda(), objective, SETTINGS.replace(precision=precision), accumulate)
    for number, batch in enumerate(batches_of(name, objective)):
        torch.cuda.set_sync_debug_mode("error" if number else "default")  # the first one sets things up
        try:
            step.backward(batch)
            step.update(0.01)
        finally:
            torch.cuda.set_sync_debug_mode("default")
