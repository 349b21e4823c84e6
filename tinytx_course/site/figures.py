"""Figures of a page: numbered, with their captions, drawn as SVG that follows the theme."""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from nbformat import NotebookNode
from PIL import Image, ImageColor

from tinytx_course.plots.style import captions

#: Characters of a drawing, at most: pages hold many.
LARGEST_SVG = 90_000
#: What a figure is drawn in: its colour on white, and on a dark ground. Colours of cells stay as they are.
INKS = {
    "#222222": "#e4e6ea",
    "#000000": "#e4e6ea",
    "#444444": "#c3c9d1",
    "#555555": "#b0b8c3",
    "#e6e6e6": "#39414d",
    "#0072b2": "#56a9e8",
    "#d55e00": "#ff9250",
    "#009e73": "#3ccf9f",
    "#cc79a7": "#e79cc6",
    "#e69f00": "#f2b640",
    "#56b4e9": "#a3dcff",
}
_INK = re.compile(rf"(?<=[:\"] )({'|'.join(INKS)})\b|(?<=[:\"])({'|'.join(INKS)})\b")
_CAPTION = re.compile(r'^<p class="caption">(.*)</p>$', re.S)
_TXD = re.compile(r'(<figure class="txd")(.*?<figcaption>)', re.S)
# The same picture again, for code hosts that throw SVG away; a page has no use for it.
_STILL = re.compile(r'<img class="txd-still"[^>]*>')
# The background of the figure, and of each of its axes.
_GROUND = re.compile(
    r'((?:<g id="figure_1">|<g id="axes_\d+">)\s*<g id="patch_\d+">\s*<path[^>]*style="fill: )#ffffff'
)
_PATH = re.compile(r'(?<= [dxy]=")[^"]*')
# A turn by nothing, and a font where the page has its own.
_SPARE = re.compile(r""" transform="rotate\(-0 [^"]*"|font-family: '[^"]*?'; """)
_NUMBER = re.compile(r"-?\d+\.\d+")
_STYLE = re.compile(r'(?<= style=")[^"]*')
_REFERENCE = re.compile(r'(?<= id=")[^"]+|(?<=url\(#)[^)]+|(?<=href="#)[^"]+')
_MESH = re.compile(r'(<g id="QuadMesh_\d+">)(.*?)(</g>)', re.S)
# One cell: left, top, right, bottom, colour, and what is left of its style.
_CELL = re.compile(
    r'<path d="M ([\d.]+) ([\d.]+)\s+L ([\d.]+) [\d.]+\s+L [\d.]+ ([\d.]+)\s+(?:L [\d.]+ [\d.]+\s+){2}"'
    r'(?: clip-path="[^"]*")? style="fill: (none|#[0-9a-f]{6})([^"]*)"/>'
)
#: A heat map of more cells is a picture of one pixel a cell, with its axes as a drawing.
MANY_CELLS = 200


@cache
def _names() -> dict[str, str]:
    """Return the name of each figure of the lessons by its alt text."""
    return {texts["alt"]: name for name, texts in captions().items()}


def _pixels(cells: Sequence[tuple[list[float], str]], columns: Sequence[float], rows: Sequence[float]) -> str:
    """Return the cells of a full grid, boxes and colours, as a picture of a pixel a cell."""
    drawn, stream = Image.new("RGBA", (len(columns), len(rows))), io.BytesIO()
    for box, colour in cells:
        if colour != "none":
            place = columns.index(box[0]), rows.index(box[1])
            drawn.putpixel(place, ImageColor.getcolor(colour, "RGBA"))
    drawn.save(stream, format="png", optimize=True)
    left, top = columns[0], rows[0]
    width, height = (max(box[i] for box, _ in cells) - edge for i, edge in ((2, left), (3, top)))
    return (
        f'<image x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
        'preserveAspectRatio="none" style="image-rendering: pixelated" '
        f'href="data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"/>'
    )


def _short(x: float) -> str:
    return f"{x:.1f}".removesuffix(".0")


def _mesh(match: re.Match[str]) -> str:
    """Return the cells of a heat map in fewer letters: one path a colour, or a picture of a pixel a cell."""
    found = _CELL.findall(match[2])
    if len(found) != match[2].count("<path"):
        return match[0]
    edges = ([float(part) for part in cell[:4]] for cell in found)
    boxes = [[min(x), min(y), max(x), max(y)] for x, y in ((four[::2], four[1::2]) for four in edges)]
    cells = [(box, cell[4], cell[5]) for box, cell in zip(boxes, found, strict=True)]
    columns, rows = (sorted({box[i] for box, *_ in cells}) for i in (0, 1))
    is_full = len(cells) == len(columns) * len(rows) and not any(rest for *_, rest in cells)
    if len(cells) > MANY_CELLS and is_full:
        return match[1] + _pixels([(box, colour) for box, colour, _ in cells], columns, rows) + match[3]
    paths: dict[tuple[str, str], str] = {}
    for (left, top, right, bottom), *look in cells:
        one = f"M{_short(left)} {_short(top)}H{_short(right)}V{_short(bottom)}H{_short(left)}Z"
        paths[look[0], look[1]] = paths.get((look[0], look[1]), "") + one
    inside = (f'<path d="{d}" style="fill: {colour}{rest}"/>' for (colour, rest), d in paths.items())
    return match[1] + "".join(inside) + match[3]


