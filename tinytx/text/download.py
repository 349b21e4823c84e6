"""Download, verify and convert corpora that others publish."""

from __future__ import annotations

import contextlib
import datetime
import errno
import functools
import gzip
import hashlib
import io
import json
import os
import shutil
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import pooch
import requests
from tqdm import tqdm
from urllib3.exceptions import NewConnectionError

from tinytx.text.corpora import TSV_HELD_OUT, Split
from tinytx.text.reading import SPLIT_SEED, parse_label, read_lines, split_rows
from tinytx.text.tokenizer import canonical

HOST = "https://raw.githubusercontent.com"

SHAKESPEARE_TRAIN = 0.9  # of the characters, the first; as is usual for this text


@dataclass(frozen=True)
class Dataset:
    """A corpus that others publish, as files of one commit of a repository.

    Parameters
    ----------
    name, description : str
        The name is also that of the folder.
    repository : str
        Owner and name on GitHub.
    commit : str
        Forty hexadecimal digits: what is fetched can never change.
    licence, citation : str
        As stated where the texts come from.
    files : mapping from str to str
        Path in the repository to sha256. File names without their folders are different, too.
    layout : mapping from str to mapping from str to int or None
        What lies in the folder at the end: split to file name to number of lines; None where that is not
        known beforehand, or where the file is no text.
    """

    name: str
    description: str
    repository: str
    commit: str
    licence: str
    citation: str
    files: Mapping[str, str]
    layout: Mapping[str, Mapping[str, int | None]]

    @property
    def n_lines(self) -> dict[str, int | None]:
        """Number of lines of each file of the layout."""
        return {name: n for files in self.layout.values() for name, n in files.items()}

    def url(self, path: str, host: str = HOST) -> str:
        """The address of a file, at GitHub or at a host that mirrors its paths."""
        return f"{host.rstrip('/')}/{self.repository}/{self.commit}/{path}"

    def absent(self, names: Mapping[str, object]) -> tuple[str, ...]:
        """The splits of which not every file is among `names`."""
        return tuple(split for split, files in self.layout.items() if not set(files) <= set(names))


def file_name(path: str) -> str:
    """The last part of a path in a repository."""
    return PurePosixPath(path).name


@functools.cache
def datasets() -> dict[str, Dataset]:
    """All corpora that can be downloaded, by name."""
    text = (Path(__file__).parent / "registry.json").read_text(encoding="utf-8")
    return {name: Dataset(name=name, **fields) for name, fields in json.loads(text).items()}


def dataset(name: str) -> Dataset:
    """A corpus by its name.

    Raises
    ------
    ValueError
        If no corpus of this name can be downloaded.

    Examples
    --------
    >>> dataset("tinyshakespeare").repository
    'karpathy/char-rnn'
    """
    if name not in datasets():
        raise ValueError(f"name must be one of {', '.join(datasets())}, got {name!r}")
    return datasets()[name]


WAIT = 0.1  # seconds between two tries


