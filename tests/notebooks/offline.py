"""Running notebooks under nbval without a network: in a namespace where allowed, else behind a guard."""

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tinytx_course.building.notebooks import kernel_environment

HERE = Path(__file__).resolve().parent
NBVAL = [
    sys.executable, "-m", "pytest", "-c", str(HERE / "nbval.ini"), "-p", "no:cacheprovider",
    "--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=1200",
    "--nbval-sanitize-with", str(HERE / "sanitize.cfg"),
    "-p", "tests.notebooks.outputs", "-p", "nbval.plugin",
]  # fmt: skip
IN_NAMESPACE = ["unshare", "-rn", sys.executable, str(HERE / "loopback.py")]


@functools.cache
def namespaces_allowed():
    """Tell whether this machine lets us make a network namespace."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*IN_NAMESPACE, sys.executable, "-c", ""], capture_output=True).returncode == 0


class Offline:
    """Runs notebooks with one of the two mechanisms."""

    def __init__(self, mechanism, folder):
        self.mechanism = mechanism
        self.folder = folder

    def nbval(self, notebook):
        """Run a copy of one notebook; return (cells that passed, cells that failed, all that was printed).

        The copy in `folder` holds the new outputs then.
        """
        copy = self.folder / Path(notebook).name
        if copy != Path(notebook):
            shutil.copyfile(notebook, copy)
        command = [*NBVAL, "--rootdir", str(self.folder), str(copy)]
        environment = kernel_environment(HERE.parents[1])
        environment["IPYTHONDIR"] = str(self.folder / "ipython")
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # importing the others takes seconds
        if self.mechanism == "guard":
            environment["PYTHONPATH"] = os.pathsep.join([str(HERE / "guard"), environment["PYTHONPATH"]])
        else:
            command = [*IN_NAMESPACE, *command]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
        n_failed = counts.get("failed", 0) + counts.get("error", 0)
        return counts.get("passed", 0), n_failed, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.fixture
def offline(tmp_path):
    """Run notebooks with the mechanism this machine allows."""
    return Offline("namespace" if namespaces_allowed() else "guard", tmp_path)


@pytest.fixture(params=["namespace", "guard"])
def each_offline(request, tmp_path):
    """Run notebooks with each mechanism in turn."""
    if request.param == "namespace" and not namespaces_allowed():
        pytest.skip("this machine allows no network namespaces: the guard replaces them")
    return Offline(request.param, tmp_path)
