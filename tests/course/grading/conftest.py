"""Copies of a notebook, written from the code of their cells."""

import json

import pytest


@pytest.fixture(scope="session")
def write_copy():
    """Write code cells as a notebook file."""

    def write(path, *cells, title="# A sheet of our own"):
        content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}
        content["cells"] = [{"cell_type": "markdown", "metadata": {}, "source": title}]
        content["cells"] += [
            {"cell_type": "code", "metadata": {}, "source": cell, "outputs": [], "execution_count": None}
            for cell in cells
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return write
