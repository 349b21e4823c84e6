"""Corpora that others publish: download, verify by checksum, convert to the layout that `corpora` reads.

`registry.json` lists for each corpus the commit, the sha256 of every upstream file, the licence, the citation
and the layout of the folder that is made of them.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import gzip
import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tinytx.text.tokenizer import canonical

HOST = "https://raw.githubusercontent.com"
DATA_VARIABLE = "TINYTX_DATA"
CARD = "card.json"
WORK_FOLDER = ".downloads"  # in the data folder: upstream files until the corpus is made of them
RETRIES = 3
TIMEOUT = (15, 60)  # seconds to connect, and between two chunks
CHUNK_BYTES = 1 << 16
MAX_BYTES = 1 << 28  # of one file, compressed or not; the largest known one has 49 MB
SPLIT_SEED = 20_000
PAIRS_HELD_OUT = 2_000  # of Tatoeba, for valid and for test each
VALID_NOVELS = ("FRA02501_Loti", "FRA07101_Blondel", "FRA07401_Leblanc", "FRA07501_Darien")

Files = dict[str, bytes]  # file name to content


class FetchError(OSError):
    """A file could not be downloaded; the message says which, why, and what to do."""


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
        Forty hexadecimal digits, so the files can never change.
    licence, citation : str
        As stated where the texts come from.
    rule : str
        How the layout and its splits are made of the upstream files.
    files : mapping from str to str
        Path in the repository to sha256. File names without their folders differ, too.
    layout : mapping from str to mapping from str to int or None
        Split to file name to number of lines; None if that is unknown, or the file is not text.
    labelled : bool
        Whether texts have labels.
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

    @property
    def n_lines(self) -> dict[str, int | None]:
        """Number of lines of each file of the layout."""
        return {name: n for files in self.layout.values() for name, n in files.items()}

    @property
    def verbatim(self) -> dict[str, str]:
        """Sha256 of the files of the layout that are upstream files, unchanged."""
        return {file_name(path): sha256 for path, sha256 in self.files.items()}

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
    """A corpus by its name; a ValueError lists the names if there is no such corpus.

    Examples
    --------
    >>> dataset("tinyshakespeare").repository
    'karpathy/char-rnn'
    """
    if name not in datasets():
        raise ValueError(f"name must be one of {', '.join(datasets())}, got {name!r}")
    return datasets()[name]


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
    faults : tuple of str
        What is not as expected: the file, expected, got.
    absent : tuple of str
        Splits that are not there.
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
    files, faults = {}, []
    for name, sha256 in stated.items():
        path, n_lines = folder / name, dataset.n_lines[name]
        if not path.is_file():
            faults.append(f"{path} must exist, got no such file")
            continue
        facts = describe(path.read_bytes())
        sha256 = dataset.verbatim.get(name, sha256)  # a forged card does not help
        if sha256 not in (None, facts["sha256"]):
            faults.append(f"{path} must have the sha256 {sha256}, got {facts['sha256']}")
        elif n_lines not in (None, facts["lines"]):
            faults.append(f"{path} must hold {n_lines:,} lines, got {facts['lines']}")
        else:
            files[name] = facts
    return State(folder, files, tuple(faults), dataset.absent(stated), card)


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
    retries: int = RETRIES,
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
    retries : int
        Further attempts at each file, after pauses of 1, 2, 3, ... seconds.

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
        origin = "a folder, checked by sha256 where upstream has the same file, else by number of lines"
        if given is None:
            origin = f"downloaded from {host}"
            given = convert(dataset, fetch(dataset, work / dataset.name, host=host, retries=retries))
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
        "source": f"https://github.com/{dataset.repository}/tree/{dataset.commit}",
        "commit": dataset.commit,
        "upstream_sha256": dict(dataset.files),
        "origin": origin,
        "rule": dataset.rule,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "files": {name: describe(content) for name, content in files.items()},
        "absent": list(dataset.absent(files)),
    }


def write_folder(folder: Path, files: Files, card: Mapping[str, Any], *, aside: Path) -> None:
    """Write a folder that appears, or replaces another, in one step or not at all.

    `aside` is a folder on the same disk for what is half written; it is removed at the end.
    """
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
            os.replace(folder, old)
        os.replace(new, folder)
    except OSError:  # such as a full disk: what is downloaded stays, what is half written does not
        shutil.rmtree(new, ignore_errors=True)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def fetch(dataset: Dataset, into: Path, *, host: str = HOST, retries: int = RETRIES) -> dict[str, Path]:
    """Download the upstream files of a corpus, except those that `into` holds already.

    Returns
    -------
    dict from str to Path
        Path in the repository to the file here; each has its sha256.
    """
    import pooch
    import requests
    from tqdm.auto import tqdm

    pooch.get_logger().setLevel("WARNING")
    store = pooch.create(
        path=into,
        base_url=dataset.url("", host),
        registry={path: f"sha256:{sha256}" for path, sha256 in dataset.files.items()},
        urls={path: dataset.url(path, host) for path in dataset.files},
        retry_if_failed=retries,
    )
    fetched = {}
    with tqdm(dataset.files, desc=dataset.name, unit="file", disable=None, leave=False) as paths:
        for path in paths:
            try:
                fetched[path] = Path(store.fetch(path, downloader=_download))
            except requests.RequestException as error:
                raise FetchError(
                    f"{dataset.url(path, host)} cannot be downloaded: {error}. The same command continues "
                    f"with this file. Without a network: `tinytx data list {dataset.name}` lists the "
                    f"{len(dataset.files)} addresses; download them elsewhere into one folder, and run "
                    f"`tinytx data get {dataset.name} --from FOLDER`"
                ) from error
            except ValueError as error:
                raise FetchError(
                    f"{dataset.url(path, host)} must have the known checksum, got another: {error} A proxy "
                    "or a log-in page may have answered: open the address in a browser"
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
        files of the layout. A file that upstream has too must have its sha256, others their number of lines
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
        got, expected = hashlib.sha256(file.read_bytes()).hexdigest(), dataset.files[path]
        if got != expected:
            raise ValueError(f"{file} must have the sha256 {expected}, got {got}")
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
    """Make the files of the layout for which the upstream files suffice.

    Parameters
    ----------
    dataset : Dataset
    upstream : mapping from str to Path
        Path in the repository to the file here; files may be missing.
    """
    made = _CONVERTERS.get(dataset.name, _verbatim)(dataset, upstream)
    return {name: made[name] for name in dataset.n_lines if name in made}


def _verbatim(dataset: Dataset, upstream: Mapping[str, Path]) -> Files:
    return {file_name(path): file.read_bytes() for path, file in upstream.items()}


def _reviews(dataset: Dataset, upstream: Mapping[str, Path]) -> Files:
    made = _verbatim(dataset, upstream)
    for name in [name for name in made if name.endswith(".spm")]:
        lines = made[name].decode().split("\n")
        made[name.removesuffix(".spm") + ".txt"] = "\n".join(map(join_subwords, lines)).encode()
    return made


def join_subwords(line: str) -> str:
    """Join the subwords of a sentencepiece model, separated by spaces, to their text.

    Examples
    --------
    >>> join_subwords("\u2581Un \u2581li vre \u2581!")
    'Un livre !'
    """
    return line.replace(" ", "").replace("\u2581", " ").strip()


def _gunzipped(dataset: Dataset, upstream: Mapping[str, Path]) -> Files:
    return {
        file_name(path).removesuffix(".gz"): gzip.decompress(file.read_bytes())
        for path, file in upstream.items()
    }


def _novels(dataset: Dataset, upstream: Mapping[str, Path]) -> Files:
    if set(upstream) != set(dataset.files):
        return {}
    splits: dict[str, list[bytes]] = {"train": [], "valid": []}
    for path in sorted(upstream):
        split = "valid" if Path(path).stem in VALID_NOVELS else "train"
        lines = upstream[path].read_bytes().decode("utf-8-sig").split("\n")
        splits[split].append(_text([" ".join(line.split()) for line in lines if line.strip()]))
    made = {f"corpus.{split}.txt": b"\n".join(novels) for split, novels in splits.items()}
    return made | {
        "plain1.sha256": _text([f"{sum_}  {path}" for path, sum_ in sorted(dataset.files.items())])
    }


def _zipped_pairs(dataset: Dataset, upstream: Mapping[str, Path]) -> Files:
    made: Files = {}
    for file in upstream.values():
        with zipfile.ZipFile(io.BytesIO(file.read_bytes())) as archive:
            (name,) = [name for name in archive.namelist() if file_name(name) == "fra.txt"]
            lines = archive.read(name).decode("utf-8").split("\n")
        cells = [[cell.strip() for cell in line.split("\t")] for line in lines if line.strip()]
        splits = split_pairs([(row[0], row[1]) for row in cells], n_held_out=PAIRS_HELD_OUT)
        for split, rows in splits.items():
            made[f"pairs.{split}.tsv"] = _text([f"{source}\t{target}" for source, target in rows])
    return made


def _text(lines: Sequence[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode("utf-8")


_CONVERTERS: dict[str, Callable[[Dataset, Mapping[str, Path]], Files]] = {
    "cls-books": _reviews,
    "eltec-fra": _novels,
    "multi30k-en-fr": _gunzipped,
    "tatoeba-en-fr": _zipped_pairs,
}


def split_pairs(rows: Sequence[tuple[str, str]], *, n_held_out: int) -> dict[str, list[tuple[str, str]]]:
    """Split sentence pairs into train, valid and test such that no sentence is in two of them.

    Pairs that share a sentence by `canonical`, directly or through others, stay together. The groups, in the
    order of the sha256 of a seed and their first pair, fill test, then valid, each up to exactly its size; a
    group larger than the remaining room goes to train. Equal pairs are taken once.

    Parameters
    ----------
    rows : sequence of (str, str)
        In any order; that of the splits does not depend on it.
    n_held_out : int
        Pairs of valid and of test each.
    """
    rows = sorted(set(rows), key=_order)
    groups: dict[int, list[tuple[str, str]]] = {}
    for group, row in zip(connected([(canonical(a), canonical(b)) for a, b in rows]), rows, strict=True):
        groups.setdefault(group, []).append(row)
    splits: dict[str, list[tuple[str, str]]] = {"train": [], "valid": [], "test": []}
    for members in sorted(groups.values(), key=lambda members: _order(min(members))):
        room = (s for s in ("test", "valid") if len(splits[s]) + len(members) <= n_held_out)
        splits[next(room, "train")] += members
    return {split: sorted(members, key=_order) for split, members in splits.items()}


def _order(row: tuple[str, str]) -> bytes:
    return hashlib.sha256(f"{SPLIT_SEED}\t{row[0]}\t{row[1]}".encode()).digest()


def connected(rows: Sequence[tuple[str, str]]) -> list[int]:
    """Number the connected components of pairs that share a source or a target (union-find).

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
