"""Corpora that others publish: download, verify by checksum, convert to the files that `corpora` reads.

`registry.json` lists for each corpus the commit, the checksum of every upstream file, the licence, the
citation and the layout of the folder that is made of them.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import gzip
import hashlib
import io
import os
import shutil
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tinytx.settings import require
from tinytx_run.conversion import CONVERTERS, Files
from tinytx_run.files import CHECKSUM_FILE, json_bytes, read_file, read_json, write_folder

HOST = "https://raw.githubusercontent.com"
DATA_VARIABLE = "TINYTX_DATA"
CARD = "card.json"
WORK_FOLDER = ".downloads"  # in the data folder: upstream files until the corpus is made of them
RETRIES = 3
TIMEOUT = (15, 60)  # seconds to connect, and between two chunks
MAX_BYTES = 1 << 28  # of one file, compressed or not; the largest known one has 84 MB
FOLDERS = {"imdb-unlabelled": "imdb"}  # of a corpus in the folder of another one


class FetchError(OSError):
    """A file could not be downloaded; the message says which, why, and what to do."""


@dataclass(frozen=True)
class Dataset:
    """A corpus that others publish, as files of one commit of a repository or at an address of their own."""

    name: str  # also of the folder
    description: str
    repository: str  # owner and name on GitHub
    commit: str  # forty hexadecimal digits, so the files can never change
    licence: str
    citation: str
    rule: str  # how the layout and its splits are made of the upstream files
    # Path in the repository to sha256, or to "md5:" and the md5 where upstream states no other. File names
    # without their folders differ, too.
    files: Mapping[str, str]
    # Split to file name to number of lines, of a .gz when it is opened; None if the file is not text.
    layout: Mapping[str, Mapping[str, int | None]]
    labelled: bool = False
    address: str = ""  # of the folder that holds the files, where they are not on GitHub

    @property
    def n_lines(self) -> dict[str, int | None]:
        """Number of lines of each file of the layout."""
        return {name: n for files in self.layout.values() for name, n in files.items()}

    def url(self, path: str, host: str = HOST) -> str:
        """The address of a file, at its source or at a host that mirrors its paths."""
        where = self.source(host).rstrip("/")
        return f"{where}/{path}" if self.address else f"{where}/{self.repository}/{self.commit}/{path}"

    def source(self, host: str = HOST) -> str:
        """Whom a download asks: a mirror where one is given, else its own address, else the default host."""
        return self.address if self.address and host == HOST else host

    @property
    def home(self) -> str:
        """The address that a person opens."""
        return self.address or f"https://github.com/{self.repository}/tree/{self.commit}"

    def is_in(self, folder: Path) -> bool:
        """Whether a folder holds any file of the layout."""
        return any((folder / name).is_file() for name in self.n_lines)

    def absent(self, names: Mapping[str, object]) -> tuple[str, ...]:
        """The splits of which not every file is among `names`."""
        return tuple(split for split, files in self.layout.items() if not files.keys() <= names.keys())


def file_name(path: str) -> str:
    """The last part of a path in a repository."""
    return PurePosixPath(path).name


@functools.cache
def datasets() -> dict[str, Dataset]:
    """All corpora that can be downloaded, by name."""
    known = read_json(Path(__file__).parent / "registry.json")
    elsewhere = {"repository": "", "commit": ""}  # overwritten by what is on GitHub
    return {name: Dataset(name=name, **{**elsewhere, **fields}) for name, fields in known.items()}


def dataset(name: str) -> Dataset:
    """What is downloaded for a corpus, by its name; a ValueError lists the names if there is none.

    Examples
    --------
    >>> dataset("tinyshakespeare").repository
    'karpathy/char-rnn'
    """
    known = datasets()
    if FOLDERS.get(name, name) not in known:
        raise ValueError(f"name must be one of {', '.join(known)}, got {name!r}")
    return known[FOLDERS.get(name, name)]


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The folder with one folder a corpus: `data_dir`, else ``TINYTX_DATA``, else the user's cache folder."""
    if data_dir is not None:
        return Path(data_dir)
    if os.environ.get(DATA_VARIABLE):
        return Path(os.environ[DATA_VARIABLE])
    import pooch

    return Path(pooch.os_cache("tinytx")) / "data"


