"""The explorer of the next word: its answers compared with the package and the world, its page with both."""

import json

import numpy as np
import pytest

import tinytx_course as course
from tinytx.world.reviews import split_up, write_out
from tinytx_course.labs.lesson_08 import next_word_probs
from tinytx_course.widgets.continuations import END, N_ROWS, WHOLE, Continuations


@pytest.fixture(scope="module")
def explorer(world):
    return course.widgets.next_word(world=world, n_stored=30)


@pytest.mark.parametrize("alone", [False, True], ids=["model", "world"])
@pytest.mark.parametrize("beginning", ["Bonjour les", "", "Le roman est beau."])
def test_the_rows_are_the_words_that_model_and_world_together_find_likeliest(reader, world, beginning, alone):
    prefix, words = world.split(beginning), (*world.vocabulary, None)
    truth = world.next_word(prefix)
    guess = np.zeros(len(words)) if alone else next_word_probs(*reader, prefix, world.vocabulary)
    true = np.array([truth.get(word, 0.0) for word in words])
    best = np.sort(guess + true)[::-1][: min(N_ROWS, len(truth)) if alone else N_ROWS]
    n_possible, *row = Continuations(world, *(None, None) if alone else reader).row(prefix)
    assert n_possible == len(truth)
    np.testing.assert_allclose(np.add(row[1::3], row[2::3]) / WHOLE, best, atol=2.1e-5)
    for word, model_part, true_part in zip(row[0::3], row[1::3], row[2::3], strict=True):
        place = words.index(None if word == END else word)
        assert abs(model_part / WHOLE - guess[place]) < 1.1e-5
        assert abs(true_part / WHOLE - true[place]) < 1.1e-5
        assert (true_part > 0) == (true[place] > 0)


def test_what_is_said_can_be_checked_by_hand(describe, world):
    explorer = course.widgets.next_word(world=world, n_stored=1)
    explorer.pointed = 1
    assert describe(explorer)[0] == (
        "After “Bonjour les” 2 words may follow in the world. "
        "The world expects “amis” 50.0%, “lecteurs” 50.0%. Chosen: “lecteurs”, world 50.0%."
    )


def test_what_is_stored_is_what_python_would_answer(node, reader, world):
    made = [
        course.widgets.next_word(world=world, n_stored=40),
        course.widgets.next_word(*reader, ["Bonjour les", "Le roman est"], world=world, n_stored=12),
    ]
    expression = (
        "(() => { const stored = get('stored'), ways = stored.nodes.map(([from, word], i, all) => { "
        "const way = []; for (let n = all[i]; n[0] >= 0; n = all[n[0]]) way.unshift(stored.words[n[1]]); "
        "return way; }); return ways.map((way) => [way, js.storedRow(stored, way)]); })()"
    )
    for explorer, nodes in zip(made, node("next_word", expression, *made), strict=True):
        assert len(nodes) == len({tuple(way) for way, _ in nodes}) == (40 if explorer is made[0] else 12)
        for way, row in nodes:
            explorer.words = way
            assert explorer.answer == {"words": way, "row": row}
    assert {("Bonjour",), ("Bonjour", "les"), ("Le", "roman", "est")} <= {tuple(way) for way, _ in nodes}


def test_the_page_reads_and_writes_french_as_the_package_does(node, world):
    texts = [one.text for one in world.reviews(30, seed=2)] + ["Quel chef-d’œuvre !  J'adore", "", "a3, 7é"]
    known = [word for word in world.vocabulary if "'" in word[:-1]]
    expected = [split_up(text, known) for text in texts]
    calls = f"[{json.dumps(texts)}.map((text) => js.split(text, {json.dumps(known)})), "
    calls += f"{json.dumps(expected)}.map((words) => js.written(words, [',', '.']))]"
    ((words, written),) = node("next_word", calls)
    assert words == expected and written == list(map(write_out, words))


def test_without_a_kernel_the_page_says_how_far_it_goes(node, explorer):
    explorer.words = ["Bonjour", "les"]
    calls = ["Bonjour les amis", "Bonjour le monde", "Bonjour les amis , le roman noir", "bonjour"]
    (found,) = node(
        "next_word",
        f"{json.dumps([one.split() for one in calls])}.map((words) => js.storedRow(get('stored'), words) "
        "? 'stored' : js.mistake(get('stored'), words))",
        explorer,
    )
    assert found[0] == "stored"
    assert found[1][0] == ["Bonjour"] and "never says “le” after “Bonjour”" in found[1][1]
    assert found[2][0][:3] == ["Bonjour", "les", "amis"] and "is not among the stored answers" in found[2][1]
    assert found[3][0] == []


def test_python_answers_what_the_page_asks(explorer, describe):
    explorer.pointed = 1
    explorer.asked = {"n": 7, "words": ["Bonjour", "les", "lecteurs", ","]}
    assert explorer.words == ["Bonjour", "les", "lecteurs", ","]
    assert (explorer.problem, explorer.pong, explorer.pointed) == ("", 7, 0)
    explorer.asked = {"n": 8, "words": ["Bonjour", "le", "monde"]}
    assert explorer.words == ["Bonjour"] and explorer.pong == 8
    assert explorer.problem.startswith("The language knows “le”, but not after “Bonjour”.")
    assert describe(explorer)[0].startswith(explorer.problem)
    explorer.asked = {"n": 9, "words": ["bonjour"]}
    assert explorer.words == [] and "Did you mean “Bonjour”?" in explorer.problem
    explorer.asked = {"n": 10, "words": ["Le", "ordinateur"]}
    assert explorer.problem.startswith("The language does not know the word “ordinateur”.")
    explorer.words = ["Bonjour"]
    assert explorer.problem == ""
    explorer.ping = 3
    assert explorer.pong == 3


def test_a_beginning_too_long_for_the_model_is_refused_with_the_reason(reader, world):
    model, tokenizer = reader
    explorer = course.widgets.next_word(model, tokenizer, world=world, n_stored=1)
    review = max((one.words for one in world.reviews(400, seed=0)), key=len)
    assert len(tokenizer.encode(" ".join(review))) > model.config.max_len
    explorer.asked = {"n": 1, "words": list(review)}
    assert explorer.words == ["Bonjour", "les"] and "The model cannot read so much" in explorer.problem
