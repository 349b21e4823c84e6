"""The files at the root agree with each other, and the library with its dependencies."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from itertools import chain

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.test_house import FILES, imports_of
from tinytx_course import PACKAGES
from tinytx_course.building.project import (
    constraints_text,
    environment_text,
    hashes_text,
    licence_of,
    needed_packages,
    readme_files,
)


@pytest.fixture(scope="module")
def pyproject(root):
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def requirements(pyproject):
    """Every direct dependency; the extra `all` collects the other extras."""
    extras = dict(pyproject["project"]["optional-dependencies"])
    (line,) = extras.pop("all")
    assert Requirement(line).extras == set(extras)
    lines = chain(pyproject["project"]["dependencies"], *extras.values())
    return [one for one in map(Requirement, lines) if one.name != "tinytx"]


@pytest.fixture(scope="module")
def pins(root):
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_every_dependency_has_a_floor_no_ceiling_and_a_pin_above_the_floor(requirements, pins):
    for requirement in requirements:
        assert [specifier.operator for specifier in requirement.specifier] == [">="], requirement
        pin = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin), "run `make constraints`"


def test_pins_hold_on_every_machine(pins):
    for name, version in pins.items():
        assert name == canonicalize_name(name)
        assert Version(version).local is None, "a build label such as +cpu fits one kind of machine"
        assert not re.match(r"nvidia|cuda|triton|pip$|setuptools$|tinytx", name)
    installed = {"Torch": "2.13.0+cpu", "tinytx": "0.1.0", "nvidia-nccl-cu13": "1.0", "a_b": "3"}
    assert constraints_text(installed).splitlines()[1:] == ["a-b==3", "torch==2.13.0"]


@pytest.fixture(scope="module")
def pages(root):
    """README.md and docs/, by path."""
    paths = [root / "README.md", *(root / "docs").glob("*.md")]
    return {path: path.read_text(encoding="utf-8") for path in paths}


def test_environment_readme_and_docs_are_those_that_follow_from_the_other_files(root, pyproject):
    written = (root / "environment.yml").read_text(encoding="utf-8")
    assert written == environment_text(pyproject), "run `make environment`"
    for name, text in readme_files(root).items():
        again = "run `python -m tinytx_course.building.project readme`"
        assert (root / name).read_text(encoding="utf-8") == text, f"{name}: {again}"


def test_the_readme_is_short_and_opens_with_a_picture(root, pages):
    readme = pages[root / "README.md"]
    assert len(readme.splitlines()) <= 120
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', readme.partition("\n## ")[0])
    assert pictures and all((root / picture).is_file() for picture in pictures)


def test_every_package_is_in_the_readme_and_every_folder_and_file_that_is_named_exists(root, pages):
    tree = re.search(r"^## Where things are\n+```\n(.*?)^```", pages[root / "README.md"], re.M | re.S)[1]
    folders = set(re.findall(r"(?:^|  )([a-z_]+)/", tree, re.M))
    assert {*PACKAGES, *(path.parent.name for path in root.glob("*/__init__.py"))} <= folders
    assert all((root / folder).is_dir() for folder in folders)
    flat = re.search(r"`tinytx/` is flat.*?(?=`import)", pages[root / "docs" / "house.md"], re.S)[0]
    files = [f"{name}.py" for name in re.findall(r"`(\w+)`", flat)] + re.findall(r"\w+\.py", tree)
    assert files and [name for name in files if not (root / "tinytx" / name).is_file()] == []


def test_conda_can_read_the_environment(root, pyproject):
    yaml = pytest.importorskip("yaml")
    environment = yaml.safe_load((root / "environment.yml").read_text(encoding="utf-8"))
    python, pip, through_pip = environment["dependencies"]
    assert (python, pip) == (f"python {pyproject['project']['requires-python']}", "pip")
    assert set(pyproject["project"]["dependencies"]) <= set(through_pip["pip"])


def test_there_is_a_reason_for_every_dependency(root, pages, requirements):
    rows = [row for row in pages[root / "docs" / "house.md"].splitlines() if row.startswith("|")]
    named = {word for row in rows for word in re.findall(r"[\w-]+", row.split("|")[1])}
    assert {requirement.name for requirement in requirements} <= named


def test_links_and_targets_of_readme_and_docs_exist(root, pages):
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.M))
    for path, text in pages.items():
        assert set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.M)) <= targets, path
        links = re.findall(r"\]\(([^)#:]+)[^):]*\)", text)
        assert [link for link in links if not (path.parent / link).exists()] == [], path


def test_no_host_is_named_but_that_of_torchs_own_builds(root):
    files = ["Makefile", "pyproject.toml", "constraints.txt", "environment.yml", ".ci/run"]
    files += [".binder/requirements.txt", ".devcontainer/Dockerfile"]
    text = "".join((root / name).read_text(encoding="utf-8") for name in files)
    assert set(re.findall(r"https?://([\w.-]+)", text)) == {"download.pytorch.org"}


def test_binder_and_the_dev_container_ask_for_what_exists_and_the_warm_up_runs(root, pyproject):
    wanted = (root / ".binder" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert (root / wanted[1].removeprefix("-c ")).is_file()
    assert Requirement(wanted[2].replace("-e .", "tinytx")).extras <= set(
        pyproject["project"]["optional-dependencies"]
    )
    version = (root / ".binder" / "runtime.txt").read_text(encoding="utf-8").strip().removeprefix("python-")
    assert version in SpecifierSet(pyproject["project"]["requires-python"])
    warm_up = (root / ".binder" / "postBuild").read_text(encoding="utf-8").splitlines()[-1]
    subprocess.run([sys.executable, *shlex.split(warm_up)[1:]], cwd=root, check=True)
    container = json.loads((root / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    stamp = re.search("^STAMP *:= (.*)$", (root / "Makefile").read_text(encoding="utf-8"), re.M)
    assert container["postCreateCommand"] == f"make {stamp[1]}"


def test_where_torchs_own_index_does_not_answer_one_line_says_so_and_nothing_waits(root):
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    (program,) = re.findall(r"^define CPU_INDEX\n(.*?)^endef", makefile, re.M | re.S)
    unreachable = {**os.environ, "https_proxy": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-c", program], env=unreachable, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(r"PyTorch's index of CPU builds cannot be reached .*\n", done.stderr)


def test_make_sets_up_again_where_an_environment_without_pip_was_left(root, tmp_path):
    """As on a Debian without python3-venv, whose first try leaves a Python alone."""
    shutil.copyfile(root / "Makefile", tmp_path / "Makefile")
    for name in ("pyproject.toml", "setup.py", "constraints.txt"):
        (tmp_path / name).touch()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    scripts = {  # the first lacks pip, the second makes one that has it
        ".venv/bin/python": "exit 1",
        "python": 'echo "$@" >> asked; test "$2" != venv || echo "#!/bin/sh" > .venv/bin/python',
    }
    for name, script in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    command = ["make", ".venv/installed", "PYTHON=./python"]
    for _ in range(2):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        (tmp_path / ".venv" / "installed").unlink()
    assert (tmp_path / "asked").read_text().count("-m venv --clear .venv\n") == 1


def test_make_refuses_a_python_that_is_not_allowed_in_one_sentence(root, tmp_path):
    for name in ("Makefile", "pyproject.toml", "setup.py", "constraints.txt"):
        shutil.copyfile(root / name, tmp_path / name)
    older = "import sys; sys.version_info = (3, 10, 4); exec(sys.argv[2])"
    (tmp_path / "python").write_text(f'#!/bin/sh\n{sys.executable} -c "{older}" "$@"\n')
    (tmp_path / "python").chmod(0o755)
    done = subprocess.run(["make", "course", "PYTHON=./python"], cwd=tmp_path, capture_output=True, text=True)
    said, of_make = done.stderr.splitlines()
    assert said.startswith("tinytx needs Python 3.11 to 3.14, got 3.10") and of_make.startswith("make")
    assert done.returncode == 2 and not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("package", ["tinytx", "tinyworld", "tinytx_run"])
def test_modules_of_the_library_import_nothing_but_its_core_dependencies(pyproject, package):
    core = {Requirement(line).name for line in pyproject["project"]["dependencies"]}
    core |= {"requests", "urllib3"}  # pooch brings them
    alone = package == "tinyworld"  # not even later, inside functions, more than numpy
    known = sys.stdlib_module_names | set(PACKAGES) | ({"numpy"} if alone else core)
    for module in (module for module in FILES if module.partition(".")[0] == package):
        found = {name.partition(".")[0] for name in imports_of(module, inside=alone)}
        assert found <= known, module


def test_git_ignores_no_source(root):
    """A pattern such as `site/` without a leading slash would also hide a package of that name."""
    if not (root / ".git").exists():
        pytest.skip("not a git checkout")
    packages = [path for name in PACKAGES for path in (root / name).rglob("*")]
    sources = [str(path.relative_to(root)) for path in packages if "__pycache__" not in path.parts]
    command = ["git", "check-ignore", "--no-index", "--stdin"]
    found = subprocess.run(command, cwd=root, input="\n".join(sources), capture_output=True, text=True)
    assert found.stdout == ""


def test_tinytx_course_without_its_extra_ends_with_2_and_one_line(root):
    blocked = "import sys; sys.modules['nbformat'] = sys.modules['matplotlib'] = None"
    code = f"{blocked}; from tinytx_course.cli import main; sys.exit(main(['run', '00']))"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and "tinytx[course]" in done.stderr


def test_hashes_name_the_exact_file_of_each_package_but_our_own():
    file = {"archive_info": {"hashes": {"sha256": "ab12"}}}
    report = {
        "install": [
            {"metadata": {"name": "Zoo_b", "version": "2.0"}, "download_info": file},
            {"metadata": {"name": "a", "version": "1.0+cpu"}, "download_info": file},
            {"metadata": {"name": "tinytx", "version": "2"}, "download_info": {"dir_info": {}}},
        ]
    }
    lines = hashes_text(report).splitlines()
    assert lines[1:] == ["a==1.0+cpu --hash=sha256:ab12", "zoo-b==2.0 --hash=sha256:ab12"]


def test_every_package_that_we_need_states_a_licence():
    packages = needed_packages(["all"])
    assert {
        "torch",
        "numpy",
        "filelock",
        "jupyterlab",
        "mpmath",
    } <= packages.keys()  # mpmath comes with torch
    assert [name for name, metadata in packages.items() if licence_of(metadata) == "not stated"] == []
    assert "Apache" in licence_of(packages["safetensors"])
