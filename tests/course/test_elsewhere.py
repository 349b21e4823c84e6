"""The first cell of a notebook: nothing where the course is, a clear sentence where it cannot be had.

That it installs the course is tried in tests/test_wheel.py.
"""

import os
import shutil
import subprocess
import sys

import pytest

from tinytx_course.building import project
from tinytx_course.building.elsewhere import archive_of, badges, cells_elsewhere, first_cell, set_address

ADDRESS = "https://example.invalid/owner/tinytx"


def run_cell(source, *, with_course, root):
    """Run a cell in a process of its own that finds the course, or does not."""
    environment = {**os.environ, "PYTHONPATH": str(root)} if with_course else {}
    flags = [] if with_course else ["-I", "-S"]
    command = [sys.executable, *flags, "-c", source]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_it_does_nothing_where_the_course_is_installed(root):
    done = run_cell(first_cell(ADDRESS).source, with_course=True, root=root)
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


def test_an_address_is_written_everywhere_and_another_one_takes_its_place(root, tmp_path):
    shutil.copyfile(root / "pyproject.toml", tmp_path / "pyproject.toml")
    for owner in ("first", "second"):
        files = set_address(tmp_path, f"https://github.com/{owner}/tinytx")
        texts = [(tmp_path / name).read_text(encoding="utf-8") for name in files]
        assert len(files) == 2 and all(text.count(f"{owner}/tinytx") for text in texts)
        assert not any(text.count("first/tinytx") for text in texts) or owner == "first"
    links, install = cells_elsewhere(tmp_path, "02_attention_and_masks")
    assert links.source.count("](https://") == 4
    assert install.source == first_cell(archive_of(tmp_path)).source
    assert badges("") == "" and badges("https://github.com/second/tinytx").count("second/tinytx") == 4


@pytest.mark.parametrize(
    "address", ["", "tinytx", "http://github.com/a/b", "https://github.com/a/b/tree/main"]
)
def test_what_is_no_address_of_a_repository_is_refused_and_nothing_written(
    address, root, tmp_path, monkeypatch, capsys
):
    shutil.copyfile(root / "pyproject.toml", tmp_path / "pyproject.toml")
    monkeypatch.setattr(project, "project_root", lambda: tmp_path)
    monkeypatch.setattr(sys, "argv", ["project", "address", address])
    with pytest.raises(SystemExit) as ended:
        project.main()
    said = f"the address must be https://github.com/OWNER/NAME, got {address!r}\n"
    assert ended.value.code == 2 and capsys.readouterr().err == said
    assert [path.name for path in tmp_path.iterdir()] == ["pyproject.toml"]
