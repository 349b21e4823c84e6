"""What the published notebooks teach, read once."""

import pytest

from tinytx_course.kit.outline import read_outlines


@pytest.fixture(scope="session")
def outlines(root):
    return read_outlines(root)
