"""TRIED.md, "What has been tried where": written from the stored tables, so that it cannot say more."""

from __future__ import annotations

from pathlib import Path

from tinytx_course.results import Results

HEAD = """\
# What has been tried where

Written by `make anywhere` from `results/anywhere.json` and `results/rot.json`. What is not in a table has not been tried.

"""
#: What nobody could try on the machines at hand, in plain words.
NOT_TRIED = """\
## Not tried

- **Colab, Kaggle and Binder themselves.** Colab was simulated: its frame for widgets and its own versions were not. In Colab the course
  allows widgets of others (`google.colab.output.enable_custom_widget_manager`), as explorers need it.
- **Windows and macOS.** `.github/workflows/systems.yml` runs the tests there each week once the repository has an address; until a
  run is linked here, nothing is known. From reading: runs are killed without a signal on Windows, so a resumed run repeats up to one interval;
  copies are graded behind the guard within Python only, which stops accidents and no attacks; the GPU of a Mac (MPS) is used only
  where `--device mps` asks for it.
- **conda.** `environment.yml` is written from `pyproject.toml` and was not installed.
- **Python 3.12 and 3.13 with another torch**, and Python 3.14, which `pyproject.toml` does not allow yet. The same workflow tries 3.12 and 3.13.
- **A GPU.** No machine with one was at hand; tests marked `gpu` are skipped without it.
- **Published weights and downloads from their own addresses.** The tests convert models of the same layouts with random weights, and fetch from
  a server of their own.
"""


def write_page(root: Path) -> Path:
    """Write the page from what is stored; return where."""
    text = HEAD + _table("anywhere", root, "the wheel", _place) + _table("rot", root, "versions", _versions)
    target = root / "TRIED.md"
    target.write_text(text + NOT_TRIED, encoding="utf-8")
    return target


def _table(name: str, root: Path, title: str, row) -> str:
    stored = Results(name, root / "results")
    lines = [row(one) for one in stored.data.values()]
    if not lines:
        return ""
    head = f"## {title.capitalize()}\n\n| where | Python | outcome |\n|---|---|---|\n"
    source = stored.source_line()
    return head + "\n".join(lines) + f"\n\n{source[0].upper()}{source[1:]}.\n\n"


def _place(record: dict) -> str:
    outcome = record["done"].splitlines()[-1] if not record["ok"] else record["done"]
    return f"| {record['what']} | {record['python']} | {'' if record['ok'] else '**failed:** '}{outcome} |"


def _versions(record: dict) -> str:
    some = ", ".join(
        f"{name} {record['versions'][name]}"
        for name in ("numpy", "pandas", "jupyterlab", "transformers")
        if name in record.get("versions", {})
    )
    failure = record["first_failure"]
    outcome = (
        f"**failed:** {failure}" if failure else f"{record['tests']}; {record['notebooks']} notebooks ran"
    )
    return f"| {record['set']} ({some}) | {record['python']} | {outcome} |"
