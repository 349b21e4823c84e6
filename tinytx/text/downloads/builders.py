"""Upstream files turned into the layout in which the course reads a corpus."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tinytx.text.downloads.reading import SHAKESPEARE_TRAIN, join_pieces
from tinytx.text.downloads.registry import Dataset, file_name
from tinytx.text.files import SPLIT_SEED
from tinytx.text.own import TSV_HELD_OUT
from tinytx.text.pair_files import connected
from tinytx.text.plain import canonical

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
