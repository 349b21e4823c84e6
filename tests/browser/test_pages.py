"""Explorers in a page opened from the disk, with no kernel and no network."""

import pytest

import tinytx_course as course
from experiments.chromium import write_page
from tinytx_course.site.bare import with_tries

SUMMARY = "document.querySelector('.tx-say').textContent"
# What can be seen: pixels of canvases, and elements with their attributes.
LOOK = """(() => [...document.querySelectorAll('.tx canvas')].map(c => c.toDataURL()).join()
  + document.querySelector('.tx').innerHTML)()"""


def still(page):
    """Wait until nothing moves any more; return how the explorer looks."""
    before, look = None, page.evaluate(LOOK)
    while look != before:
        page.settle()
        before, look = look, page.evaluate(LOOK)
    return look


def relative(page, selector, points):
    """Return points of an element in pixels of the window."""
    page.place(selector)
    return [page.place(selector, across, down) for across, down in points]


@pytest.fixture
def opened(case, show):
    """The explorer behind a page, opened."""
    show(case.make())
    return case.make()


def test_it_is_named_whole_at_any_width_on_paper_and_as_text_without_scripts(opened, page):
    assert page.all(".tx", "e.getAttribute('aria-label')") == [opened.title]
    assert page.all(".tx-still", "getComputedStyle(e).display") == ["none"]
    assert page.outside() == []
    sticks_out = """!e.closest('.tx-scroll, [hidden]') && e.getClientRects().length
      && e.getBoundingClientRect().right > e.closest('.tx').getBoundingClientRect().right + 1
      && e.outerHTML.slice(0, 80)"""
    for width in (360, 768, 1920):
        page.size(width, 900)
        page.settle()
        assert page.width() <= width
        assert [one for one in page.all(".tx *", sticks_out) if one] == []
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.all(".tx", "e.getBoundingClientRect().height")[0] > 200
    page.call("Emulation.setEmulatedMedia", media="screen")
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.reload()
    (text,) = page.all(".tx-still", "e.innerText")
    assert text.startswith(f"{opened.title}. {opened.summary()}".replace("?. ", "? "))
    page.call("Emulation.setScriptExecutionDisabled", value=False)


def test_a_key_and_the_mouse_change_picture_and_summary_and_another_key_brings_them_back(opened, case, page):
    selector, key, back, _ = case.keys
    page.focus(selector)
    page.settle()
    look, summary = page.evaluate(LOOK), page.evaluate(SUMMARY)
    page.press(key)
    page.settle()
    assert page.evaluate(LOOK) != look and page.evaluate(SUMMARY) != summary
    page.press(back)
    page.settle()
    assert page.evaluate(SUMMARY) == summary
    selector, points, _ = case.mouse
    look = page.evaluate(LOOK)
    page.drag(*relative(page, selector, points))
    page.settle()
    assert page.evaluate(LOOK) != look and page.evaluate(SUMMARY) != summary
    assert page.outside() == []


def test_state_outlives_a_change_of_theme_and_width(opened, case, page):
    page.focus(case.keys[0])
    page.press(case.keys[1])
    look, summary = still(page), page.evaluate(SUMMARY)
    page.evaluate("window.controls = [...document.querySelectorAll('.tx :is(button, input, select)')]")
    page.size(500, 900, dark=True)
    page.settle()
    assert page.evaluate(SUMMARY) == summary
    assert page.evaluate("controls.every(e => e.isConnected)")  # or the focus would be lost
    page.size(1200, 1000)
    assert still(page) == look


def test_tab_reaches_every_control_and_leaves(opened, page):
    """Each control takes the focus once on the way through, refuses JupyterLab's shortcuts, and shows it."""
    still(page)  # while a model loads, controls change
    wanted = page.evaluate(
        """(() => { document.querySelectorAll('.tx details').forEach(e => { e.open = true; });
          const all = [...document.querySelectorAll('.tx :is(button, input, select, [tabindex])')];
          all.forEach((e, i) => { e.dataset.number = i; });
          const groups = new Set(), open = e => !all.some(other => other.name === e.name && other.checked);
          return all.filter(e => !e.disabled && e.tabIndex >= 0 && !e.closest('[hidden]')
            && (e.type !== 'radio' || ((e.checked || open(e)) && !groups.has(e.name) && groups.add(e.name))))
            .map(e => e.dataset.number); })()"""
    )
    assert wanted
    page.evaluate("document.body.focus()")
    seen, bare = [], []
    for _ in range(len(wanted) + 2):
        page.press("Tab")
        found = page.evaluate(
            """(e => e && e.dataset.number ? [e.dataset.number, e.hasAttribute('data-lm-suppress-shortcuts'),
              getComputedStyle(e).outlineStyle] : null)(document.activeElement)"""
        )
        if found:
            seen.append(found[0])
            bare += [found] if not found[1] or found[2] == "none" else []
    assert bare == []
    assert set(wanted) <= set(seen)


