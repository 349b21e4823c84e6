"""A learner's record in a folder of its own."""

import pytest

from tests.course.widgets.conftest import node  # noqa: F401  (a fixture)
from tinytx_course.progress import predictions
from tinytx_course.progress.record import VARIABLE, record


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The record of a learner who has done nothing."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "work" / "progress.json"))
    monkeypatch.setattr(predictions, "_asked", {})
    return record()
