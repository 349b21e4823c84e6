"""The wheel works alone: installed into a fresh environment without extras, it trains and generates."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.environments import copy_commit, new_environment, run
from tinytx_course import PACKAGES
from tinytx_course.building.elsewhere import first_cell

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1800)]
LIMIT = 3 * 2**20  # bytes of results in the wheel
#: Over 200 characters with spaces, accents and an apostrophe.
AWKWARD = f"d'été à l'école/{100 * 'x'}/{100 * 'ß'}"


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory):
    """The wheel of this checkout, built from a copy, as a build leaves files behind."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "source").mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "LICENSE-TEXT"):
        shutil.copyfile(root / name, folder / "source" / name)
    for name in (*PACKAGES, "results", "notebooks"):
        shutil.copytree(root / name, folder / "source" / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, folder / "source"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A function that runs Python in a fresh environment with the wheel and its core dependencies."""
    folder = tmp_path_factory.mktemp("fresh") / AWKWARD
    folder.mkdir(parents=True)
    python = new_environment(folder / "venv", str(wheel))

    pip = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    # what spares minutes: packages that were fetched before are taken from there, and none is compiled
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pip"
    pip = {"PIP_CACHE_DIR": str(cache), "PIP_NO_COMPILE": "1"} | pip
    environment = {"HOME": "/nonexistent", "PATH": "", "OMP_NUM_THREADS": "1", **pip}

    def run(*arguments):
        return subprocess.run(
            [python, *arguments], cwd=folder, capture_output=True, text=True, env=environment
        )

    return run


def test_the_wheel_holds_all_data_of_the_packages_and_what_lessons_read_from_results(root, wheel):
    members = {member.filename: member.file_size for member in zipfile.ZipFile(wheel).infolist()}
    for package in PACKAGES:
        for path in (root / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert path.relative_to(root).as_posix() in members
    place = "tinytx_course/data/results/"
    results = {name.removeprefix(place): size for name, size in members.items() if name.startswith(place)}
    assert results == {path.name: path.stat().st_size for path in (root / "results").glob("*.json")}
    assert sum(results.values()) <= LIMIT
    for name in ("LICENSE", "notebooks/gpt_one_page.py", "notebooks/gpt_by_hand.py"):  # lessons 01 and 07
        assert members[f"tinytx_course/data/{name}"] == (root / name).stat().st_size


def test_with_uv_an_environment_with_all_extras_is_made_from_nothing(tmp_path):
    folder, uv = copy_commit(tmp_path / "checkout"), (sys.executable, "-m", "uv")
    outside = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    if links := os.environ.get("PIP_FIND_LINKS"):
        outside["UV_FIND_LINKS"] = links
    there = {"cwd": folder, "env": outside}
    run(*uv, "venv", "--quiet", "--python", sys.executable, **there)
    into = ("--python", folder / ".venv")  # started from an environment, uv would install into that one
    run(*uv, "pip", "install", "--quiet", *into, "-c", "constraints.txt", "-e", ".[all]", **there)
    assert "usage: tinytx-course" in run(folder / ".venv" / "bin" / "tinytx-course", "--help", **there)


def test_without_extras_it_trains_resumes_finetunes_evaluates_and_generates(installed):
    pretrain = "pretrain --corpus world --budget smoke --out run --json"
    finetune = "finetune run --corpus world --budget smoke --out classifier --json"
    evaluate = "evaluate classifier --corpus world --json"
    generate = "generate run --prompt le --seed 1 --max-new-tokens 5 --json"
    for command in (pretrain, f"{pretrain} --resume", finetune, evaluate, generate):
        done = installed("-m", "tinytx_run.cli", *command.split())
        assert done.returncode == 0 and json.loads(done.stdout), done.stderr
        assert "interval" not in json.loads(done.stdout)  # it needs scipy, of an extra


def test_the_course_reads_the_results_it_was_installed_with(installed):
    code = "from tinytx_course.results import read_results as read; print(read('ladder').path)"
    assert "site-packages" in installed("-c", code).stdout


def test_the_first_cell_of_a_notebook_installs_the_course_where_it_is_missing(installed, wheel):
    """As in Colab. The last test here: it takes the course away first, and the cell brings more packages."""
    assert installed("-m", "pip", "uninstall", "--yes", "tinytx").returncode == 0
    for code in (first_cell(wheel.as_uri()).source, "import tinytx_course as course; course.plots.curves"):
        done = installed("-c", code)
        assert done.returncode == 0, done.stderr
    assert "No module named 'jupyterlab'" in installed("-c", "import jupyterlab").stderr  # Colab has its own
