"""One blank at a time: by definition for masked models, by Bayes' rule for causal ones, against the truth."""

import numpy as np
import pytest
import torch

from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.transformer import LanguageModel
from tinytx.text.corpora import Corpus, Split
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.checkpoint import save
from tinytx.training.evaluate import (
    blank_texts,
    evaluate_blanks,
    evaluate_checkpoint,
    exact_blank_nats,
    fill_probs,
    text_nats,
)
from tinytx.world.world import World

TEXT = "le chat mange la belle"
SPECIAL = slice(0, 7)


@pytest.fixture
def masked(config):
    return MaskedLanguageModel(config).eval()


def test_a_masked_model_is_read_at_the_hidden_place(masked, tokenizer):
    ids = tokenizer.encode(TEXT)
    for place in (0, 3, len(ids) - 1):
        row = [tokenizer.cls_id, *ids, tokenizer.sep_id]
        row[place + 1] = tokenizer.mask_id
        with torch.no_grad():
            logits = masked(torch.tensor([row]))[0, place + 1].double()
        logits[SPECIAL] = -torch.inf
        found = fill_probs(masked, tokenizer, ids, place)
        np.testing.assert_allclose(found, logits.softmax(0).numpy(), rtol=1e-5)
        other = [*ids]
        other[place] = 9
        np.testing.assert_array_equal(fill_probs(masked, tokenizer, other, place), found)


def test_a_causal_model_fills_by_the_probability_of_whole_texts(config, tokenizer):
    model = LanguageModel(config).eval()
    ids = tokenizer.encode(TEXT)
    place = 4
    # Pieces that are words, so that each candidate text has the pieces it was put together from.
    words = TEXT.split(" ")
    by_word = fill_probs(model, tokenizer, ids, place, tokens_per_batch=40)
    assert by_word.sum() == pytest.approx(1) and not by_word[SPECIAL].any()
    nats = []
    for piece in range(7, tokenizer.vocab_size):
        row = torch.tensor([[tokenizer.bos_id, *ids[:place], piece, *ids[place + 1 :], tokenizer.eos_id]])
        with torch.no_grad():
            log_probs = model(row[:, :-1]).double().log_softmax(-1)
        nats.append(log_probs.gather(-1, row[:, 1:, None]).sum().item())
    np.testing.assert_allclose(by_word[7:], torch.tensor(nats).softmax(0).numpy(), rtol=1e-4)
    whole = text_nats(model, tokenizer, [" ".join(words)])[0]
    assert nats[ids[place] - 7] == pytest.approx(-whole, rel=1e-5)


def test_the_left_side_alone_is_the_next_token_and_sees_nothing_else(config, tokenizer):
    model = LanguageModel(config).eval()
    ids = tokenizer.encode(TEXT)
    found = fill_probs(model, tokenizer, ids, 3, sides="left")
    with torch.no_grad():
        logits = model(torch.tensor([[tokenizer.bos_id, *ids[:3]]]))[0, -1].double()
    logits[SPECIAL] = -torch.inf
    np.testing.assert_allclose(found, logits.softmax(0).numpy(), rtol=1e-5)
    np.testing.assert_array_equal(fill_probs(model, tokenizer, ids[:4], 3, sides="left"), found)
    assert not np.allclose(fill_probs(model, tokenizer, ids, 3), found)


def test_an_evaluation_hides_each_piece_once(masked, tokenizer, corpus):
    texts = corpus.valid.texts[:6]
    score = evaluate_blanks(masked, tokenizer, texts, tokens_per_batch=70)
    nats, correct = 0.0, 0
    for ids in tokenizer.encode_batch(texts):
        for place, piece in enumerate(ids):
            row = torch.tensor([[tokenizer.cls_id, *ids, tokenizer.sep_id]])
            row[0, place + 1] = tokenizer.mask_id
            with torch.no_grad():
                log_probs = masked(row)[0, place + 1].log_softmax(-1)
            nats -= log_probs[piece].item()
            correct += int(log_probs.argmax() == piece)
    n_pieces = sum(map(len, tokenizer.encode_batch(texts)))
    assert (score.n_blanks, score.n_texts, score.correct) == (n_pieces, 6, correct)
    assert score.total_nats == pytest.approx(nats, rel=1e-4)


def test_an_evaluation_takes_whole_texts_up_to_a_number_of_blanks(tokenizer, corpus):
    texts = corpus.valid.texts
    lengths = [len(ids) for ids in tokenizer.encode_batch(texts)]
    assert list(blank_texts(tokenizer, texts, sum(lengths[:4]))) == list(texts[:4])
    assert list(blank_texts(tokenizer, texts, 1)) == list(texts[:1])
    assert list(blank_texts(tokenizer, texts)) == list(texts)


def test_the_exact_fill_of_each_place_stands_below_every_model(config, tmp_path):
    world = World()
    texts = tuple(" ".join(review.words) for review in world.reviews(6, seed=4))
    tokenizer = Tokenizer.train(texts + tuple(world.vocabulary), vocab_size=200)
    corpus = Corpus("world", Split(texts), Split(texts))
    exact = exact_blank_nats(corpus, tokenizer, texts[:3])
    through, expected = world.through(tokenizer), []
    for ids in tokenizer.encode_batch(texts[:3]):
        rows = through.fill_tokens(ids)
        one_by_one = np.stack([through.fill_token(ids, place) for place in range(len(ids))])
        np.testing.assert_allclose(rows, one_by_one, atol=1e-12)
        expected += [-np.log(row[piece]) for row, piece in zip(rows, ids, strict=True)]
    np.testing.assert_allclose(exact, expected)
    model = MaskedLanguageModel(config.replace(vocab_size=200, max_len=250))
    save(model, tmp_path / "model", tokenizer)
    found = evaluate_checkpoint(tmp_path / "model", corpus, split="valid", device="cpu").to_dict()
    assert found["kind"] == "masked_language_model" and found["n_texts"] == 6
    assert 0 < found["floor_nats_per_blank"] < found["nats_per_blank"]
    with pytest.raises(ValueError, match="the pieces must be those of a review"):
        through.fill_tokens(tokenizer.encode_batch(texts)[0][:3])


def test_impossible_requests_are_refused(masked, config, tokenizer):
    ids = tokenizer.encode("le chat")
    causal = LanguageModel(config)
    for call, words in (
        (lambda: fill_probs(masked, tokenizer, ids, len(ids)), "position must be from 0 to"),
        (lambda: fill_probs(masked, tokenizer, ids, 0, sides="left"), "got a masked model"),
        (lambda: fill_probs(causal, tokenizer, ids, 0, sides="right"), "sides must be 'both' or 'left'"),
        (lambda: fill_probs(masked, tokenizer, [9] * 23, 0), "at most 22 pieces long, got 23"),
        (lambda: fill_probs(causal, tokenizer, [9] * 24, 0), "at most 23 pieces long, got 24"),
        (
            lambda: fill_probs(LanguageModel(config.replace(causal=False)), tokenizer, ids, 0),
            "got one that is neither",
        ),
        (lambda: evaluate_blanks(masked, tokenizer, [""]), "at least one text that is not empty"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
