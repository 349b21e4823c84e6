"""Vote cards: right options are computed, sections exist, and no form gives an answer away."""

import ast
import math
import re

import pytest
import torch
from scipy.stats import binom

import tinytx as tx
from tinytx_course.inventory.items import FORMS, read_items
from tinytx_course.kit.vote_pages import write_votes
from tinytx_course.kit.votes import LETTERS, Option, Question, questions
from tinytx_course.lessons import LESSONS, Lesson, project_root
from tinytx_course.quizzes.quiz import quiz

ASKED = [asked for lesson in LESSONS for asked in questions(lesson)]
EACH = [one for asked in ASKED for one in (asked, asked.twin)]
each_vote = pytest.mark.parametrize("vote", EACH, ids=lambda vote: f"{vote.lesson.slug}-{vote.key}")


def headings(lesson):
    source = project_root() / "notebooks" / "src" / f"{lesson.name}.py"
    return re.findall(r"^# ## (.+)", source.read_text(encoding="utf-8"), flags=re.M)


def value_of(code):
    """The value of the last expression of some code."""
    *steps, last = ast.parse(code.strip()).body
    names = {"math": math, "torch": torch, "tx": tx, "F": torch.nn.functional, "nn": torch.nn}
    torch.manual_seed(0)
    exec(compile(ast.Module(steps, []), "check", "exec"), names)
    return eval(compile(ast.Expression(last.value), "check", "eval"), names)


def same(value, other):
    """Whether two values are equal, numbers up to half a hundredth or a hundredth of their size."""
    if isinstance(value, float) or isinstance(other, float):
        return not isinstance(other, str) and value == pytest.approx(other, rel=0.01, abs=0.005, nan_ok=True)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(same, value, other))
    return type(value) is type(other) and value == other


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.slug)
def test_a_lesson_has_two_questions_with_a_twin_each_about_its_sections(lesson):
    asked = questions(lesson)
    assert len(asked) == 2 and all(one.twin is not None and one.twin.twin is None for one in asked)
    first, second = (headings(lesson).index(one.section) for one in asked)
    assert first <= second, "in the order of the lesson"


@pytest.mark.parametrize("vote", [one for one in EACH if one.check], ids=lambda v: f"{v.lesson.slug}-{v.key}")
def test_the_right_option_is_the_one_that_comes_out(vote):
    computed = value_of(vote.check)
    assert [same(computed, option.value) for option in vote.options] == [
        letter == vote.answer for letter in LETTERS
    ], computed


def test_most_answers_are_computed():
    assert sum(not one.check for one in EACH) <= len(EACH) / 3


# ---- nothing is given away by form


def length(option, vote):
    return len(option.text)


def overlap(option, vote):
    """How many of its words are in the question."""
    return len(set(re.findall(r"\w+", option.text.lower())) & set(re.findall(r"\w+", vote.prompt.lower())))


def likeness(option, vote):
    """How many of its words other options have, too."""
    words = [set(re.findall(r"\w+", other.text.lower())) for other in vote.options if other is not option]
    return sum(len(each & set(re.findall(r"\w+", option.text.lower()))) for each in words)


def hits(votes, cue, sign):
    """Right answers of somebody who picks the option with most (or least) of a cue; ties are shared."""
    found = 0.0
    for vote in votes:
        scores = [sign * cue(option, vote) for option in vote.options]
        best = [place for place, score in enumerate(scores) if score == max(scores)]
        found += (LETTERS.index(vote.answer) in best) / len(best)
    return found


def bound(n):
    """What a guesser among four reaches with less than one chance in 40."""
    return binom.ppf(0.975, n, 1 / len(LETTERS))


@pytest.mark.parametrize("sign", [1, -1], ids=["most", "least"])
@pytest.mark.parametrize("cue", [length, overlap, likeness])
def test_no_cue_of_form_predicts_the_answer(cue, sign):
    assert hits(EACH, cue, sign) <= bound(len(EACH))


