"""A plugin of pytest: nbval runs a notebook, and what its cells show is written into it."""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # see tests/conftest.py; this plugin is imported before nbval


def pytest_runtest_teardown(item, nextitem):
    """Keep the outputs of a cell; write the notebook after its last."""
    item.cell.outputs = item.test_outputs or []
    if nextitem is None:
        import nbformat

        nbformat.write(item.parent.nb, item.path)
