"""The kit as a whole: its pages find each other and load nothing; what cannot be done is said in one line."""

import re
import zipfile
from html import unescape
from urllib.parse import unquote

import pytest

from tinytx_course.cli import main
from tinytx_course.kit import write_parts
from tinytx_course.kit.pages import write_front
from tinytx_course.kit.self_study import WEEK, count, weeks
from tinytx_course.kit.teaching import write_notes
from tinytx_course.lessons import COURSES, LESSONS, project_root
from tinytx_course.quizzes.bank import votes, with_twins
from tinytx_course.quizzes.card import plain

ROOT = project_root()
NOT_WRITTEN = ("site/", "slides/")  # by the fast tests


@pytest.fixture(scope="module")
def kit(tmp_path_factory, outlines):
    """All but the site and the slides."""
    folder = tmp_path_factory.mktemp("kit")
    write_parts(folder, outlines, ROOT, start="09:15", schedules=["afternoon", "semester"])
    write_notes(folder, outlines, ROOT)
    write_front(folder)
    return folder


def dead_links(folder, left_out=()):
    """(page, link) of each link to a file that is not there, or a place that is not in it."""
    texts = {
        path: re.sub(r"<script.*?</script>", "", path.read_text(encoding="utf-8"), flags=re.S)
        for path in folder.rglob("*.html")
    }
    ids = {path: set(map(unescape, re.findall(r'\bid="([^"]+)"', text))) for path, text in texts.items()}
    for path, text in texts.items():  # the state of an explorer is a place, too
        ids[path] |= {f"{kind}?" for kind in re.findall(r'data-tx-kind="(\w+)"', text)}
    dead = []
    for path, text in texts.items():
        for link in re.findall(r'<a [^>]*?href="([^"]+)"', text):
            address, _, place = unescape(link).partition("#")
            address, place = address.partition("?")[0], re.sub(r"(?<=\?)\w*=.*", "", place)
            if re.match(r"[a-z]+:", address):
                continue
            target = (path.parent / unquote(address)).resolve() if address else path
            if target.relative_to(folder.resolve()).as_posix().startswith(tuple(left_out) or "\0"):
                continue
            if not target.is_file() or (
                place and target in ids and not {place, unquote(place)} & ids[target]
            ):
                dead.append((path.name, link))
    return dead


def test_every_link_leads_somewhere(kit):
    assert dead_links(kit.resolve(), NOT_WRITTEN) == []


def test_every_part_has_a_door_and_the_front_page_says_how_to_begin(kit):
    front = (kit / "index.html").read_text(encoding="utf-8")
    for part in ("schedules", "notes", "handouts", "votes", "inventory"):
        assert f'href="{part}/index.html"' in front
    assert 'href="self-study.html"' in front and 'href="slides/index.html"' not in front  # not written here


def test_no_page_of_ours_loads_anything(kit):
    for path in kit.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r'(?:src|srcset)="(?!data:)|<link|@import|url\((?!["\']?(?:data:|#))', text), (
            path.name
        )


def test_a_handout_has_the_predictions_in_front_and_the_take_home_on_its_back(kit, outlines, lesson):
    text = unescape((kit / "handouts" / f"{lesson.name}.html").read_text(encoding="utf-8"))
    _, front, back = text.split('<section class="sheet-of-paper">')
    assert f"{lesson.number:02d}.1" in front and "○ 50 %" in front and "○ B · " in front
    assert "Take-home" in back and any(tag in back for tag in ("<pre", "<table", "<img"))
    assert "course.parsons(" not in back and "course.predict(" not in front
    assert "<pre" not in front
    asked = [one for part in outlines[lesson.number].parts for one in part.predictions]
    assert all(plain(one["prompt"]) in front for one in asked)
    assert lesson.number != 2 or "True, may attend" in back


