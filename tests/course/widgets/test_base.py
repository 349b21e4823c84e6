"""What all explorers share: the HTML they make, the bundle they show, the files of their JavaScript."""

import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import anywidget
import pytest
import traitlets

import tinytx_course as course
import tinytx_course.progress.predictions
from tests.browser.cases import CASES
from tinytx_course.widgets.assets import (
    compact_style,
    engine_script,
    module_source,
    page_script,
    shared_files,
    style_sheet,
)
from tinytx_course.widgets.base import Explorer
from tinytx_course.widgets.live_model import LiveText

FOLDER = files("tinytx_course.widgets").joinpath("js")
KINDS = sorted(p.name[:-3] for p in FOLDER.iterdir() if p.name.endswith(".js") and not p.name.startswith("_"))


def test_html_holds_text_and_state_and_no_script():
    explorer = course.widgets.mask(["it's", "a", "<b>", "&amp;", 'say "hi"'])
    tags, words = [], []
    reader = HTMLParser()
    reader.handle_starttag = lambda tag, attrs: tags.append((tag, dict(attrs)))
    reader.handle_data = words.append
    reader.feed(explorer.to_html())
    assert [tag for tag, _ in tags] == ["div", "p", "strong"]
    assert "".join(words).startswith(repr(explorer)) and explorer.summary() in repr(explorer)
    content = json.loads(tags[0][1]["data-tx-explorer"])
    assert tags[0][1]["data-tx-kind"] == "mask"
    assert content["state"]["tokens"] == explorer.tokens and content["state"]["title"] == explorer.title
    assert set(content["buffers"]) == {"inputs", "maps", "push"}


