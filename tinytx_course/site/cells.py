"""The cells of a notebook as HTML: text with formulas and links, code, outputs, numbered figures."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path

from nbconvert import HTMLExporter
from nbconvert.filters import ansi2html
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from pygments.styles import get_style_by_name
from pygments.token import STANDARD_TYPES
from traitlets.config import Config

from tinytx_course.building.editions import is_further
from tinytx_course.building.elsewhere import is_first_cell
from tinytx_course.building.minutes import minutes_of, rounded
from tinytx_course.building.notebooks import joined_streams
from tinytx_course.lessons import Lesson
from tinytx_course.site.figures import Figures
from tinytx_course.site.formulas import to_mathml
from tinytx_course.site.linking import Linker, citations

# No line begins with the sign after a formula, and none ends between a bracket and one.
_INLINE = r'<math [^>]*display="inline"(?:(?!</math>).)*</math>'
_NOT_ALONE = re.compile(rf"\({_INLINE}[.,;:!?)’']*|{_INLINE}[.,;:!?)’']+", re.S)
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
# Code can be folded, that which only draws is, and a call that only shows a card is left out. Aligned columns
# that a cell printed are a table.
_TEMPLATE = """
{%- extends 'basic/index.html.j2' -%}
{% block input_group -%}
{% if cell.metadata.bare %}{{ super() }}{% elif cell.metadata.folded %}<details class="code plotting">
<summary>The code that {{ "draws" if "plots." in cell.source else "measures" }} this</summary>
{{ super() }}</details>{% elif not cell.metadata.only_shows %}<details class="code" open>
<summary>Code, {{ cell.metadata.lines }} line{{ "s" if cell.metadata.lines > 1 }}</summary>
{{ super() }}</details>{% endif %}
{%- endblock input_group %}
{% block any_cell -%}
{% if cell.metadata.waits %}<details class="further"{{ cell.metadata.about }}>
<summary>{{ cell.metadata.waits | e }}</summary>{% endif %}
{{ super() }}
{% if cell.metadata.ends %}</details>{% endif %}
{%- endblock any_cell %}
{% block stream_stdout -%}
<div class="output_subarea output_stream output_stdout output_text">
{{ output.text | printed }}
</div>
{%- endblock stream_stdout %}
"""
_FURTHER = re.compile(r"#{2,4} (Further:.+)")
_SET_UP = re.compile(r"## Set-up$\s*", re.M)
FOLDED = "folded"  # the tag of a cell of many lines that only draws, or only settles a prediction
_PREDICTS = re.compile(r"course\.(predict|resolve)\b")
_CARDS = re.compile(
    r"(course\.(check|glossary|parsons|predict|quiz|recall|widgets\.\w+)|(course\.)?plots\.diagram)\("
)
_NOT_ATTEMPTED = ": not attempted yet"
_INVITATION = (
    '<p class="todo">✎ Write it in your own copy: <a href="notebooks/{}.ipynb" download>download this '
    'notebook</a>, or open all with <code>make lab</code> (<a href="00_start_here.html#Your-own-copy">how '
    "to</a>). The check there says what is right, and names the mistake. Without Python: "
    '<a href="exercises.html">exercises on a page</a>.</p>'
)
_LEVEL = re.compile(r"<p><code>(Level \d/5) · (\d+ minutes) · (outcome \d+)</code></p>")
_HIGHLIGHTED = re.compile(r'<div class="highlight.*?</div>', re.S)
_NO_PROSE = re.compile(r"(```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\\begin.*?\\end|<[^>]*>|\]\([^)]*\))", re.S)
_FRENCH = re.compile(r"(?<![\w\\])_(?=\S)([^_\n]+)(?<=\S)_(?!\w)")


class _Renderer(IPythonRenderer):
    """Markdown to HTML with MathML formulas."""

    def block_math(self, body: str) -> str:
        return to_mathml(body, block=True)

    def inline_math(self, body: str) -> str:
        return to_mathml(body)

    def latex_environment(self, name: str, body: str) -> str:
        return to_mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", block=True)


@cache
def code_style() -> str:
    """Return the colours of code, in light and dark; what is black in light is plain in both."""
    light, dark = (
        {STANDARD_TYPES.get(token): style["color"] for token, style in get_style_by_name(name)}
        for name in ("xcode", "github-dark")
    )
    return "\n".join(
        f".highlight .{name} {{ color: light-dark(#{color}, #{dark[name] or 'e6edf3'}); }}"
        for name, color in light.items()
        if name and color and color != "000000"
    )


def markdown_to_html(source: str) -> str:
    """Return a text cell as HTML; _le roman_, between underscores, is French: a screen reader says it so.

    Examples
    --------
    >>> markdown_to_html("_le roman_ is *not* `a_b` and $x_1 y_2$").count("lang")
    1
    """
    pieces = _NO_PROSE.split(source)
    pieces[::2] = (_FRENCH.sub(r'<em lang="fr">\1</em>', prose) for prose in pieces[::2])
    body = MarkdownWithMath(renderer=_Renderer(escape=False)).render("".join(pieces))
    body = _LEVEL.sub(r'<p class="level"><span>\1</span><span>\2</span><span>\3</span></p>', body)
    return _NOT_ALONE.sub(r'<span class="together">\g<0></span>', body)


def only_shows(source: str) -> bool:
    """Return whether a cell only calls for a card that is below it on the page, with nothing computed.

    Examples
    --------
    >>> only_shows('course.quiz("tokens")'), only_shows("course.widgets.mask(model(ids))")
    (True, False)
    """
    try:
        statements = ast.parse(source).body
    except SyntaxError:  # a cell with a magic command
        return False
    shown = [one for one in statements if not isinstance(one, ast.Import | ast.ImportFrom)]
    calls = [node for one in shown for node in ast.walk(one) if isinstance(node, ast.Call)]
    return 0 < len(calls) == len(shown) and all(_CARDS.match(ast.unparse(one)) for one in shown)


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> set[str]:
    inside = (node for one in nodes for node in ast.walk(one) if isinstance(node, ast.Name))
    return {node.id for node in inside if isinstance(node.ctx, context)}


def _asserts(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield assert statements, and loops and conditions that hold nothing else."""
    for one in statements:
        inner = [*getattr(one, "body", []), *getattr(one, "orelse", [])]
        found = [*_asserts(inner)]
        yield from [one] if isinstance(one, ast.Assert) or inner and found == inner else found


