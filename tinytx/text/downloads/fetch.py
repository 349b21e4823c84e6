"""Files over HTTP with pooch: resumed where they broke off, checked, and what to do when that fails."""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pooch
import requests
from tqdm import tqdm
from urllib3.exceptions import NewConnectionError

from tinytx.text.downloads.registry import HOST, Dataset, file_name

ATTEMPTS = 4  # in a row without a new byte
PAUSE = 1.0  # seconds before the second attempt; then twice as long each time
TIMEOUT = (15, 60)  # seconds to connect, and between two pieces
PIECE = 1 << 13  # bytes: what is lost of a transfer that breaks off is less than this
PASSING = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
LASTING = (requests.ConnectTimeout, requests.exceptions.SSLError, requests.exceptions.ProxyError)
NO_SPACE = {getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name)}


class FetchError(OSError):
    """Something could not be fetched; the message says what, why, and what to do."""


class Resuming:
    """A downloader for pooch that goes on where an earlier transfer broke off.

    What has come so far is kept in a file of its own, which stays when a transfer breaks off for good, and
    from whose end the next one goes on (HTTP ``Range``). A server that cannot do that sends the whole again.

    Parameters
    ----------
    part : Path
        The file for what has come so far.
    sha256 : str
        Of the whole file.
    session : requests.Session
        Keeps the connection for further files.
    bar : tqdm
        Counts bytes; its total grows by the length of each answer.
    pause : float
        Seconds before a second attempt.
    """

    def __init__(
        self, part: Path, *, sha256: str, session: requests.Session, bar: Any, pause: float = PAUSE
    ) -> None:
        self.part, self.sha256, self.session, self.bar, self.pause = part, sha256, session, bar, pause

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        """Fetch `url` into `output_file`, as pooch asks."""
        had_part = self._size() > 0
        if not (had_part and self._sum() == self.sha256):
            self._fetch(url)
        if had_part and self._sum() != self.sha256:  # perhaps only what had been there was wrong
            self.part.unlink()
            self._fetch(url)
        got = self._sum()
        if got != self.sha256:
            self.part.unlink()
            raise FetchError(
                f"{url} must have the sha256 {self.sha256}, got {got}; nothing of it was kept. What answered "
                "may be a proxy or a log-in page: open the address in a browser, or try another network"
            )
        os.replace(self.part, output_file)

    def _fetch(self, url: str) -> None:
        attempt, most = 1, self._size()
        while True:
            try:
                self._go_on(url)
                return
            except requests.RequestException as error:
                size = self._size()
                attempt, most = (1, size) if size > most else (attempt + 1, most)
                if attempt > ATTEMPTS or not _may_pass(error):
                    raise
            time.sleep(self.pause * 2 ** (attempt - 1))

    def _go_on(self, url: str) -> None:
        size = self._size()
        # Bytes can be counted only where they are sent as they are.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={size}-"} if size else {})
        with self.session.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            partial = answer.status_code == 206
            if size and (
                answer.status_code == 416
                or partial
                and not answer.headers.get("Content-Range", "").startswith(f"bytes {size}-")
            ):
                self.part.unlink()
                raise requests.ConnectionError(f"the server could not go on from byte {size}")
            answer.raise_for_status()
            coming = int(answer.headers.get("Content-Length", 0))
            self.bar.total = (self.bar.total or 0) + coming
            self.bar.refresh()
            n_come = 0
            with self.part.open("ab" if partial else "wb") as stream:
                for piece in answer.iter_content(PIECE):
                    stream.write(piece)
                    n_come += len(piece)
                    self.bar.update(len(piece))
            if n_come < coming:
                raise requests.ConnectionError(f"{n_come} of {coming} bytes came")

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _sum(self) -> str:
        return pooch.file_hash(str(self.part))


def fetch(dataset: Dataset, into: Path, *, host: str = HOST, pause: float = PAUSE) -> dict[str, Path]:
    """Fetch the upstream files of a corpus, but for those that are there already.

    Parameters
    ----------
    dataset : Dataset
    into : Path
        Folder for the files; it also keeps what has come of a file whose transfer broke off.
    host : str
        Address that the paths are joined to: GitHub's, or that of a mirror.
    pause : float
        Seconds before a second attempt.

    Returns
    -------
    dict from str to Path
        Path in the repository to the file here; each has its sha256.

    Raises
    ------
    FetchError
        If a file cannot be had, or is not the one that is known.
    """
    pooch.get_logger().setLevel("WARNING")
    fetched = {}
    n_files = len(dataset.files)
    with (
        requests.Session() as session,
        tqdm(unit="B", unit_scale=True, unit_divisor=1024, disable=None, leave=False) as bar,
    ):
        for i, (path, sha256) in enumerate(dataset.files.items(), start=1):
            bar.set_description(f"{dataset.name} {i}/{n_files} {file_name(path)}")
            url = dataset.url(path, host)
            part = into / f"{sha256}.part"
            downloader = Resuming(part, sha256=sha256, session=session, bar=bar, pause=pause)
            try:
                kept = pooch.retrieve(
                    url, f"sha256:{sha256}", fname=file_name(path), path=into, downloader=downloader
                )
            except requests.RequestException as error:
                raise FetchError(_what_to_do(error, dataset, url, part)) from error
            fetched[path] = Path(kept)
    return fetched


def no_space(folder: Path) -> str:
    """What to say when the disk is full."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    return (
        f"the disk of {folder} is full, {free / 2**20:,.1f} MiB are free; nothing half-written was left. "
        "Make room, or name a folder on another disk with --data-dir"
    )


def _may_pass(error: requests.RequestException) -> bool:
    """Whether a failed request is worth another attempt."""
    if error.response is not None:
        return error.response.status_code >= 500 or error.response.status_code == 429
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(error, PASSING) and not (
        isinstance(error, LASTING) or isinstance(reason, NewConnectionError)
    )


def _what_to_do(error: requests.RequestException, dataset: Dataset, url: str, part: Path) -> str:
    if error.response is not None:
        status = error.response.status_code
        if status >= 500 or status == 429:
            return f"{url}: the server answered {status}, {ATTEMPTS} times; try again later"
        return (
            f"{url}: the server answered {status}, so this file is not there any more. If you have it from "
            f"elsewhere: tinytx data get {dataset.name} --from FOLDER"
        )
    if part.exists() and _may_pass(error):
        return (
            f"{url}: the transfer broke off after {part.stat().st_size:,} bytes, {ATTEMPTS} times in a row. "
            "The same command goes on from there"
        )
    return (
        f"{urlsplit(url).netloc} cannot be reached: no network, or it is blocked ({_cause(error)}). Without "
        f"one: `tinytx data list {dataset.name}` names the {len(dataset.files)} addresses; fetch them on a "
        "machine that has a network, carry them here in one folder, and run "
        f"`tinytx data get {dataset.name} --from FOLDER`"
    )


def _cause(error: BaseException) -> str:
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return str(error) or type(error).__name__
