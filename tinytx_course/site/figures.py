"""Figures of a page: numbered, with their captions, drawn as SVG that follows the theme."""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from colorsys import hls_to_rgb, rgb_to_hls
from pathlib import Path
from typing import Any

from lxml import etree
from nbformat import NotebookNode
from PIL import Image, ImageColor

from tinytx_course.plots.style import captions

#: Characters of a drawing, at most: pages hold many.
LARGEST_SVG = 90_000
#: What a figure is drawn in: its colour on white, and in the dark. `in_the_dark` turns the others round.
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
_CAPTION = re.compile(r'^<p class="caption">(.*)</p>$', re.S)
_TXD = re.compile(r'(<figure class="txd")(.*?<figcaption>)', re.S)
# The same picture again, for code hosts that throw SVG away; a page has no use for it.
_STILL = re.compile(r'<img class="txd-still"[^>]*>')
_INK = re.compile(rf"({'|'.join(INKS)})\b")
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_REFERENCE = re.compile(r"(?<=url\(#)[^)]+|(?<=^#).+")
_SVG = "{http://www.w3.org/2000/svg}"
_NUMBER = re.compile(r"-?\d+\.\d+")
_UNNAMED = re.compile("figure|axes|patch|text|line2d|[xy]tick|matplotlib|legend")  # ids nothing refers to
# The background of the figure, and of each of its axes.
_GROUNDS = "//*[@id='figure_1' or starts-with(@id, 'axes_')]/*[1][starts-with(@id, 'patch_')]/*[1]"
#: A heat map of more cells is a picture of one pixel a cell, with its axes as a drawing.
MANY_CELLS = 200


def in_the_dark(colour: str) -> str:
    """Return a colour of the same hue for a dark ground: what is dark becomes light, or strong.

    Examples
    --------
    >>> in_the_dark("#ffffff"), in_the_dark("#000000"), in_the_dark("#08306b")
    ('#141414', '#ebebeb', '#1a70ee')
    """
    hue, light, strong = rgb_to_hls(*(part / 255 for part in ImageColor.getrgb(colour)[:3]))
    turned = hls_to_rgb(hue, 0.08 + (0.84 - 0.32 * strong) * (1 - light), strong)
    return "#" + "".join(f"{round(255 * part):02x}" for part in turned)


def _short(x: float) -> str:
    return f"{x:.1f}".removesuffix(".0")


def _pixels(
    cells: Sequence[tuple[Any, ...]], columns: Sequence[float], rows: Sequence[float], theme: str
) -> Any:
    """Return the cells of a full grid as a picture of a pixel a cell."""
    drawn, stream = Image.new("RGBA", (len(columns), len(rows))), io.BytesIO()
    for left, top, _, _, style in cells:
        if (colour := style.removeprefix("fill: ")) != "none":
            colour = in_the_dark(colour) if theme == "dark" else colour
            drawn.putpixel((columns.index(left), rows.index(top)), ImageColor.getcolor(colour, "RGBA"))
    drawn.save(stream, format="png", optimize=True)
    width, height = (max(cell[i] for cell in cells) - edge for i, edge in ((2, columns[0]), (3, rows[0])))
    box = zip(("x", "y", "width", "height"), (columns[0], rows[0], width, height), strict=True)
    look = {"preserveAspectRatio": "none", "style": "image-rendering: pixelated"}
    data = f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"
    return etree.Element(
        f"{_SVG}image", {name: f"{size:.1f}" for name, size in box} | look | {"class": theme, "href": data}
    )


def _shorten(mesh: Any) -> None:
    """Draw the cells of a heat map in fewer letters: one path a colour, or a picture of a pixel a cell."""
    cells = []
    for path in mesh:
        numbers = [float(part) for part in re.findall(r"[\d.]+", path.get("d"))]
        x, y = numbers[::2], numbers[1::2]
        cells.append((min(x), min(y), max(x), max(y), path.get("style")))
    columns, rows = (sorted({cell[i] for cell in cells}) for i in (0, 1))
    is_full = len(cells) == len(columns) * len(rows) and not any(";" in style for *_, style in cells)
    if len(cells) > MANY_CELLS and is_full:
        mesh[:] = [_pixels(cells, columns, rows, theme) for theme in ("light", "dark")]
        return
    paths: dict[str, str] = {}
    for left, top, right, bottom, style in cells:
        across, down = f"M{_short(left)} {_short(top)}H{_short(right)}", f"V{_short(bottom)}H{_short(left)}Z"
        paths[style] = paths.get(style, "") + across + down
    mesh[:] = [etree.Element(f"{_SVG}path", d=d, style=style) for style, d in paths.items()]


