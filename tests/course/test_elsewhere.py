"""The first cell of a notebook: nothing where the course is, a clear sentence where it cannot be had.

That it installs the course is tried in tests/test_wheel.py.
"""

import os
import subprocess
import sys

import pytest

from tinytx_course.building.elsewhere import archive_of, first_cell

ADDRESS = "https://example.invalid/owner/tinytx"


def run_cell(source, *, with_course, root):
    """Run a cell in a process of its own that finds the course, or does not."""
    environment = {**os.environ, "PYTHONPATH": str(root)} if with_course else {}
    flags = [] if with_course else ["-I", "-S"]
    command = [sys.executable, *flags, "-c", source]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_it_does_nothing_where_the_course_is_installed(address, root):
    done = run_cell(first_cell(address).source, with_course=True, root=root)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_an_address_it_says_what_is_missing(root):
    done = run_cell(first_cell("").source, with_course=False, root=root)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: this notebook needs the course")


def test_the_archive_is_that_of_the_version(tmp_path):
    project = '[project]\nname = "tinytx"\nversion = "1.2.3"\n'
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    assert archive_of(tmp_path) == ""
    urls = f'[project.urls]\nSource = "{ADDRESS}"\n'
    (tmp_path / "pyproject.toml").write_text(project + urls, encoding="utf-8")
    assert archive_of(tmp_path) == f"{ADDRESS}/archive/refs/tags/v1.2.3.tar.gz"
