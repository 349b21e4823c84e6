"""Each exercise in turn, the language, a learner who has done nothing, and cards run in node."""

import pytest

import tinytx as tx
from tests.course.widgets.conftest import node  # noqa: F401  (a fixture)
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.progress.record import VARIABLE, record


@pytest.fixture(params=EXERCISES.values(), ids=EXERCISES)
def exercise(request):
    """Each exercise: a test that asks for one is run for all."""
    return request.param


@pytest.fixture(scope="session")
def world():
    """The generated French."""
    return tx.World()


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The record of a learner, in a file of the test."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "progress.json"))
    monkeypatch.setattr("tinytx_course.progress.predictions._asked", {})
    return record()
