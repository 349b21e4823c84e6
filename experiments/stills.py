"""Still pictures of the explorers, for their lessons and for links: ``python -m experiments.stills``.

Each is taken from a bare page of the site of the published notebooks, without what only says what to press,
and without the parts that would resolve a prediction of the lesson. A lesson without an explorer has the
picture of its first diagram.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import tempfile
from pathlib import Path

import nbformat
from PIL import Image

from experiments.chromium import Page, chromium
from tinytx_course.building.notebooks import Run
from tinytx_course.lessons import LESSONS, project_root
from tinytx_course.machine import find_chromium
from tinytx_course.site import bare
from tinytx_course.site.pages import write_site

SIZE = (1200, 630)  # what is shown beside a link
_WIDTHS = (600, 700, 820, 944, 1100)
_COLOURS = 32
#: What would give a prediction away.
_TOLD = {
    "05-depth": ".tx > .tx-aside",
    "11-alignment": ".tx-both > .tx-panel:nth-child(2)",
    "13-roofline": ".tx-plot .tx-second",
}
_STYLE = """
html, body {{ height: 100%; margin: 0 !important; padding: 0 !important; overflow: hidden; }}
body, main {{ display: grid; grid-template-columns: 100%; align-items: safe center; height: 100%; }}
main {{ max-width: none !important; margin: 0 !important; }}
figure svg {{ max-height: 96vh; }}
.tx {{ border: 0 !important; border-radius: 0 !important; }}
h1, figcaption, .tx-from, .tx-tries, .tx > :is(.tx-head, .tx-invite, .tx-row, .tx-say, .tx-note), {told} {{
  display: none !important; }}
"""
_ADDED = "document.head.append(Object.assign(document.createElement('style'), {textContent: STYLE}))"
_DIAGRAM = "document.body.replaceChildren(document.querySelector('#figure-1 .txd-scroll').closest('figure'))"


def take(tab: Page, address: str, told: str, *, is_diagram: bool = False) -> bytes:
    """Return the picture of a page as PNG: as large as its letters can be with all of it to be seen."""
    tab.open("about:blank")
    tab.size(*SIZE, motion=False)
    tab.open(address)
    if not is_diagram:
        tab.wait("document.querySelector('.tx-say')?.textContent")
    else:
        tab.evaluate(_DIAGRAM)
    tab.evaluate(_ADDED.replace("STYLE", json.dumps(_STYLE.format(told=told or "h1"))))
    for width in _WIDTHS:
        height = width * SIZE[1] / SIZE[0]
        tab.size(width, round(height), motion=False)
        tab.settle()
        if tab.evaluate("document.querySelector('.tx, figure').scrollHeight") <= height:
            break
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": SIZE[0] / width}
    return base64.b64decode(tab.call("Page.captureScreenshot", format="png", clip=clip)["data"])


def main() -> None:
    """Take all of them, or those that are named."""
    root, named, executable = project_root(), sys.argv[1:], find_chromium()
    if executable is None:
        raise SystemExit("needs Chromium: `make test-browser` installs it, or says how")
    folder = root / "tinytx_course" / "site" / "stills"
    folder.mkdir(exist_ok=True)
    notebooks = {lesson: nbformat.read(root / "notebooks" / f"{lesson.name}.ipynb", 4) for lesson in LESSONS}
    with tempfile.TemporaryDirectory() as made, chromium(executable) as browser, browser.page() as tab:
        site = Path(made)
        write_site([Run(lesson=one, notebook=notebook) for one, notebook in notebooks.items()], site)
        pages = {page.stem: page for page in sorted((site / bare.FOLDER).glob("*.html"))}
        alone = {name[:2] for name in pages}
        pages |= {one.name: site / f"{one.name}.html" for one in LESSONS if one.name[:2] not in alone}
        for name, page in pages.items():
            if not named or name in named:
                png = take(tab, page.as_uri(), _TOLD.get(name, ""), is_diagram=page.parent == site)
                picture = Image.open(io.BytesIO(png)).convert("RGB").resize(SIZE).quantize(_COLOURS)
                picture.save(folder / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
