"""Schedules: which sections and exercises when, with clock times; the choice is data, ``schedules.toml``."""

from __future__ import annotations

import csv
import html
import io
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from tinytx_course.kit.outline import COLUMNS, Outline, Part, parts_named
from tinytx_course.kit.pages import line_to_html, link, linked, write_page
from tinytx_course.lessons import LESSONS, format_duration
from tinytx_course.site.pages import table
from tinytx_run.files import write_file

DAY = 24 * 60
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_VOTE = re.compile(r"Vote: .*lesson (\d\d)")
_SET_UP = re.compile(r"lesson (\d\d) .*Set-up")
_FREE = re.compile(r"(\d+) min (.+)")
ESTIMATES = (
    "Minutes are estimates: 130 words or 360 characters of code a minute, exercises as they state. "
    "Nobody has measured them in a class. Without the course installed, add the "
    "difference to each time; with it, write your own into minutes.csv and build the kit again:"
)


@dataclass(frozen=True, kw_only=True)
class Step:
    """What takes some minutes of a session: a part of a lesson, or, where `part` is None, something else."""

    minutes: int
    words: str = ""
    part: Part | None = None


@dataclass(frozen=True, kw_only=True)
class Session:
    """One meeting: what is done in class, and at home after it.

    Attributes
    ----------
    title : str
    minutes : int
        From its start to its end, breaks included.
    steps, home : sequence of Step
    """

    title: str
    minutes: int
    steps: Sequence[Step]
    home: Sequence[Step]

    @property
    def spare(self) -> int:
        """Minutes that the steps leave; negative where they take too long."""
        return self.minutes - sum(step.minutes for step in self.steps)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Sessions by the time there is, such as an afternoon."""

    name: str
    title: str
    about: str
    sessions: Sequence[Session]


def read_start(clock: str) -> int:
    """Return the minutes since midnight of a clock time.

    Raises
    ------
    ValueError
        If it is none.

    Examples
    --------
    >>> read_start("9:15")
    555
    """
    found = _CLOCK.fullmatch(clock)
    if not found:
        raise ValueError(f"a start must be a time from 00:00 to 23:59, such as 09:15, got {clock!r}")
    return 60 * int(found[1]) + int(found[2])


def clock(minutes: int) -> str:
    """Return minutes since midnight as a clock time.

    Examples
    --------
    >>> clock(555), clock(24 * 60 + 5)
    ('09:15', '00:05')
    """
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("schedules.toml").read_text(encoding="utf-8"))


def pick_schedules(name: str | None) -> list[str]:
    """Return the name of one schedule, or of all for None.

    Raises
    ------
    ValueError
        If there is no schedule of this name.
    """
    known = [key for key in _data() if key != "plan_b"]
    if name is not None and name not in known:
        raise ValueError(f"a schedule must be one of {', '.join(known)}, got {name!r}")
    return known if name is None else [name]


def read_schedule(name: str, outlines: Mapping[int, Outline]) -> Schedule:
    """Return a schedule with its minutes.

    Raises
    ------
    ValueError
        If a step names no part of a lesson.
    """
    data = _data()[name]
    in_class = [[_step(line, outlines) for line in one["steps"]] for one in data["sessions"]]
    steps = [step for steps in in_class for step in steps]
    used = {step.part.key for step in steps if step.part}
    used |= {(int(number), "Set-up") for step in steps for number in _SET_UP.findall(step.words)}
    sessions = [
        Session(
            title=one["title"],
            minutes=one["minutes"],
            steps=steps,
            home=[step for line in one["home"] for step in _home(line, outlines, used)],
        )
        for one, steps in zip(data["sessions"], in_class, strict=True)
    ]
    return Schedule(name=name, title=data["title"], about=data["about"], sessions=sessions)


def _step(line: str, outlines: Mapping[int, Outline]) -> Step:
    if found := _FREE.fullmatch(line):
        return Step(minutes=int(found[1]), words=found[2])
    (part,) = parts_named(line, outlines)
    return Step(minutes=part.minutes, part=part)


def _home(line: str, outlines: Mapping[int, Outline], used: set[tuple[int, str]]) -> list[Step]:
    rest = [part for part in parts_named(line, outlines) if part.key not in used or not line.endswith(" *")]
    return [Step(minutes=part.minutes, part=part) for part in rest]


# ---- pages


def write_schedules(folder: Path, outlines: Mapping[int, Outline], start: str, names: Sequence[str]) -> None:
    """Write a page a schedule, the page that leads to them, and the table of minutes to be corrected."""
    first = read_start(start)
    doors = []
    for schedule in (read_schedule(name, outlines) for name in names):
        body = f"<h1>{html.escape(schedule.title)}</h1><p>{html.escape(schedule.about)}</p>{_hint()}"
        body += (
            "".join(_session(one, outlines, first, i) for i, one in enumerate(schedule.sessions, 1))
            + _plan_b()
        )
        write_page(folder / f"{schedule.name}.html", schedule.title, body, up="index.html")
        n, hours = len(schedule.sessions), sum(session.minutes for session in schedule.sessions) / 60
        size = f"{n} session{'s' * (n > 1)}, {hours:.3g} hours in class."
        doors.append(
            f"<li>{link(f'{schedule.name}.html', schedule.title)} {size} {html.escape(schedule.about)}</li>"
        )
    body = f'<h1>Schedules</h1><ul class="doors">{"".join(doors)}</ul>{_hint()}{_plan_b()}'
    write_page(folder / "index.html", "Schedules", body)
    write_file(folder / "minutes.csv", minutes_table(outlines).encode())


def minutes_table(outlines: Mapping[int, Outline]) -> str:
    """Return what `--minutes` reads, with the minutes as they are."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, outline in outlines.items():
        writer.writerows([f"{number:02d}", part.title, part.minutes] for part in outline.parts)
    return out.getvalue()


