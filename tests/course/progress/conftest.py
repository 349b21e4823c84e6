"""Cards run in node."""

from tests.course.widgets.conftest import node  # noqa: F401  (a fixture)
