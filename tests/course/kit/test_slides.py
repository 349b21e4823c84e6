"""Slides: nothing of a lesson is lost, nothing is too long, and a deck is one file that loads nothing."""

import re
from html import unescape

import pytest

from tinytx_course.building.notebooks import joined_streams
from tinytx_course.kit.code_slides import COLUMNS, LINES, code_slides
from tinytx_course.kit.deck import WORDS, make_deck, words_in
from tinytx_course.kit.outline import cards
from tinytx_course.kit.slides import write_slides
from tinytx_course.kit.teaching import read_teaching
from tinytx_course.lessons import LESSONS, project_root
from tinytx_course.quizzes.bank import votes

MEGABYTES = 3
ROOT = project_root()
FUNCTION = "def f(x):\n" + "".join(f"    x = x + {i}\n" for i in range(20)) + "    return x"


def plain(body):
    return unescape(re.sub(r"<[^>]+>", "", body))


def bare(text):
    return re.sub(r"[`*]", "", text)


@pytest.fixture(scope="module")
def decks():
    return {lesson: make_deck(lesson, ROOT) for lesson in LESSONS}


def slides_of(deck, kind):
    return [slide for stack in deck for slide in stack.slides if slide.kind == kind]


def test_a_section_opens_with_its_board_and_ends_with_its_talking_points(decks, lesson):
    taught = decks[lesson][1:-1]
    notes = read_teaching(lesson, ROOT).sections
    assert [stack.headings[0] for stack in taught] == list(notes)
    for stack in taught:
        assert stack.slides[0].kind == "opener" and "<strong>Board:</strong>" in stack.slides[0].notes
        exercise = notes[stack.headings[0]].exercise
        assert stack.slides[-1 - bool(exercise)].kind == "points"
        assert (
            not exercise or "tinytx-course lab" in stack.slides[-1].body and exercise in stack.slides[-1].body
        )
        shown = [slide for slide in stack.slides if slide.kind == "points"]
        assert sum(slide.body.count("<li") for slide in shown) == len(notes[stack.headings[0]].points)


def test_no_slide_is_a_wall_of_words(decks, lesson):
    for kind in ("first", "waking", "opener", "points"):
        assert all(
            words_in(slide.title + " " + slide.body) <= WORDS + 12 for slide in slides_of(decks[lesson], kind)
        )


def test_figures_and_explorers_of_the_sections_are_there_and_predictions_are_votes(decks, outlines, lesson):
    parts = [part for part in outlines[lesson.number].parts if not part.is_further and part.title != "Set-up"]
    core = [cell for part in parts for cell in part.cells]
    shown = [out for cell in core for out in joined_streams(cell.get("outputs", ()))]
    pages = "".join(out.get("data", {}).get("text/html", "") for out in shown)
    asked = re.findall(r'"key":"(\d\d\.\d+)"', unescape(pages))
    votes = slides_of(decks[lesson], "vote")
    assert [one.title for one in votes if one.title.startswith("Predict")] == [
        f"Predict {key}" for key in asked
    ]
    assert all(one.body.count('class="fragment custom right"') == 1 for one in votes if "Pred" in one.title)
    bodies = {one.title: bare(plain(one.body)) for one in votes}
    outcomes = [state for kind, state in cards(core) if kind == "outcome"]
    assert outcomes
    for one in outcomes:
        assert bare(one["finding"]) in bodies[f"Predict {one['number']}"]
    n_figures = sum("image/png" in out.get("data", {}) for out in shown) + pages.count('<figure class="txd"')
    figures = slides_of(decks[lesson], "figure")
    assert len(figures) == n_figures
    for one in figures:  # each alone on its slide, as letters that can grow
        assert "<figcaption" not in one.body and "<img" not in one.body
        assert "<strong>Figure " in one.notes


def test_a_vote_its_twin_and_only_then_the_answers_to_both_with_one_more_key(decks, lesson):
    shown = [slide for stack in decks[lesson] for slide in stack.slides]
    for vote in votes(lesson):
        if vote.section.startswith("Further"):
            continue
        wanted = [vote, vote.twin]
        first = next(i for i, one in enumerate(shown) if bare(vote.prompt) in bare(plain(one.body)))
        *asked, answers = shown[first : first + 3]
        for one, slide in zip(wanted, asked, strict=True):
            assert bare(one.prompt) in bare(plain(slide.body)) and slide.kind == "vote"
            assert not re.search(r'class="[^"]*(right|fragment)|✓', slide.body)
        given = re.findall(r'<p class="fragment finding"[^>]*>(.*?)</p>', answers.body)
        assert [bare(plain(text)) for text in given] == [
            bare(f"{one.answer} · {one.right.text} {one.right.reveals}") for one in wanted
        ]
        if (figure := shown[first - 1]).kind == "figure":  # what is said of it comes after the votes
            assert figure.notes.startswith("<p><strong>Figure ")
        before = re.sub(r'<p class="fragment.*?</p>', "", answers.body)
        assert bare(plain(before)) == "".join(bare(one.prompt) for one in wanted)
        for option in (option for one in wanted for option in one.options):
            assert bare(option.reveals) in bare(plain(answers.notes))


@pytest.mark.proof
def test_decks_are_single_files_that_load_nothing_and_are_not_large(tmp_path):
    index, *paths = write_slides(tmp_path)
    linked = re.findall(r'href="([^"]+\.html)"', index.read_text(encoding="utf-8"))
    assert {path.name for path in paths} < {*linked} and len(paths) == len(LESSONS)
    for path in paths:
        page = path.read_text(encoding="utf-8")
        assert len(page.encode()) < MEGABYTES * 1e6, path.name
        assert not re.search(r'<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)="(?!data:)', page), path.name
        assert not re.search(r"url\([\"']?(?:https?:|//)", page), path.name
        slides = page[(start := page.index('<div class="slides">')) : page.index("* reveal.js", start)]
        assert slides.count("<section") == slides.count("</section>") > 20, "reveal.js takes each for a slide"


def test_code_is_whole_short_and_in_steps_of_statements():
    first, second = code_slides(FUNCTION)
    assert plain(first) + plain(second) == re.sub(r"^ +", "", FUNCTION, flags=re.M).replace("\n", "")
    for slide in (first, second):
        assert slide.count('class="line"') <= LINES and slide.count('class="shown"') == 1
    long = "def g(x):\n" + "    y = 1\n" * (3 * LINES)
    assert code_slides(long) == code_slides("%timeit f(1)") == code_slides("plots.bars({})") == []
    (both,) = code_slides("def f(x):\n    return x\n\n\nprint(f'{1}')\ndef g(x):\n    return x\n")
    assert both.count("return") == 2 and "print" not in both
    (shown,) = code_slides("import torch\nprint(1 + 1)", "2\n")
    assert "import" not in shown and '<pre class="printed fragment">2</pre>' in shown
    assert code_slides(f"x = '{'a' * COLUMNS * LINES}'") == []
