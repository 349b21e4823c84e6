"""Transfers that go well and transfers that do not, from a real server on the loopback."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import random
import shutil
import socket
import subprocess
import sys
import textwrap

import pytest

from tinytx.text.download import ATTEMPTS, CARD, PIECE, FetchError, fetch, get

CONTENT = random.Random(1).randbytes(300_007)


def bring(dataset, server, folder, **changed):
    return get(dataset, folder, host=server.url, pause=0.0, report=lambda line: None, **changed)


def everything(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def ranges(server):
    return [asked for _, asked in server.asked]


def test_good_files_arrive_with_a_card_and_nothing_else(server, publish, tmp_path):
    dataset = publish({"deep/a.txt": CONTENT, "b.txt": b"un\ndeux"})
    got = bring(dataset, server, tmp_path)
    assert got.changed and got.state.whole
    assert (tmp_path / dataset.name / "a.txt").read_bytes() == CONTENT
    assert everything(tmp_path) == [dataset.name, *(f"{dataset.name}/{n}" for n in ("a.txt", "b.txt", CARD))]
    card = got.state.card
    assert card["files"]["b.txt"] == {
        "sha256": hashlib.sha256(b"un\ndeux").hexdigest(),
        "bytes": 7,
        "lines": 2,
    }
    assert card["commit"] == dataset.commit and card["upstream_sha256"] == dataset.files
    assert card["origin"] == f"downloaded from {server.url}" and card["absent"] == []


def test_a_second_get_asks_for_nothing_and_says_so(server, publish, tmp_path):
    dataset = publish({"a.txt": CONTENT})
    bring(dataset, server, tmp_path)
    before = (tmp_path / dataset.name / CARD).stat().st_mtime_ns
    lines = []
    got = get(dataset, tmp_path, host=server.url, report=lines.append)
    assert not got.changed and len(server.asked) == 1
    assert lines == [f"{tmp_path / dataset.name} is there already: nothing to do"]
    assert (tmp_path / dataset.name / CARD).stat().st_mtime_ns == before


def test_a_wrong_checksum_leaves_nothing_and_tells_both(server, publish, tmp_path):
    dataset = publish({"a.txt": CONTENT})
    server.plan = ["other"]
    with pytest.raises(FetchError) as caught:
        bring(dataset, server, tmp_path)
    got = hashlib.sha256(b"<html>Please log in</html>").hexdigest()
    assert f"must have the sha256 {dataset.files['a.txt']}, got {got}" in str(caught.value)
    assert "log-in page: open the address in a browser" in str(caught.value)
    assert everything(tmp_path) == []


@pytest.mark.parametrize("cuts", [(100_000,), (PIECE, 70_000, 1), (0, 5)])
def test_a_cut_connection_is_resumed_and_only_the_rest_is_asked_for(server, publish, tmp_path, cuts):
    dataset = publish({"a.txt": CONTENT})
    server.plan = [f"cut {n}" for n in cuts]
    bring(dataset, server, tmp_path)
    assert (tmp_path / dataset.name / "a.txt").read_bytes() == CONTENT
    kept = [n // PIECE * PIECE for n in cuts]
    come = [sum(kept[: i + 1]) for i in range(len(cuts))]
    assert ranges(server) == [None, *(f"bytes={n}-" if n else None for n in come)]
    assert server.sent == len(CONTENT) + sum(cuts) - sum(kept)


def test_what_came_before_the_end_of_a_command_is_kept_for_the_next(server, publish, tmp_path):
    dataset = publish({"a.txt": CONTENT})
    size = 20 * PIECE
    server.plan = [f"cut {size}", *["cut 0"] * ATTEMPTS]
    with pytest.raises(FetchError, match=f"broke off after {size:,} bytes.*The same command goes on"):
        bring(dataset, server, tmp_path)
    assert not (tmp_path / dataset.name).exists()
    server.asked.clear()
    bring(dataset, server, tmp_path)
    assert ranges(server) == [f"bytes={size}-"] and server.sent == len(CONTENT)
    assert everything(tmp_path) == [dataset.name, f"{dataset.name}/a.txt", f"{dataset.name}/{CARD}"]


def test_as_long_as_something_comes_it_goes_on(server, publish, tmp_path):
    dataset = publish({"a.txt": CONTENT})
    server.plan = [f"cut {PIECE}"] * (2 * ATTEMPTS)
    bring(dataset, server, tmp_path)
    assert (tmp_path / dataset.name / "a.txt").read_bytes() == CONTENT
    assert len(server.asked) == 2 * ATTEMPTS + 1


@pytest.mark.parametrize("answer", ["no range", "wrong range", 416])
def test_a_server_that_cannot_go_on_is_asked_for_the_whole(server, publish, tmp_path, answer):
    dataset = publish({"a.txt": CONTENT})
    server.plan = [f"cut {PIECE}", answer]
    bring(dataset, server, tmp_path)
    assert (tmp_path / dataset.name / "a.txt").read_bytes() == CONTENT
    assert ranges(server)[:2] == [None, f"bytes={PIECE}-"]
    assert ranges(server)[2:] == ([] if answer == "no range" else [None])


def test_a_beginning_of_another_file_is_thrown_away(server, publish, tmp_path):
    dataset = publish({"a.txt": CONTENT})
    cache = tmp_path / ".downloads" / dataset.name
    cache.mkdir(parents=True)
    (cache / f"{dataset.files['a.txt']}.part").write_bytes(b"x" * 1000)
    bring(dataset, server, tmp_path)
    assert ranges(server) == ["bytes=1000-", None]
    assert (tmp_path / dataset.name / "a.txt").read_bytes() == CONTENT


def test_a_whole_file_that_was_not_yet_put_in_its_place_is_not_asked_for(server, publish, tmp_path):
    dataset = publish({"a.txt": CONTENT, "b.txt": b"b"})
    server.plan = ["good", 404]
    with pytest.raises(FetchError):
        bring(dataset, server, tmp_path)
    server.asked.clear()
    cache = tmp_path / ".downloads" / dataset.name
    os.replace(cache / "a.txt", cache / f"{dataset.files['a.txt']}.part")
    bring(dataset, server, tmp_path)
    assert len(server.asked) == 1 and server.asked[0][0].endswith("/b.txt")


def test_a_server_at_a_loss_is_asked_again_then_named(server, publish, tmp_path):
    dataset = publish({"a.txt": CONTENT})
    server.plan = [500, 503]
    bring(dataset, server, tmp_path / "patient")
    assert len(server.asked) == 3
    server.plan = [500] * ATTEMPTS
    with pytest.raises(FetchError, match=rf"/a.txt: the server answered 500, {ATTEMPTS} times; try again"):
        bring(dataset, server, tmp_path / "lost")
    assert everything(tmp_path / "lost") == []


def test_a_file_that_is_gone_is_named_at_once(server, publish, tmp_path):
    dataset = publish({"a.txt": CONTENT})
    server.plan = [404]
    with pytest.raises(FetchError, match=rf"/a.txt: the server answered 404.* {dataset.name} --from FOLDER"):
        bring(dataset, server, tmp_path)
    assert len(server.asked) == 1 and everything(tmp_path) == []


OFFLINE = "cannot be reached: no network.*`tinytx data list tinyshakespeare` names the 1 addresses; fetch"


def test_a_refused_connection_tells_how_to_work_offline(publish, tmp_path):
    dataset = publish({"a.txt": CONTENT})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(FetchError, match=f"127.0.0.1:{port} {OFFLINE}.*refused|{port} {OFFLINE}"):
        get(dataset, tmp_path, host=f"http://127.0.0.1:{port}", report=lambda line: None)
    assert everything(tmp_path) == []


@pytest.mark.slow
def test_a_machine_without_a_network_tells_how_to_work_offline(root, tmp_path):
    alone = ["unshare", "-rn"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("a network namespace without a way out cannot be made here (unshare -rn)")
    code = "from tinytx.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "data", "get", "tinyshakespeare", "--data-dir", str(tmp_path)]
    done = subprocess.run([*alone, *command], cwd=root, capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("tinytx: error: raw.githubusercontent.com cannot be reached: no network")
    assert "`tinytx data get tinyshakespeare --from FOLDER`" in done.stderr
    assert done.stderr.count("\n") == 1 and everything(tmp_path) == []


@contextlib.contextmanager
def small_disk(folder, n_bytes):
    """A real file system of so many bytes, where one may be mounted; else no file may grow longer."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", str(folder)]
    if shutil.which("mount") and subprocess.run(["mount", *options], capture_output=True).returncode == 0:
        try:
            yield
        finally:
            subprocess.run(["umount", str(folder)], check=True)
        return
    resource = pytest.importorskip("resource", reason="no file system can be made small here")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_up_during_the_transfer_is_left_as_it_was(server, publish, tmp_path):
    dataset = publish({"small.txt": b"small", "a.txt": CONTENT})
    with small_disk(tmp_path / "disk", 128 * 1024):
        with pytest.raises(FetchError, match="disk is full.*nothing half-written was left.*--data-dir"):
            bring(dataset, server, tmp_path / "disk")
        assert everything(tmp_path / "disk") == []


