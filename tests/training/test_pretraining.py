"""Pretraining from corpus to held-out loss, with and without a folder."""

import json
import re

import pytest
import torch

from tinytx.text.corpora import Corpus, Split
from tinytx.training.checkpoint import load, load_tokenizer
from tinytx.training.evaluate import evaluate_language_model
from tinytx.training.fit import fit
from tinytx.training.tasks import train_tokenizer

QUICK = {"n_steps": 6, "checkpoint_every": 2, "precision": "fp32"}


def quick(corpus, **settings):
    return pretrain(corpus, budget="smoke", training_changes=QUICK, device="cpu", **settings)


def test_equal_seeds_give_equal_folders_and_the_result_is_what_lies_there(tmp_path, corpus):
    results = [quick(corpus, seed=5, out=tmp_path / name) for name in ("a", "b")]
    for file in sorted((tmp_path / "a").rglob("*")):
        if file.is_file():
            assert file.read_bytes() == (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_bytes()
    again = load(tmp_path / "a")
    torch.testing.assert_close(again.state_dict(), results[0].model.state_dict(), rtol=0, atol=0)
    score = evaluate_language_model(again, load_tokenizer(tmp_path / "a"), corpus.valid.texts)
    assert score == results[0].evaluation.score
    other = quick(corpus, seed=6)
    assert other.evaluation.score != score and other.path is None


def test_resuming_goes_on_with_the_stored_plan_only(tmp_path, corpus):
    run = tmp_path / "run"
    run.mkdir()  # an empty folder starts afresh
    first = quick(corpus, out=run, resume=True)
    with pytest.raises(ValueError, match="already holds a run: go on with --resume"):
        quick(corpus, out=run)
    second = quick(corpus, out=run, resume=True)
    assert second.evaluation == first.evaluation and second.history == first.history
    for change, words in (
        ({"seed": 1}, "another seed: it began with 0, now 1"),
        ({"vocab_size": 25}, "another vocab_size"),
        ({"model_changes": {"n_layers": 2}}, "another model"),
    ):
        with pytest.raises(ValueError, match=words):
            quick(corpus, out=run, resume=True, **change)
    fewer = Corpus("toy", Split(corpus.train.texts[1:]), corpus.valid)
    with pytest.raises(ValueError, match="another the training texts"):
        quick(fewer, out=run, resume=True)


@pytest.fixture
def one_thread():
    """A model this small is slowed by a second thread, many times over where the cores are busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_seconds_are_planned_once_stored_and_followed_after_resuming(tmp_path, corpus):
    quick(corpus)  # or what torch loads on first use would eat up the seconds
    lines = []
    first = pretrain(corpus, budget=3.0, out=tmp_path / "run", device="cpu", report=lines.append)
    assert re.search(r"about \d+ s$", lines[0])
    stored = json.loads((tmp_path / "run" / "plan.json").read_text())
    assert stored["recipe"]["settings"]["n_steps"] == first.recipe.settings.n_steps > 1
    again = pretrain(corpus, budget=3.0, out=tmp_path / "run", resume=True, device="cpu", report=lines.append)
    assert again.recipe == first.recipe and again.history == first.history


def test_the_tokenizer_sees_the_training_split_only(corpus):
    strange = Corpus("toy", corpus.train, Split(("ŷŷŷ ẑẑẑ",)))
    result = quick(strange)
    assert result.tokenizer.unk_id in result.tokenizer.encode("ŷ")
    assert result.evaluation.score.n_tokens > 0


def test_a_vocabulary_is_brought_into_range_unless_it_was_asked_for(corpus):
    texts = corpus.train.texts
    assert 20 < train_tokenizer(texts, 600, exact=False).vocab_size < 600
    assert train_tokenizer(texts, 5, exact=False).vocab_size > 5
    with pytest.raises(ValueError, match="vocab_size must be at most"):
        quick(corpus, vocab_size=5000)
    assert quick(corpus, vocab_size=27).model.config.vocab_size == 27


def test_changes_take_the_place_of_the_budget(corpus):
    changes = {"d_model": 20, "n_heads": 5, "dropout": 0.1}
    result = quick(corpus, model_changes=changes)
    config = result.model.config
    assert (config.d_model, config.n_heads, config.d_ff, config.dropout) == (20, 5, 80, 0.1)
    assert result.recipe.settings.n_steps == 6
    assert json.loads(json.dumps(result.to_dict()))["n_steps"] == 6


def test_resume_needs_a_folder(corpus):
    with pytest.raises(ValueError, match="resume needs out"):
        quick(corpus, resume=True)