def drawing(svg: str, alt: str, name: str) -> str:
    """Return an SVG file of matplotlib as part of a page: smaller, on no ground, in colours of the theme.

    Two drawings may have a pattern in common, and a browser takes the first of an id, even one that is not
    shown: so each drawing of a page has a name, with which its ids begin.
    """
    body = svg[svg.index("<svg") :]
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', body)
    assert size, "matplotlib writes a viewBox"
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", body, flags=re.S)
    body = _GROUND.sub(r"\1none", _MESH.sub(_mesh, body))
    if body.count('<g id="axes_') > 1:  # panels, which a phone shows below one another
        body = re.sub(r'(?<=<g )id="axes_\d+"', 'class="axes"', body)
    body = re.sub(r' id="(?:figure|axes|patch|text|line2d|[xy]tick|matplotlib|legend)[^"]*"', "", body)
    short = {one: f"{name}-{i}" for i, one in enumerate(dict.fromkeys(re.findall(r' id="([^"]+)"', body)))}
    body = _REFERENCE.sub(lambda match: short.get(match[0], match[0]), body)
    body = _SPARE.sub("", body)
    body = _PATH.sub(lambda path: _NUMBER.sub(lambda match: _short(float(match[0])), path[0]), body)
    body = _PATH.sub(lambda path: re.sub(r"\s*([A-Z])\s*", r"\1", path[0]), body)
    body = _INK.sub(lambda match: f"var(--ink-{match[0][1:]})", body)
    body = _STYLE.sub(lambda style: re.sub(r"(?<=[;:]) ", "", style[0]), body)
    body = re.sub(r">\s+<", "><", re.sub(r"\s*\n\s*", " ", body))
    first = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-label="{html.escape(alt)}" viewBox="0 0 {size[1]} {size[2]}" '
        f'style="stroke-linejoin: round; max-width: {1.2 * float(size[1]):.0f}px; '
        f'--own: {float(size[1]):.0f}px; --tall: {float(size[2]) / float(size[1]):.2f}">'
    )
    return first + body[body.index(">") + 1 :].strip()


def style_sheet() -> str:
    """Return the inks of figures in light and dark."""
    inks = " ".join(f"--ink-{light[1:]}: light-dark({light}, {dark});" for light, dark in INKS.items())
    return f".figure {{ {inks} }}\n"


class Figures:
    """Numbers the figures of one lesson, and turns outputs that hold them into HTML.

    Parameters
    ----------
    lesson : int
    folder : Path, optional
        Where their drawings are, ``NAME.svg``; without one, the pictures of the notebook are shown.
    largest : int
        A drawing with more characters stays a picture of pixels.
    """

    def __init__(self, lesson: int, folder: Path | None = None, *, largest: int = LARGEST_SVG) -> None:
        self._lesson, self._folder, self._largest = lesson, folder, largest
        self._n = 0

    def renew(self, outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
        """Return outputs in which a figure is one piece of HTML with its caption."""
        renewed: list[NotebookNode] = []
        for output in outputs:
            data = output.get("data", {})
            caption = _CAPTION.match(data.get("text/html", ""))
            if caption and renewed and renewed[-1].get("drawn"):
                continue  # it is in the figure
            if "image/png" in data:
                shown = self._figure(data["image/png"], output.metadata.get("image/png", {}))
                renewed.append(
                    NotebookNode(
                        output_type="display_data", metadata={}, data={"text/html": shown}, drawn=True
                    )
                )
                continue
            if 'class="txd"' in data.get("text/html", ""):
                data["text/html"] = _TXD.sub(self._numbered, _STILL.sub("", data["text/html"]))
            renewed.append(output)
        return renewed

    def _number(self) -> str:
        self._n += 1
        return f"figure-{self._n}"

    def _label(self, anchor: str) -> str:
        return f'<a class="number" href="#{anchor}" tabindex="-1">Figure {self._lesson}.{self._n}</a> '

    def _numbered(self, match: re.Match[str]) -> str:
        anchor = self._number()
        return f'{match[1]} id="{anchor}"{match[2]}{self._label(anchor)}'

    def _figure(self, png: str, texts: dict[str, str]) -> str:
        anchor, alt = self._number(), texts.get("alt", "")
        svg = self._svg(alt, f"f{self._n}")
        name = "drawn" if svg else "photo"
        picture = svg or f'<img src="data:image/png;base64,{png.strip()}" alt="{html.escape(alt)}">'
        caption = html.escape(texts.get("caption", ""), quote=False)
        return (
            f'<figure class="figure" id="{anchor}"><div class="picture {name}">{picture}</div>'
            f"<figcaption>{self._label(anchor)}{caption}</figcaption></figure>"
        )

    def _svg(self, alt: str, name: str) -> str:
        file = self._folder and self._folder / f"{_names().get(alt, '')}.svg"
        if not file or not file.is_file():
            return ""
        svg = drawing(file.read_text(encoding="utf-8"), alt, name)
        return svg if len(svg) <= self._largest else ""
