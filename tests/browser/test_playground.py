"""The page that trains, from the disk, by keys, with small models: it counts steps, and waits on no clock."""

import json
import re

import pytest

import tinytx as tx
import tinytx_course as course
from tests.browser.test_site import AXE, TARGETS
from tinytx_course.site.pages import write_index

SUMMARY = "document.querySelector('.tx-say').textContent"
NOTICE = "document.querySelector('.tx-problem').textContent"
READY = f"{SUMMARY}.startsWith('Run A')"
# While it learns the summary waits; this is seen at once.
STEP = "+document.querySelector('.tx-reached').textContent.match(/step ([\\d,]+)/)[1].replace(',', '')"
SECONDS = 120  # at most


def small(**state):
    """A playground with a model that learns fast."""
    n_steps = state.pop("n_steps", 12)
    explorer = course.widgets.playground(n_steps=n_steps, d_model=state.pop("d_model", 8))
    for name, value in {"tokens_per_batch": 256, "n_layers": 1, **state}.items():
        setattr(explorer, name, value)
    return explorer


@pytest.fixture
def opened(page, show):
    """Return ``open(explorer)``: a page of the disk that holds it, ready; nothing may be loaded."""

    def open_page(explorer):
        address = show(explorer)
        page.wait(READY, SECONDS)
        return address

    yield open_page
    assert page.outside() == []


def press(page, selector, key="Enter"):
    page.focus(selector)
    page.press(key)


def said(page, text):
    """Wait until the summary holds a text; return it."""
    page.wait(f"{SUMMARY}.includes({json.dumps(text)})", SECONDS)
    page.settle()
    return page.evaluate(SUMMARY)


def test_keys_play_pause_step_and_reset_and_the_same_seed_gives_the_same_numbers(opened, page):
    opened(small())
    assert page.text(".tx-play") == "▶ Play"
    untrained = page.evaluate(SUMMARY)
    for step in (1, 2):
        press(page, ".tx-one-step")
        said(page, f"step {step} of 12")
    press(page, ".tx-play")
    ended = said(page, "step 12 of 12")
    assert page.all(".tx-play", "e.disabled") == [True]
    press(page, ".tx-reset")
    assert said(page, "untrained") == untrained
    press(page, ".tx-play")
    assert said(page, "step 12 of 12") == ended
    assert "Held-out reviews after step 12" in ended
    assert not any(page.all(".tx-problem", "e.checkVisibility()"))


def test_a_pause_holds_and_play_goes_on(opened, page):
    opened(small(n_steps=7000))
    press(page, ".tx-play")
    page.wait(f"{STEP} >= 7", SECONDS)
    press(page, ".tx-play")
    page.wait("document.querySelector('.tx').getAttribute('aria-busy') === 'false'", SECONDS)
    assert page.text(".tx-play") == "▶ Play"
    page.wait(f"({SUMMARY}).includes(`step ${{{STEP}}} of`)", SECONDS)
    paused, step = page.evaluate(SUMMARY), page.evaluate(STEP)
    page.settle()
    assert page.evaluate(SUMMARY) == paused and page.evaluate(STEP) == step >= 7
    press(page, ".tx-play")
    page.wait(f"{STEP} > {step}", SECONDS)


def test_a_schedule_follows_the_clock_and_a_longer_one_goes_on(opened, page):
    explorer = small()
    explorer.seconds = 1
    opened(explorer)
    press(page, ".tx-play")
    page.wait("document.querySelector('.tx-play').textContent === 'The schedule has ended'", SECONDS)
    page.settle()
    step = page.evaluate(STEP)
    said(page, f"step {step:,}, 1 of 1 s, ")
    press(page, ".tx-transport fieldset span:nth-child(3) input", " ")
    page.wait("document.querySelector('.tx-play').textContent === '▶ Play'", SECONDS)
    press(page, ".tx-one-step")
    said(page, f"step {step + 1:,}, 1 of 300 s, ")


# In a worker: a second passes in 25 milliseconds.
HURRY = """globalThis.Blob = class extends Blob { constructor(parts, more) {
  super(["performance.now = () => 40 * (Date.now() - 1.7e12);", ...parts], more); } };"""


