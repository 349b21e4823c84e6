"""Running notebooks under nbval without a network: in a namespace where allowed, else behind a guard."""

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MECHANISMS = ("namespace", "guard")


@functools.cache
def namespaces_allowed():
    """Tell whether this machine lets us make a network namespace."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-rn", sys.executable, str(HERE / "loopback.py"), sys.executable, "-c", ""]
    return subprocess.run(command, capture_output=True).returncode == 0


class Offline:
    """Runs notebooks with one of the two mechanisms."""

    def __init__(self, mechanism, folder):
        self.mechanism = mechanism
        self.folder = folder

    def environment(self):
        """Return what kernels of the course see, and the guard where it is needed."""
        from tinytx_course.building.notebooks import kernel_environment

        environment = kernel_environment(ROOT)
        environment["IPYTHONDIR"] = str(self.folder / "ipython")
        if self.mechanism == "guard":
            paths = [str(HERE / "guard"), environment["PYTHONPATH"]]
            environment["PYTHONPATH"] = os.pathsep.join(paths)
        return environment

    def nbval(self, notebook, *options):
        """Run a copy of one notebook, so that whatever it writes stays out of the checkout."""
        copy = self.folder / Path(notebook).name
        if copy != Path(notebook):
            shutil.copyfile(notebook, copy)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            str(HERE / "nbval.ini"),
            "--rootdir",
            str(self.folder),
        ]
        command += [
            "-p",
            "no:cacheprovider",
            "--nbval-lax",
            "--nbval-current-env",
            "--nbval-cell-timeout=1200",
        ]
        command += ["--nbval-sanitize-with", str(HERE / "sanitize.cfg"), *options, str(copy)]
        if self.mechanism == "namespace":
            command = ["unshare", "-rn", sys.executable, str(HERE / "loopback.py"), *command]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )


@pytest.fixture
def offline(tmp_path):
    """Run notebooks with the mechanism this machine allows."""
    return Offline(MECHANISMS[0] if namespaces_allowed() else MECHANISMS[1], tmp_path)


@pytest.fixture(params=MECHANISMS)
def each_offline(request, tmp_path):
    """Run notebooks with each mechanism in turn."""
    if request.param == "namespace" and not namespaces_allowed():
        pytest.skip("this machine allows no network namespaces: the guard stands in for them")
    return Offline(request.param, tmp_path)
