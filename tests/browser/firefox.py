"""Firefox without a window, driven over WebDriver BiDi. It takes no keys: they are tried in Chromium."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from experiments.chromium import started

_NAMES = ("firefox", "firefox-esr")
_READY = "WebDriver BiDi listening on "
_SETTINGS = {
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.proxy.type": 1,  # no host can be found: the proxy is not there
    "network.proxy.socks": "127.0.0.1",
    "network.proxy.socks_port": 9,
    "network.proxy.socks_remote_dns": True,
}


def find_firefox() -> str | None:
    """Return the path of a Firefox, or None."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


class Page:
    """The one tab. `errors` collects what pages have logged as an error."""

    def __init__(self, address: str) -> None:
        import websocket

        self._socket = websocket.create_connection(f"{address}/session", timeout=120, suppress_origin=True)
        self._next = 0
        self.errors: list[str] = []
        self._call("session.new", capabilities={})
        self._call("session.subscribe", events=["log.entryAdded"])
        self._tab = self._call("browsingContext.getTree")["contexts"][0]["context"]

    def _call(self, method: str, **parameters) -> dict:
        self._next += 1
        self._socket.send(json.dumps({"id": self._next, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("method") == "log.entryAdded" and message["params"]["level"] == "error":
                self.errors.append(str(message["params"]["text"]))
            if message.get("id") == self._next:
                if message["type"] == "error":
                    raise RuntimeError(f"{method}: {message['message']}")
                return message["result"]

    def open(self, address: str) -> None:
        """Go to an address and wait until it is loaded."""
        self._call("browsingContext.navigate", context=self._tab, url=address, wait="complete")

    def size(self, width: int, height: int) -> None:
        """Set the window's size in pixels."""
        self._call(
            "browsingContext.setViewport", context=self._tab, viewport={"width": width, "height": height}
        )

    def evaluate(self, expression: str):
        """Return the value of a JavaScript expression, through JSON; promises are waited for."""
        text = f"Promise.resolve({expression}).then((value) => JSON.stringify(value ?? null))"
        answer = self._call(
            "script.evaluate", expression=text, target={"context": self._tab}, awaitPromise=True
        )
        if answer["type"] == "exception":
            raise RuntimeError(f"{expression[:200]}: {answer['exceptionDetails']['text']}")
        return json.loads(answer["result"]["value"])

    def wait(self, expression: str, seconds: float = 120) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(f"!!({expression})"):
            if time.monotonic() > end:
                raise AssertionError(f"not true within {seconds} s: {expression}; errors: {self.errors[:3]}")
            time.sleep(0.05)


@contextlib.contextmanager
def firefox(executable: str) -> Iterator[Page]:
    """Start a browser with a profile of its own, and end it afterwards."""
    profile = Path(tempfile.mkdtemp(prefix="tinytx-firefox-"))
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in _SETTINGS.items()]
    (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
    log = profile / "log"

    def address() -> str | None:
        said = log.read_text(errors="replace")
        return said.partition(_READY)[2].split()[0] if _READY in said else None

    command = [executable, "--headless", "--no-remote", "--profile", str(profile)]
    command += ["--remote-debugging-port", "0", "about:blank"]
    with started(command, profile, address, seconds=90) as found:
        yield Page(found)
