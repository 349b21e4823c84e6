"""The command line: forms, one JSON object, one line for bad input, nothing half written left behind."""

import argparse
import json
import pickle
import random
import re
import subprocess
import sys

import pytest
import torch

from tinytx.cli import build_parser, main
from tinytx.model.config import TransformerConfig
from tinytx.model.counting import count_parameters
from tinytx.model.transformer import Classifier, LanguageModel
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.checkpoint import save

WORDS = ("le", "la", "chat", "chien", "mange", "voit", "un", "une", "belle", "petit", "livre", "roman")


def sentences(n, seed):
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 15))) for _ in range(n)]


@pytest.fixture
def prose(tmp_path):
    path = tmp_path / "prose.txt"
    path.write_text("\n".join(sentences(150, 1)), encoding="utf-8")
    return path


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.tsv"
    lines = [f"{int('chat' in text)}\t{text}" for text in sentences(150, 2)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    tokenizer = Tokenizer.train(sentences(200, 3), vocab_size=35)
    config = TransformerConfig(vocab_size=35, d_model=8, n_heads=2, n_layers=1, d_ff=12, max_len=32)
    torch.manual_seed(1)
    return save(LanguageModel(config), tmp_path_factory.mktemp("models") / "lm", tokenizer)


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
    assert answer["total"] == answer["numel"] == 1008100
    assert sum(row["total"] for row in answer["rows"]) == 1008100
    assert call("count", "--preset", "seed-lab", "--head", "classifier")["total"] == 988402
    assert main(["count", "--preset", "seed-lab"]) == 0
    table = capsys.readouterr().out
    for number in ("1,008,100", "968,000", "20,100", "120,600"):
        assert number in table


def test_count_takes_a_file_and_options_on_top(call, tmp_path):
    fields = {"vocab_size": 11, "d_model": 6, "n_heads": 3, "n_layers": 2, "d_ff": 5}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(fields))
    answer = call("count", "--config", file, "--n-layers", 7)
    model = LanguageModel(TransformerConfig(**fields | {"n_layers": 7}))
    assert answer["total"] == count_parameters(model)


def test_from_prose_to_a_classifier_in_the_documented_forms(call, prose, reviews, tmp_path):
    lm, classifier = tmp_path / "lm", tmp_path / "classifier"
    arguments = ("pretrain", "--corpus", prose, "--budget", "smoke", "--seed", 1, "--steps", 8, "--out", lm)
    first = call(*arguments)
    assert first["n_steps"] == 8 and first["n_tokens"] > 0 and first["split"] == "valid"
    assert call(*arguments, "--resume") == first
    measured = call("evaluate", lm, "--corpus", prose, "--split", "valid")
    assert measured["nats_per_token"] == first["nats_per_token"]
    assert call("evaluate", lm, "--corpus", prose, "--split", "all")["n_texts"] == 150
    tuned = call("finetune", lm, "--corpus", reviews, "--budget", "smoke", "--out", classifier)
    scratch = call(
        "finetune", lm, "--fresh", "--corpus", reviews, "--budget", "smoke", "--out", tmp_path / "new"
    )
    for answer, fresh in ((tuned, False), (scratch, True)):
        assert answer["fresh"] is fresh and answer["split"] == "test"
        assert answer["interval"][0] <= answer["accuracy"] <= answer["interval"][1]
    checked = call("evaluate", classifier, "--corpus", reviews)
    assert checked["kind"] == "classifier" and checked["correct"] == tuned["correct"]


def test_generate_takes_unknown_characters_and_repeats_itself_with_a_seed(call, checkpoint, capsys):
    arguments = ("generate", checkpoint, "--prompt", "Bonjour les Ω", "--max-new-tokens", 5, "--seed", 3)
    answer = call(*arguments, "--top-k", 5, "--top-p", 0.9, "--temperature", 0.8)
    assert answer["text"].startswith("Bonjour les Ω") and len(answer["token_ids"]) <= 5
    assert call(*arguments) == call(*arguments)
    assert main(list(map(str, arguments))) == 0
    assert capsys.readouterr().out == call(*arguments)["text"] + "\n"


def test_data_list_names_the_corpora(call, capsys):
    assert {"world", "cls-books", "eltec-fra"} <= {row["name"] for row in call("data", "list")["corpora"]}
    assert main(["data", "list"]) == 0
    assert "world" in capsys.readouterr().out


def test_data_world_writes_splits_pairs_and_a_card(call, tmp_path):
    out = tmp_path / "world"
    answer = call("data", "world", "--reviews", "200", "--seed", "5", "--pairs", "--out", str(out))
    n_lines = {path.name: len(path.read_text("utf-8").splitlines()) for path in out.glob("*.tsv")}
    assert answer["rows"] == n_lines
    assert sum(n for name, n in answer["rows"].items() if not name.startswith("pairs")) == 200
    assert "200" in (out / "README.md").read_text("utf-8")


