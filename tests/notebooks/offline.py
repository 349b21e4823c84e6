"""Running notebooks under nbval without a network: in a namespace where allowed, else behind a guard."""

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

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


def nbval(notebook, folder, mechanism=None):
    """Run a copy of one notebook; return (cells that passed, cells that failed, all that was printed).

    The copy in `folder` holds the new outputs then. Of the mechanisms, "namespace" and "guard", the first is
    the better one.
    """
    copy = folder / notebook.name
    if copy != notebook:
        shutil.copyfile(notebook, copy)
    command = [*NBVAL, "--rootdir", str(folder), str(copy)]
    environment = kernel_environment(HERE.parents[1])
    environment["IPYTHONDIR"] = str(folder / "ipython")
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # importing the others takes seconds
    if (mechanism or ("namespace" if namespaces_allowed() else "guard")) == "guard":
        environment["PYTHONPATH"] = os.pathsep.join([str(HERE / "guard"), environment["PYTHONPATH"]])
    else:
        command = [*IN_NAMESPACE, *command]
    streams = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
    done = subprocess.run(command, cwd=folder, env=environment, **streams)
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    n_failed = counts.get("failed", 0) + counts.get("error", 0)
    return counts.get("passed", 0), n_failed, done.stdout[-6000:] + done.stderr[-2000:]
