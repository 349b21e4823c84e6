"""The course as web pages with everything inlined: they make no request to any host.

Only explorers need a script, which is inlined too; where no script runs, each shows a sentence of text.
"""

from __future__ import annotations

import base64
import copy
import datetime
import html
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

from tinytx_course.building.notebooks import Run
from tinytx_course.lessons import LESSONS, Lesson, format_duration
from tinytx_course.machine import this_machine
from tinytx_course.site.formulas import to_mathml
from tinytx_course.site.linking import TermLinker
from tinytx_course.terms import names_table, terms_table
from tinytx_course.widgets import assets

_HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)<a class="anchor-link"', re.S)
_TAG = re.compile(r"<[^>]+>")
# No line begins with the sign after a formula.
_FORMULA_AND_SIGN = re.compile(r'<math [^>]*display="inline"(?:(?!</math>).)*</math>[.,;:!?)]+', re.S)
# Marks for tools, which say nothing to a reader.
_MARKS = re.compile(r"^# NBVAL_CHECK_OUTPUT$|  # fmt: skip$", re.M)
# Pictures first: a figure's text/plain only repeats its alt text.
_PRIORITY = [
    "image/svg+xml",
    "image/png",
    "text/html",
    "text/markdown",
    "image/jpeg",
    "text/latex",
    "text/plain",
]


class _Renderer(IPythonRenderer):
    """Markdown to HTML with MathML formulas."""

    def block_math(self, body: str) -> str:
        return to_mathml(body, block=True)

    def inline_math(self, body: str) -> str:
        return to_mathml(body)

    def latex_environment(self, name: str, body: str) -> str:
        return to_mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", block=True)


def markdown_to_html(source: str) -> str:
    """Return a text cell as HTML."""
    body = MarkdownWithMath(renderer=_Renderer(escape=False)).render(source)
    return _FORMULA_AND_SIGN.sub(r'<span class="together">\g<0></span>', body)


def notebook_to_html(notebook: NotebookNode) -> str:
    """Return the cells and outputs of a notebook as HTML, without a page around them."""
    exporter = HTMLExporter(
        template_name="basic", config=Config({"NbConvertBase": {"display_data_priority": _PRIORITY}})
    )
    linker = TermLinker()
    exporter.register_filter("markdown2html", lambda source: linker.link(markdown_to_html(source)))
    shown = copy.deepcopy(notebook)
    for cell in shown.cells:
        if cell.cell_type == "code":
            cell.source = _MARKS.sub("", cell.source).rstrip()
    body, _ = exporter.from_notebook_node(shown)
    return body


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def style_sheet() -> str:
    """Return the style of all pages, with colours for code in light and dark."""
    light = HtmlFormatter(style="xcode").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".highlight")
    # The page decides the background of code.
    light, dark = (re.sub(r"\.highlight \{[^}]*\}", "", sheet) for sheet in (light, dark))
    return f"{_resource('style.css')}\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _icon() -> str:
    """Return the small picture of a browser tab: a causal mask of three tokens."""
    cells = "".join(
        f'<rect x="{2 + 10 * col}" y="{2 + 10 * row}" width="8" height="8" rx="1.5" '
        f'fill="{"#2f6fb3" if col <= row else "#c3c9d1"}"/>'
        for row in range(3)
        for col in range(3)
    )
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">{cells}</svg>'
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def fill_page(template: str, *, title: str, style: str = "", **values: str) -> str:
    """Return a whole page: what its template holds, in the shell of all pages; `style` adds to theirs."""
    body = Template(_resource(template)).substitute(values).rstrip()
    shell = Template(_resource("shell.html"))
    return shell.substitute(title=title, icon=_icon(), style=style_sheet() + style, body=body)


def _neighbour(lesson: Lesson | None, word: str, kind: str) -> str:
    if lesson is None:
        return f'<span class="{kind}"></span>'
    title = f"{lesson.number:02d} {html.escape(lesson.title)}"
    return f'<a class="{kind}" rel="{kind}" href="{lesson.name}.html"><small>{word}</small>{title}</a>'