def test_notes_have_board_minutes_votes_and_answers_to_wrong_ideas(kit):
    text = (kit / "notes" / f"{LESSONS[2].name}.html").read_text(encoding="utf-8")
    assert re.search(r"#Padding\">Padding</a> <span[^>]*>\d+ min", text)
    assert text.count("<strong>Board:</strong>") >= 9 and text.count(" Answer: ") == 3
    assert (
        text.count(" (handout), vote before the cell:") == 2
        and text.count("Vote cards</a>, before you say") == 2
    )
    before, asked = text.split("Which words get the same result both times?")
    assert "same as without a mask" in asked and "same as without a mask" not in before


def test_a_page_of_votes_shows_each_before_its_twin(kit, lesson):
    page = (kit / "votes" / f"{lesson.name}.html").read_text(encoding="utf-8")
    wanted = [one.key for one in with_twins(votes(lesson))]
    assert re.findall(r'<section id="([^"]+)"', page) == wanted
    assert page.count("✓") == page.count('aria-label="A"') == len(wanted)
    assert not re.search(r"https?:|\$[a-z]", page)
    assert "*" not in re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.S)


def test_the_index_of_votes_leads_to_every_page_and_gives_no_answer_away(kit):
    folder = kit / "votes"
    index = (folder / "index.html").read_text(encoding="utf-8")
    pages = {path.name for path in folder.iterdir()} - {"index.html"}
    assert set(re.findall(r'href="([^".]+\.html)"', index)) == pages
    n_votes = sum(len(with_twins(votes(lesson))) for lesson in LESSONS)
    answers = (folder / "answers.html").read_text(encoding="utf-8")
    assert "✓" not in index and answers.count("✓") == n_votes


def test_notes_and_lesson_state_the_same_minutes(kit, lesson):
    notebook = (ROOT / "notebooks" / f"{lesson.name}.ipynb").read_text(encoding="utf-8")
    reading = re.search(r"It takes:\* (\d+ minutes to read[^.;]*?); [^,]* to run", notebook)[1]
    assert reading in (kit / "notes" / f"{lesson.name}.html").read_text(encoding="utf-8")
    index = (kit / "notes" / "index.html").read_text(encoding="utf-8")
    assert re.search(rf"{lesson.name}.*?<td>{reading.split()[0]}</td>", index)


def test_the_syllabus_takes_every_lesson_once_and_in_order_and_says_what_each_is_for(kit, outlines):
    planned = list(weeks(outlines))
    assert [one.lesson for week in planned for one in week] == list(LESSONS)
    assert all(count(week)["minutes"] <= WEEK for week in planned if len(week) > 1)
    firsts = [week[0].lesson.number for week in planned]
    assert all(first in firsts for first, *_ in COURSES)
    text = (kit / "self-study.html").read_text(encoding="utf-8")
    assert all(len(one.outcomes) >= 2 for week in planned for one in week)
    assert text.count("<tr><td>") == len(planned) and "without its hint" in text


@pytest.mark.parametrize(
    ("options", "got"),
    [
        (["--start", "25:00"], "'25:00'"),
        (["--schedule", "weekend"], "'weekend'"),
        (["--minutes", "{folder}/mine.csv"], "'Nowhere'"),
        (["--minutes", "{folder}/none.csv"], "none.csv"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(tmp_path, capsys, options, got):
    (tmp_path / "mine.csv").write_text("lesson,section,minutes\n02,Nowhere,5\n", encoding="utf-8")
    target = tmp_path / "kit"
    assert main(["kit", str(target), *(option.format(folder=tmp_path) for option in options)]) == 2
    said = capsys.readouterr().err.strip()
    assert got in said and "\n" not in said
    assert not target.exists()


@pytest.mark.proof
def test_in_the_whole_kit_every_link_leads_somewhere_and_the_course_can_be_unpacked(whole_kit):
    folder = whole_kit
    assert dead_links(folder) == []
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{part}/index.html"' in text for part in ("site", "slides"))
    assert 'href="course.zip"' in (folder / "install.html").read_text(encoding="utf-8")
    with zipfile.ZipFile(folder / "course.zip") as course:
        names = set(course.namelist())
    assert {f"tinytx-course/notebooks/{lesson.name}.ipynb" for lesson in LESSONS} <= names
    assert {"tinytx-course/README.md", "tinytx-course/pyproject.toml"} <= names
