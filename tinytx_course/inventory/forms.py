"""The inventory on paper: two forms, an answer sheet, the key, and the page for who runs it."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from tinytx_course.inventory.items import (
    FORMS,
    LETTERS,
    Stored,
    drawn,
    in_words,
    read_items,
    separation,
    top_of,
)
from tinytx_course.inventory.power import Assumptions, power_table
from tinytx_course.quizzes.card import marked
from tinytx_course.site.pages import table
from tinytx_run.files import write_file

MINUTES = 60
#: What lesson 02 teaches, by the functions that the items run.
LESSON_02 = {
    *("causal_mask", "cross_attention_mask", "attention_row", "attention", "padding_mask", "leaks_future"),
    "museum:mask_transposed",
}
LONGEST = 24  # characters of an answer that the key repeats
NOT_TRIED = (
    "This inventory has not been tried on people yet. How hard its items are, and how well they measure what "
    "somebody understands, is unknown. Its options are the outputs of running programs, right and wrong."
)
CONSENT = (
    "Taking part is voluntary, and has no influence on any mark. You may leave out questions, or stop. "
    "Choose a code that only you can remake, such as the first two letters of your mother's first name and "
    "the day of your birth; use it both times, and write your name nowhere. Your answers are joined by that "
    "code and reported for the group. Hand in a blank sheet if you do not want to take part."
)
CONVENTIONS = (
    "A token is a word unless the question says otherwise. Logarithms are natural, losses are in nats, "
    "angles in radians, and numbers are rounded. A calculator with eˣ, ln, sin and cos is allowed, other "
    "material is not. Choose one answer a question; leave it empty rather than guess."
)


def write_forms(folder: Path) -> list[Path]:
    """Write the printable pages, which replace older ones, and an empty table of answers if there is none.

    Parameters
    ----------
    folder : Path
        Made where it does not exist.

    Returns
    -------
    list of Path
        ``index.html``, which comes first, both forms, answer sheet, key and ``answers.csv``.
    """
    items = read_items()
    pages = {
        "index.html": paper("A concept inventory for transformers", _for_teachers(items)),
        **{f"form-{form.lower()}.html": paper(f"Form {form}", _form(form, items)) for form in FORMS},
        "answer-sheet.html": paper("Answer sheet", _sheet(len(items))),
        "key.html": paper("Key", _keys(items)),
        "answers.csv": empty_answers(len(items)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        if name != "answers.csv" or not (folder / name).exists():  # answers are typed into it
            write_file(folder / name, text.encode())
    return [folder / name for name in pages]


def paper(title: str, body: str, style: str = "") -> str:
    """A page that loads nothing, on the screen and on A4; `style` is added to its style."""
    template = files(__package__).joinpath("paper.html").read_text(encoding="utf-8")
    return Template(template).substitute(title=html.escape(f"{title} · tinytx"), body=body, style=style)


def empty_answers(n_items: int) -> str:
    """The head of the file that `tinytx-course survey` reads."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(["learner", "form", "time", *range(1, n_items + 1)])
    return out.getvalue()


def _paragraphs(*texts: str) -> str:
    return "".join(f"<p>{html.escape(text)}</p>" for text in texts)


