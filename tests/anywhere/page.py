"""TRIED.md, "What has been tried where": written from the stored tables, so that it cannot say more."""

from __future__ import annotations

from pathlib import Path

from tinytx_course.results import Results

HERE = Path(__file__).parent


def write_page(root: Path) -> Path:
    """Write the page from what is stored; return where."""
    head, not_tried = ((HERE / name).read_text(encoding="utf-8") for name in ("head.md", "not_tried.md"))
    tables = _table("anywhere", root, "the wheel", _place) + _table("rot", root, "versions", _versions)
    target = root / "TRIED.md"
    target.write_text(head + tables + not_tried, encoding="utf-8")
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
        f"**failed:** {failure}" if failure else f"{record['tests']}; notebooks {record['notebooks']} ran"
    )
    return f"| {record['set']} ({some}) | {record['python']} | {outcome} |"
