"""What README.md and docs/speed.md show of the record that ``python -m tests.gpu`` makes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from tinytx_course.labs.lesson_13 import speed_line
from tinytx_course.results import Results, with_table

NONE = "no run is recorded yet; `make gpu` makes the record"
_LINE = re.compile(r"^On a GPU: .*$", re.M)


def _said(part: str, found: dict) -> str:
    """Return what became of a part in a few words."""
    if not found:
        return "nothing"
    if part == "tests":
        return ", ".join(f"{len(found[kind])} {kind}" for kind in ("passed", "failed", "skipped"))
    if part in ("notebooks", "lessons"):
        n_cells = [sum(one[f"cells_{kind}"] for one in found.values()) for kind in ("passed", "failed")]
        on_gpu = sum(one["on_gpu"] for one in found.values())
        return f"{len(found)}, {on_gpu} of them on the GPU: {n_cells[0]} cells passed, {n_cells[1]} failed"
    if part == "world":
        return ", ".join(f"{name} {one['seconds']:.0f} s{_busy(one)}" for name, one in found.items())
    return f"{len(found)} measured"


def _busy(one: dict) -> str:
    """Return how busy the GPU was from the first to the last second in which it computed."""
    samples = one["busy_percent"]
    used = [number for number, percent in enumerate(samples) if percent > 1]
    return f" ({fmean(samples[used[0] : used[-1] + 1]):.0f} % busy while it computed)" if used else ""


def gpu_table(folder: Path) -> str:
    """Return a table of the parts, each with its date, card and commit, or words that there is none."""
    parts = Results("gpu", folder).data
    if not parts:
        return f"On a GPU {NONE}."
    rows = [
        f"| {part} | {_said(part, one['found'])} | {len(one['faults'])} "
        f"| {one['seconds']} | {one['date']} | {one['commit']} | {one['card']}, PyTorch {one['torch']} |"
        for part, one in parts.items()
    ]
    head = [
        "| part | outcome | faults | seconds | date | commit | machine |",
        "|---|---|---|---|---|---|---|",
    ]
    speeds = [
        line for part in ("steps", "writing") if part in parts for line in _speeds(parts[part]["found"])
    ]
    return "\n".join([*head, *rows, "", *speeds]).rstrip()


def _speeds(found: dict) -> Iterator[str]:
    """Comparisons of a part, a line each, with the peak memory of each candidate where it was measured."""
    for key, record in found.items():
        if record.get("fastest"):
            peaks = [f"{name} {gib:.1f} GiB" for name, gib in record.get("peak_gib", {}).items()]
            said = speed_line(key.partition("/")[2], record)
            yield f"- {said}{'; at most ' if peaks else ''}{', '.join(peaks)}"


def gpu_line(folder: Path) -> str:
    """Return when and where tests and notebooks were run, in one line."""
    parts = Results("gpu", folder).data
    if not parts:
        return f"On a GPU: {NONE} ([speed](docs/speed.md))."
    said = [
        f"{part} on {one['date']} ({one['card']}, commit {one['commit']})"
        for part, one in parts.items()
        if part in ("tests", "notebooks")
    ]
    return f"On a GPU: {', '.join(said)}. What passed and what failed: [speed](docs/speed.md)."


def write_pages(root: Path) -> None:
    """Write the record into README.md and docs/speed.md."""
    readme, speed, folder = root / "README.md", root / "docs" / "speed.md", root / "results"
    line = gpu_line(folder)
    readme.write_text(_LINE.sub(lambda _: line, readme.read_text(encoding="utf-8")), encoding="utf-8")
    speed.write_text(
        with_table(speed.read_text(encoding="utf-8"), "gpu", gpu_table(folder)), encoding="utf-8"
    )
