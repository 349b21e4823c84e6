"""How long a reader waits: from a key or a movement to changed pixels, for each explorer.

``make bench-widgets`` runs it and writes ``results/widgets.json``. Everything happens in one JupyterLab and
one browser, one thing after the other. A move is made when nothing has changed for a while. Time runs from
the browser's stamp on the event to the end of the first frame after something below the explorer was changed
(an element, or a canvas drawn upon): up to one frame, 17 ms, more than the eye waits. Whether pixels did
change is checked apart from that, by comparing pictures of the screen before and after each move.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

import numpy as np

from experiments.chromium import Chromium, Page, chromium
from tests.browser.cases import CASES
from tests.browser.lab import ROOT, Lab, lab
from tinytx_course.machine import find_chromium
from tinytx_course.results import Results

N_MOVES = 30
_SPARE = 14
_PROBE = (Path(__file__).parent / "probe.js").read_text(encoding="utf-8")


def _measure(page: Page, moves: list) -> dict:
    """Make moves one by one until enough have changed pixels; return the waiting times in milliseconds.

    The spare moves make up for those that change none: beyond the end of a slider, or from one place to
    another that looks the same.
    """
    page.evaluate(f"{_PROBE}()")
    waits, idle = [], 0
    for move in moves:
        before = page.pixels(".tx")
        page.evaluate("probe.quiet()")
        move()
        with contextlib.suppress(TimeoutError):
            page.wait("probe.waited !== null", 5)
        waited = page.evaluate("probe.waited")
        if waited is None or page.pixels(".tx") == before:
            idle += 1
            continue
        waits.append(waited)
        if len(waits) == N_MOVES:
            break
    if len(waits) < N_MOVES:
        raise RuntimeError(f"{N_MOVES} moves must change pixels, got {len(waits)} of {len(moves)}")
    median, high = np.percentile(waits, [50, 95])
    times = {"median_ms": round(median, 1), "p95_ms": round(high, 1)}
    return {"n_moves": len(waits), "n_without_change": idle, **times}


def _way(page: Page, selector: str, rows: int) -> list[tuple[float, float]]:
    """Return where the pointer goes: over an element from left to right, in so many rows."""
    each = (N_MOVES + _SPARE) // rows + 1
    places = [(col, row) for row in range(rows) for col in range(each)]
    # A little off the middle, where there may be a gap between two cells.
    shares = [((col + 0.5) / each + 0.02, (row + 0.5) / rows + 0.02) for col, row in places]
    page.place(selector)
    return [page.place(selector, *share) for share in shares[: N_MOVES + _SPARE + 1]]


def _pointer(page: Page, selector: str, pressed: bool, rows: int) -> dict:
    start, *way = _way(page, selector, rows)
    page.hover(*start)
    if pressed:
        page.press_button(*start)
    way = 2 * (way + way[-2::-1])  # back and once more, where few places look different
    try:
        return _measure(page, [lambda at=at: page.hover(*at, held=pressed) for at in way])
    finally:
        if pressed:
            page.press_button(*way[-1], release=True)


def _open(running: Lab, page: Page, kind: str) -> None:
    imports = "import tinytx as tx, tinytx_course as course"
    running.write(f"{kind}.ipynb", f"{imports}\n{CASES[kind].code}")
    running.open(page, f"{kind}.ipynb")
    page.wait("document.querySelector('.tx-say')", 90)
    page.settle()


def _explorer(browser: Chromium, running: Lab, kind: str) -> dict:
    case = CASES[kind]
    record = {}
    with browser.page() as page:
        _open(running, page, kind)
        selector, key, back, _ = case.keys
        page.focus(selector)
        keys = [lambda pressed=(key, back)[i % 2]: page.press(pressed) for i in range(N_MOVES + _SPARE)]
        record["keys"] = _measure(page, keys)
    with browser.page() as page:
        _open(running, page, kind)
        record["pointer"] = _pointer(page, *case.sweep)
    return record


def main() -> int:
    """Measure, print a table, and store the results."""
    executable = find_chromium()
    if executable is None:
        sys.exit("needs Chromium: `make test-browser` installs it, or says how")
    with (
        tempfile.TemporaryDirectory() as folder,
        chromium(executable) as browser,
        lab(Path(folder)) as running,
    ):
        records = {kind: _explorer(browser, running, kind) for kind in CASES}
    (ROOT / "results" / "widgets.json").unlink(missing_ok=True)  # may hold an explorer that is gone
    store = Results("widgets", ROOT / "results")
    for kind, record in records.items():
        store.put(kind, record)
    print(f"{'':<12}{'':<10}{'median':>10}{'95th percentile':>18}")
    for kind, record in store.data.items():
        for means, times in record.items():
            print(f"{kind:<12}{means:<10}{times['median_ms']:>7.0f} ms{times['p95_ms']:>15.0f} ms")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
