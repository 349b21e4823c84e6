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

from tests.browser.cases import CASES
from tests.browser.chromium import Page, chromium, find_chromium
from tests.browser.lab import ROOT, lab
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
        with contextlib.suppress(AssertionError):
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


def _pointer(page: Page, selector: str, pressed: bool, rows: int) -> dict:
    """Move the pointer over an element from left to right, in so many rows, and back."""
    each = (N_MOVES + _SPARE) // rows + 1
    page.place(selector)
    # A little off the middle, where there may be a gap between two cells.
    start, *way = [
        page.place(selector, (col + 0.5) / each + 0.02, (row + 0.5) / rows + 0.02)
        for row in range(rows)
        for col in range(each)
    ]
    page.hover(*start)
    if pressed:
        page.press_button(*start)
    way += way[-2::-1]  # where the way there was not enough
    return _measure(page, [lambda at=at: page.hover(*at, held=pressed) for at in way])


def _keys(page: Page, selector: str, key: str, back: str, _: str) -> dict:
    """Press a key and the other one that takes its change back, in turn."""
    page.focus(selector)
    return _measure(
        page, [lambda key=key: page.press(key) for key in (key, back) * ((N_MOVES + _SPARE) // 2)]
    )


def main() -> int:
    """Measure, store the results, print a table."""
    executable = find_chromium()
    if executable is None:
        sys.exit("needs Chromium: `make test-browser` installs it, or says how")
    (ROOT / "results" / "widgets.json").unlink(missing_ok=True)  # may hold an explorer that is gone
    store = Results("widgets", ROOT / "results")
    print(f"{'':<12}{'':<10}{'median':>10}{'95th percentile':>18}")
    with (
        tempfile.TemporaryDirectory() as folder,
        chromium(executable) as browser,
        lab(Path(folder)) as running,
    ):
        for kind, case in CASES.items():
            running.write(f"{kind}.ipynb", f"import tinytx as tx, tinytx_course as course\n{case.code}")
            record = {}
            for means, measure, how in (("keys", _keys, case.keys), ("pointer", _pointer, case.sweep)):
                with browser.page() as page:
                    running.open(page, f"{kind}.ipynb")
                    page.wait("document.querySelector('.tx-say')", 90)
                    page.settle()
                    record[means] = times = measure(page, *how)
                print(f"{kind:<12}{means:<10}{times['median_ms']:>7.0f} ms{times['p95_ms']:>15.0f} ms")
            store.put(kind, record)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
