"""The commands that translate: one line out for each line in, one clear line for what is wrong."""

import io
import json
import os
import subprocess
import sys

import pytest

from tinytx.cli import main

WORDS = {
    "red": "rouge",
    "book": "livre",
    "the": "le",
    "cat": "chat",
    "a": "un",
    "dog": "chien",
    "sees": "voit",
}


@pytest.fixture(scope="module")
def pairs_file(tmp_path_factory):
    rows = [f"{a} {b} {c}\t{WORDS[a]} {WORDS[b]} {WORDS[c]}" for a in WORDS for b in WORDS for c in WORDS]
    path = tmp_path_factory.mktemp("pairs") / "mine.tsv"
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def checkpoint(pairs_file, tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "run"
    arguments = ["pretrain", "--objective", "translation", "--corpus", pairs_file, "--budget", "smoke"]
    assert (
        main([*map(str, [*arguments, "--steps", 12, "--max-len", 12, "--out", out, "--device", "cpu"])]) == 0
    )
    return out


def translate(monkeypatch, capsys, content, *arguments):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    status = main(["translate", *map(str, arguments), "--device", "cpu"])
    out, err = capsys.readouterr()
    return status, out, err


def test_training_answers_in_json_and_goes_on(checkpoint, pairs_file, capsys):
    arguments = ["pretrain", "--objective", "translation", "--corpus", pairs_file, "--budget", "smoke"]
    arguments += ["--steps", 12, "--max-len", 12, "--out", checkpoint, "--device", "cpu"]
    assert main([*map(str, [*arguments, "--resume", "--json"])]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["kind"] == "translator" and answer["n_steps"] == 12 and answer["corpus"] == "mine.tsv"
    assert 0 <= answer["bleu"] <= 100 and "tok:13a" in answer["signature"]
    assert main([*map(str, arguments)]) == 2
    assert "already holds a run" in capsys.readouterr().err


def test_evaluating_answers_with_the_split_and_the_search(checkpoint, pairs_file, capsys):
    asked = ["evaluate", checkpoint, "--corpus", pairs_file, "--beam", 3, "--length-penalty", 0.5, "--json"]
    assert main([*map(str, [*asked, "--device", "cpu"])]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["split"] == "test" and answer["search"]["beam_size"] == 3
    assert answer["search"]["length_penalty"] == 0.5 and answer["n"] > 10


def test_each_line_gives_one_line_and_empty_lines_stay(checkpoint, monkeypatch, capsys):
    content = b"a red book\n\nthe cat\r\n   \nthe dog sees"
    status, out, err = translate(monkeypatch, capsys, content, checkpoint, "--block", 2)
    lines = out.split("\n")
    assert status == 0 and err == "" and len(lines) == 6 and lines[1] == lines[3] == lines[5] == ""
    again = translate(monkeypatch, capsys, content, checkpoint, "--json")
    found = json.loads(again[1])["translations"]
    assert [one["text"] for one in found] == lines[:5] and found[2]["source"] == "the cat"


def test_a_file_gives_what_standard_input_gives(checkpoint, monkeypatch, capsys, tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes("\ufeffthe cat\na dog\n".encode())
    from_file = translate(monkeypatch, capsys, b"", checkpoint, path, "--beam", 2)
    assert from_file == translate(monkeypatch, capsys, b"the cat\na dog\n", checkpoint, "--beam", 2)
    status, out, err = translate(monkeypatch, capsys, b"", checkpoint, tmp_path / "none.txt")
    assert (status, out) == (2, "") and "none.txt" in err
    assert translate(monkeypatch, capsys, b"", checkpoint)[:2] == (0, "")


def test_a_line_too_long_is_told_on_standard_error(checkpoint, monkeypatch, capsys):
    content = b"the cat\n" + b"the red cat sees a dog. " * 9
    status, out, err = translate(monkeypatch, capsys, content, checkpoint)
    assert status == 0 and len(out.splitlines()) == 2
    assert err.startswith("tinytx: line 2: ") and "cut at sentence ends" in err and err.count("\n") == 1


def test_a_line_that_is_not_utf8_is_named_after_what_came_before(checkpoint, monkeypatch, capsys):
    status, out, err = translate(monkeypatch, capsys, b"the cat\n\xff\xfe\nthe dog\n", checkpoint)
    assert status == 2 and len(out.splitlines()) == 1
    assert err == "tinytx: error: standard input, line 2: must be UTF-8 text, got the byte 0xff\n"


def test_a_reader_that_leaves_is_no_error(checkpoint):
    command = [
        sys.executable,
        "-m",
        "tinytx.cli",
        "translate",
        str(checkpoint),
        "--device",
        "cpu",
        "--block",
        "1",
    ]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}
    )
    process.stdout.close()
    _, err = process.communicate(b"the cat\n" * 50, timeout=120)
    assert process.returncode == 0 and err == b""


def test_bad_input_is_refused_in_one_line(checkpoint, pairs_file, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TINYTX_DATA", str(tmp_path / "nowhere"))
    for arguments, words in (
        (["translate", tmp_path], "a checkpoint folder holds model.json"),
        (["translate", checkpoint, "--beam", 0], "beam_size must be at least 1, got 0"),
        (["translate", checkpoint, "--block", 0], "block must be at least 1, got 0"),
        (["generate", checkpoint, "--device", "cpu"], "generation needs a language model, got a Translator"),
        (
            ["finetune", checkpoint, "--corpus", "world", "--out", tmp_path / "x"],
            "one body, got a translator",
        ),
        (
            ["pretrain", "--objective", "translation", "--corpus", "tatoeba-en-fr", "--out", tmp_path / "x"],
            "data_dir must hold the folder tatoeba-en-fr, looked for",
        ),
    ):
        assert main([*map(str, arguments)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and words in err and err.count("\n") == 1, err
    assert not (tmp_path / "x").exists()


def test_an_experiment_writes_its_results(pairs_file, tmp_path, capsys):
    folders = ["--results", tmp_path / "results", "--work-dir", tmp_path / "build", "--device", "cpu"]
    asked = ["experiment", "translation", "--corpus", pairs_file, "--budget", "smoke", "--beam", 2, *folders]
    assert main([*map(str, asked)]) == 0
    assert "beam of 2" in capsys.readouterr().out
    kept = json.loads((tmp_path / "results" / "translation-mine.json").read_text())
    (record,) = kept["records"].values()
    assert record["scores"]["greedy"]["signature"] and kept["runs"][0]["commit"]
    assert set(record["sentences"]["I am a student"]) == {"greedy", "beam of 2"}


def test_corpora_of_pairs_are_listed(capsys):
    assert main(["data", "list", "--json"]) == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)["pairs"]]
    assert names == ["world", "tatoeba-en-fr", "multi30k-en-fr"]
