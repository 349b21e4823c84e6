"""Evaluation against sums made by hand, one text at a time; the measure of each kind; the entropy bound."""

import math
import sys
import warnings

import numpy as np
import pytest
import torch

from tinytx.classifier import Classifier
from tinytx.encoder_decoder import Translator
from tinytx.inference import evaluate_rows
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_run.checkpoint import Checkpoint, save
from tinytx_run.classify import class_probabilities
from tinytx_run.corpora import Corpus, Split, load_corpus
from tinytx_run.evaluate import (
    ClassifierScore,
    LanguageModelScore,
    evaluate,
    evaluate_classifier,
    evaluate_language_model,
    evaluate_masked_model,
    exact_masked_nats,
    exact_nats,
    fill_probs,
    first_texts,
    text_nats,
)
from tinytx_run.letters import CorpusWarning
from tinytx_run.pairs import PairCorpus, Pairs
from tinytx_run.splits import TextHashes
from tinyworld.world import World

TEXT = "le chat mange la belle"
SPECIAL = slice(0, 7)


@pytest.fixture
def causal(config):
    return LanguageModel(config).eval()


@pytest.fixture
def masked(config):
    return MaskedLanguageModel(config).eval()


@torch.no_grad()
def nats_by_hand(model, ids):
    log_probs = model(torch.tensor([ids[:-1]]))[0].double().log_softmax(dim=-1)
    return -sum(log_probs[i, target].item() for i, target in enumerate(ids[1:]))


@pytest.mark.parametrize("tokens_per_batch", [1, 40, 10_000])
def test_rows_come_back_in_order_whatever_the_batches(tokens_per_batch):
    rows = [[i] * n for i, n in enumerate([5, 2, 7, 2, 3, 11, 5], start=1)]
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout()).train()
    sizes = []

    def sums(token_ids, indices):
        assert not model[1].training and token_ids.shape[1] == max(len(rows[i]) for i in indices)
        sizes.append(token_ids.numel())
        return token_ids.sum(dim=1)

    found = evaluate_rows(model, rows, sums, pad_id=0, tokens_per_batch=tokens_per_batch)
    assert found.tolist() == [sum(row) for row in rows]
    assert model[1].training and max(sizes) <= max(tokens_per_batch, 11)
    with pytest.raises(ValueError, match="got none"):
        evaluate_rows(model, [], sums, pad_id=0)