def drawing(svg: str, alt: str, name: str) -> str:
    """Return an SVG file of matplotlib as part of a page: smaller, on no ground, in colours of the theme.

    Two drawings may have a pattern in common, and a browser takes the first of an id, even one that is not
    shown: so each drawing of a page has a name, with which its ids begin.
    """
    root = etree.fromstring(svg.encode(), etree.XMLParser(remove_blank_text=True, remove_comments=True))
    width, height = map(float, root.get("viewBox").split()[2:])
    etree.strip_elements(root, "{*}metadata", "{*}style")
    for ground in root.xpath(_GROUNDS):
        ground.set("style", ground.get("style").replace("#ffffff", "none"))
    for mesh in root.xpath("//*[starts-with(@id, 'QuadMesh_')]"):
        _shorten(mesh)
    axes = root.xpath("//*[starts-with(@id, 'axes_')]")
    for panel in axes if len(axes) > 1 else ():  # which a phone shows below one another
        panel.set("class", "axes")
    ids = [one for one in root.xpath("//@id") if not _UNNAMED.match(one)]
    short = {one: f"{name}-{i}" for i, one in enumerate(dict.fromkeys(ids))}
    for element in root.iter():
        for key, value in element.items():
            if value.startswith("rotate(-0 ") or (key == "id" and value not in short):
                del element.attrib[key]
            else:
                element.set(key, short[value] if key == "id" else _shortened(key, value, short))
    for key in ("width", "height", "version"):
        del root.attrib[key]
    look = f"stroke-linejoin: round; max-width: {1.2 * width:.0f}px; --own: {width:.0f}px"
    root.attrib.update({"role": "img", "aria-label": alt, "style": f"{look}; --tall: {height / width:.2f}"})
    return etree.tostring(root, encoding="unicode")


def _shortened(key: str, value: str, names: Mapping[str, str]) -> str:
    """Return a value of a drawing in fewer letters, with the new names of what it refers to."""
    if key in ("d", "x", "y"):
        value = _NUMBER.sub(lambda number: _short(float(number[0])), value)
        return re.sub(r"\s*([A-Zz]|$)\s*", r"\1", value)
    value = _REFERENCE.sub(lambda name: names.get(name[0], name[0]), value)
    if key == "style":  # the page has a font of its own
        value = re.sub(r"font-family: '[^']*'; |(?<=[;:]) ", "", value)
    value = _INK.sub(lambda ink: f"var(--ink-{ink[0][1:]})", value)
    return _COLOUR.sub(lambda colour: f"light-dark({colour[0]},{in_the_dark(colour[0])})", value)


def style_sheet() -> str:
    """Return the inks of figures in light and dark; photos are turned round, but not on paper."""
    inks = " ".join(f"--ink-{light[1:]}: light-dark({light}, {dark});" for light, dark in INKS.items())
    turned = """:is(.photo img, .try img, img.thumbnail) { filter: invert(0.92) hue-rotate(180deg); }
  .figure image { display: none; &.dark { display: inline; } }"""
    return f"""
.figure {{ {inks} }}
.figure image.dark {{ display: none; }}
@media screen {{ :root[data-theme="dark"] {{ {turned} }} }}
@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {turned} }} }}
"""


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
                output = NotebookNode(output_type="display_data", metadata={}, data={"text/html": shown})
                output.drawn = True
            elif 'class="txd"' in data.get("text/html", ""):
                data["text/html"] = _TXD.sub(self._numbered, _STILL.sub("", data["text/html"]))
            renewed.append(output)
        return renewed

    def _next(self) -> tuple[str, str]:
        """Return the id of the next figure, and its number, a link to it."""
        self._n += 1
        anchor, number = f"figure-{self._n}", f"Figure {self._lesson}.{self._n}"
        return anchor, f'<a class="number" href="#{anchor}" tabindex="-1">{number}</a> '

    def _numbered(self, match: re.Match[str]) -> str:
        anchor, label = self._next()
        return f'{match[1]} id="{anchor}"{match[2]}{label}'

    def _figure(self, png: str, texts: dict[str, str]) -> str:
        (anchor, label), alt = self._next(), texts.get("alt", "")
        svg = self._svg(alt, f"f{self._n}")
        name = "drawn" if svg else "photo"
        picture = svg or f'<img src="data:image/png;base64,{png.strip()}" alt="{html.escape(alt)}">'
        caption = html.escape(texts.get("caption", ""), quote=False)
        return (
            f'<figure class="figure" id="{anchor}"><div class="picture {name}">{picture}</div>'
            f"<figcaption>{label}{caption}</figcaption></figure>"
        )

    def _svg(self, alt: str, name: str) -> str:
        """Return the drawing with this alt text, if there is one that is not too large."""
        known = {texts["alt"]: figure for figure, texts in captions().items()}
        file = self._folder and self._folder / f"{known.get(alt, '')}.svg"
        svg = drawing(file.read_text(encoding="utf-8"), alt, name) if file and file.is_file() else ""
        return svg if len(svg) <= self._largest else ""