def test_on_the_first_page_it_begins_waits_and_says_why_it_ends_and_how_to_go_on(show, page):
    explorer = course.widgets.playground(brief=True, d_model=8)
    explorer.n_layers = 1
    script = page.call("Page.addScriptToEvaluateOnNewDocument", source=HURRY)["identifier"]
    page.size(1280, 1000, motion=False)
    show(explorer)  # without motion it begins when it is asked to
    assert page.all(".tx-stage .tx-button", "e.disabled") == [False, True]  # play, and cheat
    assert page.text(".tx-cheat") == "After 15 s: let it cheat"
    page.size(1280, 1000)
    show(explorer)
    said(page, "After 20 seconds it waits for you: ")
    assert page.text(".tx-cheat") == "Let it cheat: remove the mask"
    assert page.text(".tx-play") == "▶ Go on" and " of 60 s;" in page.text(".tx-reached")
    press(page, ".tx-play")
    step, far = re.search(
        r"After (\d+) steps? the loss is ([\d.]+%)", said(page, "seconds are over.")
    ).groups()
    assert page.text(".tx-reached").startswith(f"{far} above the boundstep {step}, ")
    assert page.text(".tx-play") == "▶ Go on to five minutes" and ", 60 of 60 s;" in page.text(".tx-reached")
    press(page, ".tx-cheat")
    said(page, "The mask is off")
    assert page.text(".tx-text") and page.text(".tx-english").startswith("Word by word: ")
    assert page.text(".tx-cheat") == "Put the mask back"
    assert page.text(".tx-brief") == f"writes: {page.text('.tx-text')}"
    page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def test_one_can_look_back(opened, page):
    opened(small())
    start = page.evaluate(SUMMARY)
    press(page, ".tx-play")
    ended = said(page, "step 12 of 12")
    last = page.text(".tx-text")
    page.focus(".tx-transport input[type='range']")
    texts = []
    for key in ("ArrowLeft", "ArrowRight"):
        for _ in range(4):
            page.press(key)
        page.settle()
        texts.append(page.text(".tx-text"))
    assert texts[0] != last and texts[0] in start
    assert texts[1] == last and page.evaluate(SUMMARY) == ended


@pytest.mark.parametrize(
    ("state", "why"),
    [({"causal": False}, "without the mask"), ({"targets_not_shifted": True}, "its targets are its inputs")],
)
def test_a_model_that_cheats_falls_below_the_bound_and_the_page_says_so(opened, page, state, why):
    opened(small(n_steps=300, d_model=32, **state))
    assert "cheating" not in page.evaluate(SUMMARY)
    press(page, ".tx-play")
    summary = said(page, "step 300 of 300")
    assert "Below the bound: it is cheating." in summary and why in summary
    warning = page.text(".tx-run .tx-problem")
    assert warning.startswith("Below the bound: it is cheating.") and warning in summary


def test_switches_act_while_it_learns_and_are_marked(opened, page):
    opened(small(n_steps=7000))
    press(page, ".tx-further summary")
    press(page, ".tx-play")
    page.wait(f"{STEP} >= 5", SECONDS)
    off = ("mask", "scale 1/√K", "residual stream", "gradients never set to zero", "norm over the positions")
    for label in off:
        page.click(".tx-toggle input", page.all(".tx-toggle").index(label))
    press(page, ".tx-play")
    summary = said(page, "norm over the positions at step")
    for text in ("mask off at step", "scale off at step", "residual stream off at step"):
        assert text in summary
    blocks = "[...document.querySelectorAll('.tx-choice')].find((e) => e.textContent.startsWith('blocks'))"
    page.evaluate(f"{blocks}.querySelectorAll('input')[1].click()")
    assert "2 blocks" not in summary  # the usual number is not mentioned
    said(page, "untrained")
    assert page.errors == []