def test_count_names_the_mistake_behind_a_wrong_number(call):
    answer = call("count", "--preset", "seed-lab", "--diagnose", "120600", "--part", "attention")
    found = answer["diagnosis"]["explanations"]
    assert found == [["heads-for-qkv-matrices"], ["output-projection-forgotten"]]  # 2 heads: the same number


def test_experiment_keeps_its_results_and_goes_on(call, reviews, checkpoint, tmp_path):
    arguments = (
        "experiment",
        "transfer",
        "--corpus",
        reviews,
        "--checkpoint",
        checkpoint,
        "--budget",
        "smoke",
    )
    arguments += ("--seeds", 2, "--labels", "4,8", "--results", tmp_path / "results")
    first = call(*arguments)
    assert [row["n_labels"] for row in first["rows"]] == [4, 8]
    assert len(first["rows"][0]["pretrained"]) == 2 and len(first["rows"][0]["gain"]) == 3
    kept = (tmp_path / "results" / "transfer.json").read_bytes()
    assert call(*arguments) == first
    assert (tmp_path / "results" / "transfer.json").read_bytes() == kept


def every_command(parser, name=""):
    groups = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    for group in groups:
        for word, sub in group.choices.items():
            yield from every_command(sub, f"{name} {word}".strip())
    if not groups:
        yield name


def test_every_command_explains_itself_and_takes_json(capsys):
    names = list(every_command(build_parser()))
    assert {"pretrain", "data list", "experiment transfer", "check"} <= set(names)
    for name in names:
        with pytest.raises(SystemExit) as stop:
            build_parser().parse_args([*name.split(), "--help"])
        assert stop.value.code == 0
        assert "--json" in capsys.readouterr().out


