"""Schedules: they name what the notebooks hold, fit into their time, and end when they say."""

import csv
import re

import pytest

from tinytx_course.kit.outline import with_measured
from tinytx_course.kit.schedules import (
    clock,
    minutes_table,
    pick_schedules,
    read_schedule,
    read_start,
    write_schedules,
)
from tinytx_course.lessons import project_root

ROOT = project_root()
NAMES = pick_schedules(None)
SPARE = 0.1  # of each session, at least, for votes that go on and questions
each_schedule = pytest.mark.parametrize("name", NAMES)


@each_schedule
def test_every_session_fits_with_time_to_spare(outlines, name):
    for session in read_schedule(name, outlines).sessions:
        assert session.spare >= SPARE * session.minutes, session.title


@each_schedule
def test_nothing_is_taught_twice_and_sections_come_in_the_order_of_their_notebook(outlines, name):
    steps = [step for session in read_schedule(name, outlines).sessions for step in session.steps]
    taught = [step.part for step in steps if step.part]
    assert len({part.key for part in taught}) == len(taught)
    for number, outline in outlines.items():
        sections = [part for part in taught if part.lesson.number == number and not part.is_exercise]
        assert sections == [part for part in outline.parts if part in sections]


@each_schedule
def test_each_session_has_votes_and_those_of_lessons_that_it_teaches(outlines, name):
    for session in read_schedule(name, outlines).sessions:
        lessons = {step.part.lesson.number for step in session.steps if step.part}
        voted = [int(n) for step in session.steps for n in re.findall(r"of lesson (\d\d)", step.words)]
        assert voted and set(voted) <= lessons, session.title


@pytest.mark.parametrize(("start", "end"), [("09:15", "12:15"), ("13:00", "16:00"), ("22:30", "01:30")])
def test_an_afternoon_runs_by_the_clock_and_ends_three_hours_after_its_start(outlines, tmp_path, start, end):
    write_schedules(tmp_path, outlines, start, ["afternoon"])
    page = (tmp_path / "afternoon.html").read_text(encoding="utf-8")
    _, session = page.split('<section class="session">')
    rows = re.findall(r"<tr><td>(\d\d:\d\d)</td><td>(\d+)[^<]*</td><td>(.*?)</td></tr>", session)
    now = read_start(start)
    for shown, minutes, _ in rows:
        assert shown == clock(now)
        now += int(minutes)
    assert clock(now) == end and f"Ends at {end}" in page
    assert any("Break" in words for _, _, words in rows)
    assert {path.name for path in tmp_path.glob("*.html")} == {"index.html", "afternoon.html"}


def test_the_table_of_minutes_can_be_read_again_and_longer_ones_are_said_to_be_too_long(outlines, tmp_path):
    file = tmp_path / "minutes.csv"
    file.write_text(minutes_table(outlines), encoding="utf-8")
    same = with_measured(outlines, file, ROOT)
    assert minutes_table(same) == file.read_text(encoding="utf-8")
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    slow = [[*row[:2], str(3 * int(row[2]))] for row in rows[1:] if row[0] == "02"]
    file.write_text("lesson,section,minutes\n", encoding="utf-8")
    with file.open("a", encoding="utf-8", newline="") as lines:
        csv.writer(lines).writerows(slow)
    measured = with_measured(outlines, file, ROOT)
    (session,) = read_schedule("afternoon", measured).sessions
    assert session.spare < 0
    write_schedules(tmp_path, measured, "09:00", ["afternoon"])
    page = (tmp_path / "afternoon.html").read_text(encoding="utf-8")
    assert f"{-session.spare} minutes too long" in page and " measured" in page
    for words, encoding in ((f'lesson,section,minutes\n"{200_000 * "0"}\n', "utf-8"), ("lesson", "utf-16")):
        file.write_text(words, encoding=encoding)
        with pytest.raises(ValueError, match="minutes.csv must be a table"):
            with_measured(outlines, file, ROOT)


@each_schedule
def test_at_home_is_what_the_schedule_leaves_of_a_lesson(outlines, name):
    schedule = read_schedule(name, outlines)
    in_class = {step.part.key for one in schedule.sessions for step in one.steps if step.part}
    at_home = [step.part.key for one in schedule.sessions for step in one.home]
    assert len(set(at_home)) == len(at_home)
    assert not in_class & set(at_home)


def test_a_set_up_that_is_run_in_class_is_not_at_home(outlines):
    week = read_schedule("semester", outlines).sessions[1]
    at_home = {step.part.title for step in week.home}
    assert "Set-up" not in at_home and "Take-home" in at_home


@pytest.mark.parametrize(("name", "fewest", "most"), [("six-weeks", 40, 90), ("semester", 30, 240)])
def test_a_week_at_home_takes_as_long_as_the_schedule_says(outlines, name, fewest, most):
    for session in read_schedule(name, outlines).sessions:
        assert fewest <= sum(step.minutes for step in session.home) <= most, session.title


@pytest.mark.parametrize("start", ["", "24:00", "9", "9:60", "9.15", "nine", "-1:00", "٠٩:٠٠"])
def test_a_start_that_is_no_time_is_refused(start):
    with pytest.raises(ValueError, match="00:00 to 23:59"):
        read_start(start)


def test_an_unknown_schedule_is_named_with_those_there_are():
    with pytest.raises(ValueError, match=f"{', '.join(NAMES)}, got 'weekend'"):
        pick_schedules("weekend")
