"""Small pictures drawn without a plotting library, so that an explorer can be shown where nothing can run."""

from __future__ import annotations

import base64
import io
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

INK = "#20242b"
SOFT = "#5b6470"
LINE = "#c9cdd4"
ACCENT = "#1f5fa8"
WARN = "#a8370b"
_SCALE = 2  # pixels per unit, for sharp print
# From nothing to all, as in _paint.js.
_BLUES = ((244, 248, 253), (178, 206, 235), (92, 150, 208), (33, 94, 168), (8, 42, 98))


@cache
def _font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return DejaVu Sans, which has the signs tokens are made of, from the folder of matplotlib's fonts."""
    found = find_spec("matplotlib")  # looks for the folder, imports nothing
    for place in (found.submodule_search_locations or []) if found else []:
        name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
        path = Path(place) / "mpl-data" / "fonts" / "ttf" / name
        if path.is_file():
            return ImageFont.truetype(str(path), size * _SCALE)
    return ImageFont.load_default(size * _SCALE)


def blues(share: float) -> tuple[int, int, int]:
    """Return the colour of a share between 0 and 1: the darker, the more."""
    place = min(max(float(share), 0.0), 1.0) * (len(_BLUES) - 1)
    low = min(int(place), len(_BLUES) - 2)
    ends = zip(_BLUES[low], _BLUES[low + 1], strict=True)
    red, green, blue = (round(a + (b - a) * (place - low)) for a, b in ends)
    return red, green, blue


class Picture:
    """A white sheet to draw on, in units of one pixel on screen; it is kept twice as fine.

    Parameters
    ----------
    width, height : int
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.image = Image.new("RGB", (width * _SCALE, height * _SCALE), "white")
        self._draw = ImageDraw.Draw(self.image)

    def text(
        self, x: float, y: float, words: str, *, size: int = 12, color: str | tuple = INK, anchor: str = "lm",
        bold: bool = False,
    ) -> None:  # fmt: skip
        """Write words at a point; `anchor` as in Pillow: l, m, r across, then t, m, b or s down."""
        place = (x * _SCALE, y * _SCALE)
        self._draw.text(place, words, fill=color, font=_font(size, bold), anchor=anchor)

    def text_up(self, x: float, y: float, words: str, *, size: int = 12, color: str = INK) -> None:
        """Write words upwards, beginning at a point below them."""
        left, top, right, bottom = (round(edge) for edge in _font(size).getbbox(words))
        strip = Image.new("L", (max(1, right - left), max(1, bottom - top)))
        ImageDraw.Draw(strip).text((-left, -top), words, fill=255, font=_font(size))
        strip = strip.rotate(90, expand=True)
        corner = (round(x * _SCALE - strip.width / 2), round(y * _SCALE - strip.height))
        self.image.paste(Image.new("RGB", strip.size, color), corner, strip)

    def rect(
        self, x: float, y: float, width: float, height: float, *, fill: str | tuple | None = None,
        outline: str | None = None, line: int = 1,
    ) -> None:  # fmt: skip
        """Draw a rectangle."""
        box = (x * _SCALE, y * _SCALE, (x + width) * _SCALE - 1, (y + height) * _SCALE - 1)
        if box[2] >= box[0] and box[3] >= box[1]:
            self._draw.rectangle(box, fill=fill, outline=outline, width=line * _SCALE)

    def line(self, points: list[tuple[float, float]], *, color: str = INK, width: float = 1.5) -> None:
        """Draw a line through points."""
        scaled = [(x * _SCALE, y * _SCALE) for x, y in points]
        self._draw.line(scaled, fill=color, width=round(width * _SCALE), joint="curve")

    def hatch(self, x: float, y: float, width: float, height: float) -> None:
        """Fill a rectangle with the grey stripes of a cell that a mask blocks."""
        left, top, wide, high = (round(edge * _SCALE) for edge in (x, y, width, height))
        rows, cols = np.mgrid[top : top + high, left : left + wide]
        stripes = (rows + cols) % 12 < 3
        tile = np.where(stripes[..., None], (150, 157, 167), (231, 233, 237)).astype(np.uint8)
        self.image.paste(Image.fromarray(tile), (left, top))

    def cells(
        self, x: float, y: float, size: float, shares: np.ndarray, blocked: np.ndarray | None = None
    ) -> None:
        """Draw a matrix of shares between 0 and 1, blocked cells hatched.

        Parameters
        ----------
        x, y : float
            Upper left corner.
        size : float
            Of one cell.
        shares : ndarray of shape (T, S)
        blocked : bool ndarray of shape (T, S), optional
        """
        if size < 8:
            self._small_cells(x, y, size, shares, blocked)
            return
        gap = 1
        for (row, col), share in np.ndenumerate(shares):
            place = (x + col * size, y + row * size, size - gap, size - gap)
            if blocked is not None and blocked[row, col]:
                self.hatch(*place)
            else:
                self.rect(*place, fill=blues(share))

    def _small_cells(
        self, x: float, y: float, size: float, shares: np.ndarray, blocked: np.ndarray | None
    ) -> None:
        """Draw a matrix as one small image; blocked cells are grey, as there is no room for stripes."""
        table = np.array([blues(level / 255) for level in range(256)], np.uint8)
        colors = table[np.rint(255 * np.clip(shares, 0, 1)).astype(int)]  # (T, S, 3)
        if blocked is not None:
            colors[blocked] = (200, 204, 210)
        wide, high = (max(1, round(n * size * _SCALE)) for n in shares.shape[::-1])
        how = Image.Resampling.BOX if size * _SCALE < 1 else Image.Resampling.NEAREST
        tile = Image.fromarray(colors).resize((wide, high), how)
        self.image.paste(tile, (round(x * _SCALE), round(y * _SCALE)))

    def png(self) -> bytes:
        """Return the picture as PNG with few colours, which keeps notebooks small."""
        stream = io.BytesIO()
        few = self.image.quantize(colors=64, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        few.save(stream, format="PNG", optimize=True)
        return stream.getvalue()

    def data_uri(self) -> str:
        """Return the PNG as an address that holds it."""
        return "data:image/png;base64," + base64.b64encode(self.png()).decode()
