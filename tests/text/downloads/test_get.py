"""`data get` from folders, over what is there already, two at once; `data verify`; the command line."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import pytest

from tinytx.cli import main
from tinytx.text.download import CARD, dataset, datasets, get, inspect, locked, rule


def silent(line):
    pass


def everything(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.fixture
def captions(tmp_path):
    """A corpus of captions in three splits, and a folder with its upstream files."""
    upstream = tmp_path / "fetched"
    upstream.mkdir()
    files, layout = {}, {}
    for split, n_lines in {"train": 5, "val": 3, "test_2016_flickr": 2}.items():
        layout[split] = {f"{split}.en": n_lines, f"{split}.fr": n_lines}
        for name in layout[split]:
            packed = gzip.compress(f"{name}\n".encode() * n_lines, mtime=0)
            (upstream / f"{name}.gz").write_bytes(packed)
            files[f"data/task1/raw/{name}.gz"] = hashlib.sha256(packed).hexdigest()
    return dataclasses.replace(dataset("multi30k-en-fr"), files=files, layout=layout), upstream


def test_upstream_files_are_taken_under_their_names_or_their_paths(captions, tmp_path):
    known, upstream = captions
    got = get(known, tmp_path / "flat", source=upstream, report=silent)
    assert got.changed and got.state.whole and got.state.card["rule"] == rule(known)
    assert (tmp_path / "flat" / known.name / "val.fr").read_text() == "val.fr\n" * 3
    deep = tmp_path / "deep" / known.name / "data" / "task1"
    deep.mkdir(parents=True)
    upstream.rename(deep / "raw")
    again = get(known, tmp_path / "again", source=tmp_path / "deep", report=silent)
    assert again.state.files == got.state.files
    assert everything(tmp_path / "again") == everything(tmp_path / "flat")


def test_an_upstream_file_with_another_checksum_is_refused(captions, tmp_path):
    known, upstream = captions
    (upstream / "val.fr.gz").write_bytes(b"cut")
    with pytest.raises(ValueError, match=r"val\.fr\.gz must have the sha256 [0-9a-f]{64}, got [0-9a-f]{64}"):
        get(known, tmp_path / "data", source=upstream, report=silent)
    assert not (tmp_path / "data").exists()


def test_the_layout_is_known_by_its_numbers_of_lines(captions, tmp_path):
    known, upstream = captions
    whole = get(known, tmp_path / "whole", source=upstream, report=silent)
    (whole.state.folder / CARD).unlink()
    by_hand = get(known, tmp_path / "copied", source=tmp_path / "whole", report=silent)
    assert by_hand.state.files == whole.state.files
    assert "numbers of lines" in by_hand.state.card["origin"]
    assert "as that folder had them" in by_hand.state.card["rule"]
    (whole.state.folder / "val.fr").write_text("one\ntwo")
    with pytest.raises(ValueError, match=r"val\.fr must hold 3 lines, got 2"):
        get(known, tmp_path / "other", source=tmp_path / "whole", report=silent)
    assert not (tmp_path / "other").exists()


def test_absent_splits_are_named_and_brought_later(captions, tmp_path):
    known, upstream = captions
    kept = tmp_path / "kept"
    kept.mkdir()
    (upstream / "test_2016_flickr.fr.gz").rename(kept / "test_2016_flickr.fr.gz")
    got = get(known, tmp_path / "data", source=upstream, report=silent)
    assert got.state.absent == ("test_2016_flickr",) and got.state.card["absent"] == ["test_2016_flickr"]
    lines = []
    again = get(known, tmp_path / "data", source=upstream, report=lines.append)
    assert not again.changed and "with as much as the folder given has: nothing to do" in lines[0]
    with pytest.raises(ValueError, match="holds train.en.* which the folder given does not: nothing"):
        get(known, tmp_path / "data", source=kept, report=silent)
    (kept / "test_2016_flickr.fr.gz").rename(upstream / "test_2016_flickr.fr.gz")
    assert get(known, tmp_path / "data", source=upstream, report=silent).state.whole
    assert sorted(p.name for p in (tmp_path / "data").iterdir()) == [known.name]


def test_what_get_left_elsewhere_is_taken_with_its_card(captions, tmp_path):
    known, upstream = captions
    get(known, tmp_path / "first", source=upstream, report=silent)
    # Another number of lines than is known beforehand, as the split of a rule may have.
    other = dataclasses.replace(known, layout={**known.layout, "val": {"val.en": 4, "val.fr": 4}})
    got = get(other, tmp_path / "second", source=tmp_path / "first" / known.name, report=silent)
    assert got.state.whole and got.state.card["origin"] == "upstream files from a folder"
    (tmp_path / "first" / known.name / "val.fr").write_text("changed")
    with pytest.raises(ValueError, match=r"val\.fr must have the sha256 .*, got"):
        get(other, tmp_path / "third", source=tmp_path / "first", report=silent)


def test_a_card_that_points_out_of_its_folder_is_refused(captions, tmp_path):
    known, upstream = captions
    got = get(known, tmp_path / "data", source=upstream, report=silent)
    card = json.loads((got.state.folder / CARD).read_text("utf-8"))
    card["files"]["../../secret"] = card["files"]["val.fr"]
    (got.state.folder / CARD).write_text(json.dumps(card))
    state = inspect(got.state.folder, known)
    assert not state.files and "names files that are none of multi30k-en-fr" in state.faults[0]
    (got.state.folder / CARD).write_text("{")
    assert "must be a card that tinytx wrote" in inspect(got.state.folder, known).faults[0]


def test_a_folder_with_nothing_of_the_corpus_says_what_was_looked_for(captions, tmp_path):
    known, upstream = captions
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty must hold upstream files.*got 0 of 6 .*missing: data/task1"):
        get(known, tmp_path / "data", source=tmp_path / "empty", report=silent)
    with pytest.raises(ValueError, match="the folder to take files from must exist, got .*nowhere"):
        get(known, tmp_path / "data", source=tmp_path / "nowhere", report=silent)


def test_damage_is_found_and_mended(captions, tmp_path):
    known, upstream = captions
    folder = get(known, tmp_path / "data", source=upstream, report=silent).state.folder
    (folder / "train.en").write_text("x\n" * 5)
    (folder / "val.en").unlink()
    assert len(inspect(folder, known).faults) == 2
    lines = []
    got = get(known, tmp_path / "data", source=upstream, report=lines.append)
    assert got.changed and got.state.whole
    assert [line.partition(" ")[0] for line in lines] == ["mending:", "mending:"]


def test_what_somebody_else_put_there_is_never_replaced(captions, tmp_path):
    known, upstream = captions
    folder = tmp_path / "data" / known.name
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"other files, such as notes\.txt .*Move it away"):
        get(known, tmp_path / "data", source=upstream, report=silent)
    (folder / "notes.txt").unlink()
    get(known, tmp_path / "data", source=upstream, report=silent)
    (folder / "val.en").unlink()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"other files, such as notes\.txt \(.*val\.en is missing"):
        get(known, tmp_path / "data", source=upstream, report=silent)
    assert (folder / "notes.txt").read_text() == "mine"
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [known.name]


def test_a_folder_that_cannot_be_put_in_place_leaves_the_old_one(captions, tmp_path, monkeypatch):
    known, upstream = captions
    folder = get(known, tmp_path / "data", source=upstream, report=silent).state.folder
    (folder / "val.en").write_text("damaged")
    before = everything(tmp_path / "data")
    replace = os.replace

    def refuse(source, target):
        if str(source).endswith("new"):
            raise PermissionError("a reader has a file of it open")
        replace(source, target)

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(PermissionError, match="open"):
        get(known, tmp_path / "data", source=upstream, report=silent)
    assert everything(tmp_path / "data") == before and (folder / "val.en").read_text() == "damaged"


def test_of_two_at_once_one_brings_it_and_the_other_waits(server, publish, tmp_path):
    known = publish({"a.txt": b"a" * 100_000, "b.txt": b"b"})
    server.plan = ["slow 1"]
    told, got = [], []

    def bring():
        got.append(get(known, tmp_path, host=server.url, report=told.append))

    threads = [threading.Thread(target=bring) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.changed for one in got) == [False, False, True]
    assert len(server.asked) == 2, "each file was fetched once"
    assert 1 <= told.count("another process is at it: waiting") <= 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [known.name]


def test_a_holder_that_dies_lets_the_lock_go(tmp_path):
    fcntl = pytest.importorskip("fcntl", reason="the test holds the lock the way Unix does")
    file = tmp_path / "work" / "x.lock"
    file.parent.mkdir()
    code = """if True:
        import fcntl, sys, time
        held = open(sys.argv[1], "w")
        fcntl.flock(held, fcntl.LOCK_EX)
        print(1, flush=True)
        time.sleep(60)
    """
    holder = subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE)
    assert fcntl and holder.stdout.readline() == b"1\n"
    told = []

    def report(line):
        told.append(line)
        holder.kill()

    start = time.monotonic()
    with locked(file, report=report):
        assert file.exists()
    holder.wait()
    holder.stdout.close()
    assert told == ["another process is at it: waiting"] and time.monotonic() - start < 30
    assert everything(tmp_path) == []


@pytest.fixture
def at_home(tmp_path, monkeypatch):
    """A data folder of one's own."""
    monkeypatch.setenv("TINYTX_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


def call(capsys, *arguments):
    status = main([*map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "eltec-fra")) for name in datasets()]
)
def test_the_folder_at_hand_is_taken_as_it_is(shared_data, at_home, capsys, name):
    status, out, err = call(capsys, "data", "get", name, "--from", shared_data)
    known = dataset(name)
    assert status == 0 and not err
    assert f"licence: {known.licence}" in out and f"please cite: {known.citation}" in out
    for file in (shared_data / name).iterdir():
        assert (at_home / name / file.name).read_bytes() == file.read_bytes()
    left = {path.name for path in (at_home / name).iterdir()} - {CARD}
    assert left == {path.name for path in (shared_data / name).iterdir()}
    absent = known.absent(dict.fromkeys(left))
    assert (f"absent, not in the folder given: {', '.join(absent)}" in out) is bool(absent)
    status, out, _ = call(capsys, "data", "get", name, "--from", shared_data)
    assert status == 0 and "nothing to do" in out
    status, out, _ = call(capsys, "data", "verify", name, "--json")
    (row,) = json.loads(out)["corpora"]
    assert status == 0 and row["files"] == len(left) and row["absent"] == list(absent) and not row["faults"]


