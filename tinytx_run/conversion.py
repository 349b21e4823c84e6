"""Upstream files of corpora, turned into the files that `corpora` and `pairs` read."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from tinytx.tokenizer import canonical

SPLIT_SEED = 20_000
PAIRS_HELD_OUT = 2_000  # of Tatoeba, for valid and for test each
REVIEW_FILE = re.compile(r".*/([0-9]+)_([0-9]+)\.txt")  # number and rating
LINE_BREAK = re.compile("<br */?>")
VALID_NOVELS = ("FRA02501_Loti", "FRA07101_Blondel", "FRA07401_Leblanc", "FRA07501_Darien")

Files = dict[str, bytes]  # file name to content
Rows = Sequence[tuple[str, str]]


def join_subwords(line: str) -> str:
    """Join the subwords of a sentencepiece model, separated by spaces, to their text.

    Examples
    --------
    >>> join_subwords("\u2581Un \u2581li vre \u2581!")
    'Un livre !'
    """
    return line.replace(" ", "").replace("\u2581", " ").strip()


def _reviews(upstream: Files) -> Files:
    joined = {}
    for name, content in upstream.items():
        if name.endswith(".spm"):
            lines = content.decode().split("\n")
            joined[name.removesuffix(".spm") + ".txt"] = "\n".join(map(join_subwords, lines)).encode()
    return upstream | joined


def _captions(upstream: Files) -> Files:
    return {name.removesuffix(".gz"): gzip.decompress(content) for name, content in upstream.items()}


def _novels(upstream: Files) -> Files:
    splits: dict[str, list[bytes]] = {"train": [], "valid": []}
    sums = []
    for name, content in sorted(upstream.items()):
        split = "valid" if name.removesuffix(".txt") in VALID_NOVELS else "train"
        lines = content.decode("utf-8-sig").split("\n")
        splits[split].append(_text([" ".join(line.split()) for line in lines if line.strip()]))
        sums.append(f"{hashlib.sha256(content).hexdigest()}  plain1/{name}")
    made = {f"corpus.{split}.txt": b"\n".join(novels) for split, novels in splits.items()}
    return made | {"plain1.sha256": _text(sums)}


def _zipped_pairs(upstream: Files) -> Files:
    made: Files = {}
    for content in upstream.values():
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            (name,) = [name for name in archive.namelist() if name.rpartition("/")[2] == "fra.txt"]
            lines = archive.read(name).decode().split("\n")
        cells = [[cell.strip() for cell in line.split("\t")] for line in lines if line.strip()]
        splits = split_pairs([(row[0], row[1]) for row in cells], n_held_out=PAIRS_HELD_OUT)
        for split, rows in splits.items():
            made[f"pairs.{split}.tsv"] = _text([f"{source}\t{target}" for source, target in rows])
    return made


def _film_reviews(upstream: Files) -> Files:
    made: Files = {}
    for name, content in upstream.items():
        splits: dict[str, list[str]] = {"train": [], "unlabelled": [], "test": []}
        members = _archived(name, content)
        for kind in ("train/pos", "train/neg", "train/unsup", "test/pos", "test/neg"):
            split, _, sign = kind.partition("/")
            urls = f"{split}/urls_{sign}.txt"  # its line i is of review i
            films = members.get(urls, "").split("\n")
            numbered = (REVIEW_FILE.fullmatch(path) for path in members if path.startswith(f"{kind}/"))
            for number, rating, path in sorted((int(m[1]), int(m[2]), m[0]) for m in numbered if m):
                film = re.search("/title/(tt[0-9]+)", films[number] if number < len(films) else "")
                if film is None:
                    rule = f"must name the film of {path} in line {number + 1} of {urls}"
                    raise ValueError(f"{name} {rule}, got no such line")
                row = {"text": " ".join(LINE_BREAK.sub(" ", members[path]).split()), "movie": film[1]}
                labels = {} if sign == "unsup" else {"rating": rating, "label": int(sign == "pos")}
                rows = splits["unlabelled" if sign == "unsup" else split]
                rows.append(json.dumps(row | labels, ensure_ascii=False))
        made |= {f"{split}.jsonl.gz": gzip.compress(_text(rows), mtime=0) for split, rows in splits.items()}
    return made


def _archived(name: str, content: bytes) -> dict[str, str]:
    """The text files of an archive, by their paths in its one folder."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            files = ((member.name, archive.extractfile(member)) for member in archive)
            return {path.partition("/")[2]: file.read().decode() for path, file in files if file}
    except (tarfile.TarError, EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        raise ValueError(f"{name} must be a whole .tar.gz archive of texts, got another: {error}") from error


def _text(lines: Sequence[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


# By the name of the corpus; files of others stay as they are.
CONVERTERS: dict[str, Callable[[Files], Files]] = {
    "cls-books": _reviews,
    "eltec-fra": _novels,
    "imdb": _film_reviews,
    "multi30k-en-fr": _captions,
    "tatoeba-en-fr": _zipped_pairs,
}


def split_pairs(rows: Rows, *, n_held_out: int) -> dict[str, list[tuple[str, str]]]:
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


def connected(rows: Rows) -> list[int]:
    """Number the connected components of pairs that share a source or a target.

    Examples
    --------
    >>> connected([("a", "x"), ("b", "y"), ("a", "z"), ("c", "z")])
    [0, 1, 0, 0]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not rows:
        return []
    numbers: dict[tuple[int, str], int] = {}  # of a side and its sentence
    edges = np.array([[numbers.setdefault(key, len(numbers)) for key in enumerate(row)] for row in rows])
    graph = coo_array((np.ones(len(rows)), edges.T), shape=(len(numbers), len(numbers)))
    return connected_components(graph, directed=False)[1][edges[:, 0]].tolist()
