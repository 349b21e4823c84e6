"""The analysis of a survey on one page: the gain, a figure of all items, the misconceptions chosen most."""

from __future__ import annotations

from pathlib import Path

from tinytx_course.inventory.forms import NOT_TRIED, paper
from tinytx_course.inventory.survey import TIMES, Survey, in_a_sentence
from tinytx_course.site.templates import render
from tinytx_run.files import write_file

N_SHOWN = 20  # misconceptions, those chosen most


def write_report(survey: Survey, path: Path) -> Path:
    """Write the page, in one file that loads nothing.

    Raises
    ------
    ValueError
        If it does not end in ``.html``, or its folder does not exist.
    """
    if path.suffix != ".html":  # such as the file of answers itself
        raise ValueError(f"the report must be a file that ends in .html, got {path}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ValueError(f"the report must be a file in a folder that exists, got {path}")
    write_file(path.absolute(), paper("Survey", report_html(survey)).encode())
    return path


def report_html(survey: Survey) -> str:
    """The body of the page."""
    said = "; ".join(
        f"{row['item']}: " + ", ".join(f"{time} {row[time]:.0%}" for time in TIMES if row[time] is not None)
        for row in survey.items
    )
    return render(
        "inventory/report.html",
        survey=survey,
        n={time: sum(one.time == time for one in survey.sittings) for time in TIMES},
        said=said,
        sentence=in_a_sentence(survey.gain),
        shown=survey.misconceptions[:N_SHOWN],
        not_tried=NOT_TRIED,
    ).rstrip()