def without_predictions(source: str, elsewhere: Iterable[str] = ()) -> str:
    """Return a cell without its calls of ``predict`` and ``resolve``, and without what only they need.

    Where it resolves, its assert statements go, too: they would give the answer away.

    Parameters
    ----------
    source : str
    elsewhere : iterable of str
        Names that other cells read.

    Examples
    --------
    >>> without_predictions("loss = run()\\nbest = min(loss)\\ncourse.resolve('01.1', best)\\nprint(loss)")
    'loss = run()\\nprint(loss)'
    """
    if not _PREDICTS.search(source):
        return source
    statements = ast.parse(source).body
    calls = [one for one in statements if _PREDICTS.search(ast.unparse(one))]
    if "course.resolve" in source:
        calls += _asserts(statements)
    left_out, kept = list(calls), [one for one in statements if one not in calls]
    for one in reversed(kept):
        only_sets = not any(
            isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.Expr | ast.Assert)
            for node in ast.walk(one)
        )
        others = [other for other in statements if other is not one and other not in left_out]
        needed = _names(others, ast.Load) | {*elsewhere}
        sets = _names([one], ast.Store)
        if only_sets and sets & _names(left_out, ast.Load) and not sets & needed:
            left_out.append(one)
    lines, gone = source.split("\n"), set()
    for one in left_out:
        first = one.lineno - 1
        while first and lines[first - 1].startswith("#"):
            first -= 1
        gone |= {*range(first, one.end_lineno or one.lineno)}
    left = "\n".join(line for i, line in enumerate(lines) if i not in gone)
    return re.sub(r"\n{4,}", "\n\n\n", left).strip("\n")


@cache
def _plain_code() -> re.Pattern[str]:
    """Return what finds the marks of code that has no colour: half of its size."""
    coloured = "|".join(re.findall(r"\.highlight \.(\w+)", code_style()))
    return re.compile(rf'<span class="(?!(?:{coloured})")\w+">([^<]*)</span>')


