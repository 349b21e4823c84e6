"""What is handed out works by itself: the learner's edition, the solved one, the pages."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from tinytx_course.building.notebooks import build_notebook
from tinytx_course.building.release import _FILES, new_folder, write_pages, write_release
from tinytx_course.cli import main
from tinytx_course.kit.teaching import read_teaching
from tinytx_course.lessons import written_lessons

LESSONS = ("00_start_here", "02_attention_and_masks")
PAGES = ("gallery", "glossary", "reference", "exercises", "playground")


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Both editions, each in a folder of its own."""
    folder = tmp_path_factory.mktemp("releases")
    return {solved: write_release(folder / f"solved-{solved}", solved=solved) for solved in (False, True)}


def cells(release):
    paths = sorted((release.folder / "notebooks").glob("*.ipynb"))
    return [cell for path in paths for cell in nbformat.read(path, 4).cells]


@pytest.mark.parametrize("solved", [False, True])
def test_every_written_lesson_is_there_and_nothing_of_the_authors(releases, solved, root):
    release = releases[solved]
    assert list(release.notebooks) == [lesson.name for lesson in written_lessons(root)]
    stems = {path.stem for path in (release.folder / "notebooks").iterdir()}
    assert stems == {*release.notebooks, "gpt_one_page", "gpt_by_hand", "bug_checklist", "teaching"}
    for lesson in written_lessons(root):
        assert read_teaching(lesson, release.folder).sections  # of which a kit is made
    assert sum(path.is_file() for path in release.folder.rglob("*")) == release.n_files
    assert not {path.name for path in release.folder.iterdir()} & {"tests", ".git", "build", "site", "work"}
    assert not list(release.folder.rglob("__pycache__"))
    asked = release.folder / "AGENTS.md"
    assert asked.exists() is not solved and (solved or "tinytx-course hint" in asked.read_text("utf-8"))
    assert any("BEGIN SOLUTION" in cell.source for cell in cells(release)) is solved
    readme = (release.folder / "README.md").read_text(encoding="utf-8")
    assert all((release.folder / link).exists() for link in re.findall(r"\]\(([^)#\s]+)\)", readme))
    shown = subprocess.run(
        ["make", "help"], cwd=release.folder, capture_output=True, text=True, check=True
    ).stdout
    assert re.findall(r"make ([a-z-]+)", shown) == ["help", "course", "lab"]
    assert set(re.findall(r"\bmake ([a-z]+)", readme)) == {"course", "lab"}


@pytest.fixture
def small_checkout(tmp_path, root):
    """A checkout with two lessons and without a package."""
    (tmp_path / "small" / "notebooks" / "src").mkdir(parents=True)
    for name in (*_FILES, "Makefile", *(f"notebooks/src/{name}.py" for name in LESSONS)):
        shutil.copyfile(root / name, tmp_path / "small" / name)
    return tmp_path / "small"


def test_outputs_come_along_where_a_cell_is_as_published_but_no_verdicts_of_the_solved_edition(
    tmp_path, small_checkout
):
    published = set()
    for lesson in written_lessons(small_checkout):
        notebook = build_notebook(lesson, small_checkout)
        for cell in notebook.cells:
            published.add(cell.source)
            if cell.cell_type == "code":
                cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="shown")]
        nbformat.write(notebook, small_checkout / "notebooks" / f"{lesson.name}.ipynb")
    for solved in (False, True):
        release = write_release(tmp_path / f"out-{solved}", solved=solved, root=small_checkout)
        code = [cell for cell in cells(release) if cell.cell_type == "code"]
        for cell in code:
            verdict = solved and "course.check(" in cell.source
            assert bool(cell.outputs) == (cell.source in published and not verdict)


#: All of a kit but the pages, which `run` writes, and most slides.
KIT = """
from pathlib import Path
from tinytx_course.kit import outline, pages, slides, teaching, write_parts
from tinytx_course.lessons import LESSONS, project_root

folder, root = Path("kit"), project_root()
outlines = outline.read_outlines(root)
write_parts(folder, outlines, root, start="09:15", schedules=["afternoon"])
teaching.write_notes(folder, outlines, root)
slides.write_slides(folder, LESSONS[2:3])
pages.write_front(folder)
"""
#: Commands that want the sources, one after the other in one process.
REFUSED = """
import sys
from tinytx_course.cli import main

sys.exit(10 * main(["release", "elsewhere"]) + main(["publish"]))
"""