def test_the_page_and_python_share_one_checked_state():
    explorer = course.widgets.mask(["a", "b", "c"])
    bundle, _ = explorer._repr_mimebundle_()
    view = bundle["application/vnd.jupyter.widget-view+json"]
    assert set(bundle) == {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
    assert view["model_id"] == explorer.model_id
    explorer.set_state({"causal": False, "moved": 2})  # what a message from the page does
    assert (explorer.causal, explorer.moved) == (False, 2)
    with pytest.raises(ValueError, match=r"moved .* 0\.\.2, got 3"):
        explorer.set_state({"moved": 3})
    assert explorer.get_state("inputs")["inputs"] == explorer.inputs
    assert explorer.get_state("_esm")["_esm"] == module_source("mask")
    assert explorer.get_state("_css")["_css"] == style_sheet(["mask"])


@pytest.mark.parametrize("kind", KINDS)
def test_an_explorer_and_its_module_fit_together(kind):
    kinds = [*Explorer.__subclasses__(), *LiveText.__subclasses__()]
    (explorer,) = [c for c in kinds if getattr(c, "kind", "") == kind]
    if explorer.__module__.startswith("tinytx_course.widgets."):  # others are cards that ask
        assert callable(getattr(course.widgets, kind)) and kind in course.widgets.__all__
    assert not [name for name in explorer.class_own_traits() if hasattr(anywidget.AnyWidget, name)]
    source = FOLDER.joinpath(f"{kind}.js").read_text(encoding="utf-8")
    assert not re.search(r"\bimport\b *[({\"'*\w]", source)
    *lines, last = source.rstrip().splitlines()
    assert re.fullmatch(rf'export default explorer\("{kind}", {{ build, describe(, keep)? }}\);', last)
    for line in lines:  # of the forms that `page_script` unwraps
        assert "export" not in line or line.startswith(("export function ", "export const ")), line
    assert not re.search(r"</(script|style)", source + style_sheet([kind]), re.I)


def test_a_page_with_all_explorers_holds_shared_code_once_asks_for_nothing_and_is_small():
    script, style = page_script(KINDS), style_sheet(KINDS)
    assert script.count("function paintCells") == 1 and "export " not in script
    assert all(f"EXPLORERS.{kind} = " in script for kind in KINDS)
    assert set(re.findall(r"https?:[^\"']*", script + style)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\bimport *\(|url\(|@import|(src|href)=[\"'](?!data:)", script + style)
    parts = re.split(r"^:where\((.*)\) \{\n", style, flags=re.M)
    assert parts[1::2] == [f'.tx[data-kind="{kind}"]' for kind in KINDS]
    assert all(part.count("{") + 1 == part.count("}") for part in parts[2::2])
    assert len(script) + len(compact_style(style)) - len(engine_script(KINDS)) < 410_000
    assert len(course.widgets.positions(512, 256).to_html()) < 1_000  # the page computes the table
    assert engine_script(["mask"]) == "" and set(shared_files(["mask"])) == {"explorers.js"}
    assert set(shared_files(["playground"])) == {"explorers.js", "training.js"} and not shared_files([])
    for kind, of_page, of_state in (("live_model", 1_500_000, 2_000), ("playground", 500_000, 3_000)):
        assert len(page_script([kind])) + len(style_sheet([kind])) < of_page
        assert len(getattr(course.widgets, kind)().to_html()) < of_state


def test_the_address_of_a_page_is_read_and_written_and_what_is_not_allowed_is_left_out(node):
    address = json.dumps(FOLDER.joinpath("_address.js").read_text(encoding="utf-8").replace("export ", ""))
    functions = f"new Function({address} + '; return {{ valueFrom, valueText, addressParts }};')()"
    parts = (
        "[...a.addressParts('#mask?causal=0&drawn=1,3;shapes;mask2?x=;a?b?c')].map(([k, v]) => [k, [...v]])"
    )
    values = {
        "a.valueFrom('0', true, null)": False, "a.valueFrom('2', true, null)": None,
        "a.valueFrom('7', 1, [0, 7])": 7, "a.valueFrom('8', 1, [0, 7])": None,
        "a.valueFrom('1.5', 1, [0, 7])": None, "a.valueFrom('1.5', 1, [0, 7, 'real'])": 1.5,
        "a.valueFrom('', 1, [0, 7])": None, "a.valueFrom('x', 1, [0, 7])": None,
        "a.valueFrom('after', 'before', ['before', 'after'])": "after",
        "a.valueFrom('never', 'before', ['before', 'after'])": None,
        "a.valueFrom('1,3', [], [0, 7])": [1, 3], "a.valueFrom('1,9', [5], [0, 7])": None,
        "a.valueFrom('', [5], [0, 7])": [],
        "a.valueFrom('un%2C%20deux,trois', [], (word) => word !== '')": ["un, deux", "trois"],
        "a.valueText(['un, deux', 'é'])": "un%2C%20deux,%C3%A9", "a.valueText(true)": "1",
        parts: [["mask", [["causal", "0"], ["drawn", "1,3"]]], ["shapes", []], ["mask2", [["x", ""]]]],
    }  # fmt: skip
    ((*found,),) = node("mask", f"((a) => [{', '.join(values)}])({functions})")
    assert found == list(values.values())


def test_keys_pass_over_what_is_hidden_in_a_group(node):
    expression = """(() => {
      let press, focus = null;
      const box = { addEventListener(_, listen) { press = listen; } }, went = [];
      const elements = [0, 0, 1, 0, 1].map((hidden, i) => ({ hidden: !!hidden, focus() { focus = i; } }));
      js.roving(box, elements, { go: (i) => went.push(i) })(0);
      const key = (key, at) => press({ key, target: elements[at], preventDefault() {} });
      key("End", 0), key("ArrowRight", 1), key("ArrowRight", 3), key("ArrowLeft", 3), key("Home", 3);
      return [went, focus, elements.map(({ tabIndex }) => tabIndex)]; })()"""
    ((went, focus, stops),) = node("mask", expression)
    assert went == [3, 3, 1, 0] and focus == 0 and stops == [0, -1, -1, -1, -1]


NO_CHOICES = {"brief", "d_model", "n_steps", "moment", "guess", "revealed"}  # made so, reached, or an answer


@pytest.mark.parametrize("kind", sorted(CASES.keys() - {"by_hand", "parsons"}))  # cards have no link
def test_a_link_holds_every_choice_of_an_explorer(node, kind):
    explorer = CASES[kind].make()
    choices = {
        name
        for name in explorer.state()
        if isinstance(one := explorer.traits()[name], (traitlets.Enum, traitlets.Bool))
        or "bounds" in one.metadata
    }
    (kept,) = node(kind, "Object.keys(js.default.keep(get))", explorer)
    assert choices - set(kept) <= NO_CHOICES