def corpus_folder(name: str, data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The folder of a corpus, or a ValueError that names the command that downloads it."""
    name = dataset(name).name
    folder = data_folder(data_dir) / name
    if not dataset(name).is_in(folder):
        option = "" if data_dir is None else f" --data-dir {data_dir}"
        raise ValueError(
            f"data_dir must hold the folder {name} with its files, looked for {folder}: `tinytx data get "
            f"{name}{option}` brings it there"
        )
    return folder


@dataclass(frozen=True)
class State:
    """The content of a corpus folder, compared with what is known of it."""

    folder: Path
    files: Mapping[str, Mapping[str, Any]]  # sha256, bytes and lines of those that are as expected
    faults: tuple[str, ...]  # of the other files
    absent: tuple[str, ...] = ()  # splits that are not there
    card: Mapping[str, Any] | None = None  # as `get` wrote it; None where it did not make the folder
    changed: bool = False  # whether `get` wrote anything

    @property
    def complete(self) -> bool:
        """Whether every split is there, without a fault."""
        return not self.faults and not self.absent


def inspect(folder: Path, dataset: Dataset) -> State:
    """Compare a folder with what `get` wrote, with the registry's checksums, and with numbers of lines."""
    card, written, faults, files = None, {}, [], {}
    if (folder / CHECKSUM_FILE).is_file():
        try:
            card, written = read_json(folder / CARD), read_json(folder / CHECKSUM_FILE)
        except ValueError as error:
            return State(folder, {}, (str(error),))
    names = [name for name in dataset.n_lines if name in written or (folder / name).is_file()]
    upstream = {file_name(path): known for path, known in dataset.files.items()}
    for name in names:
        try:
            facts = describe(name, read_file(folder / name))
        except ValueError as error:
            faults.append(str(error))
            continue
        known, n_lines = upstream.get(name), dataset.n_lines[name]
        if known not in (None, facts["sha256"]):
            faults.append(f"{folder / name} must have the sha256 {known}, got {facts['sha256']}")
        elif n_lines not in (None, facts["lines"]):
            faults.append(f"{folder / name} must hold {n_lines:,} lines, got {facts['lines']}")
        else:
            files[name] = facts
    return State(folder, files, tuple(faults), dataset.absent(dict.fromkeys(names)), card)


def describe(name: str, content: bytes) -> dict[str, Any]:
    """Sha256, number of bytes and, of a text, of lines; the last line counts whether or not it ends.

    Examples
    --------
    >>> [describe("a.txt", content)["lines"] for content in (b"un\\ndeux\\n", b"un\\ndeux", b"", b"\\0")]
    [2, 2, 0, None]
    """
    facts = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content), "lines": None}
    if name.endswith(".gz"):
        try:
            with gzip.open(io.BytesIO(content)) as opened:
                content = opened.read(MAX_BYTES)
        except (OSError, EOFError, zlib.error):
            return facts
    if b"\0" not in content:
        facts["lines"] = content.count(b"\n") + (bool(content) and not content.endswith(b"\n"))
    return facts


def get(
    dataset: Dataset,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    source: str | os.PathLike[str] | None = None,
    host: str = HOST,
    report: Callable[[str], None] = print,
) -> State:
    """Put a corpus into the data folder, unless it is there; return the state of its folder.

    Parameters
    ----------
    source : path, optional
        A folder with the upstream files, fetched elsewhere, see `find`; nothing is downloaded then.
    host : str
        GitHub, or the address of a mirror of its paths.
    report : callable
        Called with each line of progress.

    Raises
    ------
    FetchError
        If a file cannot be downloaded or has another checksum. Complete files stay aside, and the next call
        continues after them.
    ValueError
        If `source` does not hold the upstream files, or the folder holds files that `get` did not write.
    """
    import filelock

    folder = data_folder(data_dir) / dataset.name
    given = {} if source is None or inspect(folder, dataset).complete else find(dataset, source)
    work = folder.parent / WORK_FOLDER
    work.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(work / f"{dataset.name}.lock"):
        state = inspect(folder, dataset)
        if state.complete:
            report(f"{folder} is there already: nothing to do")
            return state
        there = {file.name for file in folder.iterdir()} if folder.exists() else set()
        if foreign := there - ({CARD, CHECKSUM_FILE, *dataset.n_lines} if state.card else set()):
            raise ValueError(
                f"{folder} must be absent, or hold only what `tinytx data get` wrote; it has other files, "
                f"such as {min(foreign)}. Move it away, or name another folder with --data-dir"
            )
        for fault in state.faults:
            report(f"replaced: {fault}")
        files = given or convert(dataset, fetch(dataset, work / dataset.name, host, report))
        if lost := [name for name in state.files if name not in files]:
            raise ValueError(f"the folder given must hold {', '.join(lost)}, as {folder} does; got none")
        card = make_card(dataset, files, "a folder" if given else f"downloaded from {dataset.source(host)}")
        changed = bool(state.faults) or dict(state.files) != card["files"]
        if changed:
            write_folder(folder, {**files, CARD: json_bytes(card)})
            shutil.rmtree(work / dataset.name, ignore_errors=True)
        else:
            report(f"{folder} is there already, with as much as the folder given has: nothing to do")
    return dataclasses.replace(inspect(folder, dataset), changed=changed)


