"""Evaluation against sums made by hand."""

import math

import numpy as np
import pytest
import torch

from tinytx.model.transformer import Classifier, LanguageModel
from tinytx.training.evaluate import (
    ClassifierScore,
    LanguageModelScore,
    class_probabilities,
    classifier_inputs,
    evaluate_classifier,
    evaluate_language_model,
    text_nats,
)


def nats_by_hand(model, tokenizer, text):
    """Sum over tokens, one text at a time, without batches or chunks."""
    ids = [tokenizer.bos_id, *tokenizer.encode(text), tokenizer.eos_id]
    log_probs = model(torch.tensor([ids[:-1]]))[0].log_softmax(dim=-1)
    return -sum(log_probs[i, target].item() for i, target in enumerate(ids[1:]))


def test_nats_equal_the_sum_over_single_texts_whatever_the_batches(config, tokenizer, corpus):
    model = LanguageModel(config.replace(max_len=200)).eval()
    wanted = [nats_by_hand(model, tokenizer, text) for text in corpus.valid.texts]
    for size in (40, 500, 100_000):
        got = text_nats(model, tokenizer, corpus.valid.texts, tokens_per_batch=size)
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_a_text_beyond_max_len_is_read_in_chunks_and_counts_whole(config, tokenizer):
    model = LanguageModel(config.replace(max_len=5))
    text = "le chat mange un petit chien"
    score = evaluate_language_model(model, tokenizer, [text, "la"])
    assert score.n_tokens == len(tokenizer.encode(text)) + len(tokenizer.encode("la")) + 2
    # The first chunk alone is what a model sees that reads no further.
    ids = [tokenizer.bos_id, *tokenizer.encode(text), tokenizer.eos_id]
    parts = [ids[start : start + 6] for start in range(0, len(ids) - 1, 5)]
    wanted = 0.0
    with torch.no_grad():
        for part in parts:
            log_probs = model.eval()(torch.tensor([part[:-1]]))[0].log_softmax(dim=-1)
            wanted -= sum(log_probs[i, target].item() for i, target in enumerate(part[1:]))
    assert text_nats(model, tokenizer, [text])[0] == pytest.approx(wanted, rel=1e-5)


def test_perplexity_is_the_exponential_of_the_mean():
    score = LanguageModelScore(total_nats=12.0, n_tokens=4, n_texts=1)
    assert score.nats_per_token == 3.0
    assert score.perplexity == pytest.approx(math.exp(3))


def test_a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary(config, tokenizer, corpus):
    model = LanguageModel(config)
    with torch.no_grad():
        model.head.weight.zero_()
    score = evaluate_language_model(model, tokenizer, corpus.valid.texts)
    assert score.perplexity == pytest.approx(config.vocab_size, rel=1e-5)


def test_accuracy_counts_right_answers_and_cut_texts(config, tokenizer, corpus):
    model = Classifier(config.replace(max_len=8), n_classes=2).eval()
    split = corpus.valid
    right = n_cut = 0
    for text, label in zip(split.texts, split.labels, strict=True):
        ids = [tokenizer.bos_id, *tokenizer.encode(text)]
        n_cut += len(ids) > 8
        right += int(model(torch.tensor([ids[:8]])).argmax()) == label
    score = evaluate_classifier(model, tokenizer, split.texts, split.labels, tokens_per_batch=32)
    assert score == ClassifierScore(right, len(split), n_cut)
    assert n_cut > 0
    assert score.interval.low < score.accuracy < score.interval.high


def test_evaluation_leaves_the_mode_of_the_model(config, tokenizer, corpus):
    model = LanguageModel(config).train()
    evaluate_language_model(model, tokenizer, corpus.valid.texts)
    assert model.training


def test_a_tokenizer_of_another_size_is_refused(config, tokenizer):
    model = LanguageModel(config.replace(vocab_size=config.vocab_size + 1))
    with pytest.raises(ValueError, match="one vocabulary, got 30 pieces and vocab_size=31"):
        evaluate_language_model(model, tokenizer, ["le chat"])


def test_class_probabilities_stand_in_the_order_of_the_texts(config, tokenizer, corpus):
    model = Classifier(config.replace(max_len=200), n_classes=3)
    texts = corpus.valid.texts
    found = class_probabilities(model, tokenizer, texts, tokens_per_batch=60)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    for row, text in zip(found, texts, strict=True):
        ids = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(text)]])
        np.testing.assert_allclose(row, model.eval()(ids)[0].softmax(dim=-1).detach(), rtol=1e-5)
    right = evaluate_classifier(model, tokenizer, texts, found.argmax(axis=1).tolist())
    assert right.accuracy == 1


def test_a_body_that_looks_both_ways_reads_texts_as_in_its_pretraining(tokenizer):
    texts = ["le chat", "un chien mange la belle"]
    ids = tokenizer.encode_batch(texts)
    cls_id, sep_id, room = tokenizer.cls_id, tokenizer.sep_id, len(ids[0])
    rows, n_cut = classifier_inputs(tokenizer, texts, room + 2, causal=False)
    assert rows == [[cls_id, *ids[0], sep_id], [cls_id, *ids[1][:room], sep_id]] and n_cut == 1
