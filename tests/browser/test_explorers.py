"""What explorers share: room, the whole screen, their state in the address, motion; and what is dragged."""

import math

import nbformat
import numpy as np
import pytest

import tinytx_course as course
from tests.browser.cases import CASES
from tests.browser.test_pages import relative
from tests.browser.test_site import written
from tests.course.widgets.conftest import changed
from tinytx_course.lessons import LESSONS

FITS = ("mask", "attention", "positions", "one_query")
STILL = {"name": "prefers-reduced-motion", "value": "reduce"}


@pytest.fixture
def several(tmp_path):
    """The address of a lesson with these explorers, and a second mask."""
    v4 = nbformat.v4
    cells = [v4.new_markdown_cell("# A lesson\n\n## A chapter")]
    for kind in (*FITS, "mask"):
        bundle, _ = CASES[kind].make()._repr_mimebundle_()
        output = v4.new_output("execute_result", data=bundle, execution_count=1)
        cells.append(v4.new_code_cell("1", outputs=[output]))
    return written(tmp_path, LESSONS[2].name, v4.new_notebook(cells=cells))


def opened(page, address):
    page.open("about:blank")  # or a new end alone would not open it anew
    page.open(address)
    page.wait(f"document.querySelectorAll('.tx-say').length === {len(FITS) + 1}")
    page.settle()
    return page.all(".tx-say")


def test_each_explorer_is_wider_than_the_text_and_fits_a_screen_of_720_lines(page, several):
    page.size(1280, 720)
    opened(page, several)
    boxes = page.all(".tx", "[e.offsetWidth, e.offsetHeight]")
    bar = page.evaluate("document.querySelector('.bar').offsetHeight")
    text = page.evaluate("document.querySelector('#lesson h1').offsetWidth")
    assert all(width > text + 100 and height <= 720 - bar for width, height in boxes), boxes
    page.click(".tx-screen:not(.tx-copy)")
    page.wait("document.fullscreenElement?.dataset.kind === 'mask'")
    page.size(1920, 1080)
    page.settle()
    assert page.evaluate("document.querySelector('.tx').scrollHeight <= innerHeight")
    assert float(page.evaluate("getComputedStyle(document.fullscreenElement).zoom")) > 1.4
    page.click(".tx-screen:not(.tx-copy)")
    page.wait("!document.fullscreenElement")


def test_the_address_keeps_what_was_changed_in_every_explorer_and_brings_it_back(page, several):
    first = opened(page, several)
    assert page.evaluate("location.hash") == ""
    page.evaluate("document.querySelectorAll('.tx')[4].querySelector('input').click()")
    page.click(".tx-steps .tx-token", 5)
    page.wait("location.hash === '#one_query?step=5;mask2?causal=1'")
    page.settle()
    changed = page.all(".tx-say")
    assert [i for i in range(5) if changed[i] != first[i]] == [3, 4]
    assert opened(page, page.evaluate("location.href")) == changed
    page.evaluate("location.hash = '#positions?position=7&hand=9999&mode=rotary&d_model=33'")
    page.settle()
    now = page.all(".tx-say")
    assert "turns the query at position 7 " in now[2] and "32 dimensions" in now[2]
    assert now[3:] == first[3:]
    assert page.evaluate("document.querySelectorAll('.tx')[2].getBoundingClientRect().top < innerHeight / 2")


@pytest.mark.parametrize("kind", [kind for kind in CASES if kind not in ("by_hand", "parsons", "playground")])
def test_the_address_holds_what_a_key_changes_and_what_is_out_of_bounds_is_left_out(page, show, kind):
    selector, key, _, trait = CASES[kind].keys
    address = show(CASES[kind].make())
    before = page.text(".tx-say")
    page.focus(selector)
    page.press(key)
    page.wait(f"location.hash.startsWith('#{kind}?{trait}=')")
    page.settle()
    changed, said = page.evaluate("location.href"), page.text(".tx-say")
    for end, words in ((f"#{kind}?{trait}=-7", before), (changed[len(address) :], said)):
        page.open("about:blank")
        page.open(address + end)
        page.wait("document.querySelector('.tx-say')?.textContent")
        page.settle()
        assert page.text(".tx-say") == words


