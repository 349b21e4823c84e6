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
from pathlib import PurePosixPath

from tinytx_run.splits import split_pairs

PAIRS_HELD_OUT = 2_000  # of Tatoeba, for valid and for test each
MAX_UNPACKED = 1 << 29  # bytes of all files of an archive
MAX_RATIO, FREE_BYTES = 100, 1 << 20  # unpacked to packed bytes, above so many; texts reach 10
MAX_MEMBERS = 200_000  # files of an archive; the largest known one has 100,021
REVIEW_FILE = re.compile(r".*/([0-9]+)_([0-9]+)\.txt")  # number and rating
LINE_BREAK = re.compile("<br */?>")
VALID_NOVELS = ("FRA02501_Loti", "FRA07101_Blondel", "FRA07401_Leblanc", "FRA07501_Darien")

Files = dict[str, bytes]  # file name to content


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
    return {name.removesuffix(".gz"): gunzip(content) for name, content in upstream.items()}


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


def unzip(archive: bytes) -> Files:
    """The files of a zip archive; a ValueError unless each has a plain name of its own and all are small."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            sizes = [(member.filename, member.file_size) for member in opened.infolist()]
            _check_members(sizes, len(archive))
            if foreign := next((name for name, _ in sizes if not re.fullmatch(r"\w[\w.-]*", name)), None):
                raise ValueError(f"an archive must hold files with plain names, got {foreign!r:.80}")
            return {name: opened.open(name).read(size) for name, size in sizes}  # and no more
    except (zipfile.BadZipFile, EOFError, RuntimeError, zlib.error) as error:
        raise ValueError(f"an archive must be a whole zip file without a password, got: {error}") from error


def gunzip(packed: bytes) -> bytes:
    """What a gzip file holds; a ValueError where it is too large."""
    most = _most_bytes(len(packed))
    with gzip.open(io.BytesIO(packed)) as opened:
        content = opened.read(most + 1)
    if len(content) > most:
        raise ValueError(f"an archive of {len(packed):,} bytes must unpack to at most {most:,}, got more")
    return content


def _most_bytes(packed: int) -> int:
    return min(MAX_UNPACKED, max(FREE_BYTES, MAX_RATIO * packed))


def _check_members(sizes: Sequence[tuple[str, int]], packed: int) -> None:
    """Raise ValueError unless members, name and bytes, are few and small, each with a path of its own."""
    total, most, names = sum(size for _, size in sizes), _most_bytes(packed), {name for name, _ in sizes}
    if total > most:
        raise ValueError(f"an archive of {packed:,} bytes must unpack to at most {most:,}, got {total:,}")
    if len(sizes) > MAX_MEMBERS or len(names) < len(sizes):
        got = f"{len(sizes):,} with {len(names):,} different names"
        raise ValueError(f"an archive must hold at most {MAX_MEMBERS:,} files, each name once, got {got}")
    for name in names:
        if name.startswith("/") or "\\" in name or ".." in PurePosixPath(name).parts:
            raise ValueError(f"an archive must hold files of its own folder, got {name!r:.80}")


def _zipped_pairs(upstream: Files) -> Files:
    made: Files = {}
    for content in upstream.values():
        lines = unzip(content)["fra.txt"].decode().split("\n")
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
    """The text files of an archive, by their paths in its one folder; links are left out."""
    try:
        with tarfile.open(fileobj=io.BytesIO(gunzip(content)), mode="r:") as archive:
            members = [member for member in archive if member.isfile()]
            _check_members([(member.name, member.size) for member in members], len(content))
            if len({member.name.partition("/")[0] for member in members}) > 1:
                raise ValueError(f"{name} must hold one folder, got several")
            opened = ((member.name.partition("/")[2], archive.extractfile(member)) for member in members)
            return {path: file.read().decode() for path, file in opened if file}
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
