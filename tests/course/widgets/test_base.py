"""What all explorers share: the page they make, the bundle they show, the files of their JavaScript."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

import tinytx_course as course
from tinytx_course.widgets.assets import explorers_in, module_source, page_script, shared_source, style_sheet
from tinytx_course.widgets.base import fixed, listed, numbers, percent

FOLDER = files("tinytx_course.widgets").joinpath("js")
FILES = [path.name for path in FOLDER.iterdir()]
KINDS = sorted(name[:-3] for name in FILES if name.endswith(".js") and not name.startswith("_"))


class Reader(HTMLParser):
    """Collects what a page holds, in the order of its elements."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words += data


def test_html_holds_summary_picture_and_state_and_no_script():
    explorer = course.widgets.mask(["it's", "a", "<b>", "&amp;", 'say "hi"'], moved=2)
    reader = Reader(explorer.to_html())
    assert [tag for tag, _ in reader.tags] == ["div", "div", "p", "strong", "img"]
    assert " ".join(reader.words.split()) == f"Mask explorer. {explorer.describe()}"
    content = json.loads(reader.tags[0][1]["data-tx-explorer"])
    assert reader.tags[0][1]["data-tx-kind"] == "mask"
    assert content["state"]["tokens"] == explorer.tokens
    assert set(content["buffers"]) == {"inputs", "maps", "push"}
    picture = reader.tags[-1][1]
    assert picture["src"].startswith("data:image/png;base64,") and picture["alt"]


def test_a_page_asks_for_nothing_and_is_small(tmp_path):
    path = course.widgets.mask().save_html(tmp_path / "mask.html")
    page = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:", page.replace("http://www.w3.org/2000/svg", ""))
    assert not re.search(r"\bimport *\(|url\(|@import|(src|href)=[\"'](?!data:)", page)
    assert len(page.encode()) < 100_000
    assert [path.name for path in tmp_path.iterdir()] == ["mask.html"]


def test_a_page_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    explorer = course.widgets.mask()

    def refuse(*_):
        raise OSError("no")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no"):
        explorer.save_html(tmp_path / "mask.html")
    assert list(tmp_path.iterdir()) == []


def test_the_bundle_offers_the_live_view_and_the_page_and_they_share_one_state():
    pytest.importorskip("anywidget")
    explorer = course.widgets.mask(["a", "b", "c"])
    bundle = explorer._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
    explorer.widget.set_state({"causal": False, "moved": 2})  # what a message from the page does
    assert (explorer.causal, explorer.moved) == (False, 2)
    explorer.where = "after"
    assert explorer.widget.where == "after"
    assert explorer.widget.get_state("inputs")["inputs"] == explorer.inputs


@pytest.mark.parametrize("name", [name for name in course.widgets.__all__ if name.endswith("Explorer")])
def test_no_trait_takes_a_name_that_a_widget_needs_itself(name):
    anywidget = pytest.importorskip("anywidget")
    assert not set(getattr(course.widgets, name).class_traits(sync=True)) & set(dir(anywidget.AnyWidget))


def test_without_anywidget_an_explorer_is_a_picture_and_a_page(root, tmp_path):
    code = """
import sys
sys.modules["anywidget"] = None
import tinytx as tx
explorer = course.widgets.mask()
assert set(explorer._repr_mimebundle_()) == {"text/plain", "text/html"}
explorer.save_html(sys.argv[1])
"""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "x.html")], env=environment, check=True)
    assert "tx-explorer" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_the_explorers_themselves_import_neither_anywidget_nor_a_plotting_library(root):
    code = (
        "import sys, tinytx; tinytx.widgets.mask().to_html(); "
        "print({'anywidget', 'ipywidgets', 'matplotlib'} & set(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(root)}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == "set()", found.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_imports_nothing_and_ends_in_its_one_default_export(kind):
    source = FOLDER.joinpath(f"{kind}.js").read_text(encoding="utf-8")
    assert not re.search(r"\bimport\b *[({\"'*\w]", source)
    lines = source.rstrip().splitlines()
    assert lines[-1] == "export default explorer({ build, describe });"
    assert sum("export default" in line for line in lines) == 1
    for line in lines[:-1]:
        assert "export" not in line or line.startswith(("export function ", "export const ")), line
    assert not re.search(r"</(script|style)", source + style_sheet([kind]), re.I)
    assert module_source(kind) == f"{shared_source()}\n{source}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_explorer_can_be_asked_for_by_name(kind):
    explorer = getattr(course.widgets, kind)
    assert callable(explorer) and kind in course.widgets.__all__


def test_a_page_with_all_explorers_holds_what_they_share_once():
    script = page_script(KINDS)
    assert script.count("function paintCells") == 1 and "export " not in script
    for kind in KINDS:
        assert f"EXPLORERS.{kind} = " in script
    assert len(script) + len(style_sheet(KINDS)) < 200_000


def test_explorers_are_found_in_a_page():
    assert explorers_in(f"<p>before</p>{course.widgets.mask().to_html()}") == {"mask"}


def test_numbers_become_words_as_in_javascript(node):
    values = [0.125, 0.375, 2.5, -0.125, 1e-9, 123.456, 0.005]
    (found,) = node("mask", f"{json.dumps(values)}.map((x) => [x.toFixed(2), js.percent(x)])")
    assert found == [[fixed(value, 2), percent(value)] for value in values]
    runs = [[], [3], [1, 2], [0, 1, 2, 5, 7, 8, 9]]
    assert node("mask", f"{json.dumps(runs)}.map(js.listed)") == [[listed(run) for run in runs]]


@pytest.mark.parametrize("seed", range(3))
def test_shared_formulas_equal_numpys(node, seed):
    random = np.random.default_rng(seed)
    n, k, m = random.integers(1, 9, 3)
    a, b = random.normal(size=(n, k)), random.normal(size=(k, m))
    scores, allowed = random.normal(0, 5, n), random.random(n) < 0.7
    powers = np.exp(scores - scores.max()) * allowed
    shares = powers / powers.sum() if powers.sum() else powers
    bits = -sum(p * np.log2(p) for p in shares if p)
    expression = (
        f"[js.matmul({a.ravel().tolist()}, {b.ravel().tolist()}, {n}, {k}, {m}), "
        f"js.softmax({scores.tolist()}, {allowed.astype(int).tolist()}), js.entropy({shares.tolist()})]"
    )
    ((product, soft, entropy),) = node("mask", expression)
    np.testing.assert_allclose(np.reshape(product, (n, m)), a @ b, atol=1e-5)
    np.testing.assert_allclose(soft, shares, atol=1e-5)
    assert entropy == pytest.approx(bits, abs=1e-5)


def test_numbers_must_be_finite_and_have_the_axes_asked_for():
    with pytest.raises(ValueError, match=r"weights must have 2 axes, none of them empty, got shape \(3,\)"):
        numbers([1, 2, 3], "weights", 2)
    with pytest.raises(ValueError, match="weights must be finite, got NaN or infinity"):
        numbers([[float("nan")]], "weights", 2)
