"""Candidates in processes of their own: built there, timed there, errors raised here."""

import time
from concurrent.futures.process import BrokenProcessPool
from functools import partial

import pytest
import torch

from benchmarks.workers import Candidate, workers
from tinytx_course.labs.timing import take_turns


def threads():
    return {"sleep": Candidate(partial(time.sleep, 0.05), {"n": torch.get_num_threads()})}


def needs_what_is_not_there():
    import no_such_package  # noqa: F401


def fails():
    raise ValueError("sizes must fit, got 3")


def ends():
    import os

    os._exit(1)


def test_candidates_are_built_and_timed_in_their_process():
    with workers(1) as (worker,):
        assert worker.build(threads) == {"sleep": {"n": torch.get_num_threads()}}
        turns = take_turns({"sleep": worker.task("sleep")}, n_rounds=2, progress=False)
        assert turns.wall["sleep"].median >= 0.05 > turns.processor["sleep"].median
        with pytest.raises(ImportError, match="no_such_package"):
            worker.build(needs_what_is_not_there)
        with pytest.raises(ValueError, match="got 3"):
            worker.build(fails)
        assert worker.build(threads)
        with pytest.raises(BrokenProcessPool):
            worker.build(ends)
