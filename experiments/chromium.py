"""Chromium without a window, driven over the DevTools protocol, and a page for it that holds an explorer."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tinytx_course.widgets.assets import page_script, style_sheet
from tinytx_course.widgets.base import Explorer

T = TypeVar("T")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # Chromium refuses to start for root otherwise, as in containers
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--password-store=basic",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
    # No host other than this machine can be found.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
_KEYS |= {"Backspace": 8, "Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36}


class Page:
    """One tab. `errors` and `requests` collect what happened since it was opened."""

    def __init__(self, address: str) -> None:
        import websocket

        self._socket = websocket.create_connection(address, timeout=60, suppress_origin=True)
        self._next = 0
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._loaded: set[str] = set()  # documents whose event `load` has been seen
        self._trace: list[dict] = []
        self._tracing = False
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        # A window without a screen has no focus, and JupyterLab asks which of its parts has it.
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.call("Page.bringToFront")

    def call(self, method: str, **parameters) -> dict:
        """Send one command and return its result."""
        self._next += 1
        self._socket.send(json.dumps({"id": self._next, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            self._note(message)
            if message.get("id") == self._next:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message.get("result", {})

    def _note(self, message: dict) -> None:
        kind, what = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.errors.append(str(details.get("exception", {}).get("description") or details["text"]))
        elif kind == "Runtime.consoleAPICalled" and what["type"] == "error":
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in what["args"]))
        elif kind == "Log.entryAdded" and what["entry"]["level"] == "error":
            self.errors.append(f"{what['entry']['text']} {what['entry'].get('url', '')}")
        elif kind == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        elif kind == "Page.lifecycleEvent" and what["name"] == "load":
            self._loaded.add(what["loaderId"])
        elif kind == "Tracing.dataCollected":
            self._trace += what["value"]
        elif kind == "Tracing.tracingComplete":
            self._tracing = False

    def outside(self) -> list[str]:
        """Return the requests that asked for more than what the page itself holds."""
        return [url for url in self.requests[1:] if not url.startswith(("data:", "blob:"))]

    def start_tracing(self) -> None:
        """Note the tasks of all threads from now on."""
        self._trace, self._tracing = [], True
        self.call("Tracing.start", traceConfig={"includedCategories": ["toplevel"]})

    def longest_task(self) -> float:
        """End the tracing; return the longest task of a page's main thread, in ms of the processor."""
        self.call("Tracing.end")
        while self._tracing:
            self.evaluate("1")
        named = (one for one in self._trace if one["name"] == "thread_name")
        main = {(one["pid"], one["tid"]) for one in named if one["args"]["name"] == "CrRendererMain"}
        tasks = (one for one in self._trace if (one["pid"], one["tid"]) in main)
        return max(one.get("tdur", 0) for one in tasks) / 1000

    def size(self, width: int, height: int, *, dark: bool = False, motion: bool = True) -> None:
        """Set the window's size in pixels, the theme, and whether motion is welcome."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        features = {"color-scheme": "dark" if dark else "light"}
        features |= {} if motion else {"reduced-motion": "reduce"}
        wanted = [{"name": f"prefers-{name}", "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=wanted)

    def open(self, address: str) -> None:
        """Go to an address and wait until it is loaded; another end (#...) alone loads nothing."""
        self.requests.clear()
        if "loaderId" in (answer := self.call("Page.navigate", url=address)):
            self._wait_for_load(lambda document: document == answer["loaderId"])

    def reload(self) -> None:
        """Load the page again and wait until it is loaded."""
        self.requests.clear()
        before = self._document()
        self.call("Page.reload")
        self._wait_for_load(lambda document: document != before)

    def _document(self) -> str:
        return self.call("Page.getFrameTree")["frameTree"]["frame"]["loaderId"]

    def _wait_for_load(self, is_new: Callable[[str], bool], seconds: float = 60) -> None:
        """Wait for the new document itself: whatever is asked of the page, the old one may answer."""
        end = time.monotonic() + seconds
        while not (is_new(document := self._document()) and document in self._loaded):
            if time.monotonic() > end:
                raise TimeoutError(f"no new page was loaded within {seconds} s; errors: {self.errors[:3]}")
            time.sleep(0.01)

    def evaluate(self, expression: str):
        """Return the value of a JavaScript expression; promises are waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(f"{expression[:200]}: {details.get('exception', details).get('description')}")
        return answer["result"].get("value")

    def all(self, selector: str, what: str = "e.textContent") -> list:
        """Return the texts of all elements that a selector finds, or what else is said of each `e`."""
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => {what})")

    def text(self, selector: str) -> str:
        """Return the text of the first element that a selector finds."""
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def sees(self, selector: str) -> bool:
        """Whether the first element that a selector finds is shown."""
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).checkVisibility()")

    def click(self, selector: str, number: int = 0) -> None:
        """Click one of the elements that a selector finds, the first by default."""
        self.evaluate(f"document.querySelectorAll({json.dumps(selector)})[{number}].click()")

    def width(self) -> int:
        """Return how wide the page is: more than the window where it scrolls sideways."""
        return self.evaluate("document.documentElement.scrollWidth")

    def wait(self, expression: str, seconds: float = 20) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self._holds(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"not true within {seconds} s: {expression}; errors: {self.errors[:3]}")
            time.sleep(0.02)

    def _holds(self, expression: str) -> bool:
        """Whether an expression is true; not while the page is being loaded again."""
        try:
            return bool(self.evaluate(f"!!({expression})"))
        except RuntimeError as error:
            if "navigated" not in str(error):
                raise
            return False

    def settle(self) -> None:
        """Wait until two frames have been drawn and delayed texts have arrived."""
        self.evaluate(
            "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(r, 200))))"
        )

    def press(self, key: str) -> None:
        """Press and release one key, as a person would."""
        code = _KEYS.get(key) or ord(key.upper())
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        place = key if len(key) > 1 else f"Key{key.upper()}"
        common = {"key": key, "code": place, "windowsVirtualKeyCode": code}
        down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        self.call("Input.dispatchKeyEvent", **down, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def place(self, selector: str, across: float = 0.5, down: float = 0.5) -> tuple[float, float]:
        """Scroll elements into view; return a point in the box around all of them, as shares of its sides."""
        box = self.evaluate(
            f"""(all => {{
              if (!all.length) return null;
              const view = all[0].closest(".tx");  // another view of the same explorer may follow
              all = all.filter(e => e.closest(".tx") === view);
              all[all.length >> 1].scrollIntoView({{block: 'center', behavior: 'instant'}});
              const boxes = all.map(e => e.getBoundingClientRect());
              return [Math.min(...boxes.map(b => b.left)), Math.min(...boxes.map(b => b.top)),
                Math.max(...boxes.map(b => b.right)), Math.max(...boxes.map(b => b.bottom))];
            }})([...document.querySelectorAll({json.dumps(selector)})])"""
        )
        if not box:
            raise LookupError(f"the page must hold {selector}, got nothing like it")
        left, top, right, bottom = box
        return left + across * (right - left), top + down * (bottom - top)

    def hover(self, x: float, y: float, *, held: bool = False) -> None:
        """Move the pointer."""
        button = {"button": "left", "buttons": 1} if held else {}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, **button)

    def drag(self, *points: tuple[float, float]) -> None:
        """Press at the first point, move over the others, release at the last; one point is a click."""
        self.hover(*points[0])
        self.press_button(*points[0])
        for x, y in points[1:]:
            self.hover(x, y, held=True)
        self.press_button(*points[-1], release=True)

    def press_button(self, x: float, y: float, *, release: bool = False) -> None:
        """Press the left button of the mouse, or release it."""
        kind, held = ("mouseReleased", 0) if release else ("mousePressed", 1)
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=held, clickCount=1)

    def focus(self, selector: str) -> None:
        """Give an element the focus."""
        if not self.evaluate(
            f"(e => {{ e?.focus(); return !!e && document.activeElement === e; }})"
            f"(document.querySelector({json.dumps(selector)}))"
        ):
            raise LookupError(f"{selector} must take the focus, got nothing that does")

    def pixels(self, selector: str) -> bytes:
        """Return a PNG of one element with a margin, however tall it is."""
        box = self.evaluate(
            f"(b => ({{x: b.left + scrollX, y: b.top + scrollY, width: b.width, height: b.height}}))"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        margin = 12
        clip = {"x": max(0, box["x"] - margin), "y": max(0, box["y"] - margin), "scale": 1}
        clip |= {"width": box["width"] + 2 * margin, "height": box["height"] + 2 * margin}
        answer = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(answer["data"])

    def close(self) -> None:
        """Close the tab."""
        with contextlib.suppress(Exception):
            self.call("Page.close")
        self._socket.close()


@dataclass(frozen=True)
class Chromium:
    """A running browser; pages are made by `page`."""

    port: int

    @contextlib.contextmanager
    def page(self) -> Iterator[Page]:
        """Open a tab of its own and close it afterwards."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=30) as answer:
            address = json.load(answer)["webSocketDebuggerUrl"]
        page = Page(address)
        try:
            page.size(1200, 1000)
            yield page
        finally:
            page.close()


@contextlib.contextmanager
def started(command: list[str], profile: Path, ready: Callable[[], T | None], seconds: float) -> Iterator[T]:
    """Start a browser with this profile; yield what `ready` returns at last; end both afterwards."""
    log = profile / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        end = time.monotonic() + seconds
        while (answer := ready()) is None:
            if process.poll() is not None or time.monotonic() > end:
                said = log.read_text(errors="replace")
                raise RuntimeError(f"the browser did not start: {said[-800:]}")
            time.sleep(0.05)
        yield answer
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        shutil.rmtree(profile, ignore_errors=True)


@contextlib.contextmanager
def chromium(executable: str) -> Iterator[Chromium]:
    """Start a browser with a profile of its own, and end it afterwards."""
    profile = Path(tempfile.mkdtemp(prefix="tinytx-chromium-"))
    written = profile / "DevToolsActivePort"

    def port() -> int | None:
        lines = written.read_text().splitlines() if written.is_file() else []
        return int(lines[0]) if lines else None

    command = [executable, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
    with started(command, profile, port, seconds=60) as found:
        yield Chromium(found)


def write_page(explorer: Explorer, path: Path, html: str | None = None) -> Path:
    """Write a page that holds an explorer, or this HTML of explorers of its kind; return its path."""
    path.write_text(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{explorer.title}</title>\n'
        f"<style>\n{style_sheet([explorer.kind])}\n</style>\n</head>\n"
        f'<body class="tx-page">\n<main>\n<h1>{explorer.title}</h1>\n{html or explorer.to_html()}\n</main>\n'
        f'<script type="module">\n{page_script([explorer.kind])}\n</script>\n</body>\n</html>\n',
        encoding="utf-8",
    )
    return path
