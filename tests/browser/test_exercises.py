"""The page of exercises that need no Python: by keys, mistakes named, what is solved remembered."""

import pytest

from tinytx_course.site.pages import write_index

SOLVED = "document.querySelector('.tasks-done').textContent"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    write_index([], folder)
    return (folder / "exercises.html").as_uri()


def said(page, name):
    page.settle()
    return page.evaluate(f"document.querySelector('#{name} ~ .tx-explorer .tx-say').textContent")


def check(page, name):
    page.focus(f"#{name} ~ .tx-explorer .tx-button")
    page.press("Enter")
    return said(page, name)


def fill(page, rows):
    """Walk through the mask by keys, from its first cell, and flip where a row says so."""
    for row in rows:
        for i, cell in enumerate(row):
            if cell == "1":
                page.press(" ")
            page.press("ArrowRight" if i < len(row) - 1 else "ArrowDown")
        for _ in row[1:]:
            page.press("ArrowLeft")


def fill_blanks(page):
    """Choose by keys, wrongly and then rightly; the right program can be watched from the first check on."""
    task = "document.querySelector('#fill-padding_mask').parentElement"
    program = "#fill-padding_mask ~ .watch pre"
    page.evaluate(f"{task}.querySelector('.watch').open = true")
    assert not page.sees(program)
    for text, words in (("token_ids == pad_id", "Not quite. "), ("token_ids != pad_id", "Right. ")):
        page.evaluate(
            f"[...{task}.querySelectorAll('.tx-option-row')]"
            f".find((row) => row.textContent.endsWith({text!r})).querySelector('input').focus()"
        )
        page.press(" ")
        page.focus("#fill-padding_mask ~ .tx-explorer .tx-row .tx-button")
        page.press("Enter")
        page.settle()
        assert page.evaluate(f"{task}.querySelector('.tx-feedback').textContent").startswith(words)
        assert page.sees(program)


def test_a_mask_is_filled_by_keys_a_mistake_is_named_and_what_is_solved_is_remembered(page, address):
    page.open(address)
    page.wait(f"{SOLVED}.startsWith('0 of ')")
    hidden = "document.querySelector('#causal ~ .tx-explorer .tx-button + .tx-button').hidden"
    assert page.evaluate(hidden) is True  # the solution, before the first try
    page.focus("#causal ~ .tx-explorer .tx-cell")
    fill(page, ["10000"] * 5)
    assert check(page, "causal").startswith("Not yet: Only the first column is True")
    assert page.evaluate(hidden) is False
    page.evaluate("document.querySelector('#causal ~ .tx-explorer .tx-cell').tabIndex = 0")
    page.focus("#causal ~ .tx-explorer .tx-cell")
    fill(page, ["00000", "01000", "01100", "01110", "01111"])
    assert check(page, "causal") == "Right."
    page.focus("#padded ~ .tx-explorer input")
    for typed, answer in (("45", "Not yet: Every text is padded to the longest of all"), ("36", "Right.")):
        page.evaluate("document.activeElement.select()")
        page.call("Input.insertText", text=typed)
        page.press("Enter")
        assert said(page, "padded").startswith(answer)
    fill_blanks(page)
    page.open(address)
    page.wait(f"{SOLVED}.startsWith('3 of ')")
    assert page.sees("[data-task] .done")
    page.evaluate("localStorage.clear()")
    assert {where.rsplit("/", 1)[1] for where in page.outside()} == {"site.js", "explorers.js"}