def test_a_second_run_starts_after_a_prediction_and_resolves_it(opened, page):
    opened(small(n_steps=200, d_model=32, change="targets_not_shifted"))
    start = (".tx-second-run", "e.disabled")
    assert page.all(*start) == [True]
    press(page, ".tx-play")
    said(page, "step 200 of 200")
    assert page.all(*start) == [True]
    press(page, ".tx-guess input", " ")
    page.wait("!document.querySelector('.tx-second-run').disabled", SECONDS)
    press(page, ".tx-second-run")
    page.wait("document.querySelector('.tx-guess:disabled input:checked')", SECONDS)
    summary = said(page, "As you predicted")
    assert "targets not shifted): step 200 of 200" in summary
    assert "✓ As you predicted, it falls below the bound: after step 200 run A was " in summary
    assert page.text(".tx-outcome") in summary
    page.evaluate(AXE.read_text(encoding="utf-8") + "\n;1")
    faults = f"axe.run(document, {TARGETS}).then((found) => found.violations.map((one) => one.help))"
    assert page.evaluate(faults) == []
    for width in (390, 1280):
        page.size(width, 844)
        page.settle()
        assert page.width() <= width


def load(page, path):
    """Choose a file, as a person does in the dialog of the browser."""
    found = page.call("Runtime.evaluate", expression="document.querySelector('.tx input[type=file]')")
    page.call("DOM.setFileInputFiles", files=[str(path)], objectId=found["result"]["objectId"])


def test_a_state_is_saved_opened_by_tinytx_and_loaded_again_and_a_torn_one_is_named(opened, page, tmp_path):
    opened(small(causal=False))
    press(page, ".tx-play")
    ended = said(page, "step 12 of 12")
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    file = tmp_path / "tinytx-step-12.safetensors"
    press(page, ".tx-save")
    page.wait(f"{NOTICE}.startsWith('Saved after step 12')", SECONDS)
    for _ in range(200):
        page.settle()
        if file.is_file():
            break
    model = tx.load(file).model
    assert model.config.d_model == 8 and model.config.causal is False
    press(page, ".tx-reset")
    said(page, "untrained")
    torn = tmp_path / "torn"  # the other kinds of bad files: tests/course/engine/test_state.py
    torn.write_bytes(file.read_bytes()[:-40])
    load(page, torn)
    page.wait(f"{NOTICE}.includes('end before')", SECONDS)
    message = page.evaluate(NOTICE)
    assert message.startswith("The file was not opened: ") and message.count("\n") == 0
    load(page, file)
    held = ended[ended.index("reviews after step 12: ") + 23 : ended.index(" nats a word")]
    again = said(page, f"after step 0: {held} nats a word")
    assert again.startswith("Opened a model that had learned for 12 steps") and "mask off" in again
    press(page, ".tx-one-step")
    said(page, "step 1 of 12")


@pytest.mark.parametrize("without", ["Worker", "WebAssembly", "Worker WebAssembly"])
def test_without_a_worker_or_fast_kernels_it_learns_the_same_and_says_so(opened, page, without):
    explorer = small()
    opened(explorer)
    press(page, ".tx-play")
    usual = said(page, "step 12 of 12")
    # a worker has a world of its own: there WebAssembly is taken away by its script
    gone = {
        "Worker": "delete globalThis.Worker;",
        "WebAssembly": """delete globalThis.WebAssembly; globalThis.Blob = class extends Blob {
          constructor(parts, more) { super(["delete globalThis.WebAssembly;", ...parts], more); } };""",
    }
    source = "".join(gone[name] for name in without.split())
    script = page.call("Page.addScriptToEvaluateOnNewDocument", source=source)["identifier"]
    opened(explorer)
    invite = page.text(".tx-invite")
    assert ("no worker" in invite) is ("Worker" in without.split())
    assert ("no fast kernels" in invite) is ("WebAssembly" in without)
    press(page, ".tx-play")
    found = said(page, "step 12 of 12")
    held = "nats a word, "
    assert found[: found.index("loss of")] == usual[: usual.index("loss of")]
    assert found[found.index(held) :][:24] == usual[usual.index(held) :][:24]
    page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def test_the_page_of_the_site_is_small_and_reached_from_the_first_one(page, tmp_path):
    index = write_index([], tmp_path)
    assert 'href="playground.html"' in index.read_text(encoding="utf-8")
    names = ("playground.html", "site.js", "explorers.js", "training.js")
    files = [tmp_path / name for name in names]
    assert sum(file.stat().st_size for file in files) < 3_000_000
    page.open(files[0].as_uri())
    page.wait(READY, SECONDS)
    assert page.outside() == [file.as_uri() for file in files[1:]]