def run_there(release, *arguments):
    """Run Python in a release, with its package and not this one's."""
    plain = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TINYTX_FIGURES")}
    environment = {**plain, "PYTHONPATH": str(release.folder)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=release.folder, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.proof
def test_a_released_course_runs_and_refuses_what_needs_the_sources(releases):
    release = releases[False]
    command = ("-m", "tinytx_course.cli")
    done = run_there(release, *command, "run", "00", "--budget", "smoke", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["index"] == str(release.folder / "site" / "index.html")
    done = run_there(release, "-c", KIT)
    assert done.returncode == 0, done.stderr
    refused = run_there(release, "-c", REFUSED)
    assert refused.returncode == 22 and refused.stderr.count("\n") == 2
    assert all("notebooks/src" in line for line in refused.stderr.splitlines())


# ---- pages


def test_pages_are_written_as_a_folder_or_a_zip_named_as_its_folder(tmp_path, small_checkout, monkeypatch):
    pack = shutil.make_archive

    def pack_named(path, kind, above, name):
        assert name == "here"  # with an empty one, that of `.`, it would pack itself and never end
        return pack(path, kind, above, name)

    with pytest.raises(ValueError, match="notebooks"):
        write_pages(tmp_path / "none", root=small_checkout)
    for lesson in written_lessons(small_checkout):
        notebook = build_notebook(lesson, small_checkout)
        nbformat.write(notebook, small_checkout / "notebooks" / f"{lesson.name}.ipynb")
    names = {f"{name}.html" for name in ("index", *PAGES, *LESSONS)}
    names |= {f"notebooks/{name}.ipynb" for name in LESSONS}
    shared = {
        "site.js",
        "math.css",
        "explorers.js",
        "engine.js",
        "training.js",
        "search-index.js",
    }  # next to the pages
    assert write_pages(tmp_path / "pages", root=small_checkout) == tmp_path / "pages" / "index.html"
    files = (path for path in (tmp_path / "pages").rglob("*") if path.is_file())
    written = {path.relative_to(tmp_path / "pages").as_posix() for path in files}
    one = re.compile(r"explorers/\w+-\w+\.html|stills/[\w-]+\.png")  # of an explorer, and its picture
    assert names <= {path for path in written if not one.fullmatch(path)} <= names | shared
    assert any(map(one.fullmatch, written))

    monkeypatch.setattr("shutil.make_archive", pack_named)
    monkeypatch.setattr(
        "tinytx_course.building.release.write_site", lambda *to: shutil.copytree(tmp_path / "pages", to[1])
    )
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    archive = write_pages(Path("."), zipped=True, root=small_checkout)
    members = {name for name in zipfile.ZipFile(archive).namelist() if not name.endswith("/")}
    assert archive == tmp_path / "here.zip" and members == {f"here/{name}" for name in written}
    assert {path.name for path in tmp_path.iterdir()} == {"small", "pages", "here", "here.zip"}


# ---- refusals


@pytest.mark.parametrize("command", ["release", "site", "kit"])
def test_a_folder_with_something_in_it_is_left_alone(tmp_path, capsys, command):
    (tmp_path / "mine.txt").write_text("notes")
    for target in (tmp_path, tmp_path / "mine.txt"):
        assert main([command, str(target)]) == 2
        assert str(target) in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_when_writing_fails_nothing_is_left_behind(tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr("shutil.copyfile", full_disk)
    with pytest.raises(OSError, match="no space"):
        write_release(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_filled_and_stays_the_same_one(tmp_path, monkeypatch):
    """Such as the current folder, a mount point, or what a link leads to: none of them can be replaced."""
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    before = (tmp_path / "there").stat().st_ino
    monkeypatch.chdir(tmp_path / "there")
    for folder in (Path("."), tmp_path / "link"):
        with new_folder(folder) as target:
            (target / "inner").mkdir()
            (target / "inner" / "page.html").write_text("page")
        assert [path.name for path in Path(".").rglob("*")] == ["inner", "page.html"]
        shutil.rmtree("inner")
    assert (tmp_path / "there").stat().st_ino == before and (tmp_path / "link").is_symlink()