def test_a_corpus_comes_over_http_from_the_path_of_its_commit(shared_data, server, at_home, capsys):
    known = dataset("tinyshakespeare")
    content = (shared_data / "tinyshakespeare" / "input.txt").read_bytes()
    path = "/karpathy/char-rnn/6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare/input.txt"
    server.content[path] = content
    status, out, _ = call(capsys, "data", "get", "tinyshakespeare", "--mirror", server.url, "--json")
    answer = json.loads(out)
    assert status == 0 and answer["changed"] and answer["licence"] == known.licence
    assert (at_home / "tinyshakespeare" / "input.txt").read_bytes() == content
    status, out, _ = call(capsys, "data", "get", "tinyshakespeare", "--mirror", server.url)
    assert status == 0 and "is there already: nothing to do" in out and len(server.asked) == 1
    assert re.search(r"^tinyshakespeare +ready", call(capsys, "data", "list")[1], re.MULTILINE)


def test_verify_names_what_is_wrong_and_says_so_by_its_status(shared_data, at_home, capsys):
    assert call(capsys, "data", "verify")[:2] == (0, f"no corpus lies in {at_home}\n")
    status, _, err = call(capsys, "data", "verify", "cls-books")
    assert status == 2 and "`tinytx data get cls-books` brings it there" in err
    call(capsys, "data", "get", "tinyshakespeare", "--from", shared_data)
    with (at_home / "tinyshakespeare" / "input.txt").open("ab") as stream:
        stream.write(b"and more")
    status, out, _ = call(capsys, "data", "verify")
    assert status == 1 and "input.txt must have the sha256 86c4e6aa" in out
    (at_home / "tinyshakespeare" / CARD).unlink()
    shutil.copy(shared_data / "tinyshakespeare" / "input.txt", at_home / "tinyshakespeare" / "input.txt")
    status, out, _ = call(capsys, "data", "verify", "tinyshakespeare")
    assert status == 0 and "number of lines" in out


def test_list_tells_addresses_and_checksums_of_one(capsys):
    status, out, _ = call(capsys, "data", "list", "cls-books")
    assert status == 0
    for path, sha256 in dataset("cls-books").files.items():
        assert f"{sha256}  {dataset('cls-books').url(path)}" in out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["get", "wikipedia"], "name must be one of cls-books"),
        (["get", "eltec-fra", "--from", "nowhere"], "the folder to take files from must exist, got nowhere"),
        (["get", "eltec-fra", "--from", "x", "--mirror", "y"], "--from goes without --mirror"),
        (["verify", "wikipedia"], "name must be one of cls-books"),
        (["list", "wikipedia"], "name must be one of cls-books"),
    ],
)
def test_bad_requests_are_refused_in_one_line(at_home, capsys, arguments, words):
    status, out, err = call(capsys, "data", *arguments)
    assert status == 2 and out == "" and words in err and err.count("\n") == 1
    assert not at_home.exists()
