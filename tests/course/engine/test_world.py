"""The generated language in the page, compared with Python's."""

import math

import numpy as np
import pytest

import tinytx as tx
from tinytx_course.engine.tables import world_tables


@pytest.fixture(scope="module", params=["fr", "en"])
def world(request):
    return tx.World(request.param)


@pytest.fixture(scope="module")
def tables(world):
    return {"world": np.frombuffer(world_tables(world), np.uint8)}


@pytest.fixture
def page(engine, tables):
    """Return ``run(body, given)``: the value of a body that knows `world` and `given`."""
    start = "const world = new World(tensors.get('world').data), given = one.given;"
    return lambda body, given=None: engine(f"{start} {body}", ({"given": given}, tables))[0][1]


def test_the_tables_fit_into_a_page(tables):
    assert len(tables["world"]) < 200_000


def test_next_words_of_hundreds_of_prefixes_equal_pythons(page, world):
    reviews = [review.words for review in world.reviews(60, seed=5)]
    prefixes = [words[:length] for words in reviews for length in range(0, len(words) + 1, 5)]
    assert len(prefixes) > 300
    got = page("return given.map((p) => [...world.nextWords(world.read(p))]);", prefixes)
    expected = world.automaton.next_words([world.automaton.read(words) for words in prefixes])
    np.testing.assert_allclose(np.array(got), expected, rtol=0, atol=1e-12)


def test_the_next_word_is_ranked_and_names_the_end(page, world):
    words = world.reviews(1, seed=3)[0].words
    got = page("return [...world.nextWord(given)];", words)
    expected = world.next_word(words)
    assert {word for word, _ in got} == set(expected) and None in expected
    assert [p for _, p in got] == sorted((p for _, p in got), reverse=True)
    for word, p in got:
        assert math.isclose(p, expected[word], rel_tol=1e-9)


def test_log_probabilities_equal_pythons(page, world):
    reviews = [review.words for review in world.reviews(40, seed=7)]
    broken = [words[:-1] for words in reviews] + [["Bonjour", "Bonjour"], [], ["nosuchword"]]
    got = page("return given.map((p) => world.logProb(p));", [*reviews, *broken])  # JSON has no infinity
    np.testing.assert_allclose(got[:40], [world.log_prob(words) for words in reviews], rtol=1e-12)
    assert got[40:] == [None] * len(broken)
    assert all(world.log_prob(words) == -math.inf for words in broken)


def test_drawn_reviews_are_reviews_and_as_probable_as_pythons(page, world):
    body = """let state = 7;
      const random = () => (state = (state * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
      return Array.from({ length: 400 }, () => world.sample(random));"""
    drawn = world.batch_log_prob(page(body))
    assert np.isfinite(drawn).all()
    ours = world.batch_log_prob(review.words for review in world.reviews(400, seed=0))
    error = math.sqrt(drawn.var() / len(drawn) + ours.var() / len(ours))
    assert abs(drawn.mean() - ours.mean()) < 5 * error


def test_the_grammar_names_the_first_impossible_word(page, world):
    words = list(world.reviews(1, seed=2)[0].words)
    wrong = [[*words[:5], "nosuchword", *words[5:]], [*words[:4], words[3], *words[4:]], words, []]
    got = page("return given.map((p) => world.possible(p));", wrong)
    possible = [max(n for n in range(len(p) + 1) if world.automaton.read(p[:n]).total > 0) for p in wrong]
    assert got == possible and got[0] == 5


def test_the_grammar_goes_on_with_the_next_sentence(page, world):
    first, second = (list(review.words) for review in world.reviews(2, seed=4))
    # a sentence may come after one of these, though the books that they are about may forbid it
    others = [review.words for review in world.reviews(40, seed=8) if "." in review.words]
    before = [words[: words.index(".") + 1] for words in others]
    wrong = [first, [*first[:4], "nosuchword", *first[4:]], [*first, *second], [*first[:2], *first[:2]], []]
    got = page("return given.map((words) => world.allowed(words));", wrong)

    def possible(words):
        return world.automaton.read(words).total > 0

    for words, verdicts in zip(wrong, got, strict=True):
        start, lost = 0, False
        for i, verdict in enumerate(verdicts):
            if lost and words[i - 1] in ".!":
                start, lost = i, False
            starts = [(), *before] if start else [()]
            lost = lost or not any(possible([*own, *words[start : i + 1]]) for own in starts)
            assert verdict is not lost
    assert all(got[0]) and not all(got[1]) and any(got[1][5:])


def test_after_a_wrong_word_the_later_sentences_are_allowed_as_they_were(page, world):
    reviews = [["nosuchword", *review.words] for review in world.reviews(60, seed=6)]
    got = page("return given.map((words) => world.allowed(words));", reviews)
    for words, verdicts in zip(reviews, got, strict=True):
        end = 1 + next(i for i, word in enumerate(words) if word in (".", "!"))
        assert not any(verdicts[:end]) and all(verdicts[end:])


def test_text_is_split_and_written_as_python_does(page, world):
    reviews = world.reviews(50, seed=11)
    texts = [*(review.text for review in reviews), "L’été 2, ça-va ? x² chef-d'œuvre !  _", ""]
    got = page("return given.map((text) => world.split(text));", texts)
    assert got == [world.split(text) for text in texts]
    words = [review.words for review in reviews]
    written = page("return given.map((p) => world.written(p));", words)
    assert written == [review.text for review in reviews]
