"""The analysis of a survey on one page: the gain, a figure of all items, the misconceptions chosen most."""

from __future__ import annotations

import html
from collections import Counter
from pathlib import Path

from tinytx_course.inventory.forms import NOT_TRIED, paper, plain_table
from tinytx_course.inventory.survey import TIMES, Survey, in_a_sentence
from tinytx_run.files import write_file

N_SHOWN = 20  # misconceptions, those chosen most
_ROW, _LEFT, _WIDE = 20, 190, 420  # of the figure, in px


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
    n = Counter(sitting.time for sitting in survey.sittings)
    parts = [
        "<h1>Before and after</h1>",
        f'<div class="warning"><p>{html.escape(NOT_TRIED)}</p></div>',
        f"<p><strong>{html.escape(in_a_sentence(survey.gain))}.</strong></p>",
        f"<p>{html.escape(_difference(survey))}</p>",
        f"<h2>Each question</h2><p>Share of right answers, of {n['pre']} sittings before (○) and {n['post']} "
        "after (●).</p>",
        f'<div class="wide" tabindex="0">{figure(survey)}</div>',
        "<h2>Misconceptions</h2><p>The wrong answers chosen most, of the times they were offered. They are "
        "the outputs of programs with this mistake; learners may have had other reasons. "
        "<code>--json</code> has all.</p>",
        f'<div class="long">{_misconceptions(survey)}</div>',
    ]
    if survey.problems:
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in survey.problems)
        parts.append(f"<h2>What was not used as it was given</h2><ul>{lines}</ul>")
    return "".join(parts)


def _difference(survey: Survey) -> str:
    base = (
        "The gain is that of the group: what was gained, as a share of what was missing. Its interval comes "
        "from drawing the learners anew. Before and after are compared without a control group, so it does "
        "not show what caused the change."
    )
    found = survey.gain and survey.gain.difference
    if not found:
        return base
    ends = f"{100 * found.mean:+.1f} points, 95 % interval {100 * found.low:+.1f} to {100 * found.high:+.1f}"
    return f"After minus before: {ends} (Student's t, {found.n} learners). {base}"


def figure(survey: Survey) -> str:
    """Right answers before and after, a line a question."""
    parts = []
    for number, row in enumerate(survey.items):
        y = 14 + _ROW * number
        label = html.escape(f"{row['item']} {row['concept']}")
        parts.append(f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end">{label}</text>')
        parts.append(f'<path class="axis" opacity="0.35" d="M{_LEFT} {y}H{_LEFT + _WIDE}"/>')
        places = {time: _LEFT + _WIDE * row[time] for time in TIMES if row[time] is not None}
        if len(places) == 2:
            parts.append(f'<path class="line" d="M{places["pre"]:.1f} {y}H{places["post"]:.1f}"/>')
        for time, name in zip(TIMES, ("before", "after"), strict=True):
            if time in places:
                parts.append(f'<circle class="{name}" cx="{places[time]:.1f}" cy="{y}" r="5"/>')
    bottom = 14 + _ROW * len(survey.items)
    parts += [
        f'<text x="{_LEFT + _WIDE * share:.0f}" y="{bottom + 12}" text-anchor="middle">{share:.0%}</text>'
        for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    width, height = _LEFT + _WIDE + 24, bottom + 22
    said = "; ".join(
        f"{row['item']}: " + ", ".join(f"{time} {row[time]:.0%}" for time in TIMES if row[time] is not None)
        for row in survey.items
    )
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Right answers by question. {said}">{"".join(parts)}</svg>'
    )


def _misconceptions(survey: Survey) -> str:
    if not survey.misconceptions:
        return "<p>No wrong answer.</p>"
    rows = [
        [
            ", ".join(map(str, row["items"])),
            f"{row['function']}: {row['misconception']}",
            *(f"{row[time]} of {row['offered'][time]}" for time in TIMES),
            row["words"],
        ]
        for row in survey.misconceptions[:N_SHOWN]
    ]
    return plain_table(["question", "mistake", "before", "after", "what it is"], rows)
