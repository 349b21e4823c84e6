"""A plugin of pytest: what became of each test is written to a file as it ends, a line each.

A run that is cut short keeps what it had, and its tests that had begun and not ended have names.
"""

import json
import os
from pathlib import Path

FILE = "TINYTX_OUTCOMES"


def _write(name, outcome, why=""):
    if "PYTEST_XDIST_WORKER" not in os.environ:  # the process that collects the reports of all workers
        with Path(os.environ[FILE]).open("a", encoding="utf-8") as file:
            file.write(json.dumps([name, outcome, why]) + "\n")


def pytest_runtest_logstart(nodeid, location):
    _write(nodeid, "begun")


def pytest_runtest_logreport(report):
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        _write(report.nodeid, "failed", crash.message if crash else str(report.longrepr))
    elif report.skipped:
        _write(report.nodeid, "skipped", report.longrepr[2])
    elif report.when == "call":
        _write(report.nodeid, "passed")


def read(text):
    """The tests that passed, and why the others failed or were skipped, in a line each."""
    found, begun = {"passed": [], "failed": {}, "skipped": {}}, []
    for name, outcome, why in map(json.loads, text.splitlines()):
        if outcome == "begun":
            begun.append(name)
        elif outcome == "passed":
            found["passed"].append(name)
        else:
            found[outcome][name] = why.partition("\n")[0].removeprefix("Skipped: ")
    ended = {*found["passed"], *found["failed"], *found["skipped"]}
    found["failed"] |= {name: "did not end" for name in begun if name not in ended}
    found["passed"] = [name for name in found["passed"] if name not in found["failed"]]  # in its teardown
    return found
