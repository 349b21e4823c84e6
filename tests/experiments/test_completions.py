"""A model on French: its stored figures are its own, and nothing is repeated."""

import math

import pytest

from experiments.completions import PROMPTS, SEARCHES, completions, french_corpus
from tinytx.generate import Sampling, generate
from tinytx_run.checkpoint import load

pytestmark = pytest.mark.filterwarnings("ignore:.*word for word:tinytx_run.corpora.CorpusWarning")


def test_all_sources_are_read_and_no_held_out_text_is_learned(data_dir):
    corpus = french_corpus(data_dir)
    assert len(set(corpus.train.texts)) == len(corpus.train)
    assert not set(corpus.valid.texts) & set(corpus.train.texts)
    assert len(corpus.valid) == 21 and 199 + 200 < len(corpus.train) <= 199 + 200 + 81
    assert not any(sign in text for text in corpus.train.texts for sign in "\u202f\u00a0\u2019")


def test_stored_figures_are_those_of_the_stored_model(once, settings, data_dir, monkeypatch):
    monkeypatch.setattr("experiments.completions.MORE_STEPS", ())
    found, records = once(completions, changes={"data_dir": data_dir})
    (record,) = records.values()
    (path,) = settings().work_dir.iterdir()
    model, tokenizer = load(path).with_tokenizer()
    corpus = french_corpus(data_dir)
    valid = tokenizer.encode_batch(corpus.valid.texts)
    n_tokens, n_characters = sum(map(len, valid)) + len(valid), sum(map(len, corpus.valid.texts))
    bits = record["nats_per_token"] * n_tokens / math.log(2) / n_characters
    assert record["bits_per_character"] == pytest.approx(bits)
    names = [(prompt, name) for prompt in PROMPTS for name in SEARCHES]
    assert list(zip(found["prompt"], found["way"], strict=True)) == names
    for one in record["completions"][::3]:
        text = generate(model, tokenizer, one["prompt"], Sampling(max_new_tokens=30, **SEARCHES[one["way"]]))
        assert one["text"] == str(text) and one["finished"] == text.finished
    monkeypatch.setattr("experiments.completions.MORE_STEPS", (2,))
    with pytest.raises(ConnectionAbortedError):
        completions(settings(data_dir=data_dir))
