"""A large file in parts: each line once and whole, wherever parts end; held-out texts are never learned."""

import tracemalloc

import pytest

import tinytx as tx
from tinytx_run import corpora
from tinytx_run.streaming import LargeFile
from tinytx_run.training import fingerprint

LINES = ["un beau livre", "été", "a" * 40, "", "  ", "le chat dort très bien", "fin"]


@pytest.mark.parametrize("part_bytes", range(1, 24))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_parts_hold_each_line_once_in_order_wherever_they_end(tmp_path, part_bytes, end, mark):
    path = tmp_path / "text.txt"
    path.write_bytes((mark + end.join(LINES)).encode())
    file = LargeFile(path, part_bytes)
    read = [line for part in range(file.n_parts) for line in file.lines(part)]
    assert read == [line for line in LINES if line.strip()]
    assert file.lines(file.n_parts) == file.lines(0)


def test_a_line_that_is_no_text_is_named_by_its_first_byte(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("été\n".encode() * 3 + b"bad\xff\n")
    file = LargeFile(path, part_bytes=10)
    assert file.lines(0) == ("été", "été")
    with pytest.raises(ValueError, match=r"text\.txt, byte 18: must be UTF-8 text .*got the byte 0xff"):
        file.lines(1)


@pytest.fixture
def large(tmp_path, monkeypatch):
    """Loads a file of 3,000 lines as if it were large."""
    path = tmp_path / "large.txt"
    path.write_text("".join(f"la phrase numéro {i % 2500}\n" for i in range(3000)), encoding="utf-8")
    monkeypatch.setattr(corpora, "STREAM_FROM", 10_000)
    monkeypatch.setattr(corpora, "LargeFile", lambda path: LargeFile(path, part_bytes=7_001))
    return path


def test_a_large_file_is_split_once_and_drawn_in_parts_without_its_held_out_texts(large):
    corpus = tx.load_corpus(large)
    held_out, n_parts = set(corpus.valid.texts), LargeFile(large, 7_001).n_parts
    drawn = [corpus.draw(i) for i in range(1, n_parts + 1)]
    assert n_parts > 5 and not held_out & {text for texts in drawn for text in texts}
    assert drawn[-1] == corpus.train.texts  # the first part again
    everything = set(large.read_text(encoding="utf-8").splitlines())
    assert {text for texts in drawn for text in texts} | held_out == everything


def test_a_large_file_trains_and_says_how_it_is_read(large):
    said = []
    changes = {"n_steps": 30, "tokens_per_batch": 4_000}
    options = tx.RunOptions(progress=False, report=said.append)
    run = tx.pretrain(large, budget="smoke", training_changes=changes, options=options)
    assert any("read in" in line for line in said)
    assert run.history.loss[-1] < run.history.loss[0]


def test_a_file_that_grew_is_another_one_to_a_stored_run(large):
    before = fingerprint(tx.load_corpus(large))
    with large.open("a", encoding="utf-8") as file:
        file.write("une phrase de plus\n")
    assert fingerprint(tx.load_corpus(large)) != before


def test_memory_holds_one_part_however_many_there_are(tmp_path):
    peaks = []
    for n_parts in (2, 40):
        path = tmp_path / f"{n_parts}.txt"
        path.write_text("une ligne de trente-deux lettres\n" * (n_parts * 1_000), encoding="utf-8")
        file = LargeFile(path, part_bytes=33_000)
        tracemalloc.start()
        assert sum(len(file.lines(part)) for part in range(file.n_parts)) == n_parts * 1_000
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
