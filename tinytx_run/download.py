"""Corpora that others publish: download, verify by checksum, convert to the files that `corpora` reads.

`registry.json` lists for each corpus the commit, the checksum of every upstream file, the licence, the
citation and the layout of the folder that is made of them.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tinytx_run.conversion import CONVERTERS, Files

HOST = "https://raw.githubusercontent.com"
DATA_VARIABLE = "TINYTX_DATA"
CARD = "card.json"
WORK_FOLDER = ".downloads"  # in the data folder: upstream files until the corpus is made of them
RETRIES = 3
TIMEOUT = (15, 60)  # seconds to connect, and between two chunks
CHUNK_BYTES = 1 << 16
MAX_BYTES = 1 << 28  # of one file, compressed or not; the largest known one has 49 MB
FOLDERS = {"imdb-unlabelled": "imdb"}  # of a corpus in the folder of another one


class FetchError(OSError):
    """A file could not be downloaded; the message says which, why, and what to do."""


@dataclass(frozen=True)
class Dataset:
    """A corpus that others publish, as files of one commit of a repository or at an address of their own.

    Parameters
    ----------
    name, description : str
        The name is also that of the folder.
    repository, commit : str
        Owner and name on GitHub; forty hexadecimal digits, so the files can never change. Both are empty
        where the files have an `address`.
    licence, citation : str
        As stated where the texts come from.
    rule : str
        How the layout and its splits are made of the upstream files.
    files : mapping from str to str
        Path in the repository to sha256, or to "md5:" and the md5 where upstream states no other. File names
        without their folders differ, too.
    layout : mapping from str to mapping from str to int or None
        Split to file name to number of lines; None if that is unknown, or the file is not text.
    labelled : bool
        Whether texts have labels.
    address : str
        Of the folder that holds the files, where they are not on GitHub.
    """

    name: str
    description: str
    repository: str
    commit: str
    licence: str
    citation: str
    rule: str
    files: Mapping[str, str]
    layout: Mapping[str, Mapping[str, int | None]]
    labelled: bool = False
    address: str = ""

    @property
    def n_lines(self) -> dict[str, int | None]:
        """Number of lines of each file of the layout."""
        return {name: n for files in self.layout.values() for name, n in files.items()}

    def url(self, path: str, host: str = HOST) -> str:
        """The address of a file, at its source or at a host that mirrors its paths."""
        if self.address:
            return f"{(self.address if host == HOST else host).rstrip('/')}/{path}"
        return f"{host.rstrip('/')}/{self.repository}/{self.commit}/{path}"

    @property
    def home(self) -> str:
        """The address that a person opens."""
        return self.address or f"https://github.com/{self.repository}/tree/{self.commit}"

    def absent(self, names: Mapping[str, object]) -> tuple[str, ...]:
        """The splits of which not every file is among `names`."""
        return tuple(split for split, files in self.layout.items() if not files.keys() <= names.keys())


def file_name(path: str) -> str:
    """The last part of a path in a repository."""
    return PurePosixPath(path).name


@functools.cache
def datasets() -> dict[str, Dataset]:
    """All corpora that can be downloaded, by name."""
    text = (Path(__file__).parent / "registry.json").read_text(encoding="utf-8")
    elsewhere = {"repository": "", "commit": ""}  # overwritten by what is on GitHub
    return {name: Dataset(name=name, **{**elsewhere, **fields}) for name, fields in json.loads(text).items()}


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
    if not folder.is_dir():
        option = "" if data_dir is None else f" --data-dir {data_dir}"
        raise ValueError(
            f"data_dir must hold the folder {name}, looked for {folder}: `tinytx data get {name}{option}` "
            "brings it there"
        )
    return folder


@dataclass(frozen=True)
class State:
    """The content of a corpus folder.

    Parameters
    ----------
    folder : Path
    files : mapping from str to mapping
        File name to sha256, bytes and lines, of the files that are as expected.
    faults, absent : tuple of str
        What is not as expected: the file, expected, got; and the splits that are not there.
    card : mapping, optional
        As `get` wrote it; None for a folder that `get` did not make.
    changed : bool
        Whether `get` wrote anything.
    """

    folder: Path
    files: Mapping[str, Mapping[str, Any]]
    faults: tuple[str, ...]
    absent: tuple[str, ...] = ()
    card: Mapping[str, Any] | None = None
    changed: bool = False

    @property
    def complete(self) -> bool:
        """Whether every split is there, without a fault."""
        return not self.faults and not self.absent


def inspect(folder: Path, dataset: Dataset) -> State:
    """Compare a folder with its card, with the checksums of the registry, and with its numbers of lines."""
    card: dict[str, Any] | None = None
    stated: dict[str, str | None] = {n: None for n in dataset.n_lines if (folder / n).is_file()}
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        stated = {name: str(facts["sha256"]) for name, facts in card["files"].items()}  # type: ignore[index]
        if not stated.keys() <= dataset.n_lines.keys():
            raise ValueError(f"it names files that are not of {dataset.name}")
    except FileNotFoundError:
        pass
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        fault = f"{folder / CARD} must be a card of `tinytx data get`, got another file: {error}"
        return State(folder, {}, (fault,))
    upstream = {file_name(path): sha256 for path, sha256 in dataset.files.items()}
    files, faults = {}, []
    for name, sha256 in stated.items():
        path, n_lines = folder / name, dataset.n_lines[name]
        if not path.is_file():
            faults.append(f"{path} must exist, got no such file")
            continue
        facts = describe(path.read_bytes())
        sha256 = upstream.get(name, sha256)  # a forged card does not help
        if sha256 not in (None, facts["sha256"]):
            faults.append(f"{path} must have the sha256 {sha256}, got {facts['sha256']}")
        elif n_lines not in (None, facts["lines"]):
            faults.append(f"{path} must hold {n_lines:,} lines, got {facts['lines']}")
        else:
            files[name] = facts
    return State(folder, files, tuple(faults), dataset.absent(stated), card)


def checksum(content: bytes, like: str) -> str:
    """The checksum of some bytes, of the kind of another one: md5 after "md5:", else sha256.

    Examples
    --------
    >>> checksum(b"", like="md5:7c2a")
    'md5:d41d8cd98f00b204e9800998ecf8427e'
    """
    algorithm, colon, _ = like.rpartition(":")
    return f"{algorithm}{colon}{hashlib.new(algorithm or 'sha256', content).hexdigest()}"


def describe(content: bytes) -> dict[str, Any]:
    """Sha256, number of bytes and, of a text, of lines; the last line counts whether or not it ends.

    Examples
    --------
    >>> [describe(content)["lines"] for content in (b"un\\ndeux\\n", b"un\\ndeux", b"", b"\\0")]
    [2, 2, 0, None]
    """
    n_lines = content.count(b"\n") + (bool(content) and not content.endswith(b"\n"))
    return {
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "lines": None if b"\0" in content else n_lines,
    }


def get(
    dataset: Dataset,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    source: str | os.PathLike[str] | None = None,
    host: str = HOST,
    report: Callable[[str], None] = print,
) -> State:
    """Put a corpus into the data folder, unless it is there.

    Parameters
    ----------
    dataset : Dataset
    data_dir : path, optional
        See `data_folder`.
    source : path, optional
        A folder to copy from, see `from_folder`; nothing is downloaded then.
    host : str
        GitHub, or the address of a mirror of its paths.
    report : callable
        Called with each line of progress.

    Returns
    -------
    State
        Of the folder afterwards.

    Raises
    ------
    FetchError
        If a file cannot be downloaded or has another checksum. Complete files stay aside, and the next call
        continues after them.
    ValueError
        If `source` does not hold the corpus, or the folder holds files that `get` did not write.
    """
    import filelock

    folder = data_folder(data_dir) / dataset.name
    given = None if source is None or inspect(folder, dataset).complete else from_folder(dataset, source)
    work = folder.parent / WORK_FOLDER
    work.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(work / f"{dataset.name}.lock"):
        state = inspect(folder, dataset)
        if state.complete:
            report(f"{folder} is there already: nothing to do")
            return state
        _refuse_foreign_files(state)
        for fault in state.faults:
            report(f"replaced: {fault}")
        origin = "a folder, checked by checksum where upstream has the same file, else by number of lines"
        if given is None:
            origin = f"downloaded from {host}"
            given = convert(dataset, fetch(dataset, work / dataset.name, host))
        elif lost := [name for name in state.files if name not in given]:
            raise ValueError(f"the folder given must hold {', '.join(lost)}, as {folder} does; got none")
        card = make_card(dataset, given, origin)
        changed = bool(state.faults) or dict(state.files) != card["files"]
        if changed:
            write_folder(folder, given, card, aside=work / dataset.name)
        else:
            report(f"{folder} is there already, with as much as the folder given has: nothing to do")
    return dataclasses.replace(inspect(folder, dataset), changed=changed)


def _refuse_foreign_files(state: State) -> None:
    names = {file.name for file in state.folder.iterdir()} if state.folder.exists() else set()
    names -= {CARD, *state.card["files"]} if state.card is not None else set()
    if names:
        raise ValueError(
            f"{state.folder} must be absent, or hold only what `tinytx data get` wrote; it has other files, "
            f"such as {min(names)}. Move it away, or name another folder with --data-dir"
        )


def make_card(dataset: Dataset, files: Files, origin: str) -> dict[str, Any]:
    """Content, source, licence, citation and checksums of a folder."""
    return {
        "name": dataset.name,
        "description": dataset.description,
        "licence": dataset.licence,
        "citation": dataset.citation,
        "source": dataset.home,
        "commit": dataset.commit,
        "upstream_checksums": dict(dataset.files),
        "origin": origin,
        "rule": dataset.rule,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "files": {name: describe(content) for name, content in files.items()},
        "absent": list(dataset.absent(files)),
    }


def write_folder(folder: Path, files: Files, card: Mapping[str, Any], *, aside: Path) -> None:
    """Write a folder that appears, or replaces another, in one step; `aside` holds what is half written."""
    new, old = aside / "new", aside / "old"
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir(parents=True)
        text = json.dumps(card, indent=1, ensure_ascii=False) + "\n"
        for name, content in {**files, CARD: text.encode()}.items():
            with (new / name).open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)  # left by a call that was killed
            os.replace(folder, old)
        os.replace(new, folder)
    except OSError:  # such as a full disk: what is downloaded stays, what is half written does not
        shutil.rmtree(new, ignore_errors=True)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def fetch(dataset: Dataset, into: Path, host: str = HOST) -> dict[str, Path]:
    """Download the upstream files that `into` lacks, checked by checksum; path in the repository to file."""
    import pooch
    import requests
    from tqdm.auto import tqdm

    pooch.get_logger().setLevel("WARNING")
    checksums = {path: known if ":" in known else f"sha256:{known}" for path, known in dataset.files.items()}
    store = pooch.create(into, dataset.url("", host), registry=checksums, retry_if_failed=RETRIES)
    fetched = {}
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
    """Download one file of at most `MAX_BYTES`; a FetchError, unlike others, is not tried again by pooch."""
    import requests

    headers = {"Accept-Encoding": "identity"}
    with requests.get(url, stream=True, timeout=TIMEOUT, headers=headers) as answer:
        if 400 <= answer.status_code < 500 and answer.status_code != 429:
            raise FetchError(
                f"{url}: the server answered {answer.status_code}, so the file is not there any more. If you "
                "have it from elsewhere: tinytx data get NAME --from FOLDER"
            )
        answer.raise_for_status()
        n_bytes = 0
        with open(output_file, "wb") as stream:
            for chunk in answer.iter_content(CHUNK_BYTES):
                n_bytes += len(chunk)
                if n_bytes > MAX_BYTES:
                    raise FetchError(f"{url} must have at most {MAX_BYTES:,} bytes, got more")
                stream.write(chunk)


def from_folder(dataset: Dataset, source: str | os.PathLike[str]) -> Files:
    """Take from a folder as much of a corpus as it holds.

    Parameters
    ----------
    dataset : Dataset
    source : path
        Holds, directly or in a folder named as the corpus, upstream files (under their names or paths) or
        files of the layout. A file that upstream has too must have its checksum, others their number of lines
        and, if there is a card, the sha256 in it; otherwise a ValueError names it.
    """
    folder = Path(source)
    if not folder.is_dir():
        raise ValueError(f"the folder to copy from must exist, got {folder}")
    place = folder / dataset.name if (folder / dataset.name).is_dir() else folder
    upstream = {
        path: place / name
        for path in dataset.files
        for name in (file_name(path), path)
        if (place / name).is_file()
    }
    for path, file in upstream.items():
        expected = dataset.files[path]
        if (got := checksum(file.read_bytes(), like=expected)) != expected:
            raise ValueError(f"{file} must have the checksum {expected}, got {got}")
    state = inspect(place, dataset)
    if state.faults:
        raise ValueError("; ".join(state.faults))
    files = {name: (place / name).read_bytes() for name in state.files} | convert(dataset, upstream)
    if not files:
        missing = next(path for path in dataset.files if path not in upstream)
        raise ValueError(
            f"{folder} must hold upstream files of {dataset.name} (`tinytx data list {dataset.name}` lists "
            f"them) or a folder {dataset.name} with {', '.join(dataset.n_lines)}; got {len(upstream)} of "
            f"{len(dataset.files)} upstream files, the first that is missing: {missing}"
        )
    return {name: files[name] for name in dataset.n_lines if name in files}


def convert(dataset: Dataset, upstream: Mapping[str, Path]) -> Files:
    """Make the files of the layout for which the upstream files, path in the repository to file, suffice."""
    if dataset.name == "eltec-fra" and len(upstream) < len(dataset.files):
        return {}  # without one of its novels it is another corpus
    made = {file_name(path): file.read_bytes() for path, file in upstream.items()}
    made = CONVERTERS.get(dataset.name, dict)(made)
    return {name: made[name] for name in dataset.n_lines if name in made}