@contextlib.contextmanager
def locked(file: Path, *, report: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock that all agree on by the name of a file, which is gone again once nobody holds it.

    Parameters
    ----------
    file : Path
        Its folder is made, and removed if nothing else is in it at the end.
    report : callable
        Told once when another process holds the lock.
    """
    handle = _wait(file, report)
    try:
        yield
    finally:
        if sys.platform == "win32":  # where an open file cannot be removed
            os.close(handle)
            with contextlib.suppress(OSError):  # the next holder has it open
                file.unlink()
        else:  # first the name, then the lock: the other way round the name might be the next holder's
            file.unlink(missing_ok=True)
            os.close(handle)
        with contextlib.suppress(OSError):  # not empty
            file.parent.rmdir()


def _wait(file: Path, report: Callable[[str], None]) -> int:
    told = False
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(file, os.O_RDWR | os.O_CREAT)
        except FileNotFoundError:  # the folder was removed in between
            continue
        if _take(handle):
            if _is_still(handle, file):
                return handle
        elif not told:
            report("another process is at it: waiting")
            told = True
        os.close(handle)
        time.sleep(WAIT)


def _take(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _is_still(handle: int, file: Path) -> bool:
    # The holder before may have removed the file after it was opened here.
    try:
        return os.path.samestat(os.fstat(handle), file.stat())
    except FileNotFoundError:
        return False


CARD = "card.json"
VARIABLE = "TINYTX_DATA"


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The folder that holds one folder a corpus.

    Parameters
    ----------
    data_dir : path, optional
        Left out, it is what the environment variable ``TINYTX_DATA`` names, else the cache folder that the
        system gives this user. That one is the same from every working folder and for every copy of the
        project, no version control ever sees it, and what lies there can be had again.
    """
    if data_dir is not None:
        return Path(data_dir)
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    import pooch

    return Path(pooch.os_cache("tinytx")) / "data"


def corpus_folder(name: str, data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The folder of a corpus that is there.

    Raises
    ------
    ValueError
        If it is not; the message names the command that brings it.
    """
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
    """What lies in the folder of a corpus.

    Parameters
    ----------
    folder : Path
    files : mapping from str to mapping
        File name to its `facts`, of the files that are as they should be.
    faults : tuple of str
        What is not, in words.
    absent : tuple of str
        Splits that are not there.
    card : mapping, optional
        As `write_folder` wrote it; None for a folder that came by other ways.
    """

    folder: Path
    files: Mapping[str, Mapping[str, Any]]
    faults: tuple[str, ...]
    absent: tuple[str, ...]
    card: Mapping[str, Any] | None = None

    @property
    def whole(self) -> bool:
        """Whether every split is there as it should be."""
        return not self.faults and not self.absent


def inspect(folder: Path, dataset: Dataset) -> State:
    """Compare a folder with its card or, where it has none, with the known numbers of lines.

    Files that neither names are not looked at.
    """
    card_file, card = folder / CARD, None
    expected: dict[str, str | None]
    if card_file.is_file():
        try:
            card = json.loads(card_file.read_text(encoding="utf-8"))
            expected = {name: str(card["files"][name]["sha256"]) for name in card["files"]}
            if not expected.keys() <= dataset.n_lines.keys():
                raise ValueError(f"it names files that are none of {dataset.name}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return State(folder, {}, (f"{card_file} must be a card that tinytx wrote: {error}",), ())
    else:
        expected = {name: None for name in dataset.n_lines if (folder / name).is_file()}
    files, faults = {}, []
    for name, sha256 in expected.items():
        if not (folder / name).is_file():
            faults.append(f"{folder / name} is missing")
            continue
        found = facts((folder / name).read_bytes())
        n_lines = dataset.n_lines.get(name)
        if sha256 is not None and found["sha256"] != sha256:
            faults.append(f"{folder / name} must have the sha256 {sha256}, got {found['sha256']}")
        elif sha256 is None and n_lines is not None and found["lines"] != n_lines:
            faults.append(wrong_lines(folder / name, n_lines, found["lines"]))
        else:
            files[name] = found
    return State(folder, files, tuple(faults), dataset.absent(expected), card)


def wrong_lines(file: Path, expected: int, got: int) -> str:
    """What to say of a file with another number of lines."""
    return f"{file} must hold {expected:,} lines, got {got:,}"


def facts(content: bytes) -> dict[str, Any]:
    """Checksum, length and, of a text, number of lines."""
    return {
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "lines": None if b"\0" in content else count_lines(content),
    }


def count_lines(content: bytes) -> int:
    """Number of lines, the last one counted whether or not it ends.

    Examples
    --------
    >>> count_lines(b"un\\ndeux\\n"), count_lines(b"un\\ndeux"), count_lines(b"")
    (2, 2, 0)
    """
    return content.count(b"\n") + (bool(content) and not content.endswith(b"\n"))


def make_card(dataset: Dataset, files: Mapping[str, bytes], *, origin: str, rule: str) -> dict[str, Any]:
    """What a folder holds, where it comes from, and how it was made."""
    return {
        "name": dataset.name,
        "description": dataset.description,
        "licence": dataset.licence,
        "citation": dataset.citation,
        "source": f"https://github.com/{dataset.repository}/tree/{dataset.commit}",
        "commit": dataset.commit,
        "upstream_sha256": dict(dataset.files),
        "origin": origin,
        "rule": rule,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "files": {name: facts(content) for name, content in files.items()},
        "absent": list(dataset.absent(files)),
    }


def write_folder(folder: Path, files: Mapping[str, bytes], card: Mapping[str, Any], *, aside: Path) -> None:
    """Write a folder that appears, or takes another's place, in one step or not at all.

    Parameters
    ----------
    folder : Path
    files : mapping from str to bytes
    card : mapping
        From `make_card`.
    aside : Path
        On the same disk, for what is half written; removed before and after.
    """
    new, old = aside / "new", aside / "old"
    shutil.rmtree(aside, ignore_errors=True)
    try:
        new.mkdir(parents=True)
        text = json.dumps(card, indent=1, ensure_ascii=False) + "\n"
        for name, content in {**files, CARD: text.encode("utf-8")}.items():
            with (new / name).open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        if folder.exists():
            os.replace(folder, old)
        try:
            os.replace(new, folder)
        except OSError:
            if old.exists():
                os.replace(old, folder)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


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


@dataclass(frozen=True)
class Given:
    """Files of the layout, where they come from, and by which rule they were made."""

    files: dict[str, bytes]
    origin: str
    rule: str


def read_given(dataset: Dataset, source: str | os.PathLike[str]) -> Given:
    """Take from a folder what is in it of a corpus.

    Parameters
    ----------
    dataset : Dataset
    source : path
        Holds, directly or in a folder named as the corpus: what `data get` left elsewhere, with its card; or
        upstream files, under their names or their paths, known by their sha256; or files of the layout, known
        by their numbers of lines.

    Returns
    -------
    Given
        Of upstream files and layout together as much of the corpus as they give.

    Raises
    ------
    ValueError
        If there is nothing of the corpus, or a file is not what its name says.
    """
    folder = Path(source)
    if not folder.is_dir():
        raise ValueError(f"the folder to take files from must exist, got {folder}")
    places = [place for place in (folder / dataset.name, folder) if place.is_dir()]
    for place in places:
        state = inspect(place, dataset)
        if state.card is not None and state.card.get("name") == dataset.name:
            if state.faults:
                raise ValueError("; ".join(state.faults))
            files = {name: (place / name).read_bytes() for name in state.files}
            return Given(files, str(state.card["origin"]), str(state.card["rule"]))
    upstream = _upstream(dataset, places)
    files = build(dataset, upstream)
    copied = _layout(dataset, places, skip=set(files))
    if files:
        return Given(files | copied, "upstream files from a folder", rule(dataset))
    if copied:
        origin = "files of this layout from a folder, known by their numbers of lines"
        return Given(copied, origin, "files and splits as that folder had them")
    raise ValueError(_nothing(dataset, folder, upstream))


def _upstream(dataset: Dataset, places: Sequence[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path, sha256 in dataset.files.items():
        candidates = [place / relative for place in places for relative in (path, file_name(path))]
        for file in dict.fromkeys(file for file in candidates if file.is_file()):
            got = hashlib.sha256(file.read_bytes()).hexdigest()
            if got == sha256:
                found[path] = file
                break
            if file.name not in dataset.n_lines:  # else it may be a file of the layout, with other line ends
                raise ValueError(f"{file} must have the sha256 {sha256}, got {got}")
    return found


def _layout(dataset: Dataset, places: Sequence[Path], *, skip: set[str]) -> dict[str, bytes]:
    files = {}
    for name, n_lines in dataset.n_lines.items():
        file = next((place / name for place in places if (place / name).is_file()), None)
        if file is None or name in skip:
            continue
        content = file.read_bytes()
        if n_lines is not None and count_lines(content) != n_lines:
            raise ValueError(wrong_lines(file, n_lines, count_lines(content)))
        files[name] = content
    return files


def _nothing(dataset: Dataset, folder: Path, upstream: dict[str, Path]) -> str:
    missing = [path for path in dataset.files if path not in upstream]
    return (
        f"{folder} must hold upstream files of {dataset.name} (`tinytx data list {dataset.name}` names them) "
        f"or a folder {dataset.name} with {', '.join(dataset.n_lines)}; got {len(upstream)} of "
        f"{len(dataset.files)} upstream files, the first that is missing: {missing[0]}"
    )


Built = dict[str, bytes]  # file name to content
Builder = Callable[[Dataset, Mapping[str, Path]], Built]

PAIRS_HELD_OUT = 2_000  # for valid and for test each
# Novels kept from training: their authors wrote no other of the hundred.
VALID_NOVELS = ("FRA02501_Loti", "FRA07101_Blondel", "FRA07401_Leblanc", "FRA07501_Darien")


def build(dataset: Dataset, upstream: Mapping[str, Path]) -> Built:
    """Make the files of the layout for which the upstream files at hand suffice.

    Parameters
    ----------
    dataset : Dataset
    upstream : mapping from str to Path
        Path in the repository to the file here; files may be missing.

    Returns
    -------
    dict from str to bytes
        File name to content, in the order of the layout.
    """
    built = _BUILDERS[dataset.name][0](dataset, upstream)
    return {name: built[name] for name in dataset.n_lines if name in built}


def rule(dataset: Dataset) -> str:
    """How `build` makes the layout and its splits, in words."""
    return _BUILDERS[dataset.name][1]


def deal_pairs(rows: Sequence[tuple[str, str]], *, n_held_out: int) -> dict[str, list[tuple[str, str]]]:
    """Deal sentence pairs out to train, valid and test so that no sentence stands in two of them.

    Pairs that share a sentence, directly or over others, stay together; what counts as one sentence is said
    by `canonical`. The groups are taken in the order of the sha256 of a seed and their first pair, which is
    the same on every machine, and fill test, then valid, each up to exactly its size; a group too large for
    the room that is left goes on. Equal pairs are kept once.

    Parameters
    ----------
    rows : sequence of (str, str)
    n_held_out : int
        Pairs of valid and of test each.

    Returns
    -------
    dict from str to list of (str, str)
        "train", "valid" and "test", each in an order that has nothing to do with that of `rows`.
    """
    rows = sorted(set(rows), key=_order)
    members: dict[int, list[tuple[str, str]]] = {}
    for group, row in zip(connected([(canonical(a), canonical(b)) for a, b in rows]), rows, strict=True):
        members.setdefault(group, []).append(row)
    dealt: dict[str, list[tuple[str, str]]] = {"train": [], "valid": [], "test": []}
    for group_rows in sorted(members.values(), key=lambda group_rows: _order(min(group_rows))):
        for split in ("test", "valid"):
            if len(dealt[split]) + len(group_rows) <= n_held_out:
                break
        else:
            split = "train"
        dealt[split] += group_rows
    return {split: sorted(split_rows, key=_order) for split, split_rows in dealt.items()}


def _order(row: tuple[str, str]) -> bytes:
    return hashlib.sha256(f"{SPLIT_SEED}\t{row[0]}\t{row[1]}".encode()).digest()


def _verbatim(dataset: Dataset, upstream: Mapping[str, Path]) -> Built:
    return {file_name(path): file.read_bytes() for path, file in upstream.items()}


def _reviews(dataset: Dataset, upstream: Mapping[str, Path]) -> Built:
    built = _verbatim(dataset, upstream)
    for name in [name for name in built if name.endswith(".spm")]:
        lines = built[name].decode("utf-8").split("\n")
        text = "\n".join(join_pieces(line) for line in lines)
        built[name.removesuffix(".spm") + ".txt"] = text.encode("utf-8")
    return built


def _gunzipped(dataset: Dataset, upstream: Mapping[str, Path]) -> Built:
    return {
        file_name(path).removesuffix(".gz"): gzip.decompress(file.read_bytes())
        for path, file in upstream.items()
    }


def _novels(dataset: Dataset, upstream: Mapping[str, Path]) -> Built:
    if set(upstream) != set(dataset.files):
        return {}
    splits: dict[str, list[bytes]] = {"train": [], "valid": []}
    for path in sorted(upstream):
        split = "valid" if Path(path).stem in VALID_NOVELS else "train"
        lines = upstream[path].read_bytes().decode("utf-8-sig").split("\n")
        splits[split].append(_text([" ".join(line.split()) for line in lines if line.strip()]))
    built = {f"corpus.{split}.txt": b"\n".join(novels) for split, novels in splits.items()}
    sums = [f"{sha256}  {path}" for path, sha256 in sorted(dataset.files.items())]
    return built | {"plain1.sha256": _text(sums)}


def _zipped_pairs(dataset: Dataset, upstream: Mapping[str, Path]) -> Built:
    built: Built = {}
    for file in upstream.values():
        with zipfile.ZipFile(io.BytesIO(file.read_bytes())) as archive:
            (name,) = [name for name in archive.namelist() if file_name(name) == "fra.txt"]
            lines = archive.read(name).decode("utf-8").split("\n")
        cells = [[cell.strip() for cell in line.split("\t")] for line in lines if line.strip()]
        splits = deal_pairs([(row[0], row[1]) for row in cells], n_held_out=PAIRS_HELD_OUT)
        for split, rows in splits.items():
            built[f"pairs.{split}.tsv"] = _text([f"{source}\t{target}" for source, target in rows])
    return built


def _text(lines: Sequence[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode("utf-8")


_BUILDERS: dict[str, tuple[Builder, str]] = {
    "cls-books": (
        _reviews,
        "files and splits as upstream; *.review.txt is joined from the pieces of *.review.spm "
        "(pieces without the spaces between them, U+2581 as a space)",
    ),
    "eltec-fra": (
        _novels,
        "novels in the order of their file names, a paragraph a line, white space made single, a blank "
        f"line between two novels and nowhere else; valid: {', '.join(VALID_NOVELS)}, whose authors wrote no "
        "other of these novels",
    ),
    "multi30k-en-fr": (_gunzipped, "files and splits as upstream, uncompressed"),
    "reader-reviews-fr": (
        _verbatim,
        "files as upstream, which has no splits; when they are read, both together, equal reviews go to one "
        f"split, and of the different reviews of each label {TSV_HELD_OUT:.0%} to valid and to test each, "
        f"drawn with the seed {SPLIT_SEED}",
    ),
    "tatoeba-en-fr": (
        _zipped_pairs,
        "columns 1 and 2 of fra.txt without repeated pairs; groups of pairs that share a sentence (without "
        "case, final punctuation, kinds of space and apostrophe, English contractions) stay together and go, "
        f"in the order of sha256(seed {SPLIT_SEED}, first pair of the group), to test until it holds "
        f"{PAIRS_HELD_OUT} pairs, to valid until it does, and else to train",
    ),
    "tinyshakespeare": (
        _verbatim,
        "one file as upstream, which has no splits; when it is read, speeches that begin in the first "
        f"{SHAKESPEARE_TRAIN:.0%} of the characters are train, the others valid",
    ),
}


WORKSHOP = ".downloads"  # in the data folder: upstream files until the corpus is made of them


@dataclass(frozen=True)
class Got:
    """What `get` did: whether it wrote anything, and what lies in the folder of the corpus now."""

    dataset: Dataset
    changed: bool
    state: State

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "name": self.dataset.name,
            "folder": str(self.state.folder),
            "changed": self.changed,
            "files": dict(self.state.files),
            "absent": list(self.state.absent),
            "licence": self.dataset.licence,
            "citation": self.dataset.citation,
        }


def get(
    dataset: Dataset,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    source: str | os.PathLike[str] | None = None,
    host: str = HOST,
    report: Callable[[str], None] = print,
    pause: float = PAUSE,
) -> Got:
    """Bring a corpus into the data folder, unless it is there.

    Parameters
    ----------
    dataset : Dataset
    data_dir : path, optional
        See `data_folder`.
    source : path, optional
        A folder to take the files from, as `read_given` says; nothing is downloaded then.
    host : str
        GitHub, or the address of a mirror of its paths.
    report : callable
        Told what happens, a line at a time.
    pause : float
        Seconds before the second attempt at a file.

    Returns
    -------
    Got

    Raises
    ------
    FetchError
        If files cannot be had, are not the known ones, or find no space on the disk. Where a transfer broke
        off, what has come stays, apart from the corpora, and the next call goes on from there.
    ValueError
        If `source` does not hold the corpus, or a folder is in the way that `get` did not write.
    """
    folder = data_folder(data_dir) / dataset.name
    state = inspect(folder, dataset)
    if state.whole:
        report(f"{folder} is there already: nothing to do")
        return Got(dataset, False, state)
    given = None if source is None else read_given(dataset, source)
    workshop = folder.parent / WORKSHOP
    cache = workshop / dataset.name
    try:
        with locked(workshop / f"{dataset.name}.lock", report=report):
            try:
                changed = _bring(dataset, folder, given, cache, host, report, pause)
            except OSError as error:
                if error.errno in NO_SPACE:
                    shutil.rmtree(cache, ignore_errors=True)
                raise
            finally:
                with contextlib.suppress(OSError):  # it is not empty, or was never made
                    cache.rmdir()
    except OSError as error:
        if error.errno in NO_SPACE:
            raise FetchError(no_space(folder)) from error
        raise
    return Got(dataset, changed, inspect(folder, dataset))


def _bring(
    dataset: Dataset,
    folder: Path,
    given: Given | None,
    cache: Path,
    host: str,
    report: Callable[[str], None],
    pause: float,
) -> bool:
    state = inspect(folder, dataset)  # again: another process may have brought it meanwhile
    if state.whole:
        report(f"{folder} is there by now: nothing to do")
        return False
    _refuse_what_is_not_ours(state)
    for fault in state.faults:
        report(f"mending: {fault}")
    if given is None:
        upstream = fetch(dataset, cache, host=host, pause=pause)
        report("making the files of the corpus")
        given = Given(build(dataset, upstream), f"downloaded from {host}", rule(dataset))
    card = make_card(dataset, given.files, origin=given.origin, rule=given.rule)
    if state.files and not state.faults and card["files"] == state.files:
        report(f"{folder} is there already, with as much as the folder given has: nothing to do")
        return False
    lost = [name for name in state.files if name not in given.files]
    if lost:
        raise ValueError(
            f"{folder} holds {', '.join(lost)}, which the folder given does not: nothing was changed"
        )
    write_folder(folder, given.files, card, aside=cache / "made")
    shutil.rmtree(cache, ignore_errors=True)
    return True


def _refuse_what_is_not_ours(state: State) -> None:
    names = {file.name for file in state.folder.iterdir()} if state.folder.exists() else set()
    ours = {CARD, *state.card["files"]} if state.card is not None else set()
    if names - ours:
        got = "; ".join([*state.faults, *(f"without {split}" for split in state.absent)])
        raise ValueError(
            f"{state.folder} must be absent, or hold only what `tinytx data get` wrote; it has other files, "
            f"such as {min(names - ours)} ({got}). Move it away, or name another folder with --data-dir"
        )


LOWEST_LABEL = -1  # of the readers' reviews: low, middling or high praise


def read_splits(name: str, folder: Path) -> dict[str, Split]:
    """Read the folder of a corpus that is no parallel one.

    Parameters
    ----------
    name : str
        "cls-books", "eltec-fra", "reader-reviews-fr" or "tinyshakespeare".
    folder : Path

    Returns
    -------
    dict from str to Split
        "train", "valid" and, where there is one, "test".

    Raises
    ------
    ValueError
        If a file is missing, not UTF-8 or has a line that cannot be read; the message names the line.
    """
    return _READERS[name](folder)


def join_pieces(line: str) -> str:
    """Join the pieces of a sentencepiece model, set apart by spaces, to the text that they stand for.

    Examples
    --------
    >>> join_pieces("\u2581Un \u2581li vre \u2581!")
    'Un livre !'
    """
    return line.replace(" ", "").replace("\u2581", " ").strip()


def _cls_books(folder: Path) -> dict[str, Split]:
    has_test = (folder / "test.label").exists()
    return {name: _cls_split(folder, name) for name in ("train", "valid", "test")[: 2 + has_test]}


def _cls_split(folder: Path, split_name: str) -> Split:
    text_path = folder / f"{split_name}.review.txt"
    label_path = folder / f"{split_name}.label"
    pieces_path = folder / f"{split_name}.review.spm"
    if text_path.exists() or not pieces_path.exists():
        lines = read_lines(text_path)
        texts = [line for _, line in lines]
    else:
        lines = read_lines(pieces_path)
        texts = [join_pieces(line) for _, line in lines]
    label_lines = read_lines(label_path)
    labels = [parse_label(line, label_path, number) for number, line in label_lines]
    filled = {number for number, _ in lines}
    for number in sorted(filled ^ {number for number, _ in label_lines}):
        got = "a text without a label" if number in filled else "a label without a text"
        raise ValueError(f"{label_path}, line {number}: must label the text in the same line, got {got}")
    return Split(tuple(texts), tuple(labels))


def _read_novels(folder: Path) -> dict[str, Split]:
    return {
        split: Split(tuple(line for _, line in read_lines(folder / f"corpus.{split}.txt")))
        for split in ("train", "valid")
    }


def _reader_reviews(folder: Path) -> dict[str, Split]:
    texts, labels = [], []
    for site in ("babelio", "critiques_libres"):
        path = folder / f"{site}_reviews.jsonl"
        for number, line in read_lines(path):
            try:
                row = json.loads(line)
                text, label = " ".join(row["reader_review"].split()), int(row["label"])
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(
                    f"{path}, line {number}: must be a JSON object with reader_review and label, "
                    f"got {line[:60]!r}"
                ) from error
            if text:  # a few readers left stars only
                texts.append(text)
                labels.append(label - LOWEST_LABEL)
    rows = split_rows(folder, texts, labels, share=TSV_HELD_OUT)
    return {
        split: Split(tuple(texts[i] for i in chosen), tuple(labels[i] for i in chosen))
        for split, chosen in zip(("train", "valid", "test"), rows, strict=True)
    }


def _shakespeare(folder: Path) -> dict[str, Split]:
    speeches: list[tuple[int, list[str]]] = []  # the character at which each starts, and its lines
    start, last = 0, 0
    for number, line in read_lines(folder / "input.txt"):
        start += number - last - 1  # blank lines between
        if not speeches or number != last + 1:
            speeches.append((start, []))
        speeches[-1][1].append(line.strip())
        start, last = start + len(line) + 1, number
    splits: dict[str, list[str]] = {"train": [], "valid": []}
    for first, spoken in speeches:
        splits["train" if first < SHAKESPEARE_TRAIN * start else "valid"].append(" ".join(spoken))
    return {name: Split(tuple(texts)) for name, texts in splits.items()}


def shakespeare_text(data_dir: str | os.PathLike[str] | None = None) -> tuple[str, str]:
    """Every character of tinyshakespeare, line breaks included: the first 90 % for training, the rest.

    Raises
    ------
    ValueError
        If the corpus is not there; the message names the command that brings it.
    """
    path = corpus_folder("tinyshakespeare", data_dir) / "input.txt"
    if not path.is_file():
        raise ValueError(f"corpus file must exist, got {path}")
    text = path.read_text(encoding="utf-8")
    n_train = int(SHAKESPEARE_TRAIN * len(text))
    return text[:n_train], text[n_train:]


_READERS = {
    "cls-books": _cls_books,
    "eltec-fra": _read_novels,
    "reader-reviews-fr": _reader_reviews,
    "tinyshakespeare": _shakespeare,
}


def connected(rows: Sequence[tuple[str, str]]) -> list[int]:
    """Number the groups of pairs that share a source or a target, directly or over others.

    Returns
    -------
    list of int
        Equal for pairs of one group.

    Examples
    --------
    >>> connected([("a", "x"), ("b", "y"), ("a", "z"), ("c", "z")])
    [0, 1, 0, 0]
    """
    parent = list(range(len(rows)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[tuple[int, str], int] = {}
    for i, row in enumerate(rows):
        for key in enumerate(row):
            parent[root(i)] = root(first.setdefault(key, i))
    return [root(i) for i in range(len(rows))]
