"""Workers make the batches that one process makes: same numbers, resumed, interrupted, and if one is lost."""

import os
import signal
from pathlib import Path

import psutil
import pytest
import torch

from tests.tinytx_run.interrupted import Killed
from tests.tinytx_run.two_processes import MARKS, OBJECTIVES, SETTINGS, SecondOfThree, make
from tinytx import prefetching
from tinytx.history import TrainingInterrupted
from tinytx.loop import TrainingStep, train
from tinytx.objectives import CausalObjective, FreshObjective
from tinytx.prefetching import LostWorkerError, choose_workers
from tinytx_run.distributed import Processes
from tinytx_run.runs import Checkpoints

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="workers need fork")
HOW = SETTINGS.replace(n_steps=14)  # several epochs


OTHERS = set()  # processes that tests before these have left


@pytest.fixture(autouse=True)
def other_processes():
    OTHERS.clear()
    OTHERS.update(psutil.Process().children())


def workers():
    return [process for process in psutil.Process().children() if process not in OTHERS]


def drawn(epoch):
    """Other texts in each pass."""
    ids = [[6 + (number * epoch) % 24 for number in range(i, i * i % 11 + i + 1)] for i in range(23)]
    return CausalObjective(ids, max_len=9, **MARKS)


HYBRID = make("hybrid")[1]
OF_PASS = {"fresh causal": drawn, "fresh hybrid": lambda epoch: HYBRID}


def learned(name, n_workers, *, kind=TrainingStep, folder=None, on_step=None, settings=HOW):
    """History and weights of a run whose batches are made by so many workers."""
    model, objective = make(name.removeprefix("fresh "))
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.2
    if name.startswith("fresh"):
        objective = FreshObjective(OF_PASS[name])
    step = kind(model, objective, settings)
    assert step.n_workers == 0  # on a CPU
    step.n_workers = n_workers
    how = {"step": step, "on_step": on_step, "progress": False}
    if folder is None:
        history = train(model, objective, settings, **how)
    else:
        with Checkpoints(folder, {}).opened() as checkpoints:
            history = train(model, objective, settings, checkpoints=checkpoints, **how)
    assert not psutil.wait_procs(workers(), timeout=60)[1]
    return vars(history), model.state_dict()


def assert_same(one, other):
    assert one[0] == other[0]
    torch.testing.assert_close(one[1], other[1], rtol=0, atol=0)


@pytest.mark.parametrize("kind", [TrainingStep, SecondOfThree])
@pytest.mark.parametrize("name", [*OBJECTIVES, "fresh causal", "fresh hybrid"])
def test_two_workers_give_the_same_bytes_as_none(name, kind, monkeypatch):
    monkeypatch.setattr(prefetching, "AT_ONCE", 2)
    monkeypatch.setattr(Processes, "total", lambda self, values: values)
    assert_same(learned(name, 2, kind=kind), learned(name, 0, kind=kind))


@pytest.mark.parametrize("name", ["masked+nsp", "fresh causal"])
@pytest.mark.parametrize("n_workers", [(2, 0), (0, 1), (1, 2)])
def test_a_killed_run_resumes_to_the_same_bytes_with_other_workers(tmp_path, name, n_workers, monkeypatch):
    monkeypatch.setattr(prefetching, "AT_ONCE", 1)

    def kill(step, model):
        if step == 7:
            raise Killed

    before, after = n_workers
    with pytest.raises(Killed):
        learned(name, before, folder=tmp_path / "run", on_step=kill)
    found = learned(name, after, folder=tmp_path / "run")
    assert_same(found, learned(name, 0))


def test_ctrl_c_ends_the_step_though_workers_get_it_too(tmp_path):
    def interrupt(step, model):
        if step == 3:
            for process in (*workers(), psutil.Process()):
                process.send_signal(signal.SIGINT)

    with pytest.raises(TrainingInterrupted, match="after step 3: saved in"):
        learned("causal", 2, folder=tmp_path / "run", on_step=interrupt)
    assert not psutil.wait_procs(workers(), timeout=60)[1]
    assert_same(learned("causal", 2, folder=tmp_path / "run"), learned("causal", 0))


def test_a_worker_that_is_killed_ends_the_run_in_one_sentence_with_the_last_checkpoint(tmp_path):
    def kill(step, model):
        if step == 6:
            workers()[0].kill()

    settings = HOW.replace(n_steps=10_000)
    with pytest.raises(LostWorkerError, match=r"got DataLoader worker .*; last good checkpoint: .*") as lost:
        learned("causal", 2, folder=tmp_path / "run", on_step=kill, settings=settings)
    named = Path(str(lost.value).rpartition(": ")[2])
    assert named.is_dir() and "\n" not in str(lost.value)
    assert not psutil.wait_procs(workers(), timeout=60)[1]
    with pytest.raises(LostWorkerError, match="no checkpoint was written"):
        learned("causal", 1, on_step=kill, settings=settings)


def test_an_error_of_a_worker_is_the_error_of_the_run():
    def of_pass(epoch):
        if epoch == 2:
            raise ValueError("texts must be there, got none")
        return drawn(epoch)

    model, _ = make("causal")
    step = TrainingStep(model, FreshObjective(of_pass), HOW)
    step.n_workers = 1
    with pytest.raises(ValueError, match="texts must be there, got none"):
        train(model, step.objective, HOW, step=step, progress=False)


def test_long_runs_on_a_gpu_have_workers_and_others_none(monkeypatch):
    model, objective = make("causal")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    step = TrainingStep(model, objective, HOW.replace(n_steps=prefetching.FEWEST_STEPS))
    assert step.n_workers == 0  # on a CPU
    assert choose_workers(step) == prefetching.N_WORKERS
    step.objective = FreshObjective(lambda epoch: objective)
    assert choose_workers(step) == prefetching.N_DRAWING
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    assert choose_workers(step) == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    assert choose_workers(step) == 0

    class Own(type(objective)):
        def loss(self, model, indices):
            return super().loss(model, indices)

    monkeypatch.undo()
    step.objective = Own([[7, 8]], bos_id=2, eos_id=3, pad_id=0, max_len=9)
    assert choose_workers(step) == 0
    step.objective, step.settings = objective, HOW
    assert choose_workers(step) == 0