@pytest.mark.parametrize("max_len", [200, 5])
def test_text_nats_are_the_sums_of_single_texts_read_in_chunks_of_max_len(config, tokenizer, corpus, max_len):
    model = LanguageModel(config.replace(max_len=max_len)).train()
    texts = corpus.valid.texts[:7]
    found, score = text_nats(model, tokenizer, texts), evaluate_language_model(model, tokenizer, texts)
    assert model.training
    model.eval()
    rows = [[tokenizer.bos_id, *ids, tokenizer.eos_id] for ids in tokenizer.encode_batch(texts)]
    starts = [range(0, len(ids) - 1, max_len) for ids in rows]
    expected = [
        sum(nats_by_hand(model, ids[start : start + max_len + 1]) for start in each)
        for ids, each in zip(rows, starts, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert score.total_nats == pytest.approx(found.sum())
    assert score.n_tokens == sum(len(ids) - 1 for ids in rows)


def test_perplexity_is_that_of_a_fair_choice():
    assert LanguageModelScore(total_nats=12.0, n_tokens=4, n_texts=1).perplexity == pytest.approx(math.exp(3))


@torch.no_grad()
def masked_by_hand(model, tokenizer, ids, position):
    row = [tokenizer.cls_id, *ids, tokenizer.sep_id]
    row[position + 1] = tokenizer.mask_id
    return model(torch.tensor([row]))[0, position + 1].double()


def test_a_masked_model_is_read_at_the_masked_position(masked, tokenizer):
    ids = tokenizer.encode(TEXT)
    for position in (0, 3, len(ids) - 1):
        logits = masked_by_hand(masked, tokenizer, ids, position)
        logits[SPECIAL] = -torch.inf
        found = fill_probs(masked, tokenizer, ids, position)
        np.testing.assert_allclose(found, logits.softmax(0).numpy(), rtol=1e-5)
        other = [*ids]
        other[position] = 9
        np.testing.assert_array_equal(fill_probs(masked, tokenizer, other, position), found)


def test_a_causal_model_fills_by_the_probability_of_whole_texts(causal, tokenizer):
    ids, position = tokenizer.encode(TEXT), 4
    found = fill_probs(causal, tokenizer, ids, position)
    assert found.sum() == pytest.approx(1) and not found[SPECIAL].any()
    begin, rest = [tokenizer.bos_id, *ids[:position]], [*ids[position + 1 :], tokenizer.eos_id]
    nats = [nats_by_hand(causal, [*begin, token, *rest]) for token in range(7, tokenizer.vocab_size)]
    np.testing.assert_allclose(found[7:], (-torch.tensor(nats)).softmax(0).numpy(), rtol=1e-4)


def test_the_left_side_alone_gives_the_next_token_probabilities(causal, tokenizer):
    ids = tokenizer.encode(TEXT)
    found = fill_probs(causal, tokenizer, ids, 3, sides="left")
    with torch.no_grad():
        logits = causal(torch.tensor([[tokenizer.bos_id, *ids[:3]]]))[0, -1].double()
    logits[SPECIAL] = -torch.inf
    np.testing.assert_allclose(found, logits.softmax(0).numpy(), rtol=1e-5)
    np.testing.assert_array_equal(fill_probs(causal, tokenizer, ids[:4], 3, sides="left"), found)
    assert not np.allclose(fill_probs(causal, tokenizer, ids, 3), found)


def test_a_hybrid_model_fills_in_one_pass_that_reads_both_ways(causal, config, tokenizer):
    ids, position = tokenizer.encode(TEXT), 4
    found = fill_probs(causal, tokenizer, ids, position, hybrid=True)
    other = [*ids[:position], 9, *ids[position + 1 :]]
    np.testing.assert_array_equal(fill_probs(causal, tokenizer, other, position, hybrid=True), found)
    both = LanguageModel(config.replace(causal=False)).eval()
    both.load_state_dict(causal.state_dict())
    row = [tokenizer.cls_id, *ids]
    row[position + 1] = tokenizer.mask_id
    with torch.no_grad():
        logits = both(torch.tensor([row]))[0, position].double()
    logits[SPECIAL] = -torch.inf
    np.testing.assert_allclose(found, logits.softmax(0).numpy(), rtol=1e-5)
    assert causal.config.causal, "the model is causal again"
    left = fill_probs(causal, tokenizer, ids, position, sides="left", hybrid=True)
    np.testing.assert_array_equal(left, fill_probs(causal, tokenizer, ids, position, sides="left"))


def test_the_pseudo_likelihood_masks_each_token_once(masked, tokenizer, corpus):
    texts = corpus.valid.texts[:6]
    score = evaluate_masked_model(masked, tokenizer, texts)
    nats, correct = [], 0
    for ids in tokenizer.encode_batch(texts):
        for position, token in enumerate(ids):
            log_probs = masked_by_hand(masked, tokenizer, ids, position).log_softmax(-1)
            nats.append(-log_probs[token].item())
            correct += int(log_probs.argmax() == token)
    assert (score.n_tokens, score.n_texts, score.correct) == (len(nats), 6, correct)
    assert score.total_nats == pytest.approx(sum(nats), rel=1e-4) and score.accuracy == correct / len(nats)
    with pytest.raises(ValueError, match="got none"):
        evaluate_masked_model(masked, tokenizer, [""])


def test_the_first_texts_have_at_most_so_many_tokens(tokenizer, corpus):
    texts = corpus.valid.texts
    lengths = [len(ids) for ids in tokenizer.encode_batch(texts)]
    assert first_texts(tokenizer, texts, sum(lengths[:4])) == texts[:4]
    assert first_texts(tokenizer, texts, sum(lengths[:4]) - 1) == texts[:3]
    beginning = first_texts(tokenizer, texts, lengths[0] - 1)  # of a text longer than that
    assert tokenizer.encode_batch(beginning) == [tokenizer.encode(texts[0])[:-1]]
    assert first_texts(tokenizer, [""], 1) == [""]
    assert first_texts(tokenizer, texts) == texts


def test_fills_that_have_no_meaning_raise(causal, masked, config, tokenizer):
    ids = tokenizer.encode("le chat")
    for got, model, token_ids, position, sides in (
        (f"got {len(ids)}", masked, ids, len(ids), "both"),
        ("got a masked model", masked, ids, 0, "left"),
        ("got 'right'", causal, ids, 0, "right"),
        ("at most 22 tokens long, got 23", masked, [9] * 23, 0, "both"),
        ("at most 23 tokens long, got 24", causal, [9] * 24, 0, "both"),
        ("neither", LanguageModel(config.replace(causal=False)), ids, 0, "both"),
    ):
        with pytest.raises(ValueError, match=got):
            fill_probs(model, tokenizer, token_ids, position, sides=sides)


def test_accuracy_counts_right_answers_and_texts_cut(config, tokenizer, corpus, monkeypatch):
    model = Classifier(config.replace(max_len=8), n_classes=2).eval()
    split, n_cut, expected = corpus.valid, 0, []
    for text in split.texts:
        ids = [tokenizer.bos_id, *tokenizer.encode(text)]
        n_cut += len(ids) > 8
        expected.append(model(torch.tensor([ids[:8]]))[0].softmax(dim=-1).tolist())
    found = class_probabilities(model, tokenizer, split.texts)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    right = int((np.argmax(expected, axis=1) == split.labels).sum())
    score = evaluate_classifier(model, tokenizer, split.texts, split.labels)
    assert score == ClassifierScore(right, len(split), n_cut) and n_cut > 0
    assert score.interval.low < score.accuracy < score.interval.high
    monkeypatch.setitem(sys.modules, "scipy.stats", None)  # as Python marks what cannot be imported
    assert score.interval is None and "interval" not in score.to_dict() and "needs scipy" in str(score)


def test_the_kind_of_the_model_decides_what_is_measured(tmp_path, config, tokenizer, corpus):
    save(LanguageModel(config), tmp_path / "lm", tokenizer)
    save(Classifier(config), tmp_path / "classifier", tokenizer)
    language = evaluate(tmp_path / "lm", corpus, device="cpu")
    assert isinstance(language.score, LanguageModelScore) and language.split == "test"
    assert language.entropy_bound is None and "gap" not in language.to_dict()
    labels = evaluate(tmp_path / "classifier", corpus, split="all", device="cpu")
    assert isinstance(labels.score, ClassifierScore) and labels.score.n == 170
    model, without_test = LanguageModel(config), Corpus("toy", corpus.train, corpus.valid)
    assert evaluate(model, without_test, tokenizer=tokenizer).split == "valid"
    unlabelled = Corpus("plain", Split(("le chat",)), Split(("la",)))
    pair = Pairs(("a",), ("b",))
    for got, arguments in (
        ("got plain", {"model": Classifier(config), "corpus": unlabelled}),
        ("got 'test'", {"model": model, "corpus": without_test, "split": "test"}),
        ("the pairs of two", {"model": model, "corpus": PairCorpus("two", pair, pair)}),
        ("got a LanguageModel alone", {"model": model, "corpus": corpus, "tokenizer": None}),
    ):
        with pytest.raises(ValueError, match=got):
            evaluate(**{"tokenizer": tokenizer} | arguments)
    other = LanguageModel(config.replace(vocab_size=config.vocab_size + 1))
    with pytest.raises(ValueError, match="30 tokens and vocab_size=31"):
        evaluate(other, corpus, tokenizer=tokenizer)


def test_labels_are_those_of_the_classes_of_that_name(tmp_path, config, tokenizer):
    names, texts = ("bon", "moyen", "mauvais"), ("le chat", "la table", "un livre", "le chien")
    model = Classifier(config, n_classes=3)
    path = save(model, tmp_path / "model", tokenizer, names)
    predicted = class_probabilities(model.eval(), tokenizer, texts).argmax(axis=1)
    assert len(set(predicted)) > 1  # else any names would do
    own = [name for name in reversed(names) if names.index(name) in predicted]  # fewer, in another order
    split = Split(texts, tuple(own.index(names[i]) for i in predicted))
    found = evaluate(path, Corpus("toy", split, split, label_names=tuple(own)), device="cpu")
    assert found.score.accuracy == 1


def test_texts_that_were_learned_are_counted_and_no_test(tmp_path, config, tokenizer):
    rows = [f"{i % 2}\tchat {i}" for i in range(60)]
    (tmp_path / "a.tsv").write_text("\n".join(rows))
    (tmp_path / "grown.tsv").write_text("\n".join([*rows[:0:-1], "1\tun chien"]))
    (tmp_path / "upper").mkdir()
    (tmp_path / "upper" / "train.tsv").write_text("\n".join(rows))
    (tmp_path / "upper" / "test.tsv").write_text("\n".join(f"{row.upper()} !" for row in rows))
    train = load_corpus(tmp_path / "a.tsv").train.texts
    learned = (TextHashes.of(train), TextHashes.of(["chat 3", "CHAT 4"]))
    path = save(Classifier(config), tmp_path / "model", tokenizer, learned=learned)
    for file, split, n_seen, words in (
        ("a.tsv", "test", 0, "test split (trained on none of these"),
        ("grown.tsv", "test", 0, "test split (trained on none of these"),
        ("a.tsv", "all", len(train), f"no test: trained on {len(train)}, pretrained on 2 of these 60 texts"),
        ("upper", "test", len(train), f"no test: trained on {len(train)}, pretrained on 2 of these 60 texts"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of texts that are in train, too
            found = evaluate(path, tmp_path / file, split=split, device="cpu")
        assert found.to_dict()["n_seen"] == n_seen and words in str(found)
    assert "n_seen" not in evaluate(Classifier(config), tmp_path / "a.tsv", tokenizer=tokenizer).to_dict()


def test_sources_that_a_translator_has_learned_are_counted(config, tokenizer):
    pairs = Pairs(("le chat", "la table"), ("le chat", "la table"))
    known = Checkpoint(Translator(config).eval(), tokenizer, learned=(TextHashes.of(["Le chat."]),))
    found = evaluate(known, PairCorpus("two", pairs, pairs, pairs))
    assert "test split (no test: trained on 1 of these 2 texts)" in str(found)
    assert found.to_dict()["n_seen"] == 1


def test_labels_that_the_classifier_does_not_know_raise(config, tokenizer):
    model = Classifier(config, n_classes=3)
    known = Split(("le chat", "la table"), (0, 1))
    named = Corpus("toy", known, known, label_names=("bon", "mauvais"))
    unknown = Split(("le chat", "la table", "le"), (0, 3, 3))
    numbered = Corpus("toy", unknown, unknown)
    for names, corpus, words in (
        (None, numbered, "of toy must be among the 3 of the classifier, 0, 1, 2, got 3"),
        (None, named, "0, 1, 2, got bon, mauvais"),
        (("bon", "moyen", "mal"), named, "bon, moyen, mal, got mauvais: label its texts with these"),
        (("bon", "moyen", "mal"), Corpus("toy", known, known), "bon, moyen, mal, got 0, 1"),
    ):
        with pytest.raises(ValueError, match=words):
            evaluate(Checkpoint(model, tokenizer, names), corpus)
    spelt = Corpus("toy", known, known, label_names=("ne\u0301gatif", "2.0"))
    assert evaluate(Checkpoint(model, tokenizer, ("1", "2", "n\u00e9gatif")), spelt).score.n == 2
    three = Corpus("toy", known, known, label_names=("bon", "mauvais", "moyen"))
    with pytest.warns(CorpusWarning, match="what its classes are called: .* in order, bon, mauvais, moyen"):
        assert evaluate(model, three, tokenizer=tokenizer).score.n == 2


def test_no_model_is_below_the_entropy_bound_of_the_world(config, corpus):
    world = World()
    reviews = world.reviews(12, seed=5)
    texts = tuple(" ".join(review.words) for review in reviews)
    data = Corpus("world", Split(texts), Split(texts))
    exact = exact_nats(data, texts)
    np.testing.assert_allclose(exact, [-world.log_prob(review.words) for review in reviews], rtol=1e-9)
    assert exact_nats(corpus, corpus.valid.texts) is None
    tokenizer = Tokenizer.train(texts + tuple(world.vocabulary), vocab_size=200)
    wide = config.replace(vocab_size=200, max_len=250)
    found = evaluate(LanguageModel(wide), data, tokenizer=tokenizer)
    assert found.entropy_bound == pytest.approx(exact.sum() / found.score.n_tokens)
    assert found.to_dict()["gap"] > 0 and f"{found.entropy_bound:.4f}" in str(found)
    few = Corpus("world", Split(texts), Split(texts[:2]))
    found = evaluate(MaskedLanguageModel(wide), few, split="valid", tokenizer=tokenizer).to_dict()
    assert found["kind"] == "masked_language_model" and found["n_texts"] == 2
    expected = [
        -np.log(world.through(tokenizer).fill_token(ids, position)[token])
        for ids in tokenizer.encode_batch(texts[:2])
        for position, token in list(enumerate(ids))[::9]
    ]
    every_ninth = [nats for text in texts[:2] for nats in exact_masked_nats(data, tokenizer, [text])[::9]]
    np.testing.assert_allclose(every_ninth, expected)
    assert 0 < found["entropy_bound"] < found["nats_per_token"]
