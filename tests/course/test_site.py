"""Formulas without a script, and pages that a screen reader and a phone can use."""

import ast
import base64
import html
import inspect
import io
import json
import re
import xml.etree.ElementTree as ET

import nbformat
import numpy as np
import pytest
import segno
from PIL import Image

import tinytx as tx
import tinytx_course as course
from tests.course.contrast import contrast
from tests.course.test_sources import cells_of
from tests.environments import published
from tinytx_course.building.editions import mark_further
from tinytx_course.building.notebooks import Run
from tinytx_course.lessons import LESSONS, by_course
from tinytx_course.site import figures, finding, pages
from tinytx_course.site.cells import code_style, markdown_to_html, notebook_to_html, without_predictions
from tinytx_course.site.finding import contents, search_index
from tinytx_course.site.formulas import to_mathml
from tinytx_course.site.front import CARD_FIGURES, course_map
from tinytx_course.site.linking import DOCUMENTED, Linker, citations, names
from tinytx_course.site.pages import index_page, page, style_sheet, write_site
from tinytx_course.site.reference import docstring_to_html, reference_body
from tinytx_course.site.typography import typographic
from tinytx_course.terms import terms, terms_table
from tinytx_course.widgets.assets import shared_files

v4 = nbformat.v4

FORMULAS = [
    r"\text{rms\_norm}(x) = 5\,\%",
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
    shown = markdown_to_html("Inline $x^2$, block\n\n$$\\frac{1}{2}$$\n\nand `cost = $5` in code.")
    assert shown.count("<math") == 2
    assert 'display="block"' in shown
    assert "<code>cost = $5</code>" in shown


def test_text_and_code_differ_enough_from_their_ground_in_light_and_dark():
    pairs = dict(re.findall(r"--([\w-]+): ?(light-dark\([^)]+\))", style_sheet()))
    code = re.findall(r"color: (light-dark\([^)]+\))", code_style())
    for theme in (0, 1):
        colors = {name: re.findall(r"#[0-9a-f]{6}", pair)[theme] for name, pair in pairs.items()}
        for ground in ("ground", "raised"):
            for ink in ("ink", "soft", "accent", "warn"):
                assert contrast(colors[ink], colors[ground]) >= 4.5, (ink, ground)
        for light, dark in figures.INKS.items():
            if light != "#e6e6e6":  # the grid is to be faint
                assert contrast((light, dark)[theme], colors["raised"]) >= (3 if theme else 1.5)
        inks = {re.findall(r"#[0-9a-fA-F]{6}", pair)[theme] for pair in code}
        assert len(inks) > 5 and min(contrast(ink, colors["code"]) for ink in inks) >= 4.5


def displayed(kind, content, texts=None):
    return v4.new_output("display_data", data={kind: content}, metadata={kind: texts} if texts else {})


def lesson_page(*outputs, text=None):
    cells = [v4.new_code_cell("1 + 1", outputs=list(outputs))]
    cells += [v4.new_markdown_cell(text)] if text else []
    return page(Run(lesson=LESSONS[2], notebook=v4.new_notebook(cells=cells)), LESSONS[1:4])


def cells_as_html(*cells, **options):
    return notebook_to_html(v4.new_notebook(cells=list(cells)), LESSONS[2], **options)


def test_the_script_and_style_of_an_explorer_come_once_and_only_where_there_is_one():
    mask = course.widgets.mask(["it's", '"so"']).to_html()  # both kinds of quotation marks
    output = displayed("text/html", mask)
    assert "EXPLORERS" not in lesson_page() and "explorers.js" not in lesson_page()
    shown = lesson_page(output, output)
    assert shown.count('data-tx-kind="mask"') == 2
    assert shown.count("EXPLORERS.mask = ") == 1 and shown.count(".tx-mask-grid{") == 1
    assert shown.count('src="explorers.js"') == 1 and "function paintCells" not in shown
    assert shared_files(["mask"])["explorers.js"].count("function paintCells") == 1


def test_code_has_no_empty_line_above_it_for_its_buttons():
    assert re.findall(r"\.has-copy\{([^}]*)\}", style_sheet()) == ["position:relative"]


def test_a_page_asks_for_the_font_of_formulas_only_where_there_is_one():
    link = '<link rel="stylesheet" href="math.css">'
    assert link in lesson_page(text="$x$") and link not in lesson_page(text="x")


def test_the_font_has_every_character_of_the_formulas_of_the_lessons(root):
    from fontTools.ttLib import TTFont

    has = TTFont(root / "tinytx_course" / "site" / "fonts" / "math.woff").getBestCmap()
    cells = [cell for lesson in LESSONS for cell in cells_of(lesson) if cell.cell_type == "markdown"]
    shown = markdown_to_html("\n\n".join(cell.source for cell in cells))
    used = set()
    for formula in re.findall(r"<math.*?</math>", shown, re.S):
        used |= set("".join(ET.fromstring(formula).itertext()))
    assert len(used) > 80 and {letter for letter in used if ord(letter) not in has} <= {"\n"}
    assert {0x1D465, 0x1D451} <= has.keys()  # a letter alone is drawn in italics: x, d


def test_a_page_links_its_neighbours_and_all_lessons():
    shown = lesson_page()
    assert re.findall(r'rel="(prev|next)" href="([^"]+)"', shown) == [
        ("prev", f"{LESSONS[1].name}.html"), ("next", f"{LESSONS[3].name}.html"),
    ]  # fmt: skip
    menu = shown.split("All lessons")[1].split("</nav>")[0]
    assert all(f"{lesson.number:02d} {lesson.title}" in menu for lesson in LESSONS)
    assert re.findall(r'href="(\d\d_\w+)\.html"', menu) == [lesson.name for lesson in LESSONS[1:4]]
    divisions = [name for name, *_ in by_course()]
    assert re.findall('class="course">(.*?)</li>', menu) == [typographic(name) for name in divisions]
    assert '<span class="where">Lesson 02</span>' in shown


def test_the_address_is_a_code_to_be_photographed_once_there_is_one(monkeypatch):
    assert 'class="qr"' not in lesson_page()
    monkeypatch.setattr(pages, "source_of", lambda root: "https://example.org/course?a=1&b=2")
    shown = lesson_page()
    code = shown[shown.index('<aside class="qr"') : shown.index("</aside>")]
    size = segno.make("https://example.org/course?a=1&b=2", micro=False).symbol_size(border=4)
    assert f'viewBox="0 0 {size[0]} {size[1]}"' in code and "a=1&amp;b=2</p>" in code


def test_what_a_stream_printed_in_pieces_is_one_output_and_a_bare_progress_bar_none():
    printed = [v4.new_output("stream", name="stdout", text=f"row {i}\n") for i in range(3)]
    bar = displayed("text/plain", "0%| | 0/9 [00:00<?, ?it/s]")
    bar.data["application/vnd.jupyter.widget-view+json"] = {}
    shown = lesson_page(printed[0], printed[1], bar, printed[2])
    assert "row 0\nrow 1\nrow 2" in shown and "it/s]" not in shown


def test_words_between_underscores_are_french_and_what_a_cell_prints_is_no_html():
    text = v4.new_markdown_cell("_Le roman_ is *new*, `a_b_c`, $x_1 + y_2$ and [_beau_](a_b_c.html).")
    shown = cells_as_html(text, v4.new_code_cell("1", outputs=[v4.new_output("stream", text="<b>.")]))
    assert re.findall(r'lang="fr">(.*?)</em>', shown) == ["Le roman", "beau"]
    assert "a_b_c.html" in shown and "&lt;b&gt;." in shown


def test_a_call_for_a_card_is_left_out_of_a_page_and_a_plot_is_folded():
    shown, computed = 'course.quiz("tokens")', "course.widgets.mask(model(ids))"
    sources = (shown, computed, "plots.bars({})", "print(1)")
    seen = v4.new_output("stream", text="seen\n")
    cells = [v4.new_code_cell(source, outputs=[seen]) for source in sources]
    cells[2].metadata.tags = ["folded"]
    body = cells_as_html(*cells)
    assert body.count('class="input_area"') == 3 and body.count('class="code plotting"') == 1
    assert "quiz" not in body and "mask" in body and body.count("seen") == 4
    assert "quiz" in cells_as_html(v4.new_code_cell(shown)), "without an output the call is all there is"


def test_predictions_and_what_only_they_need_are_left_out_of_code_and_the_set_up_is_folded():
    measured = "loss = run()\n# the winner\nbest = min(loss)\nprint(loss)\ncourse.resolve('02.1', best)\n"
    measured += "for one in loss:\n    assert one < 7\nfor one in loss:\n    print(one)\n    assert one"
    sources = (
        "import tinytx",
        "course.predict('02.1', 'Which?', ['a', 'b'])",
        measured,
        "best = 1\nprint(best)",
    )
    cells = [v4.new_markdown_cell("## Set-up\n\nOne line."), *map(v4.new_code_cell, sources)]
    body = cells_as_html(*cells)
    shown = [
        html.unescape(re.sub(r"<[^>]+>", "", pre)).strip()
        for pre in re.findall(r"<pre>.*?</pre>", body, re.S)
    ]
    assert shown == [
        "import tinytx",
        "loss = run()\nprint(loss)\nfor one in loss:\n    print(one)",
        "best = 1\nprint(best)",
    ]
    (folded,) = re.findall(r'<details class="further" id="Set-up">(.*?)</details>', body, re.S)
    assert "One line." in folded and "import" in folded and "<h2" not in body
    assert re.findall(r"<summary>Code, (\d+ lines?)</summary>", body) == ["4 lines", "2 lines"]


def test_no_assertion_on_a_page_gives_a_prediction_away(lesson):
    for cell in cells_of(lesson):
        if cell.cell_type == "code" and "course.resolve" in cell.source:
            shown = ast.walk(ast.parse(without_predictions(cell.source)))
            assert not [node for node in shown if isinstance(node, ast.Assert)]


def test_a_page_says_what_it_is_about_where_links_are_shown_with_a_text():
    shown = lesson_page()
    said = re.findall(r'<meta (?:name|property)="(?:og:)?description" content="([^"]*)">', shown)
    assert len(said) == 2 and said[0] == said[1] and LESSONS[2].question in html.unescape(said[0])


def test_the_still_of_its_explorer_leads_there_and_is_sent_with_a_link_once_there_is_an_address(
    monkeypatch, root
):
    mask = displayed("text/html", course.widgets.mask().to_html())

    def pictures():
        cells = [v4.new_markdown_cell("# A lesson"), v4.new_code_cell("1", outputs=[mask])]
        shown = page(Run(lesson=LESSONS[2], notebook=v4.new_notebook(cells=cells)), LESSONS[1:4])
        images = r'<a href="#(\w+)"><picture><source [^>]* srcset="([^"]+)"[^>]*><img src="([^"]+)"'
        (anchor, phone, still), (sent,) = (
            re.search(images, shown).groups(),
            re.findall(r'"og:image" content="([^"]+)"', shown),
        )
        assert phone == still.replace(".", "-phone.")
        assert f'<div id="{anchor}" class="tx-explorer"' in shown
        return still, sent

    assert pictures() == ("stills/02-mask.png",) * 2
    monkeypatch.setattr(
        "tinytx_course.building.elsewhere.source_of", lambda _: "https://github.com/owner/tinytx"
    )
    still, sent = pictures()
    assert still == "stills/02-mask.png"
    file = sent.removeprefix("https://raw.githubusercontent.com/owner/tinytx/main/")
    assert (root / file).is_file() and file.endswith(still)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two lessons with every form of every term, the first with an explorer, and all that links them."""
    forms = "\n\n".join(f"A {form}." for term in terms().values() for form in term.forms)
    title = v4.new_markdown_cell(f"# 02 · Title\n\n{forms}")
    mask = v4.new_code_cell("1", outputs=[displayed("text/html", course.widgets.mask().to_html())])
    text = v4.new_markdown_cell("## The leak test\n\nA **saturated** softmax. See lesson 03.\n\n### A part")
    notebooks = {2: v4.new_notebook(cells=[title, mask, text]), 3: v4.new_notebook(cells=[title, text])}
    folder = tmp_path_factory.mktemp("site")
    write_site([Run(lesson=LESSONS[n], notebook=notebook) for n, notebook in notebooks.items()], folder)
    return folder


def test_the_gallery_shows_each_explorer_of_the_lessons_with_its_still(site):
    shown = (site / "gallery.html").read_text(encoding="utf-8")
    found = re.findall(r'href="(explorers/[^"]+)"><img class="thumbnail" src="([^"]+)"', shown)
    assert found == [("explorers/02-mask.html", "stills/02-mask.png")]
    assert 'href="gallery.html"' in shown


def test_every_link_of_a_site_leads_somewhere(site):
    pages = {path.name: path.read_text(encoding="utf-8") for path in site.glob("*.html")}
    assert len(pages) == 8
    anchors = set(re.findall(r'id="([^"]+)"', pages["glossary.html"]))
    lesson = pages[f"{LESSONS[2].name}.html"]
    linked = set(re.findall(r'<a class="term" href="glossary.html#([^"]+)"', lesson))
    assert linked == {term.anchor for term in terms().values() if term.forms} and linked <= anchors
    for name, text in pages.items():
        for target in re.findall(r'(?:href|src)="([^"#:?]+)["#?]', text):
            assert (site / target).is_file(), (name, target)
    with_pages = {term.lesson for term in terms().values()} & {2, 3}
    assert all(f'href="{LESSONS[number].name}.html">' in pages["glossary.html"] for number in with_pages)
    assert "href" not in terms_table()


def test_what_is_further_is_folded_with_one_line_that_says_what_waits():
    long = "## Further: more $x$ & <b>\n\n" + "word " * 257
    cells = [*map(v4.new_markdown_cell, ("## First", long, "### Further: too", "## Second"))]
    cells.insert(2, v4.new_code_cell("1", outputs=[v4.new_output("stream", text="seen\n")]))
    body = cells_as_html(*mark_further(cells))
    inside = r"((?:<details.*?</details>|(?!</details>).)*)"  # code is folded, too
    folds = re.findall(rf'<details class="further">\s*<summary>(.*?)</summary>{inside}</details>', body, re.S)
    lines = ["Further: more $x$ &amp; &lt;b&gt; · 2 min", "Further: too · 1 min"]
    assert [line for line, _ in folds] == lines
    assert "seen" in folds[0][1] and "</h2>" in folds[0][1] and "</h3>" in folds[1][1]
    assert 'id="Second"' in re.sub(r"(?s)<details.*</details>", "", body)


def test_only_code_that_has_a_colour_is_marked():
    cell = v4.new_code_cell("def f(x):\n    return x + 1")
    code = re.search(r"<pre>(.*?)</pre>", cells_as_html(cell), re.S)[1]
    assert html.unescape(re.sub(r"<[^>]+>", "", code)).strip() == cell.source
    assert re.findall(r'class="(\w+)"', code) == ["k", "k", "mi"]


def test_figures_are_numbered_with_caption_and_alt_and_follow_the_theme(tmp_path, monkeypatch):
    (name, texts) = next(iter(figures.captions().items()))
    monkeypatch.setenv("TINYTX_FIGURES", str(tmp_path))
    fig, _ = course.plots.heatmap([[0.2, 0.8], [0.5, 0.5]], xlabel="key")
    course.plots.save_figure(fig, name, texts["alt"])
    picture = displayed("image/png", "AAAA", dict(texts))
    words = displayed("text/html", f'<p class="caption">{texts["caption"]}</p>')
    diagram = displayed("text/html", course.plots.diagram("block").to_html())
    cell = v4.new_code_cell("1", outputs=[picture, words, diagram, picture])
    drawn, photo = cells_as_html(cell, drawings=tmp_path), cells_as_html(cell)
    for shown in (drawn, photo):
        assert re.findall(r'href="#(figure-\d)" tabindex="-1">(Figure [\d.]+)<', shown) == [
            (f"figure-{n}", f"Figure 2.{n}") for n in (1, 2, 3)
        ]
        assert shown.count(texts["caption"]) == 2 and 'class="txd-still"' not in shown
    assert photo.count("<img") == 2 and drawn.count("<img") == 0
    assert "var(--ink-222222)" in drawn and 'aria-label="' in drawn
    assert ">key</text>" in drawn, "letters of a drawing are text"
    names = re.findall(r' id="(f\d-[^"]+)"', drawn)
    assert len(set(names)) == len(names) > 0, "the same drawing twice has patterns of its own each time"
    assert set(re.findall(r'(?:url\(#|href="#)(f\d-[^")]+)', drawn)) <= set(names)


def test_panels_of_a_figure_are_named_and_a_single_one_is_not():
    for n in (1, 3):
        fig, _ = course.plots.figure(1, n)
        stream = io.StringIO()
        fig.savefig(stream, format="svg")
        assert figures.drawing(stream.getvalue(), "panels", "f1").count('class="axes"') == (n if n > 1 else 0)


@pytest.mark.parametrize("n_columns", [7, 30])
def test_cells_of_a_heat_map_have_the_same_colours_in_fewer_letters(n_columns):
    values = np.arange(11 * n_columns).reshape(11, n_columns) % 5 / 4
    fig, ax = course.plots.figure()
    ax.pcolormesh(np.where(values == 1, np.nan, values), vmin=-1, vmax=1, cmap="gray")
    stream = io.StringIO()
    with course.plots.style():
        fig.savefig(stream, format="svg")
    shown = figures.drawing(stream.getvalue(), "cells", "f1")
    assert len(shown) < len(stream.getvalue()) / 2
    if n_columns == 7:
        colours = re.findall(r'<path d="((?:M[^Z]+Z)+)" style="fill:(none|light-dark\(#\w+,#\w+\))', shown)
        assert {colour: d.count("M") for d, colour in colours}["none"] == 15 and len(colours) == 5
    else:
        (image, dark) = re.findall(r'<image [^>]*class="(?:light|dark)" href="data:[^,]+,([^"]+)"', shown)
        (ground, *_) = Image.open(io.BytesIO(base64.b64decode(dark))).convert("L").getextrema()
        assert ground < 128, "white is dark in the dark"
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(image))))[::-1]
        assert pixels.shape == (11, n_columns, 4)
        assert ((pixels[..., 3] == 0) == (values == 1)).all()
        grey = {value: set(pixels[..., 0][values == value].tolist()) for value in (0, 0.25, 0.5, 0.75)}
        assert grey == {0: {128}, 0.25: {160}, 0.5: {192}, 0.75: {224}}


@pytest.mark.parametrize(
    ("straight", "set_"),
    [
        ("<p>\"It's\" a model's</p>", "<p>“It’s” a model’s</p>"),
        ('<p>"<em>so</em>" and <b>it</b>\'s</p>', "<p>“<em>so</em>” and <b>it</b>’s</p>"),
        ("<p>the '90s, rock 'n' roll, 'tis</p>", "<p>the ’90s, rock ’n’ roll, ’tis</p>"),
        ("<p>(\"a 'b' c\")</p>", "<p>(“a ‘b’ c”)</p>"),
        ('<p>« l\'eau », «\u00a0"non"\u00a0»</p>', "<p>« l’eau », «\u00a0“non”\u00a0»</p>"),
        ("<p>\"<code>f('x')</code>\"'s</p>", "<p>“<code>f('x')</code>”’s</p>"),
        ('<p>"<math><mo>\'</mo></math>"</p>', "<p>“<math><mo>'</mo></math>”</p>"),
        ("<p>(&quot;it&#x27;s&quot;)</p>", "<p>(“it’s”)</p>"),
        ("<a title=\"it's > 1\" data-x='{\"a\"}'>it's</a>", '<a title="it\'s > 1" data-x=\'{"a"}\'>it’s</a>'),
        ('<pre>"a"</pre>\n<p>"b"</p>', '<pre>"a"</pre>\n<p>“b”</p>'),
        ('<table class="dataframe"><tr><td>\'</td></tr></table>',) * 2,
        ("<script>let a = '<p>\"';</script><!-- \"it's\" -->",) * 2,
    ],
)
def test_marks_are_curly_in_prose_and_straight_in_code_formulas_data_and_attributes(straight, set_):
    assert typographic(straight) == set_


def test_contents_and_search_know_headings_bold_words_figures_terms_and_functions(site):
    assert contents('<h2 id="a">Of <math><mi>x</mi></math></h2>') == (
        '<li><a href="#a">Of <math><mi>x</mi></math></a></li>'
    )
    call = (site / "search-index.js").read_text(encoding="utf-8")
    assert call == search_index(site)
    entries = {entry[1]: entry for entry in json.loads(call.removeprefix("tinytxSearch(").rstrip(");\n"))}
    title, _, kind, more, words = entries[f"{LESSONS[2].name}.html#The-leak-test"]
    assert (title, kind, more) == ("The leak test", "02 Attention and masks", "saturated")
    assert words.split() == ["saturated", "softmax", "lesson"]
    assert entries["glossary.html#causal-mask"][0] == "causal mask"
    assert entries["reference.html#tx.attention"][2] == "reference"
    written = (site / f"{LESSONS[2].name}.html").read_text(encoding="utf-8")
    assert f'<a href="{LESSONS[3].name}.html">lesson 03</a>' in written


def test_each_section_that_is_found_by_other_words_is_there():
    for (number, heading), asked in finding.ASKED.items():
        cells = published(LESSONS[number]).cells
        lines = [line.strip("# ") for cell in cells for line in cell.source.splitlines()]
        assert heading in lines and asked == asked.lower()


def test_papers_and_functions_are_links_and_a_paper_says_who_wrote_it():
    papers = citations(
        ["*Where this comes from:* rotary: Su et al., [arXiv:2104.09864](https://arxiv.org/abs/2104.09864)."]
    )
    linker = Linker(papers=papers)
    linked = linker.link("<p>(arXiv:2104.09864) <code>tx.rotate</code></p>")
    assert '<a href="https://arxiv.org/abs/2104.09864" class="paper" title="Su et al.">' in linked
    assert '<code><a class="api" href="reference.html#tx.rotate">tx.rotate</a></code>' in linked


def test_the_reference_has_every_public_name_with_its_docstring():
    body = reference_body()
    of_each = {short: {f"{short}.{name}" for name in one.__all__} for short, one in DOCUMENTED.items()}
    assert [*of_each] == ["tx", "tinyworld", "course"] and set().union(*of_each.values()) == names()
    assert set(re.findall(r'<h3 id="([^"]+)">', body)) == names()
    assert inspect.getdoc(tx.attention).partition("\n")[0].split("`")[0] in body
    text = "Add.\n\nRaises\n------\nValueError\n    If `a` < 0.\n\nExamples\n--------\n>>> 1\n1"
    shown = docstring_to_html(text)
    assert "<dt><code>ValueError</code></dt><dd>If <code>a</code> &lt; 0.</dd>" in shown
    assert "<pre>&gt;&gt;&gt; 1\n1</pre>" in shown


def test_the_first_page_shows_every_lesson_and_links_none_that_has_no_page(tmp_path):
    assert index_page([], tmp_path).count('<div class="card waiting">') == len(LESSONS)
    shape = (
        ' id="explorer" class="tx-explorer" data-tx-explorer="{}" data-tx-page="a.html" data-tx-kind="mask"'
    )
    explorer = f'<div{shape}><p class="tx-tries">.</p><p class="tx-still"><strong>A.</strong> B.</p></div>'
    written = explorer + 2 * '<h3 id="Exercise:-a">'
    (tmp_path / f"{LESSONS[3].name}.html").write_text(written)
    shown = index_page([], tmp_path)
    assert re.findall(r'<a class="card" href="([^"]+)"', shown) == [f"{LESSONS[3].name}.html"]
    marks = "<span>◆ 1 explorer</span> <span>✎ 2 exercises</span>"
    assert re.search(rf"<small><span>\d+ min, \d+ with everything</span> {marks}", shown)
    assert '<meta name="viewport"' in shown and '<html lang="en">' in shown
    assert 'data-tx-kind="live_model"' in shown


def test_the_style_of_tables_spares_those_of_explorers():
    """A table laid out as a block squeezed the bars of an explorer to nothing."""
    rules = re.findall(r"[}](\.rendered_html [^{}]*\b(?:table|th|td)\b[^{}]*)\{", style_sheet())
    assert len(rules) >= 3
    assert all(":not(.tx *)" in rule for rule in rules)


def test_the_figure_on_a_card_is_one_of_the_lesson(root):
    drawn = {path.stem for path in (root / "figures").glob("*.svg")}
    assert {f"{lesson:02d}_{name}" for lesson, name in CARD_FIGURES.items()} <= drawn


def test_every_card_shows_a_picture(root, tmp_path):
    for _, _, cards in course_map(LESSONS, (), tmp_path, root / "figures"):
        assert [card["lesson"].name for card in cards if "<svg" not in card["thumbnail"]] == []