def make_card(dataset: Dataset, files: Files, origin: str) -> dict[str, Any]:
    """Content, source, licence, citation and checksums of a folder."""
    about = ("name", "description", "licence", "citation", "commit", "rule")
    return {
        **{field: getattr(dataset, field) for field in about},
        "source": dataset.home,
        "upstream_checksums": dict(dataset.files),
        "origin": origin,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "files": {name: describe(name, content) for name, content in files.items()},
        "absent": list(dataset.absent(files)),
    }


def fetch(
    dataset: Dataset, into: Path, host: str = HOST, report: Callable[[str], None] = print
) -> dict[str, Path]:
    """Download the upstream files that `into` lacks, checked by checksum; path in the repository to file."""
    import pooch
    import requests
    from tqdm.auto import tqdm

    pooch.get_logger().setLevel("WARNING")
    store = pooch.create(into, dataset.url("", host), registry=dict(dataset.files), retry_if_failed=RETRIES)
    fetched = {}
    files = "1 file" if len(dataset.files) == 1 else f"{len(dataset.files)} files"
    report(f"{dataset.name}: downloading {files} from {dataset.source(host)}")
    for path in tqdm(dataset.files, desc=dataset.name, unit="file", disable=None, leave=False):
        try:
            fetched[path] = Path(store.fetch(path, downloader=_download))
        except (requests.RequestException, ValueError) as error:  # a ValueError is about the checksum
            raise FetchError(
                f"{dataset.url(path, host)} cannot be downloaded: {error} Does a proxy or a log-in page "
                "answer? Open the address in a browser. The same command continues with this file. Without a "
                f"network: `tinytx data list {dataset.name}` lists the {len(dataset.files)} addresses; "
                "download them elsewhere into one folder, and run "
                f"`tinytx data get {dataset.name} --from FOLDER`"
            ) from error
    return fetched


def _download(url: str, output_file: str, _: object) -> None:
    """Download one file, up to a size."""
    import requests

    n_bytes = 0
    with requests.get(url, stream=True, timeout=TIMEOUT) as answer, open(output_file, "wb") as stream:
        answer.raise_for_status()
        for chunk in answer.iter_content(1 << 16):
            n_bytes += stream.write(chunk)
            if n_bytes > MAX_BYTES:
                raise FetchError(f"{url} must have at most {MAX_BYTES:,} bytes, got more")


def find(dataset: Dataset, source: str | os.PathLike[str]) -> Files:
    """Make as much of a corpus as a folder holds upstream files for, which must have their checksums.

    They lie in it, or in a folder named as the corpus, under their names or paths. Nothing else is believed.
    """
    import pooch

    folder, found = Path(source), {}
    require(folder.is_dir(), "the folder to copy from must exist", folder)
    place = folder / dataset.name if (folder / dataset.name).is_dir() else folder
    for path, known in dataset.files.items():
        for file in (place / file_name(path), place / path):
            if file.is_file():
                algorithm, _, known_sum = known.rpartition(":")
                if (got := pooch.file_hash(str(file), algorithm or "sha256")) != known_sum:
                    raise ValueError(f"{file} must have the {algorithm or 'sha256'} {known_sum}, got {got}")
                found[path] = file
    if not (files := convert(dataset, found)):
        missing = next(path for path in dataset.files if path not in found)
        raise ValueError(
            f"{folder} must hold upstream files of {dataset.name} (`tinytx data list {dataset.name}` lists "
            f"them); got {len(found)} of {len(dataset.files)}, the first that is missing: {missing}"
        )
    return files


def convert(dataset: Dataset, upstream: Mapping[str, Path]) -> Files:
    """Make the files of the layout for which the upstream files, path in the repository to file, suffice."""
    if dataset.name == "eltec-fra" and len(upstream) < len(dataset.files):
        return {}  # without one of its novels it is another corpus
    made = {file_name(path): file.read_bytes() for path, file in upstream.items()}
    made = CONVERTERS.get(dataset.name, dict)(made)
    return {name: made[name] for name in dataset.n_lines if name in made}