def test_a_disk_that_fills_up_while_the_corpus_is_made_is_left_as_it_was(server, publish, tmp_path):
    dataset = publish({"raw/train.en.gz": gzip.compress(b"line\n" * 100_000)}, name="multi30k-en-fr")
    dataset = type(dataset)(**{**vars(dataset), "layout": {"train": {"train.en": 100_000}}})
    with small_disk(tmp_path / "disk", 128 * 1024):
        with pytest.raises(FetchError, match="disk is full"):
            bring(dataset, server, tmp_path / "disk")
        assert everything(tmp_path / "disk") == []
    assert bring(dataset, server, tmp_path).state.files["train.en"]["lines"] == 100_000


def test_files_are_asked_for_as_they_are_and_over_one_connection(server, publish, tmp_path):
    dataset = publish({f"{i}.txt": bytes([i]) for i in range(5)})
    found = fetch(dataset, tmp_path, host=server.url)
    assert [file.read_bytes() for file in found.values()] == [bytes([i]) for i in range(5)]
    assert server.encodings == ["identity"] * 5 and server.n_connections == 1


@pytest.mark.slow
def test_progress_is_shown_to_a_person_and_to_nobody_else(server, publish, tmp_path, root):
    pty = pytest.importorskip("pty", reason="pseudo-terminals are Unix's")
    termios = pytest.importorskip("termios")
    dataset = publish({"a.txt": CONTENT})
    code = f"""
        import io, sys
        from pathlib import Path
        from tinytx.text.download import fetch
        from tinytx.text.download import Dataset

        dataset, folder = {dataset!r}, Path(sys.argv[1])
        fetch(dataset, folder / "seen", host={server.url!r})
        sys.stderr = io.StringIO()
        fetch(dataset, folder / "unseen", host={server.url!r})
        sys.exit(sys.stderr.getvalue() or 0)
    """
    plain = {name: value for name, value in os.environ.items() if name != "TQDM_DISABLE"}
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    done = subprocess.run(command, cwd=root, env=plain, stderr=theirs)
    os.write(theirs, b"\n")  # so that there is something to read in any case
    shown = os.read(ours, 1 << 16).decode()
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 0, shown
    assert "tinyshakespeare 1/1 a.txt" in shown and "/293k" in shown