def test_the_finding_alone_is_read_aloud_and_the_rest_unfolds_by_keys(page, several):
    opened(page, several)
    spoken = page.all(".tx [role=status]")
    assert spoken[0].startswith("Moving input ") and all(len(each.split()) <= 30 for each in spoken)
    seen = "document.querySelector('.tx-say').innerText"
    assert "cells open" not in page.evaluate(seen)
    page.focus(".tx-say summary")
    page.press("Enter")
    assert "cells open" in page.evaluate(seen)


def test_in_forced_colours_cells_and_what_is_chosen_keep_their_difference(page, several):
    page.call("Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}])
    opened(page, several)
    page.click(".tx input")
    page.settle()
    look = "[...document.querySelectorAll('{}')].map(e => getComputedStyle(e).background)"
    for kind, state in ((".tx-mask-grid .tx-cell", "pressed"), (".tx-steps .tx-token", "checked")):
        on, off = (
            set(page.evaluate(look.format(f'{kind}[aria-{state}="{is_}"]'))) for is_ in ("true", "false")
        )
        assert on and off and not on & off


def test_a_share_stands_in_its_bar_below_the_line_of_the_language_and_both_cuts_are_drawn(page, show):
    show(changed(course.widgets.sampling("Le livre"), stage=4, n_draws=100, temperature=3.0, top_p=0.8))
    top = "document.querySelector('.tx-bar {}').getBoundingClientRect().top"
    assert page.evaluate(top.format("b")) > page.evaluate(top.format("u"))
    cuts = "[...document.querySelectorAll('.tx-cut-k, .tx-cut-p')].every(e => e.offsetHeight)"
    assert page.evaluate(cuts)


def test_a_leak_is_said_on_another_ground(page, show):
    ground = "getComputedStyle(document.querySelector('.tx-say')).backgroundColor"
    seen = set()
    for where in ("before", "after"):
        show(changed(course.widgets.mask(list("abcd")), where=where))
        seen.add(page.evaluate(ground))
    assert len(seen) == 2


def test_arrow_keys_move_between_heads_as_they_are_seen(page, show):
    tokens = list("abcdefghij")
    weights = np.full((2, 6, 10, 10), 0.1)
    show(course.widgets.attention(weights, tokens))
    page.size(1000, 900)
    page.settle()
    names = "[...document.querySelectorAll('.tx-thumb small:last-child')].every(e => e.offsetHeight)"
    assert page.evaluate(names)  # what a head does is seen, however many there are
    columns = "getComputedStyle(document.querySelector('.tx-thumbs')).getPropertyValue('--heads')"
    assert page.evaluate(columns) == "3"
    place = "(b => [b.left, b.top])(document.activeElement.getBoundingClientRect())"
    page.focus(".tx-thumbs [tabindex='0']")
    left, top = page.evaluate(place)
    page.press("ArrowDown")
    page.settle()
    assert page.evaluate(place)[0] == pytest.approx(left, abs=2) and page.evaluate(place)[1] > top
    page.press("ArrowRight")
    page.settle()
    assert page.evaluate(place)[0] > left + 9


def speed(page, rate):
    """Slow animations down, so that what is looked at while they run is not gone on a busy machine."""
    page.call("Animation.enable")
    page.call("Animation.setPlaybackRate", playbackRate=rate)


def test_without_motion_nothing_flies_and_the_end_is_there_at_once(page, show):
    chips = []
    for features in ([], [STILL]):
        page.call("Emulation.setEmulatedMedia", features=features)
        show(CASES["one_query"].make())
        speed(page, 0.02)
        page.click(".tx-steps .tx-token", 5)
        page.settle()
        chips.append(len(page.all(".tx-fly")))
    assert chips[0] > 1 and chips[1] == 0


def test_a_product_is_there_when_its_weight_has_landed_and_the_context_is_their_sum(page, show):
    show(CASES["one_query"].make())
    speed(page, 0.02)
    page.click(".tx-steps .tx-token", 5)
    page.settle()
    hidden = "document.querySelectorAll('tbody .tx-vec[style*=hidden]').length"
    total = "[...document.querySelectorAll('tfoot .tx-vec-numbers span')].map(e => e.textContent).join(', ')"
    assert page.evaluate(hidden) == 3 and page.evaluate(total) == "0.00, 0.00, 0.00"
    speed(page, 1)
    page.wait("!document.querySelector('.tx-fly')")
    assert page.evaluate(hidden) == 0
    assert f"context ({page.evaluate(total)})" in page.all(".tx-say")[0]


def test_the_causal_mask_is_put_on_by_key_and_shows_what_it_hides(page, show):
    words, numbers = list("abcd"), np.eye(4)
    explorer = course.widgets.one_query(numbers, numbers, numbers, tokens=words, query=3)
    show(explorer)
    page.focus(".tx-further summary")
    page.press("Enter")
    page.focus(".tx-further input")
    page.press(" ")
    page.settle()
    assert "Key 2 “c” is blocked: its score 0.00 becomes −∞." in page.all(".tx-say")[0]
    assert len(page.all("tbody .tx-no")) == 2  # the last hides none
    page.wait("location.hash.includes('allowed=1,0,0,0,1,1,0,0,')")
    page.press(" ")
    page.settle()
    assert "No key is masked here." in page.all(".tx-say")[0]


def test_a_key_takes_away_the_note_at_the_pointer(page, show):
    show(CASES["attention"].make())
    page.drag(*relative(page, ".tx-matrix", [(0.2, 0.9), (0.4, 0.9)]))
    assert not page.evaluate("document.querySelector('.tx-tip').hidden")
    page.focus("[aria-label='Query'] [tabindex='0']")
    page.press("ArrowUp")
    assert page.evaluate("document.querySelector('.tx-tip').hidden")


def test_what_is_dragged_follows_the_pointer_and_the_keys(page, several):
    opened(page, several)
    angle = 23 * 10_000 ** (-4 / 32)  # of the hand that is shown, clockwise from above
    turns = (angle, angle + 0.4, angle + 0.8)
    places = [(0.5 + 78 * math.sin(a) / 260, 0.5 - 78 * math.cos(a) / 248) for a in turns]
    page.drag(*relative(page, ".tx-dial", places))
    page.settle()
    dragged = int(page.text(".tx-look .tx-value"))
    assert dragged == round(23 + 0.8 / 10_000 ** (-4 / 32))
    page.focus(".tx-own .tx-grip")
    page.press("ArrowUp")
    page.settle()
    assert "2.25" in page.text(".tx-own .tx-grip")
    page.focus(".tx-mask-grid [tabindex='0']")
    for moved in (1, 2):
        page.press("ArrowRight")
        page.settle()
        assert f"Moving input {moved} " in page.all(".tx-say")[0]
    page.press(" ")
    page.settle()
    assert "1 cell drawn" in page.all(".tx-say")[0]


def test_the_blank_shows_what_is_probable_only_to_who_has_chosen(page, show):
    show(CASES["fill_blank"].make())
    shown = "document.querySelector('.tx-chart').checkVisibility()"
    choices = "[...document.querySelectorAll('[aria-label=\"your choice\"] .tx-token')]"
    names = page.evaluate(f"{choices}.map(e => e.textContent)")
    assert not page.evaluate(shown) and "%" not in page.all(".tx-say")[0] and len(names) > 3
    page.evaluate(f"{choices}[1].click()")
    page.settle()
    mark = "[...document.querySelectorAll('.tx-name')].filter(e => e.textContent.includes('your choice'))"
    said = page.all(".tx-say")[0]
    assert page.evaluate(shown) and f"You chose “{names[1]}”" in said
    verdict = "✓" if "✓ possible" in said else "✗"
    assert page.evaluate(f"{mark}.map(e => e.textContent.slice(0, 1))") == [verdict]
    assert page.text(".tx-word[aria-checked=true]") == (f"{names[1]} {verdict}")
    page.click(".tx-word:nth-child(2)")
    page.settle()
    assert not page.evaluate(shown) and "You chose" not in page.all(".tx-say")[0]
    tall = page.evaluate("document.querySelector('.tx').offsetHeight")
    page.focus("[aria-label='your choice'] > .tx-button")
    page.press("Enter")
    page.settle()
    assert page.evaluate("document.activeElement.matches('.tx-chart')")  # not lost with the button
    assert abs(page.evaluate("document.querySelector('.tx').offsetHeight") - tall) < 25


def test_the_best_hypothesis_of_each_step_stands_on_top(page, show):
    show(CASES["beam_tree"].make())
    boxes = """[...document.querySelectorAll('.tx-tree g')].map(g => {
      const { x, y } = g.querySelector('rect').getBBox(), [word, number] = g.querySelectorAll('text');
      return [x, y, parseFloat(number.textContent.replace('−', '-')), word.getComputedTextLength(),
        g.querySelector('rect').getBBox().width];
    })"""
    to_5 = "(i => { i.value = 5; i.dispatchEvent(new Event('input')); })"
    page.evaluate(f"{to_5}(document.querySelector('.tx-steps input'))")
    page.settle()
    found = page.evaluate(boxes)
    assert len(found) > 6 and all(long <= wide for *_, long, wide in found)
    for x in {x for x, *_ in found}:
        column = [p for _, p in sorted((y, p) for at, y, p, *_ in found if at == x)]
        assert column == sorted(column, reverse=True)


@pytest.mark.parametrize(
    "state", ["view=0", "view=2&n_layers=24", "view=3&n_layers=24", "view=3&seq_len=4096"]
)
@pytest.mark.parametrize("width", [1280, 390])
def test_names_in_the_count_explorer_cover_nothing_and_are_whole(page, show, state, width):
    page.size(width, 800)
    show(course.widgets.count(), f"#count?{state}")
    covered = """(() => {
      const all = (which) => [...document.querySelectorAll(which)].filter((e) => e.checkVisibility());
      const placed = (which) =>
        all(which).filter((e) => e.textContent).map((e) => [e.textContent, e.getBoundingClientRect()]);
      const names = placed(".tx-ghost span"), tiles = placed(".tx-tile > *");
      const meet = ([, a], [, b]) =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
      const over = names.flatMap((name, i) =>
        [...names.slice(i + 1), ...tiles].filter((e) => meet(name, e)).map((e) => [name[0], e[0]]));
      const cut = all(".tx-tile:not(.tx-tiny)")
        .filter((e) => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1);
      return [tiles.length, over, cut.map((e) => e.textContent)];
    })()"""
    n, over, cut = page.evaluate(covered)
    assert n and over == [] and cut == [], (n, over, cut)


@pytest.mark.parametrize("width", [1100, 1000, 800, 390])
def test_the_attention_of_a_long_text_stays_on_its_card(page, show, width):
    weights = np.random.default_rng(0).dirichlet(np.ones(26), size=(2, 8, 26))
    page.size(width, 900)
    show(course.widgets.attention(weights, [f"word{n}" * (1 + n % 3) for n in range(26)]))
    beyond = """(() => {
      const card = document.querySelector(".tx").getBoundingClientRect();
      return [...document.querySelectorAll(".tx-answers > li > *, .tx-thumb, .tx-ask, .tx-matrix")]
        .map((e) => e.getBoundingClientRect())
        .filter((e) => e.right > card.right || e.left < card.left).length;
    })()"""
    assert page.evaluate(beyond) == 0


def test_the_picture_is_where_the_slider_is_however_fast_and_play_is_summed_up_while_it_runs(page, show):
    show(course.widgets.positions())
    move = """(async () => {
      const sliders = document.querySelectorAll('.tx-look input');
      const to = (i, by) => {
        sliders[i].value = +sliders[i].value + by;
        sliders[i].dispatchEvent(new Event("input"));
      };
      const frame = () => new Promise(requestAnimationFrame);
      to(0, 1); await frame(); await frame(); to(0, 9);
      await new Promise((r) => setTimeout(r, 300)); to(2, 1);
    })()"""
    page.evaluate(move)
    page.settle()
    label = page.evaluate("document.querySelector('.tx-clocks').getAttribute('aria-label')")
    assert label.startswith("16 clocks at position 33; hand 3, "), label
    said = page.text(".tx-say")
    page.click(".tx-play")
    page.wait(f"document.querySelector('.tx-say').textContent !== {said!r}")
    assert page.evaluate("document.querySelector('.tx-play').getAttribute('aria-pressed')") == "true"
