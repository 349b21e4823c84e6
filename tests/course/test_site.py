"""Formulas without a script, and pages that a screen reader and a phone can use."""

import re
import xml.etree.ElementTree as ET

import nbformat
import pytest

import tinytx_course as course
from tinytx_course.building.notebooks import Run
from tinytx_course.lessons import LESSONS
from tinytx_course.site.formulas import to_mathml
from tinytx_course.site.pages import index_page, markdown_to_html, page, style_sheet

FORMULAS = [
    r"\operatorname{softmax}\left(\frac{QK^\top}{\sqrt{d}}\right)V",
    r"\mathrm{PE}(pos, 2i) = \sin\left(\frac{pos}{10000^{2i/d}}\right)",
    r"R(k)=\begin{pmatrix}\cos k & -\sin k\\ \sin k & \cos k\end{pmatrix}",
    r"\begin{aligned}a &= b\\ c &= d\end{aligned}",
    r"\operatorname*{argmax}_x \log P(x \mid y), \quad x_1, \dots, x_T \in \mathbb{R}^{T \times D}",
    r"x < y > z",
]


@pytest.mark.parametrize("latex", FORMULAS)
def test_a_formula_becomes_well_formed_mathml_without_latex_left(latex):
    markup = to_mathml(latex, block=True)
    tree = ET.fromstring(markup)
    assert tree.tag.endswith("math") and tree.get("display") == "block"
    assert "\\" not in "".join(tree.itertext())
    assert "&" not in "".join(tree.itertext())


@pytest.mark.parametrize("latex", [r"\nosuchcommand x", r"a & b", r"\frac{1}"])
def test_a_formula_that_cannot_be_drawn_is_refused(latex):
    with pytest.raises(ValueError, match="formula"):
        to_mathml(latex)


def test_formulas_are_found_in_prose_and_dollars_in_code_are_left_alone():
    html = markdown_to_html("Inline $x^2$, block\n\n$$\\frac{1}{2}$$\n\nand `cost = $5` in code.")
    assert html.count("<math") == 2
    assert 'display="block"' in html
    assert "<code>cost = $5</code>" in html


def contrast(one, other):
    """Return the contrast of two colours as WCAG 2 defines it."""

    def luminance(color):
        values = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_and_code_differ_enough_from_their_ground_in_light_and_dark():
    sheet = style_sheet()
    for theme, code in zip(
        re.findall(r":root \{(.*?)\}", sheet, re.S),
        sheet.rsplit("@media (prefers-color-scheme: dark)", 1),
        strict=True,
    ):
        colors = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", theme))
        for ground in ("ground", "raised"):
            for ink in ("ink", "soft", "accent", "warn"):
                assert contrast(colors[ink], colors[ground]) >= 4.5, (ink, ground)
        inks = re.findall(r"\.highlight \.(?!w )[\w-]+ \{ color: (#[0-9a-fA-F]{6})", code)
        assert len(set(inks)) > 5 and min(contrast(ink, colors["code"]) for ink in inks) >= 4.5


def lesson_page(*outputs, seconds=None):
    cells = [nbformat.v4.new_code_cell("1 + 1", outputs=list(outputs))]
    run = Run(lesson=LESSONS[2], notebook=nbformat.v4.new_notebook(cells=cells), seconds=seconds)
    return page(run, LESSONS[1], LESSONS[3])


def test_a_page_has_a_script_where_there_is_an_explorer_and_then_once():
    plain = lesson_page()
    assert "<script" not in plain
    assert "<pre>" not in plain and '<pre tabindex="0">' in plain  # keys alone can scroll code
    html = course.widgets.mask(["it's", '"so"']).to_html()  # both kinds of quotation marks
    output = nbformat.v4.new_output("display_data", data={"text/html": html, "text/plain": "a mask"})
    shown = lesson_page(output, output)
    assert shown.count("<script") == 1 and shown.count('data-tx-kind="mask"') == 2
    assert shown.count("function paintCells") == 1 and shown.count(".tx-mask-grid {") == 1


def test_a_page_links_its_neighbours_and_says_how_long_it_ran_if_it_did():
    shown = lesson_page(seconds=80.0)
    assert re.findall(r'rel="(prev|next)" href="([^"]+)"', shown) == [
        ("prev", f"{LESSONS[1].name}.html"), ("next", f"{LESSONS[3].name}.html"),
    ]  # fmt: skip
    assert "ran in 1 min 20 s" in shown and "ran in" not in lesson_page()


def test_the_index_shows_every_lesson_and_links_none_that_has_no_page(tmp_path):
    assert index_page([], tmp_path).count('<li><div class="card waiting">') == len(LESSONS)
    (tmp_path / f"{LESSONS[3].name}.html").write_text("from an earlier run")
    shown = index_page([], tmp_path)
    assert re.findall(r'<a class="card" href="([^"]+)"', shown) == [f"{LESSONS[3].name}.html"]
    assert '<meta name="viewport"' in shown and '<html lang="en">' in shown


def test_the_style_of_tables_spares_those_of_explorers():
    """A table laid out as a block squeezed the bars of an explorer to nothing."""
    rules = re.findall(r"^(\.rendered_html [^{]*\b(?:table|th|td)\b[^{]*)\{", style_sheet(), re.M)
    assert len(rules) >= 3
    assert all(":not(.tx *)" in rule for rule in rules)