def _reads(cell: NotebookNode) -> set[str]:
    """Return the names that a code cell takes from others, its predictions left out."""
    try:
        statements = ast.parse(cell.source).body if cell.cell_type == "code" else []
    except SyntaxError:
        return set()
    read: set[str] = set()
    own: set[str] = set()
    for one in statements:
        if not _PREDICTS.search(ast.unparse(one)):
            read |= _names([one], ast.Load) - own
        own |= _names([one], ast.Store)
    return read


def _fold_further(cells: list[NotebookNode], lesson: Lesson) -> None:
    """Write into the first cell of each section that is *Further* what waits in it, and where it ends."""
    for further, run in groupby(cells, is_further):
        section = list(run) if further else []
        titles = {i: found[1] for i, cell in enumerate(section) if (found := _FURTHER.match(cell.source))}
        for first, after in pairwise([*titles, len(section)]):
            inside = section[first:after]
            inside[0].metadata.waits = f"{titles[first]} · {rounded(minutes_of(lesson, inside))} min"
            inside[-1].metadata.ends = True


def _fold_set_up(cells: list[NotebookNode]) -> None:
    """Fold the imports: the question of a lesson comes first."""
    first = next((i for i, cell in enumerate(cells) if _SET_UP.match(cell.source)), None)
    if first is None:
        return
    last = next((i for i in range(first, len(cells)) if cells[i].cell_type == "code"), first)
    cells[first].source = _SET_UP.sub("", cells[first].source, count=1)
    cells[first].metadata |= {"waits": "Set-up", "about": ' id="Set-up"'}
    cells[last].metadata |= {"ends": True, "bare": True}


def notebook_to_html(
    notebook: NotebookNode, lesson: Lesson, shown: Iterable[Lesson] = (), drawings: Path | None = None
) -> str:
    """Return the cells and outputs of a notebook as HTML, without a page around them.

    Parameters
    ----------
    notebook : NotebookNode
        With outputs; it is not changed.
    lesson : Lesson
        Figures have its number.
    shown : iterable of Lesson
        Those that have a page: where the text names one, it is a link.
    drawings : Path, optional
        The folder with the drawings ``NAME.svg``; without one, pictures of the notebook are shown.
    """
    content = copy.deepcopy(notebook)
    content.cells = [cell for cell in content.cells if not is_first_cell(cell)]
    _fold_set_up(content.cells)
    _fold_further(content.cells, lesson)
    read = {id(cell): _reads(cell) for cell in content.cells}
    numbered = Figures(lesson.number, drawings)
    for cell in content.cells:
        if cell.cell_type == "code":
            others = (names for key, names in read.items() if key != id(cell))
            cell.source = without_predictions(cell.source, set().union(*others))
            outputs = joined_streams(cell.outputs)
            for output in outputs:
                if _NOT_ATTEMPTED in output.get("data", {}).get("text/plain", ""):
                    output.data = {"text/html": _INVITATION.format(lesson.name)}
            cell.outputs = numbered.renew(outputs)
            cell.metadata.folded = FOLDED in cell.metadata.get("tags", [])
            cell.metadata.only_shows = not cell.source or bool(cell.outputs) and only_shows(cell.source)
            cell.metadata.folded &= not cell.metadata.only_shows
            cell.metadata.lines = cell.source.count("\n") + 1
    exporter = HTMLExporter(
        raw_template=_TEMPLATE,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        config=Config({"NbConvertBase": {"display_data_priority": _PRIORITY}}),
    )
    papers = citations(cell.source for cell in content.cells if cell.cell_type == "markdown")
    linker = Linker([one for one in shown if one != lesson], papers)
    exporter.register_filter("printed", lambda text: f"<pre>{ansi2html(text.rstrip())}</pre>")
    exporter.register_filter("markdown2html", lambda source: linker.link(markdown_to_html(source)))
    body, _ = exporter.from_notebook_node(content)
    body = body.replace("<th></th>", "<td></td>")  # no screen reader announces a column without a name
    return _HIGHLIGHTED.sub(lambda code: _plain_code().sub(r"\1", code[0]), body)