def plain_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table of plain texts, code between backticks, that may be scrolled sideways."""
    cells = [[marked(str(cell)) for cell in row] for row in rows]
    return f'<div class="wide" tabindex="0">{table([html.escape(name) for name in head], cells)}</div>'


# ---- forms, sheet, key


def _form(form: str, items: Sequence[Stored]) -> str:
    start = f"<h1>Form {form}: {len(items)} questions on transformers</h1>"
    start += f'<div class="warning">{_paragraphs(NOT_TRIED)}</div>'
    start += "<h2>Before you begin</h2>" + _paragraphs(CONSENT, f"You have {MINUTES} minutes. {CONVENTIONS}")
    return start + "".join(item_html(item, form) for item in items)


def item_html(item: Stored, form: str) -> str:
    """One question with its options; nothing in it says which is right."""
    asked = item["forms"][form]
    top = top_of(asked["options"])
    given = "".join(f"<div>{drawn(shown)}</div>" for shown in asked["given"])
    options = "".join(
        f'<li><span class="letter">{letter}</span><div>{drawn(option, top)}</div></li>'
        for letter, option in zip(LETTERS, asked["options"], strict=True)
    )
    return (
        f'<section class="item"><p><b>{item["number"]}.</b> {html.escape(asked["prompt"])}</p>'
        f'<div class="given">{given}</div><ul class="options">{options}</ul></section>'
    )


def _sheet(n_items: int) -> str:
    circles = " ".join(f'<span class="letter">{letter}</span>' for letter in LETTERS)
    rows = "".join(f"<li><b>{number}</b> {circles}</li>" for number in range(1, n_items + 1))
    return (
        "<h1>Answer sheet</h1>"
        + _paragraphs("Fill one circle a question. Write your code, not your name.")
        + "<p>"
        'Code <span class="blank"></span> &emsp; Form &ensp; ○ A &ensp; ○ B &emsp; '
        f'○ before &ensp; ○ after</p><ul class="sheet">{rows}</ul>'
    )


def _keys(items: Sequence[Stored]) -> str:
    parts = ["<h1>Key, and what each wrong answer reveals</h1>"]
    parts.append(
        _paragraphs(
            "Wrong answers are outputs of programs with one mistake; learners may have other reasons."
        )
    )
    for item in items:
        parts.append(f'<section class="item key"><h2>{item["number"]} · {html.escape(item["concept"])}</h2>')
        where = {
            form: {
                option["reveals"]: letter for letter, option in zip(LETTERS, asked["options"], strict=True)
            }
            for form, asked in item["forms"].items()
        }
        right = [_at(item, form, item["forms"][form]["key"]) for form in FORMS]
        rows: list[list[str]] = [[*right, "right"]]
        for slug, words in item["words"].items():
            rows.append([*(_at(item, form, where[form][slug]) for form in FORMS), f"{slug}: {words}"])
        parts.append(plain_table(["form A", "form B", "what it is"], rows) + "</section>")
    return "".join(parts)


def _at(item: Stored, form: str, letter: str) -> str:
    words = in_words(item["forms"][form]["options"][LETTERS.index(letter)])
    return f"{letter}: {words}" if len(words) <= LONGEST else letter


# ---- the page for who runs it


def _for_teachers(items: Sequence[Stored]) -> str:
    n_items = len(items)
    of_02 = ", ".join(str(item["number"]) for item in items if item["function"] in LESSON_02)
    found = separation()["in_form"]
    a, share = found["A"], min(one["separated"]["all"] for one in found.values())
    within = min(one["separated"]["within one function"] for one in found.values())
    parts = [
        "<h1>A concept inventory for transformers</h1>",
        f'<div class="warning">{_paragraphs(NOT_TRIED)}</div>',
        '<p><a href="form-a.html">Form A</a> · <a href="form-b.html">form B</a> · '
        '<a href="answer-sheet.html">answer sheet</a> · <a href="key.html">key</a> · '
        '<a href="answers.csv">table for the answers</a></p>',
        "<h2>Before and after</h2>",
        _paragraphs(
            f"Each form has {n_items} questions and takes {MINUTES} minutes, an estimate. One half of the "
            "group, drawn by lot, takes form A before the lessons and form B after them; the other half the "
            "reverse. So nobody sees a question twice, and a difference between the forms cancels out. Give "
            "no answers between the two sittings, and collect the forms.",
            "It is for a course of many lessons, not for a single one, which teaches the subject of few "
            f"items. Lesson 02, for example, teaches that of items {of_02}.",
            "Both forms have the same questions with other inputs: the same functions, the same wrong "
            "programs as options, and equally many steps to the answer.",
        ),
        "<h2>Consent and anonymity</h2>",
        _paragraphs("Printed on each form: " + CONSENT, "Ask your school whether it needs more than that."),
        "<h2>Answers</h2>",
        _paragraphs(
            "One line a sitting in answers.csv: the code, the form (A or B), the time (pre or post), then a "
            "letter a question; an empty cell is an answer that was left out."
        ),
        "<p><code>tinytx-course survey answers.csv --report report.html</code></p>",
        "<h2>What the items tell apart</h2>",
        _paragraphs(
            f"Form A offers answers of {a['misconceptions']} misconceptions. Of their {a['pairs']:,} pairs, "
            f"{share:.2%} are separated by some question in each form (the aim is 95 %): the two programs "
            "answer it differently, or one of them is not asked there and right. Of the pairs within one "
            f"function it is {within:.0%}: four options cannot hold all. This is measured on programs, not "
            "on people. The key has both forms next to each other."
        ),
        "<p>In a checkout <code>python -m experiments inventory --json</code> prints what each program "
        "answers to each question, and the pairs that none separates.</p>",
        "<h2>How many learners</h2>",
        _power(),
    ]
    return "".join(parts)


def _power() -> str:
    rows = [
        [row["gain"], *("over 2,000" if row[key] is None else row[key] for key in row if key != "gain")]
        for row in power_table()
    ]
    keys = [key.split("/") for key in power_table()[0] if key != "gain"]
    head = ["normalised gain", *(f"spread {spread}, power {float(wanted):.0%}" for spread, wanted in keys)]
    text = (
        "Learners with both sittings that a two-sided paired t test at 5 % needs, by the noncentral t "
        f"distribution. Assumed: {Assumptions().before:.0%} right before, differences after − before that "
        "are normal, with the standard deviation named as spread (in shares of right answers). The spread of "
        "your learners is not known yet. The test compares before with after, without a control group: it "
        "does not show what the lessons did."
    )
    return _paragraphs(text) + plain_table(head, rows)
