"""What is promised about speed, with room for a busy machine."""

from __future__ import annotations

import pytest

from tinytx.text.world.speed import PROMISED, measure


@pytest.mark.slow
def test_answers_come_as_fast_as_promised():
    measured = measure()
    assert set(measured) == set(PROMISED)
    late = {name: seconds for name, seconds in measured.items() if seconds > 4 * PROMISED[name]}
    assert not late
