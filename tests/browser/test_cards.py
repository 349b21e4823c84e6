"""Cards that ask: by keys alone, remembered by the browser, heard by Python."""

import pytest

import tinytx_course as course
from experiments.chromium import write_page
from tinytx_course.widgets.assets import page_script, style_sheet

CODE = (
    'import tinytx_course as course\ncourse.predict("02.1", "Does it fall?", ["falls", "rises"])',
    'course.resolve("02.1", "falls", "It falls.")',
    "from tinytx_course.progress.record import record",
)
DENIED = "Object.defineProperty(globalThis, 'localStorage', { get() { throw new Error('denied'); } })"


@pytest.fixture
def written(tmp_path):
    """A page with a prediction, its outcome and a quiz."""
    cards = [
        course.predict("02.1", "Does `x` fall?", ["falls", "rises", "stays"]),
        course.resolve("02.1", "falls", "It falls from 2.3 to 1.9."),
        course.quiz("masks"),
    ]
    path = write_page(cards[0], tmp_path / "page.html", "".join(card.to_html() for card in cards))
    text = path.read_text(encoding="utf-8")
    kinds = ["questions", "outcome"]
    for both in (page_script, style_sheet):
        text = text.replace(both(kinds[:1]), both(kinds))
    path.write_text(text, encoding="utf-8")
    return path.as_uri()


def opened(page, address):
    page.open(address)
    page.wait("document.querySelectorAll('.tx-say').length === 3")
    page.settle()
    return page.all(".tx-say")


def test_keys_choose_and_the_outcome_follows_and_is_there_when_the_page_is_opened_again(page, written):
    _, outcome, _ = opened(page, written)
    page.evaluate("localStorage.clear()")
    assert opened(page, written)[1] == "Answer: “falls”. It falls from 2.3 to 1.9."
    page.evaluate("document.body.focus()")
    page.press("Tab")
    page.press("ArrowDown")
    page.settle()
    prediction, outcome, _ = page.all(".tx-say")
    assert "rises" in prediction and outcome.startswith("✗") and "falls from 2.3" in outcome
    page.press("ArrowUp")
    page.press("Tab")
    page.press("ArrowDown")
    page.settle()
    prediction, outcome, _ = page.all(".tx-say")
    assert "70 % sure" in prediction and outcome.startswith("✓") and "70 % sure" in outcome
    assert opened(page, written)[:2] == [prediction, outcome]
    page.evaluate("localStorage.clear()")
    assert page.outside() == []


def test_a_quiz_marks_in_words_and_signs_and_may_be_tried_again(page, written):
    opened(page, written)
    page.evaluate("localStorage.clear()")
    opened(page, written)
    questions = course.quiz("masks").questions
    page.all(".tx", "(e.dataset.n = [...document.querySelectorAll('.tx')].indexOf(e))")
    quiz = "[data-n='2']"

    def click(selector, number=0):
        page.click(f"{quiz} {selector}", number)
        page.settle()

    click(".tx-row .tx-button")
    assert page.text(f"{quiz} .tx-feedback") == "Choose one first."
    for place, choice in enumerate(questions[0]["choices"]):
        click("input", place)
        assert page.all(f"{quiz} .tx-feedback", "e.hidden")[0] is True
        click(".tx-row .tx-button")
        assert page.text(f"{quiz} .tx-feedback") == choice["feedback"]
        assert "".join(page.all(f"{quiz} .tx-mark")).strip() == ("✓" if choice["right"] else "✗")
        assert page.text(f"{quiz} .tx-row .tx-button") == ("Ask again" if choice["right"] else "Try again")
    assert page.all(".tx-say")[2].startswith("1 of 5 checked")
    page.evaluate("localStorage.clear()")
    opened(page, written)
    page.all(".tx", "(e.dataset.n = [...document.querySelectorAll('.tx')].indexOf(e))")
    for number, asked in enumerate(questions):
        right = [choice["right"] for choice in asked["choices"]].index(True)
        before = sum(len(one["choices"]) for one in questions[:number])
        click(".tx-question input", before + right)
        click(".tx-row .tx-button", number)
    assert page.text(f"{quiz} .tx-score") == "✓✓✓✓✓Start over", "how many are right is said once, below"
    assert page.all(".tx-say")[2].startswith("5 of 5 checked, 5 right")
    click(".tx-score .tx-button")
    assert page.text(f"{quiz} .tx-score").startswith("12345")
    assert opened(page, written)[2].startswith("0 of 5 checked")
    page.evaluate("localStorage.clear()")


def test_a_browser_that_stores_nothing_says_so_and_the_page_still_answers(page, written):
    script = page.call("Page.addScriptToEvaluateOnNewDocument", source=DENIED)["identifier"]
    opened(page, written)
    assert "stores nothing" in page.text(".tx-note")
    page.click(".tx input", 1)
    page.settle()
    assert page.all(".tx-say")[1].startswith("✗")
    page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def test_nothing_sticks_out_and_every_control_refuses_shortcuts(page, written):
    opened(page, written)
    for width in (320, 768, 1920):
        page.size(width, 900)
        page.settle()
        assert page.width() <= width
    assert page.all(".tx :is(button, input):not([data-lm-suppress-shortcuts])") == []


def test_in_jupyterlab_the_choice_reaches_python_and_the_first_one_that_is_resolved_counts(page, labserver):
    labserver.write("cards.ipynb", *CODE[::2])
    labserver.open(page, "cards.ipynb")
    page.wait("document.querySelectorAll('.jp-OutputArea .tx-say').length === 1", 90)
    page.click(".tx input", 1)
    page.settle()
    entry = "record().entry('predictions', '02.1')"
    assert labserver.ask(page, entry) == {"choice": "rises", "sure": 0}
    assert labserver.ask(page, f"{CODE[1]}.summary()").startswith("✗ You predicted “rises”")
    page.click(".tx input")
    page.wait("document.querySelectorAll('.tx input')[1].checked")
    assert labserver.ask(page, entry)["choice"] == "rises"
