"""The tokenizer in the page, compared with sentencepiece."""

import random

import numpy as np
import pytest

import tinytx as tx
from tinytx_course.engine.shipped import shipped_model

ALPHABET = [*"aeéèlnrst'’-.,!  \t\n\r\0\x01\x06\x07\x1b\x1f▁▅日𝄞Œ", "Le ", "roman", "très "]


@pytest.fixture(scope="module")
def tokenizer():
    return shipped_model().tokenizer


def run(engine, tokenizer, body, given):
    start = "const tokenizer = new Tokenizer(tensors.get('model').data);"
    model = np.frombuffer(tokenizer.to_bytes(), np.uint8)
    return engine(f"{start} return one.given.map({body});", ({"given": given}, {"model": model}))[0][1]


def test_ids_and_texts_equal_sentencepieces_on_reviews_and_on_noise(engine, tokenizer, world):
    draw = random.Random(0)
    noise = ["".join(draw.choices(ALPHABET, k=draw.randrange(14))) for _ in range(3000)]
    reviews = world.reviews(300, seed=1)
    texts = [*noise, *(" ".join(review.words) for review in reviews), *(review.text for review in reviews)]
    ids = run(engine, tokenizer, "(text) => tokenizer.encode(text)", texts)
    assert ids == tokenizer.encode_batch(texts)
    assert run(engine, tokenizer, "(ids) => tokenizer.decode(ids)", ids) == list(map(tokenizer.decode, ids))


def test_pieces_and_special_ids_are_equal(engine, tokenizer):
    every = list(range(tokenizer.vocab_size))
    assert run(engine, tokenizer, "(id) => tokenizer.piece(id)", every) == list(map(tokenizer.piece, every))
    assert run(engine, tokenizer, "(id) => tokenizer.decode([id])", every) == [
        tokenizer.decode([i]) for i in every
    ]
    names = "tokenizer.padId, tokenizer.unkId, tokenizer.bosId, tokenizer.eosId, tokenizer.vocabSize"
    ids = [tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id, tokenizer.vocab_size]
    assert run(engine, tokenizer, f"() => [{names}]", [0]) == [ids]


def test_a_model_of_another_kind_is_refused(engine):
    other = tx.Tokenizer.train(["le chat", "la table"] * 9, vocab_size=18)
    body = "try { new Tokenizer(tensors.get('model').data); } catch (error) { return error.message; }"
    model = np.frombuffer(other.to_bytes(), np.uint8)
    assert "must be a BPE model" in engine(body, ({}, {"model": model}))[0][1]


def test_exact_probabilities_of_tokens_equal_pythons(engine, tokenizer, world, tables):
    draw = random.Random(0)
    reviews = tokenizer.encode_batch([" ".join(review.words) for review in world.reviews(40, seed=2)])
    prefixes = [ids[:length] for ids in reviews for length in range(0, len(ids) + 1, 4)]
    split = next(ids for ids in map(tokenizer.word_pieces, world.vocabulary) if len(ids) > 2)
    strange = [draw.choices(range(7, tokenizer.vocab_size), k=3) for _ in range(50)]
    body = """const world = new World(tensors.get("world").data);
      const tokenizer = new Tokenizer(tensors.get("model").data);
      const exactly = new TokenWorld(world, tokenizer), out = one.given.map((ids) => exactly.nextToken(ids));
      return out.map((chances) => chances && [...chances]);"""
    arrays = tables | {"model": np.frombuffer(tokenizer.to_bytes(), np.uint8)}
    given = [*prefixes, list(split[:1]), list(split[:2]), *strange]
    exactly, n_outside = world.through(tokenizer), 0
    for ids, got in zip(given, engine(body, ({"given": given}, arrays))[0][1], strict=True):
        if got is None:
            n_outside += 1
            with pytest.raises(ValueError, match="must"):
                exactly.next_token(ids)
        else:
            np.testing.assert_allclose(got, exactly.next_token(ids), rtol=0, atol=1e-12)
    assert 40 <= n_outside <= 52 and len(prefixes) > 300
