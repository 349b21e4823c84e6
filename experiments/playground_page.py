"""The page that trains, measured in headless Chromium as a reader has it: from a file, in a worker.

Seconds are those of the processor, summed over all processes of the browser: on one free core no more would
pass, and other work on the machine changes little. The worker's clock, which its schedule follows, is set to
them. Long tasks are those that the browser reports, of at least
50 ms of the wall clock, in the thread of the page from Play on: other work on the machine makes them longer.
The longest task is measured in time of the processor, which other work does not lengthen.
"""

from __future__ import annotations

import json
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from experiments.chromium import chromium, write_page
from experiments.harness import Record
from tinytx_course.machine import find_chromium

VARIANT = "page in Chromium"
_POLL, _PATIENCE = 0.2, 1800.0  # seconds between two looks, and at most
# In the worker: between two ticks time passes as fast as makes up for what it was wrong by before; where the
# next one is late, hardly at all.
_CLOCK = """{
const wall = performance.now.bind(performance);
let [shown, pace, at, last, lead] = [0, 1, wall(), null, 0];
performance.now = () => shown + Math.min(pace * (wall() - at), 500 + 0.05 * (wall() - at));
new BroadcastChannel("clock").onmessage = ({ data }) => {
  const [now, here] = [wall(), performance.now()];
  if (now - at < 50) return; // two of them have waited for a step
  if (last === null) lead = here - data;
  else pace = Math.max(0.01, (data - last + (lead + data - here)) / (now - at));
  [shown, at, last] = [here, now, data];
};
}"""
_LISTEN = """
Object.assign(globalThis, { heard: [], longTasks: [], ended: false });
globalThis.clock = new BroadcastChannel("clock");
globalThis.Blob = class extends Blob {
  constructor(parts, more) { super([CLOCK, ...parts], more); }
};
globalThis.Worker = class extends Worker {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data: { attention, ...data } }) => {
      if (data.told === "shown") heard.push(data);
      if (data.told === "done") ended = data.finished;
    });
  }
};
new PerformanceObserver((list) => longTasks.push(...list.getEntries().map(({ duration }) => duration)))
  .observe({ entryTypes: ["longtask"] });
""".replace("CLOCK", json.dumps(_CLOCK))


def measured_page(seconds: int) -> Record:
    """Press Play and read what the page shows, until its schedule of so many seconds ends.

    Returns
    -------
    dict
        As the records of `experiments.playground`, with seconds of the wall clock, the share of the words of
        each sample that the grammar allows, and in milliseconds the long tasks of the page (wall clock) and
        its longest one (processor), while it opens and while it learns.
    """
    from tinytx_course.widgets.playground import playground

    with (
        tempfile.TemporaryDirectory() as folder,
        chromium(str(find_chromium())) as browser,
        browser.page() as page,
    ):
        page.call("Page.addScriptToEvaluateOnNewDocument", source=_LISTEN)
        path = write_page(playground(seconds=seconds), Path(folder) / "page.html")
        begin = _clock()
        page.start_tracing()
        page.open(path.as_uri())
        (first, *_) = _moments(page, begin, "heard.length > 0")
        opening = page.longest_task()
        page.start_tracing()
        page.evaluate("longTasks.length = heard.length = 0; document.querySelector('.tx-play').click()")
        curve = _moments(page, _clock(), "ended")
        tasks, learning = page.evaluate("longTasks"), page.longest_task()
    return {
        "first_sample": first["seconds"],
        "first_sample_wall": first["wall"],
        "tokens": curve[-1]["tokens"],
        "n_steps": curve[-1]["step"],
        "curve": curve,
        "long_tasks": [round(milliseconds, 1) for milliseconds in tasks],
        "longest_task": {"opening": round(opening, 1), "learning": round(learning, 1)},
    }


def can_measure() -> bool:
    """Whether there is a Chromium, and the package that talks to it."""
    return find_spec("websocket") is not None and find_chromium() is not None


def _clock() -> np.ndarray:
    """Seconds of the processor, of all processes started here, and of the wall clock."""
    import psutil

    times = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return np.array([sum(one.user + one.system for one in times), time.monotonic()])


def _moments(page: Any, begin: np.ndarray, until: str) -> list[dict]:
    """What the page has shown, each moment with the seconds when it was seen."""
    moments: list[dict] = []
    done = False
    while not done:
        time.sleep(_POLL)
        now = _clock()
        spent, wall = (now - begin).tolist()
        done, seen = page.evaluate(f"clock.postMessage({1000 * now[0]}), [{until}, heard]")
        if wall > _PATIENCE:
            raise RuntimeError(f"the page must end within {_PATIENCE:.0f} s, got {len(moments)} moments")
        for one in seen[len(moments) :]:
            allowed = sum(one["allowed"]) / len(one["allowed"]) if one["allowed"] else None
            kept = {name: one[name] for name in ("step", "tokens", "loss", "bound", "above")}
            moments.append({"seconds": spent, "wall": wall, **kept, "allowed": allowed})
    return moments
