"""The files at the root agree with each other: dependencies, pins, environment, README, make targets."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version


@pytest.fixture(scope="module")
def pyproject(root):
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def requirements(pyproject):
    """Every direct dependency, but for the extra that only collects the others."""
    project = pyproject["project"]
    extras = project["optional-dependencies"]
    lines = list(project["dependencies"])
    for name in extras.keys() - {"all"}:
        lines += extras[name]
    return [Requirement(line) for line in lines]


@pytest.fixture(scope="module")
def pins(root):
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_every_dependency_has_a_floor_and_no_ceiling(requirements):
    for requirement in requirements:
        assert [specifier.operator for specifier in requirement.specifier] == [">="], requirement


def test_every_dependency_is_pinned_at_or_above_its_floor(requirements, pins):
    for requirement in requirements:
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} is not in constraints.txt: run `make constraints`"
        assert requirement.specifier.contains(pins[name]), requirement


def test_all_is_every_extra(pyproject):
    extras = pyproject["project"]["optional-dependencies"]
    (line,) = extras["all"]
    assert Requirement(line).extras == set(extras) - {"all"}


def test_pins_hold_on_every_machine(root, pins):
    assert pins["torch"] == "2.13.0"
    for name, version in pins.items():
        assert name == canonicalize_name(name)
        assert Version(version).local is None, "a build label such as +cpu fits one kind of machine"
        assert not re.match(r"nvidia|cuda|triton|pip$|setuptools$|tinytx", name)
    assert not re.search(r"file:|https?:|@ ", (root / "constraints.txt").read_text(encoding="utf-8"))


def test_environment_is_the_one_that_follows_from_pyproject(root, pyproject):
    from tinytx_course.building.project import environment_text

    written = (root / "environment.yml").read_text(encoding="utf-8")
    assert written == environment_text(pyproject), "run `make environment`"


def test_conda_can_read_the_environment(root, pyproject):
    yaml = pytest.importorskip("yaml")
    environment = yaml.safe_load((root / "environment.yml").read_text(encoding="utf-8"))
    python, pip, through_pip = environment["dependencies"]
    assert environment["channels"] == ["conda-forge"]
    assert (python, pip) == (f"python {pyproject['project']['requires-python']}", "pip")
    assert set(pyproject["project"]["dependencies"]) <= set(through_pip["pip"])


def test_pins_leave_out_labels_and_what_is_ours():
    from tinytx_course.building.project import constraints_text

    text = constraints_text({"Torch": "2.13.0+cpu", "tinytx": "0.1.0", "nvidia-nccl-cu13": "1.0", "a_b": "3"})
    assert text.splitlines()[1:] == ["a-b==3", "torch==2.13.0"]


def test_the_installed_project_has_every_dependency(requirements):
    """Only where the project is installed: read from a checkout it may stand beside fewer packages."""
    try:
        importlib.metadata.version("tinytx")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("tinytx is imported from a checkout and not installed")
    for requirement in requirements:
        assert requirement.specifier.contains(importlib.metadata.version(requirement.name)), requirement


def test_the_readme_has_its_tables_as_they_are(root):
    from tinytx_course.building.project import readme_text

    readme = (root / "README.md").read_text(encoding="utf-8")
    assert readme_text(readme, root / "results") == readme, (
        "run `python -m tinytx_course.building.project readme`"
    )
    linked = set(re.findall(r"\]\(notebooks/(\w+)\.ipynb\)", readme))
    assert linked == {path.stem for path in (root / "notebooks").glob("*.ipynb")}


def test_the_readme_gives_a_reason_for_every_dependency(root, requirements):
    readme = (root / "README.md").read_text(encoding="utf-8")
    table = readme.split("## What it depends on")[1].split("##")[0]
    for requirement in requirements:
        assert re.search(rf"(?<![\w-]){re.escape(requirement.name)}(?![\w-])", table), requirement.name


def test_what_the_readme_names_exists(root):
    readme = (root / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.M))
    assert set(re.findall(r"\bmake ([a-z-]+)", readme)) - {"up"} <= targets
    for link in re.findall(r"\]\(([^)#]+)\)", readme):
        assert (root / link).exists(), link
    house = readme.split("## The house")[1].split("## ")[0]
    for name in re.findall(r"^(?:  )?([a-z]+/|cli\.py)", house, re.M):
        assert (root / name).exists() or (root / "tinytx" / name).exists(), name


def test_one_host_is_named_and_it_is_torchs_own(root):
    files = ["README.md", "Makefile", "pyproject.toml", "constraints.txt", "environment.yml", ".ci/run"]
    text = "".join((root / name).read_text(encoding="utf-8") for name in files)
    assert set(re.findall(r"https?://([\w.-]+)", text)) == {"download.pytorch.org"}


def test_help_lists_the_targets(root):
    shown = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True, check=True).stdout
    for target in ("course", "test", "lab", "check", "publish", "help"):
        assert f"make {target} " in shown


def test_ci_runs_what_a_person_would(root):
    script = root / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8")


def test_workflows_can_be_read(root):
    yaml = pytest.importorskip("yaml")
    cpu = yaml.safe_load((root / ".github/workflows/cpu.yml").read_text(encoding="utf-8"))
    gpu = yaml.safe_load((root / ".github/workflows/gpu.yml").read_text(encoding="utf-8"))
    assert cpu["jobs"]["test"]["strategy"]["matrix"]["python"] == ["3.11", "3.13"]
    assert {"run": "make test-browser"} in cpu["jobs"]["browser"]["steps"]
    assert gpu["jobs"]["notebooks"]["runs-on"][0] == "self-hosted"
    assert gpu["jobs"]["notebooks"]["env"]["TINYTX_BUDGET"] == "gpu"


def test_importing_pulls_in_no_plots_and_no_widgets(root):
    code = "import sys, tinytx; print({'matplotlib', 'seaborn', 'ipywidgets', 'IPython'} & set(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_only_plots_imports_matplotlib(root):
    for path in (root / "tinytx").rglob("*.py"):
        if "plots" not in path.parts:
            imported = re.findall(r"^\s*(?:import|from) (matplotlib|seaborn)", path.read_text("utf-8"), re.M)
            assert not imported, path


def test_git_ignores_no_source(root):
    """A pattern such as `site/` without a leading slash would also hide a package of that name."""
    if not (root / ".git").exists():
        pytest.skip("not a git checkout")
    paths = [str(path.relative_to(root)) for path in (root / "tinytx").rglob("*") if path.suffix != ".pyc"]
    sources = [path for path in paths if "__pycache__" not in path]
    found = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        cwd=root,
        input="\n".join(sources),
        capture_output=True,
        text=True,
    )
    assert found.stdout == ""
