"""What is kept of a model on French: its own figures, comparable counts, the prompts; measured once."""

import json
import math
import random

import pytest

from experiments import completions as completions_experiment
from experiments.completions import PROMPTS, RATES, WAYS, completions, french_corpus
from tinytx.cli import main
from tinytx.text.ngrams import NGramModel
from tinytx.training.checkpoint import load, load_tokenizer
from tinytx.training.generate import generate
from tinytx.training.recipes import MUON, plan
from tinytx_course.results import Results, read_results

pytestmark = pytest.mark.filterwarnings("ignore:.*word for word:tinytx.text.corpora.CorpusWarning")

WORDS = ("le", "livre", "une", "fin", "belle", "dit", "il", "mais", "très", "elle", "porte", "été", "amis,")


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """A small copy of the layout of the real data; one novel stands in valid, too."""
    rng = random.Random(0)
    folder = tmp_path_factory.mktemp("data")

    def line():
        return "Bonjour les " + " ".join(rng.choice(WORDS) for _ in range(rng.randint(4, 9))) + "."

    novels = [line() for _ in range(120)]
    files = {
        "eltec-fra/corpus.train.txt": "\n".join([*novels, novels[0]]),
        "eltec-fra/corpus.valid.txt": "\n".join([*(line() for _ in range(20)), novels[1]]),
        "tatoeba-en-fr/pairs.train.tsv": "\n".join(f"english {i}\t{line()}" for i in range(60)),
        "tatoeba-en-fr/pairs.valid.tsv": "english\tBonjour\u202f!",
    }
    for site in ("babelio", "critiques_libres"):
        rows = [{"reader_review": line(), "label": i % 3 - 1} for i in range(40)]
        files[f"reader-reviews-fr/{site}_reviews.jsonl"] = "\n".join(map(json.dumps, rows))
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run(data_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    asked = {"budget": "smoke", "data_dir": data_dir, "work_dir": folder / "work", "progress": False}
    asked["report"] = lambda line: None
    return completions(store=Results("completions", folder), **asked).record, folder, asked


def test_all_sources_are_read_and_nothing_of_valid_is_learned(data_dir):
    corpus = french_corpus(data_dir)
    assert len(set(corpus.train.texts)) == len(corpus.train)
    assert not set(corpus.valid.texts) & set(corpus.train.texts)
    assert len(corpus.valid) == 21 and 170 < len(corpus.train) < 260
    assert not any(sign in text for text in corpus.train.texts for sign in "\u202f\u00a0\u2019")


def test_figures_are_those_of_the_model_that_was_kept(run, data_dir):
    record, folder, _ = run
    (path,) = (folder / "work").iterdir()
    model, tokenizer = load(path), load_tokenizer(path)
    corpus = french_corpus(data_dir)
    train, valid = (tokenizer.encode_batch(split.texts) for split in (corpus.train, corpus.valid))
    for order, nats in record["counts"].items():
        counting = NGramModel(int(order), tokenizer.vocab_size).fit(train)
        assert nats == pytest.approx(counting.nats_per_token(valid))
    n_tokens, n_characters = sum(map(len, valid)) + len(valid), sum(map(len, corpus.valid.texts))
    bits = record["nats_per_token"] * n_tokens / math.log(2) / n_characters
    assert record["bits_per_character"] == pytest.approx(bits)
    assert [(one["prompt"], one["way"]) for one in record["completions"]] == [
        (prompt, way) for prompt in PROMPTS for way in WAYS
    ]
    for one in record["completions"]:
        said = generate(model, tokenizer, one["prompt"], max_new_tokens=30, **WAYS[one["way"]])
        assert one["text"] == str(said) and one["text"].startswith(one["prompt"])
        assert one["finished"] == said.finished


def test_what_is_kept_is_not_measured_again_unless_it_follows_from_something_else(run, monkeypatch):
    record, folder, asked = run
    store = Results("completions", folder)
    monkeypatch.setattr(completions_experiment, "pretrain", None)
    assert completions(store=store, **asked).record == record
    with pytest.raises(TypeError, match="NoneType"):
        completions(store=store, **asked, seed=1)


def test_the_command_gives_the_record(run, data_dir, capsys):
    record, folder, asked = run
    call = ["experiment", "completions", "--budget", "smoke", "--data-dir", str(data_dir), "--json"]
    assert main([*call, "--results", str(folder), "--work-dir", str(asked["work_dir"])]) == 0
    assert json.loads(capsys.readouterr().out) == record
    assert main([*call, "--results", str(folder), "--data-dir", str(folder)]) == 2
    assert "tinytx data get eltec-fra" in capsys.readouterr().err


def test_the_kept_completions_are_of_the_prompts_and_recipes_of_today():
    records = read_results("completions").data
    assert records
    for record in records.values():
        origin, budget = record["origin"], record["budget"]
        assert origin["recipe"] == plan("text", "causal", budget, seed=record["seed"]).to_dict()
        assert origin["changes"] == {**MUON, "lr": RATES[budget]} | (
            {"n_steps": record["n_steps"]} if "n_steps" in origin["changes"] else {}
        )
        said = [(one["prompt"], one["way"]) for one in record["completions"]]
        assert said == [(prompt, way) for prompt in PROMPTS for way in WAYS]
        assert all(one["text"].startswith(one["prompt"]) for one in record["completions"])
        assert record["nats_per_token"] < record["counts"]["1"]  # or it has learned less than frequencies
