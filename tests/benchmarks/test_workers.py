"""Candidates in processes of their own: built there, timed there, errors raised here."""

import time
from concurrent.futures.process import BrokenProcessPool
from functools import partial

import pytest
import torch

from benchmarks.workers import Candidate, build, workers
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
    with workers(1) as processes:
        for _ in range(2):
            built = build(processes, {"sleeper": threads})
            assert built.details == {"sleep": {"n": torch.get_num_threads()}} and built.left_out == {}
            turns = take_turns(built.tasks, n_rounds=2)
            assert turns.wall["sleep"].median >= 0.05 > turns.processor["sleep"].median
            missing = build(processes, {"peer": needs_what_is_not_there})
            assert "no_such_package" in missing.left_out["peer"] and missing.tasks == {}
            with pytest.raises(ValueError, match="got 3"):
                build(processes, {"failing": fails})
        with pytest.raises(BrokenProcessPool):
            build(processes, {"ending": ends})
