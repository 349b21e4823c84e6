"""Schedules: which sections and exercises when, with clock times; the choice is data, ``schedules.toml``."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from tinytx_course.kit.outline import COLUMNS, Outline, Part, parts_named
from tinytx_course.kit.pages import write_page
from tinytx_course.lessons import LESSONS, format_duration
from tinytx_course.results import tables_of
from tinytx_course.site.templates import render
from tinytx_run.files import write_file

_DATA = "kit/schedules.toml"
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_VOTE = re.compile(r"Vote: .*lesson (\d\d)")
_SET_UP = re.compile(r"lesson (\d\d) .*Set-up")
_FREE = re.compile(r"(\d+) min (.+)")
_PLANS = {"network": "No network", "installs": "Nothing can be installed", "slow": "Slow machines"}


@dataclass(frozen=True, kw_only=True)
class Step:
    """What takes some minutes of a session: a part of a lesson, or, where `part` is None, something else."""

    minutes: int
    words: str = ""
    part: Part | None = None


@dataclass(frozen=True, kw_only=True)
class Session:
    """One meeting: what is done in class, and at home after it."""

    title: str
    minutes: int  # from its start to its end, breaks included
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


def pick_schedules(name: str | None) -> list[str]:
    """Return the name of one schedule, or of all for None.

    Raises
    ------
    ValueError
        If there is no schedule of this name.
    """
    known = [key for key in tables_of(_DATA) if key != "plan_b"]
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
    data = tables_of(_DATA)[name]
    in_class = [[_step(line, outlines) for line in one["steps"]] for one in data["sessions"]]
    steps = [step for steps in in_class for step in steps]
    used = {step.part.key for step in steps if step.part}
    used |= {(int(number), "Set-up") for step in steps for number in _SET_UP.findall(step.words)}
    sessions = [
        Session(
            title=one["title"],
            minutes=one["minutes"],
            steps=steps,
            home=[
                Step(minutes=part.minutes, part=part)
                for line in one["home"]
                for part in parts_named(line, outlines)
                if part.key not in used or not line.endswith(" *")
            ],
        )
        for one, steps in zip(data["sessions"], in_class, strict=True)
    ]
    return Schedule(name=name, title=data["title"], about=data["about"], sessions=sessions)


def _step(line: str, outlines: Mapping[int, Outline]) -> Step:
    if found := _FREE.fullmatch(line):
        return Step(minutes=int(found[1]), words=found[2])
    (part,) = parts_named(line, outlines)
    return Step(minutes=part.minutes, part=part)


# ---- pages


def write_schedules(folder: Path, outlines: Mapping[int, Outline], start: str, names: Sequence[str]) -> None:
    """Write a page a schedule, the page that leads to them, and the table of minutes to be corrected."""
    tools = {"clock": clock, "voted": _voted, "start": read_start(start), "outlines": outlines}
    tools |= {"duration": format_duration, "by_lesson": partial(groupby, key=lambda step: step.part.lesson)}
    plans = [(head, tables_of(_DATA)["plan_b"][key]) for key, head in _PLANS.items()]
    links = []
    for schedule in (read_schedule(name, outlines) for name in names):
        body = render("kit/schedules.html", schedule=schedule, plans=plans, **tools)
        write_page(folder / f"{schedule.name}.html", schedule.title, body, up="index.html")
        n, hours = len(schedule.sessions), sum(session.minutes for session in schedule.sessions) / 60
        size = f"{n} session{'s' * (n > 1)}, {hours:.3g} hours in class."
        links.append((f"{schedule.name}.html", schedule.title, f"{size} {html.escape(schedule.about)}"))
    body = render("kit/schedules.html", schedule=None, links=links, plans=plans)
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


def _voted(words: str) -> str:
    """A step in words, with a link to the vote cards that it names."""
    page = "../votes/{}.html"
    return _VOTE.sub(lambda vote: f'<a href="{page.format(LESSONS[int(vote[1])].name)}">{vote[0]}</a>', words)