def _hint() -> str:
    command = "tinytx-course kit FOLDER --start 09:15 --minutes minutes.csv"
    return (
        f'<p class="soft">{ESTIMATES.replace("minutes.csv", link("minutes.csv", "minutes.csv"))} '
        f"<code>{command}</code></p>"
    )


def _plan_b() -> str:
    heads = {"network": "No network", "installs": "Nothing can be installed", "slow": "Slow machines"}
    plans = _data()["plan_b"]
    return "<h2>Plan B</h2>" + "".join(
        f"<p><strong>{head}.</strong> {line_to_html(plans[key])}</p>" for key, head in heads.items()
    )


def _session(session: Session, outlines: Mapping[int, Outline], start: int, number: int) -> str:
    cells, now = [], start
    for step in session.steps:
        cells.append([clock(now), f"{step.minutes}{_star(step)}", str(now - start), _what(step)])
        now += step.minutes
    if session.spare >= 0:
        cells.append(
            [clock(now), str(session.spare), str(now - start), "<em>Questions, and what took longer</em>"]
        )
        over = ""
    else:
        over = (
            f'<p class="warning">{-session.spare} minutes too long: leave out a section, '
            f"see “When late” in the notes.</p>"
        )
    end = clock(start + session.minutes)
    parts = [
        f'<section class="session"><h2 id="session-{number}">{html.escape(session.title)}</h2>',
        f"<p>{clock(start)} to {end}, {session.minutes} minutes</p>{over}",
        table(["at", "min", "minute", "what"], cells),
        f"<p><strong>Ends at {end}.</strong> {_machines(session, outlines)}</p>",
    ]
    if session.home:
        total = sum(step.minutes for step in session.home)
        parts.append(f"<p><strong>At home</strong>, about {_hours(total)}:</p>{_at_home(session.home)}")
    return "".join(parts) + "</section>"


def _hours(minutes: int) -> str:
    return f"{minutes} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"


def _star(step: Step) -> str:
    return " measured" if step.part and step.part.measured else ""


def _what(step: Step) -> str:
    if step.part is None:
        return _VOTE.sub(lambda found: _voted(found[0], int(found[1])), line_to_html(step.words))
    number = step.part.lesson.number
    page = (
        f", or without Python {link('../site/exercises.html', 'in the page')}"
        if step.part.is_exercise
        else ""
    )
    return f"<b>{number:02d}</b> {linked(step.part, '../site/')}{page}"


def _voted(words: str, number: int) -> str:
    return link(f"../votes/{LESSONS[number].name}.html", words)


def _at_home(steps: Sequence[Step]) -> str:
    lessons = dict.fromkeys(step.part.lesson for step in steps if step.part)
    lines = []
    for lesson in lessons:
        of_lesson = [step for step in steps if step.part and step.part.lesson == lesson]
        parts = ", ".join(
            f"{linked(step.part, '../site/')} ({step.minutes})" for step in of_lesson if step.part
        )
        lines.append(f"<li><b>{lesson.number:02d}</b> {parts}</li>")
    return f"<ul>{''.join(lines)}</ul>"


def _machines(session: Session, outlines: Mapping[int, Outline]) -> str:
    """What a slow machine, or one without the course, means for this session."""
    numbers = dict.fromkeys(step.part.lesson.number for step in session.steps if step.part)
    runs = ", ".join(f"{number:02d} {format_duration(outlines[number].times.seconds)}" for number in numbers)
    puzzles = [
        f"{number:02d} {', '.join(outlines[number].puzzles)}"
        for number in numbers
        if outlines[number].puzzles
    ]
    instead = f" Without installs, puzzles in the page: {'; '.join(puzzles)}." if puzzles else ""
    return f"On two cores the whole lessons run in: {runs}.{instead}"