def page(run: Run, previous: Lesson | None, following: Lesson | None) -> str:
    """Return one lesson as a whole page, with links to its neighbours."""
    body = re.sub(r'href="([\w./-]+)\.ipynb(#[^"]*)?"', r'href="\1.html\2"', notebook_to_html(run.notebook))
    # Keys alone can then scroll a long line or a wide figure, and no screen reader announces a column without
    # a name.
    body = re.sub(r'<(pre|div class="output_png[^"]*")>', r'<\1 tabindex="0">', body)
    body = body.replace("<th></th>", "<td></td>")
    chapters = "".join(
        f'<li><a href="#{anchor}">{_TAG.sub("", title)}</a></li>' for anchor, title in _HEADING.findall(body)
    )
    kinds = assets.explorers_in(body)
    lesson_title = f"{run.lesson.number:02d} {html.escape(run.lesson.title)}"
    failed = '<p class="failed">A cell of this notebook failed; what follows it did not run.</p>'
    return fill_page(
        "page.html",
        style=assets.style_sheet(kinds) if kinds else "",
        script=f'<script type="module">\n{assets.page_script(kinds)}\n</script>' if kinds else "",
        title=f"{lesson_title} · tinytx",
        lesson=lesson_title,
        contents=chapters,
        failed=failed if run.failure else "",
        body=body,
        previous=_neighbour(previous, "before", "prev"),
        following=_neighbour(following, "next", "next"),
        took=_took(run),
    )


def _took(run: Run) -> str:
    return "" if run.seconds is None else f"ran in {format_duration(run.seconds)}"


def _card(lesson: Lesson, run: Run | None, folder: Path) -> str:
    """Return a lesson of the first page, linked if it has a page."""
    title, question = html.escape(lesson.title), html.escape(lesson.question)
    if run is not None:
        kind, note = ("card failed", "a cell failed") if run.failure else ("card", _took(run))
    elif (folder / f"{lesson.name}.html").is_file():
        kind, note = "card", "from an earlier run"
    else:
        kind, note = "card waiting", "in preparation"
    tag, link = ("div", "") if kind == "card waiting" else ("a", f' href="{lesson.name}.html"')
    return (
        f'<li><{tag} class="{kind}"{link}><span class="number">{lesson.number:02d}</span><h2>{title}</h2>'
        f"<p>{question}</p><small>{note}</small></{tag}></li>"
    )


def index_page(runs: Sequence[Run], folder: Path) -> str:
    """Return the first page: a card for each lesson and, if they were run just now, on what machine.

    Pages of earlier runs in `folder` are linked too.
    """
    by_name = {run.lesson.name: run for run in runs}
    facts = [datetime.date.today().strftime("%d %B %Y")]
    seconds = [run.seconds for run in runs if run.seconds is not None]
    if seconds:
        machine = this_machine()
        memory = max(run.peak_bytes for run in runs) / 2**30
        facts[:0] = [
            f"{len(runs)} notebooks, together {format_duration(sum(seconds))}",
            f"at most {memory:.1f} GiB of memory each",
            f"{machine.gpu or machine.cpu}, {machine.cores} cores",
            f"Python {machine.python}, PyTorch {machine.torch}",
        ]
    return fill_page(
        "index.html",
        title="tinytx · a course on transformers",
        cards="\n".join(_card(lesson, by_name.get(lesson.name), folder) for lesson in LESSONS),
        facts="".join(f"<li>{html.escape(fact)}</li>" for fact in facts),
    )


def glossary_page(folder: Path) -> str:
    """Return the page of the glossary; lessons that have a page in `folder` are linked."""
    pages = {lesson.number: f"{lesson.name}.html" for lesson in LESSONS}
    links = {number: name for number, name in pages.items() if (folder / name).is_file()}
    return fill_page(
        "glossary.html", title="Glossary · tinytx", terms=terms_table(links), names=names_table()
    )


def write_page(run: Run, folder: Path, coming: Iterable[Lesson] = ()) -> Path:
    """Write the page of one lesson; its neighbours are the lessons that have a page, or are `coming`."""
    folder.mkdir(parents=True, exist_ok=True)
    others = {run.lesson, *coming}
    shown = [lesson for lesson in LESSONS if lesson in others or (folder / f"{lesson.name}.html").is_file()]
    i = shown.index(run.lesson)
    before, after = shown[i - 1] if i else None, shown[i + 1] if i + 1 < len(shown) else None
    path = folder / f"{run.lesson.name}.html"
    path.write_text(page(run, before, after), encoding="utf-8")
    return path


def write_index(runs: Sequence[Run], folder: Path) -> Path:
    """Write the glossary and the index, which link the pages in `folder`; return the index."""
    (folder / "glossary.html").write_text(glossary_page(folder), encoding="utf-8")
    index = folder / "index.html"
    index.write_text(index_page(runs, folder), encoding="utf-8")
    return index


def write_site(runs: Sequence[Run], folder: Path) -> Path:
    """Write a page a lesson, the glossary and the index; pages of other lessons stay. Return the index."""
    for run in runs:
        write_page(run, folder, [run.lesson for run in runs])
    return write_index(runs, folder)