BAD_FILES = {
    "missing": (None, "must exist"),
    "empty": (b"", "at least one line"),
    "blank": (b"\n \n", "at least one line"),
    "not UTF-8": ("un chat\nun été\n".encode("latin-1"), "line 2: must be UTF-8"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_text_files_are_refused(refused, tmp_path, name):
    content, words = BAD_FILES[name]
    file = tmp_path / "bad.txt"
    if content is not None:
        file.write_bytes(content)
    out = tmp_path / "runs" / "out"
    line = refused("pretrain", "--corpus", file, "--budget", "smoke", "--out", out)
    assert words in line and "bad.txt" in line
    assert not out.parent.exists()


BAD_LABELS = {"1\tbien\nbon\tbien\n": "line 2: the label must be an integer", "1 bien\n": "line 1: .* no tab"}


@pytest.mark.parametrize("content", BAD_LABELS)
def test_bad_labels_are_refused(refused, tmp_path, checkpoint, content):
    file = tmp_path / "bad.tsv"
    file.write_text(content)
    line = refused("finetune", checkpoint, "--corpus", file, "--budget", "smoke", "--out", tmp_path / "out")
    assert re.search(BAD_LABELS[content], line)
    assert not (tmp_path / "out").exists()


def test_bad_numbers_are_refused(refused, prose, tmp_path):
    begin = ("pretrain", "--corpus", prose, "--budget", "smoke", "--out", tmp_path / "out")
    assert "vocab_size must be at most" in refused(*begin, "--vocab-size", 5000)
    assert "n_heads must divide d_model, got d_model=10, n_heads=4" in refused(
        *begin, "--d-model", 10, "--n-heads", 4
    )
    assert "n_steps must be at least 1" in refused(*begin, "--steps", 0)
    assert "device must be auto, cpu or cuda" in refused(*begin, "--device", "abacus")
    assert "objective must be one of causal, masked, masked+nsp" in refused(*begin, "--objective", "psychic")
    assert "budget must be one of" in refused(
        "pretrain", "--corpus", prose, "--budget", "x", "--out", tmp_path / "o"
    )
    assert "seed must be 0 or more" in refused(*begin, "--seed", -4)
    assert "corpus must be one of" in refused("pretrain", "--corpus", "wörld", "--out", tmp_path / "o")
    absent = ("--corpus", "cls-books", "--data-dir", tmp_path / "d")
    assert "data_dir must" in refused("pretrain", *absent, "--out", tmp_path / "o")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prose.txt"]


def test_a_loss_that_becomes_nan_is_told_with_its_step_and_leaves_nothing(capsys, prose, tmp_path):
    begin = ["pretrain", "--corpus", str(prose), "--budget", "smoke", "--out", str(tmp_path / "out")]
    assert main([*begin, "--lr", "1e38", "--precision", "fp32"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "at step" in line and "no checkpoint was written before" in line
    assert not (tmp_path / "out").exists()


def test_a_run_is_never_written_over(refused, call, prose, tmp_path):
    begin = ("pretrain", "--corpus", prose, "--budget", "smoke", "--steps", 3, "--out", tmp_path / "out")
    call(*begin)
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert "already holds a run: go on with --resume" in refused(*begin)
    assert "another training" in refused(*begin[:-4], "--steps", 4, "--out", tmp_path / "out", "--resume")
    assert before == {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert "holds other files" in refused(*begin[:-1], tmp_path)


def test_bad_checkpoints_are_refused(refused, checkpoint, reviews, tmp_path):
    files = {file.name: file.read_bytes() for file in checkpoint.iterdir()}

    def copy(name, **changes):
        folder = tmp_path / name
        folder.mkdir()
        for file, content in (files | changes).items():
            if content is not None:
                (folder / file).write_bytes(content)
        return folder

    weights = files["model.safetensors"]
    cut = copy("cut", **{"model.safetensors": weights[: len(weights) // 2]})
    pickled = copy("pickled", **{"model.safetensors": pickle.dumps([1])})
    speechless = copy("speechless", **{"tokenizer.model": None})
    other = TransformerConfig(vocab_size=35, d_model=8, n_heads=2, n_layers=2, d_ff=12, max_len=32)
    save(LanguageModel(other), tmp_path / "other")
    foreign = copy(
        "foreign",
        **{"model.safetensors": (tmp_path / "other" / "model.safetensors").read_bytes(), "seal.json": None},
    )
    save(Classifier(other), tmp_path / "judge", Tokenizer.load(checkpoint / "tokenizer.model"))
    (tmp_path / "model.pt").write_bytes(pickle.dumps([1]))
    for path, words in (
        (cut, "model.safetensors is cut short"),
        (pickled, "model.safetensors is a pickle"),
        (speechless, "tokenizer.model is missing"),
        (foreign, "model.safetensors holds the weights of another model"),
        (tmp_path / "model.pt", "got a pickle"),
        (tmp_path / "nowhere", "must exist"),
    ):
        for command in (
            ("generate", path, "--prompt", "le"),
            ("evaluate", path, "--corpus", reviews),
            ("finetune", path, "--corpus", reviews, "--budget", "smoke", "--out", tmp_path / "out"),
        ):
            line = refused(*command)
            assert words in line and path.name in line
    assert "needs a language model, got a Classifier" in refused("generate", tmp_path / "judge")
    assert not (tmp_path / "out").exists()


def test_labels_are_needed_where_classes_are_named(refused, checkpoint, prose, tmp_path):
    line = refused("finetune", checkpoint, "--corpus", prose, "--budget", "smoke", "--out", tmp_path / "out")
    assert "needs a corpus with labels" in line
    assert "needs a corpus with labels" in refused("experiment", "transfer", "--corpus", prose)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "required: COMMAND"),
        (("frobnicate",), "invalid choice: 'frobnicate'"),
        (("pretrain",), "required: --corpus, --out"),
        (("count", "--d-model", "wide"), "--d-model: invalid int value: 'wide'"),
        (("count", "--preset", "gpt-9"), "preset must be one of seed-lab"),
        (("count", "--n-layers", "2"), "must be given"),
        (("count", "--config", "nowhere.json"), "nowhere.json is missing"),
        (("count", "--preset", "seed-lab", "--n-heads", "3"), "n_heads must divide d_model, got d_model=200"),
        (("count", "--preset", "seed-lab", "--head", "hydra"), "invalid choice: 'hydra'"),
        (("experiment", "transfer", "--labels", "4,x"), "--labels"),
    ],
)
def test_wrong_usage_is_one_line(refused, arguments, words):
    assert words in refused(*arguments)


def test_a_configuration_file_with_wrong_types_is_refused(refused, tmp_path):
    file = tmp_path / "config.json"
    file.write_text('{"vocab_size": 11, "d_model": "6", "n_heads": 3, "n_layers": 2, "d_ff": 5}')
    assert "d_model must be an integer, got '6'" in refused("count", "--config", file)
    file.write_text('{"vocab_siz": 11}')
    assert "unknown vocab_siz" in refused("count", "--config", file)


def test_the_program_itself_exits_with_2_and_one_line(tmp_path):
    command = [sys.executable, "-m", "tinytx.cli"]
    good = subprocess.run(
        [*command, "count", "--preset", "seed-lab", "--json"], capture_output=True, text=True
    )
    assert good.returncode == 0 and json.loads(good.stdout)["total"] == 1008100 and good.stderr == ""
    bad = subprocess.run(
        [*command, "pretrain", "--corpus", "nowhere.txt", "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
    )
    assert bad.returncode == 2 and bad.stdout == ""
    assert bad.stderr == "tinytx: error: corpus file must exist, got nowhere.txt\n"
    assert list(tmp_path.iterdir()) == []
