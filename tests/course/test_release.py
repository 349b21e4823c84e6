"""A release is a folder that works by itself: the learner's without answers, the solved one with all."""

import json
import os
import re
import subprocess
import sys

import nbformat
import pytest

pytest.importorskip("jupytext")

from tinytx_course.building.editions import has_solution
from tinytx_course.building.release import learners_makefile, learners_readme, write_release
from tinytx_course.cli import main
from tinytx_course.lessons import written_lessons


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Both editions, each in a folder of its own."""
    folder = tmp_path_factory.mktemp("releases")
    return {solved: write_release(folder / f"solved-{solved}", solved=solved) for solved in (False, True)}


def notebooks(release):
    paths = sorted((release.folder / "notebooks").glob("*.ipynb"))
    return {path.stem: nbformat.read(path, 4) for path in paths}


def sources(release):
    return [cell.source for notebook in notebooks(release).values() for cell in notebook.cells]


@pytest.mark.parametrize("solved", [False, True])
def test_every_written_lesson_is_there_and_nothing_that_holds_the_answers(releases, solved, root):
    release = releases[solved]
    names = [lesson.name for lesson in written_lessons(root)]
    assert list(notebooks(release)) == names == list(release.notebooks)
    assert sum(path.is_file() for path in release.folder.rglob("*")) == release.n_files
    top = {path.name for path in release.folder.iterdir()}
    assert {"README.md", "LICENSE", "pyproject.toml", "constraints.txt", "environment.yml", "Makefile"} <= top
    assert not top & {"tests", ".git", "build", "site", "work"}
    assert not (release.folder / "notebooks" / "src").exists()
    assert not list(release.folder.rglob("__pycache__"))
    assert (release.folder / "tinytx" / "text" / "world" / "tables" / "nouns.tsv").is_file()
    assert not any(has_solution(source) for source in sources(release))


def test_the_learner_finds_stubs_and_folded_solutions_and_the_teacher_the_answers(releases):
    learner, solved = sources(releases[False]), sources(releases[True])
    stub = "def causal_mask(seq_len):\n    ..."
    assert stub in learner and stub not in solved
    assert any("<summary>Solution</summary>" in source for source in learner)
    assert not any("<summary>Solution</summary>" in source for source in solved)


def test_outputs_come_along_but_for_verdicts_of_the_solved_edition(releases):
    for solved in (False, True):
        cells = [c for nb in notebooks(releases[solved]).values() for c in nb.cells if c.cell_type == "code"]
        assert sum(bool(cell.outputs) for cell in cells) > len(cells) / 2
        verdicts = [bool(cell.outputs) for cell in cells if "course.check(" in cell.source]
        assert verdicts and all(shown is not solved for shown in verdicts)


@pytest.mark.parametrize("solved", [False, True])
def test_links_in_a_release_point_to_what_is_there(releases, solved):
    folder = releases[solved].folder
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#\s]+)\)", readme):
        assert link.startswith("https://") or (folder / link).exists(), link
    for word in ("pytest", "make test", "make torture", "make publish", "notebooks/src", "tests/", ".ci/"):
        assert word not in readme, word


def test_make_help_of_a_release_offers_what_works_there(releases):
    makefile = (releases[False].folder / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):.*## ", makefile, re.M)
    assert targets == ["help", "course", "lab"]
    assert re.search(r"^\.PHONY: help course lab$", makefile, re.M)


def test_edits_of_readme_and_makefile_find_what_they_are_for(root):
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert len(learners_readme(readme)) < len(readme) and "## For authors" in readme
    assert "make lab        # opens" in learners_readme(readme)
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    assert "publish:" in makefile and "publish" not in learners_makefile(makefile)


def run_there(release, *arguments, **environment):
    """Run Python in a release, with its package and not this one's."""
    plain = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TINYTX_FIGURES")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=release.folder,
        env={**plain, "PYTHONPATH": str(release.folder), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
def test_a_released_course_runs_and_shows_its_pages(releases):
    release = releases[False]
    done = run_there(release, "-m", "tinytx.cli", "course", "00", "--budget", "smoke", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["ok"] and answer["index"] == str(release.folder / "site" / "index.html")
    again = run_there(release, "-m", "tinytx.cli", "release", "elsewhere")
    assert again.returncode == 2 and "sources" in again.stderr
    publish = run_there(release, "-m", "tinytx_course.building.course", "publish")
    assert publish.returncode == 2 and "sources" in publish.stderr


@pytest.mark.slow
def test_lab_copies_come_from_the_released_notebooks_without_outputs(releases):
    code = (
        "from tinytx_course import lessons\nfrom tinytx_course.building import course\n"
        "course.copy_for_learner(lessons.project_root())"
    )
    done = run_there(releases[False], "-c", code)
    assert done.returncode == 0, done.stderr
    copy = nbformat.read(releases[False].folder / "work" / "02_attention_and_masks.ipynb", 4)
    assert any(cell.source == "def causal_mask(seq_len):\n    ..." for cell in copy.cells)
    assert not any(cell.get("outputs") for cell in copy.cells)


# ---- refusals


def test_a_folder_in_which_something_stands_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("notes")
    assert main(["release", str(tmp_path)]) == 2
    assert "must be new or empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert main(["release", str(tmp_path / "mine.txt")]) == 2


def test_when_writing_fails_nothing_is_left_behind(tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr("shutil.copyfile", full_disk)
    with pytest.raises(OSError, match="no space"):
        write_release(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_filled_and_its_report_is_json(tmp_path, capsys):
    (tmp_path / "out").mkdir()
    assert main(["release", str(tmp_path / "out"), "--solved", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["edition"] == "solved" and "02_attention_and_masks" in answer["notebooks"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
