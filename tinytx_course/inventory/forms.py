"""The inventory on paper: two forms, an answer sheet, the key, the page for who runs it, and the report."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
from tinytx_course.inventory.survey import BEFORE, TIMES, Survey, in_a_sentence, power_table
from tinytx_course.quizzes.card import marked
from tinytx_course.site.templates import render, table
from tinytx_run.files import write_file

MINUTES = 60
#: What lesson 02 teaches, by the functions that the items run.
LESSON_02 = {
    *("causal_mask", "cross_attention_mask", "attention_row", "attention", "padding_mask", "leaks_future"),
    "museum:mask_transposed",
}
LONGEST = 24  # characters of an answer that the key repeats
N_SHOWN = 20  # misconceptions in the report, those chosen most
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
        **{
            f"form-{form.lower()}.html": paper(f"Form {form}", _page("form", items=items, form=form))
            for form in FORMS
        },
        "answer-sheet.html": paper("Answer sheet", _page("sheet", items=items)),
        "key.html": paper("Key", _page("key", items=items, key_of=_key_of)),
        "answers.csv": empty_answers(len(items)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        if name != "answers.csv" or not (folder / name).exists():  # answers are typed into it
            write_file(folder / name, text.encode())
    return [folder / name for name in pages]


def paper(title: str, body: str, style: str = "") -> str:
    """A page that loads nothing, on the screen and on A4; `style` is added to its style."""
    return render("inventory/paper.html", title=html.escape(f"{title} · tinytx"), body=body, style=style)


def empty_answers(n_items: int) -> str:
    """The head of the file that `tinytx-course survey` reads."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(["learner", "form", "time", *range(1, n_items + 1)])
    return out.getvalue()


def plain_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table of plain texts, code between backticks, that may be scrolled sideways."""
    cells = [[marked(str(cell)) for cell in row] for row in rows]
    return f'<div class="wide" tabindex="0">{table([html.escape(name) for name in head], cells)}</div>'


def _page(page: str, **values: Any) -> str:
    texts = {"not_tried": NOT_TRIED, "consent": CONSENT, "conventions": CONVENTIONS, "minutes": MINUTES}
    tools = {"drawn": drawn, "top_of": top_of, "letters": LETTERS, "plain_table": plain_table}
    return render("inventory/forms.html", page=page, **texts, **tools, **values)


def _key_of(item: Stored) -> list[list[str]]:
    """The rows of the key: the letter in both forms, and what it reveals."""
    where = {
        form: {option["reveals"]: letter for letter, option in zip(LETTERS, asked["options"], strict=True)}
        for form, asked in item["forms"].items()
    }
    right = [_at(item, form, item["forms"][form]["key"]) for form in FORMS]
    wrong = [
        [*(_at(item, form, where[form][slug]) for form in FORMS), f"{slug}: {words}"]
        for slug, words in item["words"].items()
    ]
    return [[*right, "right"], *wrong]


def _at(item: Stored, form: str, letter: str) -> str:
    words = in_words(item["forms"][form]["options"][LETTERS.index(letter)])
    return f"{letter}: {words}" if len(words) <= LONGEST else letter


def _for_teachers(items: Sequence[Stored]) -> str:
    """The page for who runs it."""
    found = separation()["in_form"]
    return _page(
        "teachers",
        items=items,
        of_02=[item for item in items if item["function"] in LESSON_02],
        a=found["A"],
        share=min(one["separated"]["all"] for one in found.values()),
        within=min(one["separated"]["within one function"] for one in found.values()),
        before=BEFORE,
        power=power_table(),
    )


def write_report(survey: Survey, path: Path) -> Path:
    """Write the analysis of a survey as a page, in one file that loads nothing.

    Raises
    ------
    ValueError
        If it does not end in ``.html``, or its folder does not exist.
    """
    if path.suffix != ".html":  # such as the file of answers itself
        raise ValueError(f"the report must be a file that ends in .html, got {path}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ValueError(f"the report must be a file in a folder that exists, got {path}")
    write_file(path.absolute(), paper("Survey", report_html(survey)).encode())
    return path


def report_html(survey: Survey) -> str:
    """The gain, a figure of all items, and the misconceptions chosen most."""
    said = "; ".join(
        f"{row['item']}: " + ", ".join(f"{time} {row[time]:.0%}" for time in TIMES if row[time] is not None)
        for row in survey.items
    )
    return render(
        "inventory/report.html",
        survey=survey,
        n={time: sum(one.time == time for one in survey.sittings) for time in TIMES},
        said=said,
        sentence=in_a_sentence(survey.gain),
        shown=survey.misconceptions[:N_SHOWN],
        not_tried=NOT_TRIED,
    ).rstrip()
