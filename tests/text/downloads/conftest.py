"""A server on the loopback that behaves, or misbehaves, as a test asks; and a small corpus on it."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tinytx.text.download import Dataset


class Server(http.server.ThreadingHTTPServer):
    """Serves `content` by path; the next answers are as `plan` says, then good ones.

    A plan may hold: an HTTP status, to answer that; "cut N", to close the connection after N bytes; "slow N",
    to pause for N seconds first; "no range", to send the whole whatever was asked for; "wrong range", to send
    another part; "other", to send something else.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content: dict[str, bytes] = {}
        self.plan: list[int | str] = []
        self.asked: list[tuple[str, str | None]] = []  # path and Range of each request
        self.encodings: list[str | None] = []  # Accept-Encoding of each
        self.sent = 0  # bytes
        self.n_connections = 0

    def process_request(self, request, client_address) -> None:
        self.n_connections += 1
        super().process_request(request, client_address)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    """One request to a `Server`."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append((self.path, wanted))
        self.server.encodings.append(self.headers.get("Accept-Encoding"))
        order = self.server.plan.pop(0) if self.server.plan else "good"
        content = self.server.content.get(self.path)
        if isinstance(order, int) or content is None:
            return self._send(order if isinstance(order, int) else 404, b"no such luck")
        word, _, number = order.rpartition(" ")
        if word == "slow":
            time.sleep(float(number))
        if order == "other":
            return self._send(200, b"<html>Please log in</html>")
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if order == "no range":
            start = 0
        if order == "wrong range":
            start //= 2
        partial = wanted is not None and order != "no range"
        if partial and start >= len(content):
            return self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
        extra = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if partial else {}
        cut = int(number) if word == "cut" else None
        return self._send(206 if partial else 200, content[start:], extra, cut)

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None, cut: int | None = None):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # a client whose disk is full leaves early
            self.wfile.write(body[:cut])
            self.server.sent += len(body[:cut])
        if cut is not None:
            self.close_connection = True


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    """A running server; no proxy of this machine stands between it and the test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def publish(server) -> Callable[..., Dataset]:
    """Put files on the server, as a corpus whose files are taken as they are."""

    def put(files: dict[str, bytes], *, name: str = "tinyshakespeare") -> Dataset:
        sums = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
        layout = {"text": {path.rpartition("/")[2]: None for path in files}}
        made = Dataset(name, "for a test", "owner/repo", "c" * 40, "free", "nobody", sums, layout)
        server.content |= {
            made.url(path, server.url).removeprefix(server.url): content for path, content in files.items()
        }
        return made

    return put
