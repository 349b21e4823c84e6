"""The command line: forms, one JSON object, one line for bad input, nothing half written left behind."""

import io
import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

import tinytx
from tests.tinytx_run.conftest import sentences
from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_course.cli import main as course_main
from tinytx_run.checkpoint import load, save
from tinytx_run.cli import main

ENGLISH = {"red": "rouge", "book": "livre", "the": "le", "cat": "chat", "a": "un", "dog": "chien"}
QUICK = ("--budget", "smoke", "--device", "cpu")


@pytest.fixture
def write(tmp_path):
    """Write a file of some lines."""

    def write(name, lines):
        path = tmp_path / name
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    return write


@pytest.fixture
def prose(write):
    return write("prose.txt", sentences(150, 1))


@pytest.fixture
def reviews(write):
    return write("reviews.tsv", [f"{int('chat' in text)}\t{text}" for text in sentences(150, 2)])


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    tokenizer = Tokenizer.train(sentences(200, 3), vocab_size=35)
    config = TransformerConfig(vocab_size=35, d_model=8, n_heads=2, n_layers=1, d_ff=12, max_len=32)
    torch.manual_seed(1)
    return save(LanguageModel(config), tmp_path_factory.mktemp("models") / "lm", tokenizer)


@pytest.fixture(scope="module")
def classifier(checkpoint):
    body, tokenizer = load(checkpoint).with_tokenizer()
    torch.manual_seed(2)
    return save(Classifier(body.config), checkpoint.with_name("classifier"), tokenizer, ("bad", "good"))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    triples = [(a, b, c) for a in ENGLISH for b in ENGLISH for c in ENGLISH]
    rows = [f"{' '.join(three)}\t{' '.join(map(ENGLISH.get, three))}" for three in triples]
    path = tmp_path_factory.mktemp("pairs") / "mine.tsv"
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def translator(pairs, tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "run"
    asked = ["pretrain", "--objective", "translation", "--corpus", pairs, *QUICK, "--steps", 12, "--out", out]
    assert main([*map(str, asked)]) == 0
    return out


@pytest.fixture
def call(capsys):
    """Run a command that should succeed; gives what it printed with --json."""

    def run(*arguments):
        status = main([*map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert status == 0, err
        assert len(out.splitlines()) == 1
        return json.loads(out)

    return run


@pytest.fixture
def refused(capsys):
    """Run a command that should be refused; gives the one line that it printed."""

    def run(*arguments):
        assert main([*map(str, arguments)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        (line,) = err.splitlines()
        assert line.startswith("tinytx: error: ")
        return line.removeprefix("tinytx: error: ")

    return run


def test_count_gives_the_numbers_of_the_lab(call, capsys):
    answer = call("count", "--preset", "seed-lab", "--head", "lm")
    assert answer["total"] == answer["numel"] == sum(row["total"] for row in answer["rows"]) == 1008100
    assert call("count", "--preset", "seed-lab", "--head", "classifier")["total"] == 988402
    assert main(["count", "--preset", "seed-lab"]) == 0 and "1,008,100" in capsys.readouterr().out


def test_from_prose_to_a_classifier_in_the_documented_forms(call, refused, prose, reviews, tmp_path):
    lm = tmp_path / "lm"
    arguments = ("pretrain", "--corpus", prose, *QUICK, "--seed", 1, "--steps", 8, "--out", lm)
    first = call(*arguments)
    assert first["n_steps"] == 8 and first["n_tokens"] > 0 and first["split"] == "valid"
    assert call(*arguments, "--resume") == first
    assert "already holds a run" in refused(*arguments)
    measured = call("evaluate", lm, "--corpus", prose, "--split", "valid")
    assert measured["nats_per_token"] == first["nats_per_token"]
    assert call("evaluate", lm, "--corpus", prose, "--split", "all")["n_texts"] == 150
    masked = ("--objective", "masked", "--precision", "bf16", "--out", tmp_path / "masked")
    answer = call(*arguments[:-2], *masked)
    assert (answer["kind"], answer["precision"]) == ("masked_language_model", "bf16")
    for fresh in (False, True):
        out = tmp_path / f"classifier-{fresh}"
        answer = call("finetune", lm, *["--fresh"][: int(fresh)], "--corpus", reviews, *QUICK, "--out", out)
        assert answer["fresh"] is fresh and answer["split"] == "test"
        assert answer["interval"][0] <= answer["accuracy"] <= answer["interval"][1]
        checked = call("evaluate", out, "--corpus", reviews)
        assert checked["kind"] == "classifier" and checked["correct"] == answer["correct"]
    out = tmp_path / "other"
    answer = call("finetune", lm, "--corpus", reviews, *QUICK, "--epochs", 3, "--lr", 1e-12, "--out", out)
    assert answer["n_epochs"] == len(answer["accuracy_by_epoch"]) == 3
    assert len(set(answer["accuracy_by_epoch"])) == 1, "nothing is learned at such a rate"


def test_a_table_is_read_by_its_columns_and_bad_rows_are_named(write, tmp_path, call, refused, capsys):
    rows = [f"texte {i} du livre;{('bon', 'raté')[i % 2]}" for i in range(30)]
    rows[1] = "texte sans avis;"  # lacks its label
    table = write("a.csv", ["avis;note", *rows])
    how = ["--text-column", "avis", "--label-column", "note"]
    begin = ["pretrain", "--corpus", table, *how, *QUICK, "--steps", 2, "--out", tmp_path / "lm"]
    assert "a.csv, row 3: must have a label" in refused(*begin)
    assert main([*map(str, begin), "--skip-bad-rows", "--resume"]) == 0
    out, err = capsys.readouterr()
    assert f"{tmp_path / 'lm'} holds nothing to resume: a new run begins\n" in out
    lines = [line for line in err.split("\n") if line.startswith("tinytx:")]
    assert len(lines) == 1 and lines[0].startswith(f"tinytx: warning: {table}, row 3: ")
    how.append("--skip-bad-rows")
    call("finetune", tmp_path / "lm", "--corpus", table, *how, *QUICK, "--out", tmp_path / "c")
    evaluation = ["evaluate", tmp_path / "c", "--corpus", table, *how]
    assert call(*evaluation)["corpus"] == "a.csv"
    assert main([*map(str, evaluation), "--label-names", "raté,bon,moyen"]) == 2
    assert "must be among the 2 of the classifier, bon, raté, got moyen" in capsys.readouterr().err
    assert "have no columns" in refused(*begin, "--objective", "translation")


def test_generate_takes_unknown_characters_and_repeats_itself_with_a_seed(call, checkpoint, capsys):
    arguments = ("generate", checkpoint, "--prompt", "Bonjour les Ω", "--max-new-tokens", 5, "--seed", 3)
    answer = call(*arguments, "--top-k", 5, "--top-p", 0.9, "--temperature", 0.8)
    assert answer["text"].startswith("Bonjour les Ω") and len(answer["token_ids"]) <= 5
    assert call(*arguments) == call(*arguments)
    assert main(list(map(str, arguments))) == 0
    assert capsys.readouterr().out == call(*arguments)["text"] + "\n"
    assert main(["generate", str(checkpoint), "--prompt", "le chat " * 20, "--device", "cpu"]) == 0
    assert re.search(
        r"the prompt has \d+ tokens, of which the model reads the last 32\n", capsys.readouterr().err
    )


def test_data_list_names_the_corpora(call, refused, capsys, tmp_path):
    answer = call("data", "list")
    absent = "--data-dir", tmp_path / "data"
    for row in answer["corpora"][2:]:  # those of other names lie in a folder of imdb
        assert call("data", "list", row["name"])["name"] == row["name"].removesuffix("-unlabelled")
        assert "tinytx data get" in refused("data", "verify", row["name"], *absent)
    assert {"world", "cls-books", "eltec-fra"} <= {row["name"] for row in answer["corpora"]}
    assert [row["name"] for row in answer["pairs"]] == ["world", "tatoeba-en-fr", "multi30k-en-fr"]
    assert main(["data", "list"]) == 0 and "world" in capsys.readouterr().out


def answered(monkeypatch, capsys, content, *arguments):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    status = main([*map(str, arguments), "--device", "cpu"])
    return status, *capsys.readouterr()


def test_each_line_gives_one_line_and_empty_lines_stay(translator, monkeypatch, capsys):
    content = "\ufeffa red book\n\nthe cat\r\n   \nthe dog".encode()
    status, out, err = answered(monkeypatch, capsys, content, "translate", translator)
    lines = out.split("\n")
    assert status == 0 and err == "" and len(lines) == 6 and lines[1] == lines[3] == lines[5] == ""
    found = json.loads(answered(monkeypatch, capsys, content, "translate", translator, "--json")[1])[
        "translations"
    ]
    assert [one["text"] for one in found] == lines[:5] and found[2]["source"] == "the cat"
    assert answered(monkeypatch, capsys, b"", "translate", translator)[:2] == (0, "")
    of_old_mac = answered(monkeypatch, capsys, b"a red book\r\rthe cat\r", "translate", translator)[1]
    assert of_old_mac.split("\n")[:3] == lines[:3]


def test_lines_that_are_too_long_or_not_utf8_are_named(translator, monkeypatch, capsys):
    content = b"the cat\n" + b"the red cat a dog " * 15
    status, out, err = answered(monkeypatch, capsys, content, "translate", translator)
    assert status == 0 and len(out.splitlines()) == 2
    assert err.startswith("tinytx: line 2: ") and err.count("\n") == 1
    typed = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: True)  # each line is a block
    monkeypatch.setattr(sys, "stdin", typed)
    assert main(["translate", str(translator), "--device", "cpu"]) == 0
    assert capsys.readouterr().err.startswith("tinytx: line 2: ")
    content = b"the cat\n\xff\xfe\nthe dog\n"
    status, out, err = answered(monkeypatch, capsys, content, "translate", translator)
    assert status == 2 and len(out.splitlines()) == 1
    assert err.startswith("tinytx: error: standard input, line 2: must be UTF-8 text")
    assert err.endswith("got the byte 0xff as character 1\n") and err.count("\n") == 1
    _, _, err = answered(monkeypatch, capsys, b"the cat\r\r\xff\r", "translate", translator)
    assert "standard input, line 3: " in err
    content = "the cat\n".encode("utf-16-le")
    assert "got the byte 0x00" in answered(monkeypatch, capsys, content, "translate", translator)[2]


def test_each_line_gets_its_class_and_blank_lines_stay_without_one(
    classifier, checkpoint, monkeypatch, capsys
):
    content = "\ufeffle chat\n\nla belle\r\n   \n".encode() + b"un chien " * 40
    status, out, err = answered(monkeypatch, capsys, content, "classify", classifier)
    rows = [line.split("\t") for line in out.split("\n")]
    assert status == 0 and [len(row) for row in rows] == [2, 1, 2, 1, 2, 1] and rows[1] == rows[3] == [""]
    assert err.startswith("tinytx: line 5: ") and "loses its end" in err and err.count("\n") == 1
    found = json.loads(answered(monkeypatch, capsys, content, "classify", classifier, "--json")[1])
    assert found["class_names"] == ["bad", "good"]
    assert found["texts"][:4] == ["le chat", "", "la belle", "   "]
    for row, name, probabilities in zip(rows, found["classes"], found["probabilities"], strict=False):
        if row == [""]:
            assert name is None and probabilities is None
        else:
            assert sum(probabilities) == pytest.approx(1) and row == [name, f"{max(probabilities):.4f}"]
            assert name == found["class_names"][probabilities.index(max(probabilities))]
    composed = answered(monkeypatch, capsys, "\u00e9t\u00e9\n".encode() * 2, "classify", classifier)[1]
    joined = "\ufeffe\u0301te\u0301\n".encode() * 2  # of two files with a mark
    assert answered(monkeypatch, capsys, joined, "classify", classifier)[1] == composed
    status, out, err = answered(monkeypatch, capsys, b"le chat\n", "classify", checkpoint)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "needs a classifier, got a LanguageModel" in err and "tinytx finetune" in err


@pytest.mark.parametrize("command", ["generate", "classify", "translate", "evaluate", "finetune"])
def test_unknown_tokens_are_said_in_one_line_with_their_share(
    checkpoint, classifier, translator, write, monkeypatch, capsys, command
):
    """Of lines on a terminal each is a block of its own: only the first is told of."""
    texts = ["漢字", "中文", "le chat"]
    labelled = str(write("zh.tsv", [f"{i % 2}\t漢字 {'中文' * i}" for i in range(20)]))
    typed = SimpleNamespace(buffer=io.BytesIO("\n".join(texts).encode()), isatty=lambda: True)
    monkeypatch.setattr("sys.stdin", typed)
    given = {
        "generate": [checkpoint, "--prompt", "漢字"],
        "classify": [classifier],
        "translate": [translator],
        "evaluate": [checkpoint, "--corpus", labelled, "--split", "all"],
        "finetune": [checkpoint, "--corpus", labelled, "--budget", "smoke", "--out", f"{labelled}.run"],
    }
    assert main([command, *map(str, given[command]), "--device", "cpu"]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "unknown to the tokenizer" in line]
    assert len(said) == 1 and said[0].startswith("tinytx: warning: ") and " % of the tokens of " in said[0]


def test_bad_arguments_are_refused_and_leave_nothing(
    refused, checkpoint, translator, prose, tmp_path, monkeypatch
):
    elsewhere, latin = str(tmp_path / "elsewhere"), tmp_path / "latin.txt"
    latin.write_bytes("un chat\nun été\n".encode("latin-1"))
    monkeypatch.setenv("TINYTX_DATA", str(tmp_path / "nowhere"))
    begin = ("pretrain", "--corpus", prose, "--out", tmp_path / "out")
    for arguments, message in (
        ((), "required: COMMAND"),
        (("pretrain",), "required: --corpus, --out"),
        (("count", "--preset=--"), "--preset must have a value"),
        (("count", "--preset", "gpt-9"), "preset must be one of seed-lab"),
        ((*begin, "--out", prose / "x" / "y"), f"a run goes into a folder, got the file {prose}"),
        (("evaluate", checkpoint, "--corpus", prose, "--split", ""), "split must be all or one of train"),
        ((*begin, "--out", ""), "must name a folder, got ''"),
        ((*begin, "--seed", 10**30), "seed must be below 2**63, got 1000"),
        ((*begin, "--steps", 0), "n_steps must be at least 1"),
        ((*begin, "--device", "abacus"), "device must be auto, cpu or cuda"),
        ((*begin, "--objective", "psychic"), "objective must be one of causal, masked, masked+nsp"),
        ((*begin, "--budget", "x"), "budget must be one of"),
        (("generate", checkpoint, "--temperature", "inf"), "got inf"),
        (("pretrain", "--corpus", "wörld", "--out", tmp_path / "out"), "corpus must be one of"),
        (("pretrain", "--corpus", "cls-books", "--out", tmp_path / "out"), "data_dir must"),
        ((*begin, "--corpus", "cls-books", "--data-dir", elsewhere), elsewhere),
        (("finetune", checkpoint, *begin[1:], "--corpus", "imdb", "--data-dir", elsewhere), elsewhere),
        (("evaluate", checkpoint, "--corpus", "cls-books", "--data-dir", elsewhere), elsewhere),
        (("data", "get", "wikipedia"), "name must be one of cls-books, "),
        (("data", "list", "wikipedia"), "name must be one of cls-books, "),
        (
            ("data", "get", "eltec-fra", "--from", "nowhere"),
            "the folder to copy from must exist, got nowhere",
        ),
        (("data", "get", "eltec-fra", "--from", "x", "--mirror", "y"), "--from must be without --mirror"),
        (("data", "get", "tinyshakespeare", "--mirror="), "--mirror must be an address"),
        (("data", "get", "tinyshakespeare", "--mirror=ftp://127.0.0.1"), "got 'ftp://127.0.0.1'"),
        (("generate", tmp_path / "nowhere"), "nothing there"),
        (("generate", translator), "needs a language model, got a Translator"),
        (("translate", checkpoint), "needs a Translator, got a LanguageModel"),
        (("finetune", checkpoint, "--corpus", prose, "--out", tmp_path / "out"), "a corpus with labels"),
        (
            ("pretrain", "--corpus", latin, "--out", tmp_path / "runs" / "out"),
            "latin.txt, line 2: must be UTF-8",
        ),
    ):
        assert message in refused(*arguments)
    assert {path.name for path in tmp_path.iterdir()} == {"prose.txt", "latin.txt"}


def test_each_program_answers_with_0_or_with_2_and_one_line(tmp_path, capsys):
    def program(package, *arguments):
        done = subprocess.run(
            [sys.executable, "-m", f"{package}.cli", *arguments], capture_output=True, text=True
        )
        return done.returncode, done.stdout, done.stderr

    for name, own in (("tinytx", main), ("tinytx-course", course_main)):
        with pytest.raises(SystemExit) as end:
            own(["--version"])
        assert (end.value.code, *capsys.readouterr()) == (0, f"{name} {tinytx.__version__}\n", "")
    assert main(["generate", ""]) == 2 and "must name a folder, got ''" in capsys.readouterr().err
    assert course_main(["hint", "nowhere.py", "--exercise", "causal_mask"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("tinytx-course: error: ")
    err = "tinytx-course: error: --port must be from 0 to 65535, got 99999999\n"
    assert program("tinytx_course", "lab", "--port", "99999999") == (2, "", err)
    status, out, err = program(
        "tinytx_run", "pretrain", "--corpus", "nowhere.txt", "--out", str(tmp_path / "out")
    )
    assert (status, out) == (2, "") and err.startswith("tinytx: error: ") and err.count("\n") == 1


@pytest.mark.proof
@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_output_that_cannot_be_written_is_one_line_at_most(checkpoint, translator):
    tinytx = f"'{sys.executable}' -m tinytx_run.cli"
    generate = f"{tinytx} generate {checkpoint} --prompt été --device cpu"
    translate = f"{tinytx} translate {translator} --device cpu"
    for command, status, message in (
        (f"{generate} | true; exit ${{PIPESTATUS[0]}}", 0, ""),
        (f"yes the cat | head -900 | {translate} | head -1 >/dev/null; exit ${{PIPESTATUS[2]}}", 0, ""),
        (f"{generate} > /dev/full", 2, "No space left on device"),
        (f"{translate} <&-", 2, "standard input must be open"),
        (f"echo the cat | {translate} >&-", 2, "standard output must be open"),
    ):
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
        assert done.returncode == status, (command, done.stderr)
        lines = [line for line in done.stderr.splitlines() if "unknown to the tokenizer" not in line]
        assert message in "".join(lines) and len(lines) == (1 if message else 0), done.stderr


# Runs many commands in one process, as each process takes seconds to start.
ONE_BY_ONE = """
import io, json, sys
from tinytx_course.cli import main as course
from tinytx_run.cli import main as tinytx
for name, lines, *arguments in json.loads(sys.argv[1]):
    sys.stdin = io.TextIOWrapper(io.BytesIO(lines.encode()))
    try:
        status = {"tinytx": tinytx, "tinytx-course": course}[name]([*map(str, arguments)])
    except SystemExit as end:  # of --help
        status = end.code
    print(f"<status {status}>", flush=True)
"""


def test_every_command_prints_where_the_output_holds_few_letters(
    checkpoint, classifier, translator, prose, reviews, tmp_path
):
    """Windows gives files and pipes 256 letters, this fewer: bars and learners' names are not among them."""
    source = "import torch\ndef causal_mask(n):\n    raise ValueError('✗ \u2588')\n"
    cell = {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
    copy = tmp_path / "class" / "Zoë ✓ Šimić.ipynb"
    copy.parent.mkdir()
    copy.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [cell]}))
    sittings = tmp_path / "answers.csv"
    sittings.write_text("learner,form,time,1\n✓,A,pre,A\n✓,B,post,B\n", encoding="utf-8")
    odd = tmp_path / "Šimić ✓.txt"
    odd.write_bytes(prose.read_bytes())
    out, line = str(tmp_path / "out ✓"), "le ✓ chat\n"
    commands = [
        ("count", "--preset", "tiny"),
        ("pretrain", "--corpus", odd, *QUICK, "--steps", 2, "--out", f"{out} 1"),
        ("finetune", checkpoint, "--corpus", reviews, *QUICK, "--out", f"{out} 2"),
        ("evaluate", checkpoint, "--corpus", odd, "--device", "cpu"),
        ("generate", checkpoint, "--prompt", "Šimić ✓ 😀", "--device", "cpu"),
        ("translate", translator, "--device", "cpu"),
        ("classify", classifier, "--device", "cpu"),
        ("data", "list"),
        ("data", "list", "imdb"),
        ("data", "verify", "--data-dir", f"{out} 3"),
    ]
    taught = [
        ("check", copy.parent, "--lesson", 2, "--seconds", 2, "--report", tmp_path / "✓.html"),
        ("hint", copy, "--exercise", "causal_mask"),
        ("survey", sittings, "--report", tmp_path / "survey ✓.html"),
        ("inventory", f"{out} 4"),
    ]
    rest = [("release",), ("kit",), ("run",), ("lab",), ("site",), ("publish",)]  # slow, or wait for a person
    rows = [("tinytx", line, *one) for one in commands]
    rows += [("tinytx-course", "", *one) for one in taught]
    in_json = [row for row in rows if row[2] in ("count", "generate", "classify", "survey")]
    rows += [(*row, "--json") for row in in_json]
    data = [("data", action) for action in ("list", "get", "verify")]
    rows += [("tinytx", "", *name, "--help") for name in [*(one[:1] for one in commands[:7]), *data]]
    rows += [("tinytx-course", "", *one[:1], "--help") for one in taught + rest]
    refused = [
        ("tinytx", "", "count", "--preset", "✓"),
        ("tinytx-course", "", "hint", copy, "--exercise", "✓"),
    ]
    done = subprocess.run(
        [sys.executable, "-c", ONE_BY_ONE, json.dumps([*rows, *refused], default=str)],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        cwd=tmp_path,
        capture_output=True,
    )
    err = done.stderr.decode("ascii")
    assert done.returncode == 0 and "Traceback" not in err and "codec" not in err, err
    printed = "\n".join(done.stdout.decode("ascii").splitlines())
    found = re.findall(r"(.*?)<status (\d)>\n?", printed, re.S)
    for row, (text, status) in zip([*rows, *refused], found, strict=True):
        assert (status == "2", bool(text.strip())) == ((True, False) if row in refused else (False, True)), (
            row
        )
        if row[-1] == "--json":
            json.loads(text)
        assert "--json" in text or (row[0], row[-1]) != ("tinytx", "--help"), row
    assert "#" in found[0][0] and "\\u2713" in found[4][0]
