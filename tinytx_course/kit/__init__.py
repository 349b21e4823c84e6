"""The classroom kit: what a teacher needs to hold the course, in one folder that works without a network."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tinytx_course.building.release import new_folder, write_pages, write_release
from tinytx_course.inventory import write_forms
from tinytx_course.kit.handouts import write_handouts, write_votes
from tinytx_course.kit.outline import Outline, read_outlines, with_measured
from tinytx_course.kit.pages import COURSE, write_front
from tinytx_course.kit.schedules import pick_schedules, read_start, write_schedules
from tinytx_course.kit.self_study import write_self_study
from tinytx_course.kit.slides import write_slides
from tinytx_course.kit.teaching import write_notes
from tinytx_course.lessons import project_root

START = "09:00"


def write_kit(
    folder: Path, *, start: str = START, minutes: Path | None = None, schedule: str | None = None
) -> Path:
    """Write the kit from the published notebooks; nothing is executed. Return its first page.

    The folder is new, or empty; nothing is left in it when something fails. Sessions begin at `start`, such
    as ``09:15``; `minutes` is a CSV file of a teacher's own; of the schedules one can be written alone.

    Raises
    ------
    ValueError
        If the folder is not empty, or one of the other values is none that is known.
    """
    root = project_root()
    names = pick_schedules(schedule)
    read_start(start)
    outlines = read_outlines(root) if minutes is None else with_measured(read_outlines(root), minutes, root)
    with new_folder(folder) as target:
        write_parts(target, outlines, root, start=start, schedules=names)
        write_slides(target)
        write_pages(target / "site", root=root)
        write_notes(target, outlines, root)
        if (root / "notebooks" / "src").is_dir():
            with tempfile.TemporaryDirectory() as course:
                write_release(Path(course) / "tinytx-course", root=root)
                shutil.make_archive(str((target / COURSE).with_suffix("")), "zip", course, "tinytx-course")
        write_front(target)
    return folder.absolute() / "index.html"


def write_parts(
    folder: Path, outlines: Mapping[int, Outline], root: Path, *, start: str, schedules: Sequence[str]
) -> None:
    """Write what is on paper or short: schedules, handouts, votes, the inventory, the syllabus."""
    write_schedules(folder / "schedules", outlines, start, schedules)
    write_handouts(folder / "handouts", outlines, root)
    write_votes(folder / "votes")
    write_forms(folder / "inventory")
    write_self_study(folder, outlines)
