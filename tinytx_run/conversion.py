"""Upstream files of corpora, once their checksums are right, as the files that `corpora` and `pairs` read."""

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

from tinytx_run.splits import split_pairs

PAIRS_HELD_OUT = 2_000  # of Tatoeba, for valid and for test each
MAX_UNPACKED = 1 << 28  # bytes of all files of an archive
REVIEW_FILE = re.compile(r".*/([0-9]+)_([0-9]+)\.txt")  # number and rating
FILM = re.compile("/title/(tt[0-9]+)")
LINE_BREAK = re.compile("<br */?>")
VALID_NOVELS = ("FRA02501_Loti", "FRA07101_Blondel", "FRA07401_Leblanc", "FRA07501_Darien")

Files = dict[str, bytes]  # file name to content


def _reviews(upstream: Files) -> Files:
    joined = {}
    for name, content in upstream.items():
        if name.endswith(".spm"):  # subwords of sentencepiece, separated by spaces
            lines = content.decode().replace(" ", "").replace("\u2581", " ").split("\n")
            joined[name.removesuffix(".spm") + ".txt"] = "\n".join(line.strip() for line in lines).encode()
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


def unzip(archive: bytes) -> Files:
    """The files of a zip archive; a ValueError unless all have plain names and are small together."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            sizes = {member.filename: member.file_size for member in opened.infolist()}
            if (total := sum(sizes.values())) > MAX_UNPACKED:
                raise ValueError(f"an archive must unpack to at most {MAX_UNPACKED:,} bytes, got {total:,}")
            if foreign := next((name for name in sizes if not re.fullmatch(r"\w[\w.-]*", name)), None):
                raise ValueError(f"an archive must hold files with plain names, got {foreign!r:.80}")
            return {name: opened.open(name).read(size) for name, size in sizes.items()}  # and no more
    except (zipfile.BadZipFile, EOFError, RuntimeError, zlib.error) as error:
        raise ValueError(f"an archive must be a whole zip file without a password, got: {error}") from error


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
    for content in upstream.values():
        splits: dict[str, list[str]] = {"train": [], "unlabelled": [], "test": []}
        members = _archived(content)
        for kind in ("train/pos", "train/neg", "train/unsup", "test/pos", "test/neg"):
            split, _, sign = kind.partition("/")
            films = members[f"{split}/urls_{sign}.txt"].split("\n")  # line i is of review i
            numbered = (REVIEW_FILE.fullmatch(path) for path in members if path.startswith(f"{kind}/"))
            for number, rating, path in sorted((int(m[1]), int(m[2]), m[0]) for m in numbered if m):
                film = FILM.findall(films[number])[0]
                row = {"text": " ".join(LINE_BREAK.sub(" ", members[path]).split()), "movie": film}
                labels = {} if sign == "unsup" else {"rating": rating, "label": int(sign == "pos")}
                rows = splits["unlabelled" if sign == "unsup" else split]
                rows.append(json.dumps(row | labels, ensure_ascii=False))
        made |= {f"{split}.jsonl.gz": gzip.compress(_text(rows), mtime=0) for split, rows in splits.items()}
    return made


def _archived(content: bytes) -> dict[str, str]:
    """The text files of an archive, by their paths in its one folder."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        opened = ((member.name.partition("/")[2], archive.extractfile(member)) for member in archive)
        return {path: file.read().decode() for path, file in opened if file}


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
