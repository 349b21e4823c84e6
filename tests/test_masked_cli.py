"""The commands on masked models: pretrain, go on, evaluate, fine-tune, and what is refused."""

import json

import pytest

from tinytx.cli import main

WORDS = ("le", "la", "chat", "chien", "mange", "voit", "petit", "grand")


@pytest.fixture(scope="module")
def texts_file(tmp_path_factory):
    rows = [
        f"{int(a == 'chat')}\t{a} {b} {c} . {c} {a} ." for a in WORDS for b in WORDS for c in WORDS if a != b
    ]
    path = tmp_path_factory.mktemp("texts") / "mine.tsv"
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def tinytx(capsys, *arguments):
    status = main([*map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    return status, (json.loads(out) if status == 0 else None), err


@pytest.mark.parametrize("objective", ["masked", "masked+nsp"])
def test_a_masked_model_is_pretrained_evaluated_and_fine_tuned(capsys, texts_file, tmp_path, objective):
    about = ["--corpus", texts_file, "--budget", "smoke", "--device", "cpu"]
    pretrain = ["pretrain", "--objective", objective, *about, "--steps", 8, "--out", tmp_path / "run"]
    status, first, _ = tinytx(capsys, *pretrain, "--whole-words")
    assert status == 0 and first["kind"] == "masked_language_model" and first["n_steps"] == 8
    status, _, err = tinytx(capsys, *pretrain, "--resume")
    assert status == 2 and "another masking" in err
    status, again, _ = tinytx(capsys, *pretrain, "--whole-words", "--resume")
    assert status == 0 and again == first
    evaluate = ["evaluate", tmp_path / "run", "--corpus", texts_file, "--device", "cpu"]
    status, found, _ = tinytx(capsys, *evaluate, "--split", "valid")
    assert status == 0 and found["nats_per_token"] == first["nats_per_token"] and found["n_tokens"] > 100
    status, tuned, _ = tinytx(
        capsys, "finetune", tmp_path / "run", *about, "--labels", 20, "--out", tmp_path / "tuned"
    )
    assert status == 0 and tuned["kind"] == "classifier" and tuned["n_labels"] == 20
    status, _, err = tinytx(capsys, "generate", tmp_path / "run")
    assert status == 2 and "needs a language model, got a MaskedLanguageModel" in err


def test_what_cannot_be_is_refused_in_one_line(capsys, texts_file, tmp_path):
    about = ["--corpus", texts_file, "--budget", "smoke", "--out", tmp_path / "run"]
    status, _, err = tinytx(capsys, "pretrain", *about, "--whole-words")
    assert status == 2 and "--whole-words goes with a masked objective, got causal" in err
    status, _, err = tinytx(capsys, "pretrain", *about, "--objective", "mlm")
    assert status == 2 and "must be one of causal, masked, masked+nsp, got 'mlm'" in err
    status, _, err = tinytx(capsys, "experiment", "objectives", "--seeds", 0, "--results", tmp_path)
    assert status == 2 and "n_seeds must be at least 1" in err
    assert not list(tmp_path.iterdir())


def test_counting_knows_the_heads_that_fill_blanks(capsys):
    status, answer, _ = tinytx(capsys, "count", "--preset", "seed-lab", "--head", "masked+nsp")
    assert status == 0 and answer["total"] == answer["numel"] == 1_008_100 + 2 * 40_200 + 400 + 402