@each_vote
def test_no_option_is_conspicuous_by_its_length(vote):
    lengths = [len(option.text) for option in vote.options]
    assert max(lengths) - min(lengths) <= 26


def test_answers_are_at_each_letter_equally_often_and_a_twin_has_another_one():
    answers = [vote.answer for vote in EACH]
    assert {letter: answers.count(letter) for letter in LETTERS} == dict.fromkeys(LETTERS, len(EACH) // 4)
    assert all(vote.answer != vote.twin.answer for vote in ASKED)
    shifts = [(LETTERS.index(vote.twin.answer) - LETTERS.index(vote.answer)) % 4 for vote in ASKED]
    assert max(map(shifts.count, shifts)) <= binom.ppf(0.975, len(ASKED), 1 / 3)


@each_vote
def test_each_option_reveals_something_of_its_own_in_a_sentence(vote):
    reveals = [option.reveals for option in vote.options]
    assert len(set(reveals)) == len(reveals)
    assert all(6 <= len(text.split()) <= 26 and text.endswith(".") for text in reveals)


def test_no_question_is_one_of_a_quiz_or_of_the_inventory():
    elsewhere = [question.prompt for lesson in LESSONS for question in quiz(lesson.number).questions]
    elsewhere += [item["forms"][form]["prompt"] for item in read_items() for form in FORMS]
    for vote in EACH:
        words = set(re.findall(r"\w+", vote.prompt.lower()))
        for prompt in elsewhere:
            others = set(re.findall(r"\w+", prompt.lower()))
            assert len(words & others) < 0.5 * len(words | others), (vote.prompt, prompt)


# ---- what is wrong in a file is said


def options(*changed, n=4):
    texts = [*changed, *(f"text {i}" for i in range(n - len(changed)))]
    return tuple(Option(text=text, reveals="why") for text in texts)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"options": options(n=3)}, "four different options, got 3"),
        ({"options": options("text 0")}, "four different options"),
        ({"options": options(" ")}, "must not be empty"),
        ({"answer": "E"}, "one of ABCD, got 'E'"),
        ({"answer": "AB"}, "one of ABCD, got 'AB'"),
        ({"check": "1"}, "four values and a check or none, got 0"),
    ],
)
def test_a_vote_that_cannot_be_asked_is_refused_by_name(fields, said):
    whole = {
        "lesson": LESSONS[2],
        "key": "k",
        "section": "s",
        "prompt": "?",
        "options": options(),
        "answer": "A",
    }
    Question(**whole)
    with pytest.raises(ValueError, match=f"{said}.* in 02_attention_and_masks/k$"):
        Question(**{**whole, **fields})


def test_a_lesson_without_votes_is_named():
    with pytest.raises(ValueError, match="votes/77_new.toml"):
        questions(Lesson(number=77, slug="new", title="New", question="?", seconds=1))


# ---- pages


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit") / "votes"
    write_votes(folder)
    return folder


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.slug)
def test_a_page_shows_each_vote_before_its_twin_and_loads_nothing(folder, lesson):
    page = (folder / f"{lesson.name}.html").read_text(encoding="utf-8")
    wanted = [one.key for asked in questions(lesson) for one in (asked, asked.twin)]
    assert re.findall(r'<section id="([^"]+)"', page) == wanted
    assert page.count("✓") == page.count('aria-label="A"') == len(wanted)
    assert not re.search(r'(?:src|href)="(?!index\.html")|https?:|\$[a-z]', page)
    assert "*" not in re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.S)


def test_the_index_leads_to_every_page_and_gives_no_answer_away(folder):
    index = (folder / "index.html").read_text(encoding="utf-8")
    pages = {path.name for path in folder.iterdir()} - {"index.html"}
    assert set(re.findall(r'href="([^".]+\.html)"', index)) == pages
    assert "✓" not in index and (folder / "answers.html").read_text(encoding="utf-8").count("✓") == len(EACH)
