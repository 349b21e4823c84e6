"""What can be taught: the parts of each notebook, their minutes, their place on the page."""

import re

import nbformat
import pytest

import tinytx_course as course
from tests.environments import published
from tinytx_course.kit.outline import outline_of, parts_named, with_measured
from tinytx_course.lessons import LESSONS, project_root
from tinytx_course.site.cells import notebook_to_html

ROOT = project_root()
LESSON = LESSONS[2]
EXERCISE = "### Exercise: find the leak\n\n" + "word " * 500


def test_sections_and_exercises_are_those_of_the_notebook_in_its_order(outlines, lesson):
    texts = "\n".join(cell.source for cell in published(lesson).cells if cell.cell_type == "markdown")
    wanted = re.findall(r"^(?:## |### (?=Exercise: |Further: ))(.+)", texts, flags=re.M)
    assert [part.title for part in outlines[lesson.number].parts] == wanted


def test_minutes_add_up_to_those_of_the_lesson(outlines, lesson):
    parts, times = outlines[lesson.number].parts, outlines[lesson.number].times
    for counted, stated in ((parts, times.everything), ([p for p in parts if not p.is_further], times.core)):
        assert abs(sum(part.minutes for part in counted) - stated) <= 5 + len(parts) / 2  # each is rounded


def test_every_part_has_its_anchor_on_the_page_of_the_lesson(outlines, lesson):
    cells = [cell for cell in published(lesson).cells if cell.cell_type == "markdown"]
    shown = notebook_to_html(nbformat.v4.new_notebook(cells=cells), lesson)
    anchors = set(re.findall(r' id="([^"]+)"', shown))
    assert {part.anchor for part in outlines[lesson.number].parts} <= anchors


def test_every_prediction_of_a_lesson_is_found_with_its_options(outlines, lesson):
    codes = "\n".join(cell.source for cell in published(lesson).cells if cell.cell_type == "code")
    asked = [one for part in outlines[lesson.number].parts for one in part.predictions]
    assert [one["key"] for one in asked] == re.findall(r'course\.predict\(\s*"([\d.]+)"', codes)
    assert asked and all(one["prompt"] and len(one["choices"]) >= 2 for one in asked)


def test_words_and_code_are_counted_by_section_and_exercises_state_their_minutes():
    v4, tags = nbformat.v4, {"tags": ["further"]}
    asked = course.predict("02.1", "Which?", ["this", "that `one`"])
    shown = v4.new_output("execute_result", data={"text/html": asked.to_html()})
    cells = [
        v4.new_markdown_cell("# Title\n\n" + "word " * 400),
        v4.new_markdown_cell("## First\n\n" + "word " * 259),
        v4.new_code_cell("\n".join(["x = 1"] * 120), outputs=[shown]),
        v4.new_markdown_cell(EXERCISE),
        v4.new_code_cell("\n".join(["y = 1"] * 80)),
        v4.new_markdown_cell("### More of the first\n\n" + "word " * 126 + "\n\n## Second\n\nword"),
        v4.new_markdown_cell("### Further: more\n\n#### In detail\n\n" + "word " * 256, metadata=tags),
    ]
    outline = outline_of(LESSON, cells, ROOT)
    first, exercise, second, further = outline.parts
    assert (further.title, further.minutes, further.is_further) == ("Further: more", 2, True)
    assert parts_named("02 *", {2: outline}) == [first, exercise, second]
    assert (first.title, first.minutes) == ("First", 4)  # 390 words and 360 characters
    assert (exercise.title, exercise.minutes, exercise.is_exercise) == ("Exercise: find the leak", 15, True)
    assert (second.title, second.minutes) == ("Second", 1)
    assert first.predictions == asked.questions


def write(path, *rows):
    path.write_text("lesson,section,minutes\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_measured_minutes_take_the_place_of_estimates_and_nothing_else_changes(outlines, tmp_path):
    rows = ["02,Padding,21", "2,Exercise: find,40.4", 'attention_and_masks,"All at once",0']
    measured = with_measured(outlines, write(tmp_path / "mine.csv", *rows), ROOT)
    changed = {
        new.title: new.minutes
        for number, outline in outlines.items()
        for old, new in zip(outline.parts, measured[number].parts, strict=True)
        if new.measured or new.minutes != old.minutes
    }
    full = outlines[2].find("All at once").title
    assert changed == {"Padding": 21, "Exercise: find the leak": 40, full: 0}


@pytest.mark.parametrize(
    ("row", "got"),
    [
        ("99,Padding,5", "'99'"),
        (",Padding,5", "'?'"),
        ("02,Nowhere,5", "'Nowhere'"),
        ("02,Further,5", "'Further'"),  # two sections begin so
        ("02,,5", "''"),
        ("02,Padding,-1", "'-1'"),
        ("02,Padding,nan", "'nan'"),
        ("02,Padding,1e9", "'1e9'"),
        ("02,Padding,ten", "'ten'"),
        ("02,Padding", "''"),
    ],
)
def test_a_wrong_row_is_named_in_one_line(outlines, tmp_path, row, got):
    file = write(tmp_path / "mine.csv", "02,Padding,5", "", row)
    if row.startswith("02"):
        file.write_text(file.read_text().replace(",", ";"))
    with pytest.raises(ValueError, match=rf"mine\.csv, line 4: .*got {re.escape(got)}$") as caught:
        with_measured(outlines, file, ROOT)
    assert "\n" not in str(caught.value)


def test_minutes_are_read_as_excel_saves_them(outlines, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("sep=;\nlesson;section;minutes\n02;Padding;21\n", encoding="utf-8-sig")
    assert with_measured(outlines, file, ROOT)[2].find("Padding").minutes == 21


def test_a_file_with_other_columns_is_refused(outlines, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("section,minutes\nPadding,5\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"lesson,section,minutes.*got .*section"):
        with_measured(outlines, file, ROOT)


@pytest.mark.parametrize("line", ["77 Padding", "Padding", "02 Nowhere"])
def test_a_line_of_a_schedule_names_a_part_or_is_refused(outlines, line):
    with pytest.raises(ValueError, match="got"):
        parts_named(line, outlines)
