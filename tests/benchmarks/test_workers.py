"""Contestants in processes of their own: built there, timed there, what goes wrong told here."""

import time
from functools import partial

import pytest
import torch

from benchmarks.workers import Contestant, workers
from tinytx_course.labs.timing import take_turns


def sleepers(seconds):
    return {f"sleep {each}": Contestant(partial(time.sleep, each), {"asked": each}) for each in seconds}


def threads():
    return {"threads": Contestant(int, {"n": torch.get_num_threads()})}


def needs_what_is_not_there():
    import no_such_package  # noqa: F401


def fails():
    raise ValueError("sizes must fit, got 3")


@pytest.fixture(scope="module")
def worker():
    with workers(1) as (one,):
        yield one


def test_a_task_runs_over_there_and_says_what_it_took(worker):
    assert worker.build(partial(sleepers, (0.05, 0.2))) == {
        "sleep 0.05": {"asked": 0.05},
        "sleep 0.2": {"asked": 0.2},
    }
    turns = take_turns({name: worker.task(name) for name in ("sleep 0.05", "sleep 0.2")}, n_rounds=2)
    assert turns.wall["sleep 0.2"].median >= 0.2
    assert turns.processor["sleep 0.2"].median < 0.1


def test_it_computes_with_as_many_threads_as_here(worker):
    assert worker.build(threads)["threads"]["n"] == torch.get_num_threads()


def test_what_goes_wrong_is_told_and_the_process_goes_on(worker):
    with pytest.raises(ImportError, match="no_such_package"):
        worker.build(needs_what_is_not_there)
    with pytest.raises(RuntimeError, match="ValueError: sizes must fit, got 3"):
        worker.build(fails)
    assert worker.build(threads)


def test_a_process_that_ended_is_missed():
    with workers(1) as (one,):
        one._process.terminate()
        one._process.join()
        with pytest.raises(RuntimeError, match="must answer, but it ended"):
            one.build(threads)