def test_two_of_a_kind_in_one_page_are_independent(case, page, show):
    show(case.make(), html=2 * case.make().to_html())
    page.wait("[...document.querySelectorAll('.tx-say')].filter(e => e.textContent).length === 2")
    ids = page.all("[id]", "e.id")
    assert len(ids) == len(set(ids))
    before = page.all(".tx-say")[1]
    page.focus(case.keys[0])
    page.press(case.keys[1])
    page.settle()
    first, second = page.all(".tx-say")
    assert second == before != first


def test_an_explorer_that_fails_leaves_its_text(browser, tmp_path):
    explorer = course.widgets.mask()
    html = explorer.to_html().replace('data-tx-kind="mask"', 'data-tx-kind="nosuch"')
    path = write_page(explorer, tmp_path / "broken.html", html)
    with browser.page() as tab:
        tab.open(path.as_uri())
        tab.settle()
        assert explorer.summary() in tab.evaluate("document.querySelector('.tx-still').innerText")
        assert len(tab.errors) == 1


def test_a_first_picture_that_fails_leaves_the_text_and_holds_up_no_other_explorer(browser, tmp_path):
    explorer = course.widgets.mask()
    html = f'<div class="later" hidden>{2 * explorer.to_html()}</div>'
    path = write_page(explorer, tmp_path / "two.html", html)
    with browser.page() as tab:
        tab.open(path.as_uri())
        tab.settle()
        tab.evaluate("""(({ prototype }, real = prototype.setAttribute) => {
          prototype.setAttribute = () => { prototype.setAttribute = real; throw new Error("planted"); };
          document.querySelector(".later").hidden = false;
        })(Element)""")
        tab.settle()
        assert tab.all("p.tx-still", "e.checkVisibility()") == [True, False]
        (said,) = tab.all(".tx-say > [role=status]")
        assert said and len(tab.errors) == 1


def step_of(page):
    """Return the step to try that can be seen."""
    shown = page.all(".tx-tries > a, .tx-tries > .tx-end", "e.checkVisibility({ visibilityProperty: true })")
    assert shown.count(True) == 1
    return page.text(".tx-tries > .tx-now")


def test_a_step_to_try_is_done_by_keys_and_its_question_stays_until_the_next(page, show):
    explorer = course.widgets.mask(["le", "roman", "est", "beau"])
    show(explorer, html=with_tries(explorer.to_html(), "mask", "mask"))
    tall = page.evaluate("document.querySelector('.tx-tries').offsetHeight")
    assert step_of(page).startswith("Open the future")
    page.focus(".tx-control input[type='range']")  # the window: not what is asked
    page.press("ArrowRight")
    page.settle()
    page.settle()
    assert step_of(page).startswith("Open the future")
    page.focus(".tx-toggle input")
    page.press(" ")
    page.wait("document.querySelector('.tx-tried [href]')")
    assert step_of(page).startswith("Open the future")  # its question stays until the next is asked for
    assert page.text(".tx-tries [role=status]") == "Done: step 1 of 3."
    page.click(".tx-tries .tx-button")
    assert step_of(page).startswith("Set blocked cells")
    assert page.all(".tx-tried a") == ["✓", "2", "3"]
    assert page.evaluate("document.querySelector('.tx-tries').offsetHeight") == tall
    page.click(".tx-tried [href]")  # back to what was done, which does not undo it
    page.settle()
    page.settle()
    assert page.all(".tx-tried a") == ["✓", "2", "3"]


def test_a_step_to_try_is_done_by_a_drag_that_ends_far_enough(page, show):
    explorer = course.widgets.count()
    show(explorer, html=with_tries(explorer.to_html(), "count", "count"))
    page.drag(*relative(page, ".tx-size-T input", [(0.6, 0.5), (0.2, 0.5)]))
    page.settle()
    page.settle()
    assert step_of(page).startswith("Read 2,048 tokens")
    page.drag(*relative(page, ".tx-size-T input", [(0.2, 0.5), (0.9, 0.5)]))
    page.wait("document.querySelector('.tx-tried [href]')")
