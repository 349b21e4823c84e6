"""The pages of the vote cards: a vote, its twin, and no answer before its time."""

import re

import pytest

from tinytx_course.kit.handouts import write_votes
from tinytx_course.lessons import LESSONS
from tinytx_course.quizzes.bank import votes, with_twins


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit") / "votes"
    write_votes(folder)
    return folder


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.slug)
def test_a_page_shows_each_vote_before_its_twin_and_loads_nothing(folder, lesson):
    page = (folder / f"{lesson.name}.html").read_text(encoding="utf-8")
    wanted = [one.key for one in with_twins(votes(lesson))]
    assert re.findall(r'<section id="([^"]+)"', page) == wanted
    assert page.count("✓") == page.count('aria-label="A"') == len(wanted)
    assert not re.search(r'(?:src|href)="(?!index\.html")|https?:|\$[a-z]', page)
    assert "*" not in re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.S)


def test_the_index_leads_to_every_page_and_gives_no_answer_away(folder):
    index = (folder / "index.html").read_text(encoding="utf-8")
    pages = {path.name for path in folder.iterdir()} - {"index.html"}
    assert set(re.findall(r'href="([^".]+\.html)"', index)) == pages
    n_votes = sum(len(with_twins(votes(lesson))) for lesson in LESSONS)
    answers = (folder / "answers.html").read_text(encoding="utf-8")
    assert "✓" not in index and answers.count("✓") == n_votes
