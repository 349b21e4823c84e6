"""The printed pages: complete, self-contained, and honest on their first page."""

import csv
import re

import pytest

from tests.course.outline import outline_of
from tinytx_course.cli import main
from tinytx_course.inventory import write_forms
from tinytx_course.inventory.forms import CONSENT, NOT_TRIED
from tinytx_course.inventory.items import FORMS, LETTERS, read_items, separation
from tinytx_course.quizzes.card import marked

ITEMS = read_items()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inventory")
    return {path.name: path.read_text(encoding="utf-8") for path in write_forms(folder)}


@pytest.mark.parametrize("name", ["index.html", "form-a.html", "form-b.html"])
def test_the_first_thing_said_is_that_it_has_not_been_tried_on_people(pages, name):
    text = outline_of(pages[name]).text
    body = text[text.rindex("}") :]
    assert body.index(NOT_TRIED) < body.index(CONSENT)
    assert "?" not in body[: body.index(NOT_TRIED)]


@pytest.mark.parametrize("form", FORMS)
def test_a_form_asks_every_question_once_with_four_options_and_names_no_mistake(pages, form):
    page = pages[f"form-{form.lower()}.html"]
    text = outline_of(page).text
    for item in ITEMS:
        assert text.count(item["forms"][form]["prompt"]) == 1
        names = {item["function"], *item["words"]}
        assert not any(name in page for name in names if "-" in name or "_" in name)
    assert re.findall(r'<span class="letter">(.)</span>', page) == [*LETTERS] * len(ITEMS)
    assert page.count('<section class="item">') == len(ITEMS)


def test_the_answer_sheet_has_a_line_a_question(pages):
    assert pages["answer-sheet.html"].count('<span class="letter">D</span>') == len(ITEMS)


def test_the_key_says_what_each_answer_reveals_in_both_forms(pages):
    text = outline_of(pages["key.html"]).text
    for item in ITEMS:
        for slug, words in item["words"].items():
            assert f"{slug}: {outline_of(marked(words)).text}" in text


def test_the_table_for_answers_has_a_column_an_item(pages):
    (head,) = csv.reader(pages["answers.csv"].splitlines())
    assert head == ["learner", "form", "time", *(str(item["number"]) for item in ITEMS)]


def test_answers_that_were_typed_in_stay_and_pages_are_written_anew(tmp_path):
    write_forms(tmp_path)
    (tmp_path / "answers.csv").write_text("learner,form,time,1\nada,A,pre,C\n")
    (tmp_path / "key.html").write_text("old")
    assert write_forms(tmp_path)[-1] == tmp_path / "answers.csv"
    assert (tmp_path / "answers.csv").read_text().endswith("ada,A,pre,C\n")
    assert (tmp_path / "key.html").read_text(encoding="utf-8") != "old"


def test_the_command_writes_them_and_says_where_to_begin(tmp_path, capsys):
    assert main(["inventory", str(tmp_path / "new" / "folder")]) == 0
    assert capsys.readouterr().out == f"open {tmp_path / 'new' / 'folder' / 'index.html'}\n"


def test_a_file_in_the_place_of_the_folder_is_one_line(tmp_path, capsys):
    (tmp_path / "taken").write_text("x")
    assert main(["inventory", str(tmp_path / "taken")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(("pairs", "digits"), [("all", ".2%"), ("within one function", ".0%")])
def test_the_page_says_which_share_of_the_pairs_is_separated(pages, pairs, digits):
    share = min(form["separated"][pairs] for form in separation()["in_form"].values())
    assert f" {share:{digits}}" in pages["index.html"]
