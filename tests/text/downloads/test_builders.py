"""Upstream files turned into the layout, compared byte by byte where the upstream file can be had here."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import random
import re
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinytx.text.download import VALID_NOVELS, build, dataset, deal_pairs, file_name
from tinytx.text.tokenizer import canonical


def some_of(name, files):
    """A corpus with these upstream files only."""
    return dataclasses.replace(dataset(name), files=files)


def write(folder, name, content):
    (folder / name).write_bytes(content)
    return folder / name


def test_reviews_are_joined_from_their_pieces(tmp_path):
    pieces = write(tmp_path, "test.review.spm", "▁J ' ai ▁ai mé .\n\n▁Un ▁li vre\n".encode())
    label = write(tmp_path, "test.label", b"1\n\n0\n")
    known = dataset("cls-books")
    built = build(known, {"cls-books/test.review.spm": pieces, "cls-books/test.label": label})
    assert list(built) == ["test.review.txt", "test.review.spm", "test.label"]
    assert built["test.review.txt"].decode() == "J'ai aimé.\n\nUn livre\n"
    assert built["test.review.spm"] == pieces.read_bytes()


def test_joined_reviews_are_those_at_hand(shared_data):
    known, folder = dataset("cls-books"), shared_data / "cls-books"
    upstream = {path: folder / file_name(path) for path in known.files if (folder / file_name(path)).exists()}
    built = build(known, upstream)
    for split in ("train", "valid"):
        assert built[f"{split}.review.txt"] == (folder / f"{split}.review.txt").read_bytes()


def test_captions_are_uncompressed(tmp_path):
    packed = write(tmp_path, "val.en.gz", gzip.compress("Déjà vu.\n".encode()))
    assert build(dataset("multi30k-en-fr"), {"data/task1/raw/val.en.gz": packed}) == {
        "val.en": "Déjà vu.\n".encode()
    }


def test_novels_come_in_order_a_paragraph_a_line(tmp_path):
    texts = {
        "plain1/FRA02501_Loti.txt": " \nI \nUn  marin. \n",
        "plain1/FRA00102_Adam.txt": "Deuxième\u00a0tome \n",
        "plain1/FRA00101_Adam.txt": " \nPremier \n \n\ttome\n",
    }
    known = some_of("eltec-fra", {path: hashlib.sha256(t.encode()).hexdigest() for path, t in texts.items()})
    upstream = {path: write(tmp_path, file_name(path), text.encode()) for path, text in texts.items()}
    built = build(known, upstream)
    assert built["corpus.train.txt"].decode() == "Premier\ntome\n\nDeuxième tome\n"
    assert built["corpus.valid.txt"].decode() == "I\nUn marin.\n"
    for line in built["plain1.sha256"].decode().splitlines():
        sha256, path = line.split("  ")
        assert hashlib.sha256(texts[path].encode()).hexdigest() == sha256
    upstream.popitem()
    assert build(known, upstream) == {}, "a corpus with a novel missing is another corpus"


# The first novels of the corpus at hand, whose files had no white space but what can be put back; that each
# is the upstream file, its sha256 proves. Some others had more.
NOVELS = {
    "train": ["FRA00101_Adam", "FRA00102_Adam"],
    "valid": ["FRA02501_Loti", "FRA07101_Blondel"],
}


def test_novels_are_those_at_hand(shared_data, tmp_path):
    known, folder = dataset("eltec-fra"), shared_data / "eltec-fra"
    upstream, expected = {}, {}
    for split, names in NOVELS.items():
        novels = (folder / f"corpus.{split}.txt").read_text(encoding="utf-8").split("\n\n")
        n_valid = len(VALID_NOVELS)
        assert len(novels) == (n_valid if split == "valid" else len(known.files) - n_valid)
        expected[split] = ("\n\n".join(novels[: len(names)]) + "\n").encode()
        for name, novel in zip(names, novels, strict=False):
            content = " \n" + "".join(f"{line} \n" for line in novel.split("\n"))
            path = f"plain1/{name}.txt"
            assert hashlib.sha256(content.encode()).hexdigest() == known.files[path]
            upstream[path] = write(tmp_path, f"{name}.txt", content.encode())
    built = build(some_of("eltec-fra", {path: known.files[path] for path in upstream}), upstream)
    assert built["corpus.train.txt"] == expected["train"]
    assert built["corpus.valid.txt"] == expected["valid"]


def test_checksums_of_novels_are_written_as_they_were(shared_data, tmp_path):
    known = dataset("eltec-fra")
    upstream = {path: write(tmp_path, file_name(path), b"x") for path in known.files}
    assert build(known, upstream)["plain1.sha256"] == (shared_data / "eltec-fra/plain1.sha256").read_bytes()


def test_authors_kept_for_validation_wrote_nothing_else():
    authors = [re.fullmatch(r"plain1/FRA\d+_(.+)\.txt", path)[1] for path in dataset("eltec-fra").files]
    for novel in VALID_NOVELS:
        assert authors.count(novel.partition("_")[2]) == 1


def test_pairs_that_share_a_sentence_stay_together():
    rows = [("a", "x"), ("b", "x"), ("B!", "y"), ("c", "z"), ("d", "w"), ("a", "x")]
    dealt = deal_pairs(rows, n_held_out=1)
    assert sorted(sum(dealt.values(), [])) == sorted(set(rows))
    assert set(dealt["train"]) == {("a", "x"), ("b", "x"), ("B!", "y")}
    assert len(dealt["valid"]) == len(dealt["test"]) == 1


words = st.sampled_from(["a", "b", "c", "d", "e", "f", "A.", "b !", "don't", "do not"])


@given(st.lists(st.tuples(words, words.map(str.upper)), max_size=30), st.integers(0, 5), st.randoms())
def test_no_sentence_stands_in_two_splits_whatever_the_order(rows, n_held_out, rng):
    dealt = deal_pairs(rows, n_held_out=n_held_out)
    assert sorted(sum(dealt.values(), [])) == sorted(set(rows))
    assert max(len(dealt["valid"]), len(dealt["test"])) <= n_held_out
    for side in (0, 1):
        sentences = [{canonical(row[side]) for row in split} for split in dealt.values()]
        assert sum(map(len, sentences)) == len(set().union(*sentences))
    rng.shuffle(rows)
    assert deal_pairs(rows, n_held_out=n_held_out) == dealt


def test_a_zip_of_pairs_is_split_and_recorded(shared_data, tmp_path):
    everything = (shared_data / "tatoeba-en-fr" / "pairs.train.tsv").read_text(encoding="utf-8")
    lines = everything.split("\n")[:8_000]
    rows = [tuple(line.split("\t")) for line in lines]
    content = "".join(f"{line}\tCC-BY 2.0\n" for line in lines[:3_000] + lines[2_000:]) + "\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("fra.txt", content)
        archive.writestr("_about.txt", "about")
    upstream = {"fra-eng.zip": write(tmp_path, "fra-eng.zip", packed.getvalue())}
    built = build(dataset("tatoeba-en-fr"), upstream)
    splits = {
        name: [tuple(line.split("\t")) for line in content.decode().removesuffix("\n").split("\n")]
        for name, content in built.items()
    }
    assert {name: len(split) for name, split in splits.items()} == {
        "pairs.train.tsv": 4_000,
        "pairs.valid.tsv": 2_000,
        "pairs.test.tsv": 2_000,
    }
    assert sorted(sum(splits.values(), [])) == sorted(rows)
    for side in (0, 1):
        sentences = [{canonical(row[side]) for row in split} for split in splits.values()]
        assert sum(map(len, sentences)) == len(set().union(*sentences))
    shuffled = list(rows)
    random.Random(1).shuffle(shuffled)
    assert deal_pairs(shuffled, n_held_out=2_000)["test"] == splits["pairs.test.tsv"]


@pytest.mark.parametrize("name", ["tinyshakespeare", "reader-reviews-fr"])
def test_other_files_stay_as_they_are(shared_data, name):
    known = dataset(name)
    upstream = {path: shared_data / name / file_name(path) for path in known.files}
    for path, sha256 in known.files.items():
        assert hashlib.sha256(build(known, upstream)[file_name(path)]).hexdigest() == sha256
