"""Texts of one's own on the command line: options, one line a warning, one line an error."""

import json

import pytest

from tinytx.cli import main


@pytest.fixture
def table(tmp_path):
    """A table with a column for texts and one for words as labels; the second row lacks its label."""
    rows = [f"texte {i} du livre;{('bon', 'raté')[i % 2]}" for i in range(30)]
    rows[1] = "texte sans avis;"
    path = tmp_path / "a.csv"
    path.write_text("avis;note\n" + "\n".join(rows), encoding="utf-8")
    return path


def run(capsys, *argv):
    status = main([str(part) for part in argv])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_table_is_pretrained_on_and_fine_tuned_on_and_evaluated_on(table, tmp_path, capsys):
    how = ["--text-column", "avis", "--label-column", "note", "--budget", "smoke", "--device", "cpu"]
    status, _, err = run(
        capsys, "pretrain", "--corpus", table, *how, "--steps", 2, "--out", tmp_path / "lm", "--json"
    )
    assert status == 2
    assert err.count("\n") == 1 and "a.csv, line 3: must have a label in the column note, got None" in err
    how.append("--skip-bad-rows")
    status, _, err = run(capsys, "pretrain", "--corpus", table, *how, "--steps", 2, "--out", tmp_path / "lm")
    assert status == 0
    warning = f"tinytx: warning: {table}, line 3: must have a label in the column note, got None: skipped"
    assert [line for line in err.split("\n") if line.startswith("tinytx:")] == [
        f"{warning}, 29 rows are left"
    ]
    status, out, _ = run(
        capsys, "finetune", tmp_path / "lm", "--corpus", table, *how, "--out", tmp_path / "c", "--json"
    )
    assert status == 0 and json.loads(out)
    read = how[:4] + how[-1:]
    status, out, _ = run(capsys, "evaluate", tmp_path / "c", "--corpus", table, *read, "--json")
    assert status == 0 and json.loads(out)["corpus"] == "a.csv"
    other = ["--label-names", "raté,bon,moyen"]
    status, _, err = run(capsys, "evaluate", tmp_path / "c", "--corpus", table, *read, *other)
    assert status == 2 and "must have the 2 classes of the classifier, got raté, bon, moyen" in err


@pytest.mark.parametrize(
    ("corpus", "options", "message"),
    [
        ("world", ["--text-column", "avis"], "got the corpus world"),
        ("nowhere.csv", ["--text-column", "avis"], "corpus file must exist, got nowhere.csv"),
        ("hf:nothing", [], "hf:nothing must be"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_leaves_nothing(
    corpus, options, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    status, _, err = run(capsys, "pretrain", "--corpus", corpus, *options, "--out", tmp_path / "run")
    assert status == 2 and message in err and err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_pairs_to_translate_have_no_columns(table, tmp_path, capsys):
    options = ["--text-column", "avis", "--skip-bad-rows", "--objective", "translation"]
    status, _, err = run(capsys, "pretrain", "--corpus", table, *options, "--out", tmp_path / "run")
    assert status == 2 and "may be told of texts, got pairs to translate" in err
