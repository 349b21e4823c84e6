"""A learner who has done nothing."""

import pytest

from tinytx_course.progress.record import VARIABLE, record


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The record of a learner, in a file of the test."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "progress.json"))
    monkeypatch.setattr("tinytx_course.progress.predictions._asked", {})
    return record()
