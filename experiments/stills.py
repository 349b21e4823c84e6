"""Still pictures of the explorers, for lessons, notebooks and links: ``python -m experiments.stills``.

Each is taken from a bare page of the site of the published notebooks, without what only says what to press,
and without the parts that would resolve a prediction of the lesson. A lesson without an explorer has the
picture of its first diagram, the first page the chart of the README, where a model cheats. For a phone,
lessons have the beginning of its own layout, with letters that can be read, up to the last whole row.
"""

from __future__ import annotations

import base64
import io
import json
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from PIL import Image

from experiments.chromium import Page, chromium
from tinytx_course.building.notebooks import Run
from tinytx_course.building.stills import renew_stills
from tinytx_course.lessons import LESSONS, project_root
from tinytx_course.machine import find_chromium
from tinytx_course.site import bare
from tinytx_course.site.pages import write_site

SIZE = (1200, 630)  # what is shown beside a link
PHONE = (624, 480)  # of 390 pixels of a phone's width
_WIDTHS = {SIZE: (600, 700, 820, 944, 1100), PHONE: (390, 430, 470, 500)}
_COLOURS = 64
#: What would give a prediction away.
_TOLD = {
    "05-depth": ".tx > .tx-panel",
    "11-alignment": ".tx-both > .tx-panel:nth-child(2)",
    "13-roofline": ".tx-plot .tx-second",
}
#: Where the beginning shows too little.
_STATES = {"11-beam_tree": "#beam_tree?step=5"}
_STYLE = """
html, body {{ height: 100%; margin: 0 !important; padding: 0 !important; overflow: hidden; }}
body {{ background: #fff !important; }}
body, main {{ display: grid; grid-template-columns: 100%; align-items: safe center; height: 100%; }}
main {{ max-width: none !important; margin: 0 !important; }}
@media (min-width: 600px) {{ figure svg {{ max-height: 96vh; }} }}
.tx {{ border: 0 !important; border-radius: 0 !important; }}
h1, figcaption, .tx-credit, .tx-tries, .tx > :is(.tx-head, .tx-invite, .tx-row, .tx-say, .tx-note), {told} {{
  display: none !important; }}
"""
_ADDED = "document.head.append(Object.assign(document.createElement('style'), {textContent: STYLE}))"
# What the lower edge of the picture cuts through: pictures, and what has nothing within it.
_CUT = """[...document.querySelectorAll(":is(.tx, figure) *")].filter((each) => {
  const { top, bottom } = each.getBoundingClientRect();
  const isOne = each.matches("svg") || !(each.children.length || each.closest("svg"));
  return isOne && top < EDGE && bottom > EDGE + 1;
})"""
_DIAGRAM = "document.body.replaceChildren(document.querySelector('#figure-1 .txd-scroll').closest('figure'))"


def take(tab: Page, address: str, told: str, size: tuple[int, int], *, is_diagram: bool) -> Image.Image:
    """Return the picture of a page: the whole, with letters as large as can be, or how a phone begins."""
    tab.open("about:blank")
    tab.size(*SIZE, motion=False)
    tab.open(address)
    if not is_diagram:
        tab.wait("document.querySelector('.tx-say')?.textContent")
    else:
        tab.evaluate(_DIAGRAM)
    tab.evaluate(_ADDED.replace("STYLE", json.dumps(_STYLE.format(told=told or "h1"))))
    height_of = {width: width * size[1] / size[0] for width in _WIDTHS[size]}

    def fits(width: int) -> bool:
        tab.size(width, round(height_of[width]), motion=False)
        tab.settle()
        whole = tab.evaluate("document.querySelector('.tx, figure').scrollHeight") <= height_of[width]
        cut = _CUT.replace("EDGE", str(height_of[width]))
        return whole or (size == PHONE and not tab.evaluate(f"{cut}.length"))

    width = next(filter(fits, height_of), max(height_of))
    height = height_of[width]
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": size[0] / width}
    png = base64.b64decode(tab.call("Page.captureScreenshot", format="png", clip=clip)["data"])
    return Image.open(io.BytesIO(png)).convert("RGB").resize(size).quantize(_COLOURS)


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
        chart = 'style="display: block" viewBox="0 0 840 441"'  # above what the model writes
        drawn = re.sub("viewBox=.*(?= role)", chart, (root / "figures/mask-off-light.svg").read_text("utf-8"))
        pages[bare.PLAIN] = site / "chart.html"
        figure = f'<figure id="figure-1" style="margin: 0"><div class="txd-scroll">{drawn}</div></figure>'
        pages[bare.PLAIN].write_text(figure, "utf-8")
        for name, page in pages.items():
            sizes = {name: SIZE} | ({f"{name}-phone": PHONE} if name[0].isdecimal() else {})
            for file, size in sizes.items() if not named or name in named else ():
                address = page.as_uri() + _STATES.get(name, "")
                picture = take(tab, address, _TOLD.get(name, ""), size, is_diagram=page.parent == site)
                picture.save(folder / f"{file}.png", optimize=True)
    renew_stills(root)


if __name__ == "__main__":
    main()
