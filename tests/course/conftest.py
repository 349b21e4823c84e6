"""A learner who has done nothing, and cards run in node."""

import pytest

from tests.course.widgets.conftest import node  # noqa: F401  (a fixture)
from tinytx_course.progress.record import VARIABLE, record


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The record of a learner, in a file of the test."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "progress.json"))
    monkeypatch.setattr("tinytx_course.progress.predictions._asked", {})
    return record()
