"""Properties of the whole world, errors that are promised, sentence pairs."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tinytx.tokenizer import Tokenizer
from tinytx_run.corpora import Corpus, Split
from tinytx_run.evaluate import exact_masked_nats
from tinyworld.grammar import Grammar
from tinyworld.lexicon import TABLES
from tinyworld.network import build_network
from tinyworld.reviews import ReviewPlan
from tinyworld.world import World

SOME = [review.words for review in World().reviews(12, seed=21)]


def test_same_seed_same_reviews_and_other_seed_others(world):
    assert world.reviews(5, seed=1) == world.reviews(5, seed=1)
    assert world.reviews(5, seed=1) != world.reviews(5, seed=2)
    assert world.sentence_pairs(5, seed=1) == world.sentence_pairs(5, seed=1)
    assert world.reviews(0, seed=1) == []


@pytest.mark.parametrize("words", SOME)
def test_chain_of_next_words_is_the_log_prob(world, words):
    table = world.next_words(words)
    assert_allclose(table.sum(axis=1), 1.0)
    columns = [world.vocabulary.index(word) for word in words] + [len(world.vocabulary)]
    chain = np.log(table[np.arange(len(columns)), columns]).sum()
    assert_allclose(chain, world.log_prob(words))
    assert_allclose(chain, world.batch_log_prob([words])[0])


def test_words_outside_the_language_have_log_prob_minus_infinity(world):
    outside = [[], ["."], ["Zut"], ["Le", "Zut", "."], ["le", "roman"], SOME[0][:-1]]
    assert [*map(world.log_prob, outside)] == world.batch_log_prob(outside).tolist() == [-math.inf] * 6


def test_errors_name_what_is_wrong(world):
    openers = ReviewPlan().openers | {"first": {"plain": 0.5, "hello": 0.5}}
    for call, words in (
        (lambda: world.next_word(["Le", "Zut"]), "vocabulary of the world, got 'Zut'"),
        (lambda: world.next_word(["Le", "la", "roman"]), "after 'Le' none continues with 'la'"),
        (lambda: world.fill(["Zut", "est", "."], 1), "got 'Zut'"),
        (lambda: world.fill(["Le", "roman", "Le", "."], 1), "none does at 1"),
        (lambda: world.fill(["Le", "roman", "."], [0, 3]), "positions must lie in 0 to 2, got"),
        (lambda: world.label_posterior(["Le"]), "2 or more whole sentences, got 'Le'"),
        (lambda: world.reviews(-1, seed=0), "n must be 0 or more, got -1"),
        (lambda: World("de"), "language must be 'fr' or 'en', got 'de'"),
        (lambda: ReviewPlan(sentences={2: 0.5}), "sentences must be 0 or more and sum to 1"),
        (lambda: ReviewPlan(sentences={0: 0.5, 2: 0.5}), "whole numbers from 1 up, got 0"),
        (lambda: ReviewPlan(sentences={1.5: 0.5, 2: 0.5}), "whole numbers from 1 up, got 1.5"),
        (lambda: World(plan=ReviewPlan(openers=openers)), "openers of first .*plain.* got 'hello'"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="got one str"):
        world.log_prob("Le roman .")


def test_a_number_of_sentences_without_a_chance_changes_nothing():
    plain, padded = (World(plan=ReviewPlan(sentences=chances)) for chances in ({2: 1.0}, {2: 1.0, 5: 0.0}))
    words = plain.reviews(1, seed=0)[0].words
    assert padded.log_prob(words) == pytest.approx(plain.log_prob(words))


def test_tables_that_do_not_sum_up_are_refused(monkeypatch):
    grammar = Grammar()
    rules = grammar.rules["+"]
    monkeypatch.setitem(grammar.rules, "+", rules[:-1])
    with pytest.raises(ValueError, match="must sum to 1"):
        build_network(grammar, "fr")


@pytest.fixture
def tables(tmp_path):
    return shutil.copytree(TABLES, tmp_path / "tables")


@pytest.mark.parametrize(
    ("table", "old", "new", "message"),
    [
        ("verbs", "liking\t", "liking\tadore\nliking\t", r"verbs.tsv line \d+ must have 7 fields, got 2"),
        ("nouns", "genre", "kind", "nouns.tsv line 1 must have the column genre, got"),
        ("adverbs", "polarity", "sign", "adverbs.tsv line 1 must have the column polarity, got"),
        ("sentences", "4\tboth", "4\tBoth", "polarity of a sentence must be one of both, .* got .*Both"),
    ],
)
def test_a_fault_in_a_table_is_named(tables, table, old, new, message):
    path = tables / f"{table}.tsv"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        World(tables=tables)


def test_an_empty_table_is_named(tables):
    (tables / "nouns.tsv").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="nouns.tsv line 1 must have the column french, got"):
        World(tables=tables)


def test_a_table_that_has_changed_is_read_again(tables):
    assert "zèbre" not in World(tables=tables).vocabulary
    with open(tables / "nouns.tsv", "a", encoding="utf-8") as file:
        file.write("zèbre\t.\tm\tc\tzebra\t.\tperson\tany\n")
    assert "zèbre" in World(tables=tables).vocabulary


def test_the_alignment_pairs_translations(world):
    lexicon = world.grammar.lexicon
    english = {row["french"]: row["english"] for row in lexicon.nouns if row["french"] != row["plural"]}
    english |= {row["feminine"]: row["english"] for row in lexicon.adjectives}
    english |= {row["french"]: row["english"] for row in lexicon.adverbs} | {".": ".", ",": ",", "!": "!"}
    checked = 0
    for pair in world.sentence_pairs(400, seed=24):
        places = [j for _, j in pair.alignment]
        assert all(0 <= i < len(pair.english) and 0 <= j < len(pair.french) for i, j in pair.alignment)
        assert len(set(pair.alignment)) == len(pair.alignment)
        assert len(set(places)) >= len(pair.french) / 3
        for i, j in pair.alignment:
            if pair.french[j] in english:
                assert pair.english[i] == english[pair.french[j]]
                checked += 1
    assert checked > 800


def test_text_splits_back_into_the_words(world):
    for review in world.reviews(300, seed=25):
        assert tuple(world.split(review.text)) == review.words
    assert world.split("C’est beau.") == ["C'", "est", "beau", "."]


@pytest.fixture(scope="module")
def tokenizer(world) -> Tokenizer:
    return Tokenizer.train([" ".join(r.words) for r in world.reviews(2000, seed=26)], vocab_size=500)


def test_token_errors_name_what_is_wrong(world, tokenizer):
    tokens = world.through(tokenizer)
    with pytest.raises(ValueError, match="must not hold the end"):
        tokens.next_token([tokenizer.bos_id, tokenizer.eos_id])
    with pytest.raises(ValueError, match="must begin some review"):
        tokens.next_token(tokenizer.encode("roman"))
    with pytest.raises(ValueError, match="must be that of a piece, 1 to"):
        tokens.fill_token([tokenizer.bos_id, *tokenizer.encode("Le roman .")], 0)
    for text in ("Le roman est beau .", ""):
        with pytest.raises(ValueError, match="must be those of a review"):
            tokens.fill_tokens(tokenizer.encode(text))
    small = Tokenizer.train(["le la les"] * 9, vocab_size=13)
    with pytest.raises(ValueError, match="must know every character of the world"):
        world.through(small)


class Uncased(Tokenizer):
    """Writes capitals as small letters, as BERT uncased does."""

    def word_pieces(self, word):
        return super().word_pieces(word.lower())

    def encode(self, text):
        return super().encode(text.lower())


class Bare(Tokenizer):
    """Does not write the first word of a text as it writes others, as byte-level tokenizers do."""

    def encode(self, text):
        return super().encode(text)[1:]


@pytest.mark.parametrize("kind", [Uncased, Bare])
def test_a_tokenizer_without_pieces_for_each_word_is_refused_and_no_bound_is_known(world, tokenizer, kind):
    other = kind(tokenizer.to_bytes())
    with pytest.raises(ValueError, match="each word of the world in pieces of its own"):
        world.through(other)
    text = " ".join(World().reviews(1, seed=0)[0].words)
    corpus = Corpus("world", Split((text,)), Split((text,)))
    assert exact_masked_nats(corpus, tokenizer, [text]) is not None
    assert exact_masked_nats(corpus, other, [text]) is None


def test_tokens_of_a_review_of_eighty_sentences_can_be_filled(tokenizer):
    world = World(plan=ReviewPlan(sentences={80: 1.0}))
    tokens, words = world.through(tokenizer), world.reviews(1, seed=0)[0].words
    ids = tokenizer.encode(" ".join(words))
    found = tokens.fill_tokens(ids)
    assert_allclose(found.sum(axis=1), 1.0)
    assert_allclose(tokens.fill_token(ids, len(ids) - 3), found[-3], atol=1e-12)


def test_a_review_names_the_book_that_it_was_drawn_for(world):
    """The posterior of the book that is named, summed over many reviews, is as large as it is on average."""
    reviews, names = world.reviews(400, seed=16), [book.noun for book in world.books]
    chances = np.array([world.automaton.forward(one.words).hidden.sum(axis=(0, 1)) for one in reviews])
    named = sum(row[names.index(one.book)] for row, one in zip(chances, reviews, strict=True))
    variance = ((chances**3).sum(axis=1) - (chances**2).sum(axis=1) ** 2).sum()
    assert abs(named - (chances**2).sum()) < 4 * variance**0.5
