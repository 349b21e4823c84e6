"""The alignment explorer: its weights compared with the model's, its shares with lesson 11 and by hand."""

import numpy as np
import pytest

import tinytx_course as course
from tests.course.widgets.conftest import changed
from tinytx_course.labs.lesson_11 import cross_attention, words_of_tokens
from tinytx_course.widgets.alignment import word_weights
from tinyworld.reviews import write_out


@pytest.fixture(scope="module")
def pairs(world):
    return world.sentence_pairs(3, seed=5)


@pytest.fixture(scope="module")
def model(translator):
    for block in translator.decoder.blocks:  # sharper than at the start
        block.cross_attn.q_proj.weight.data.mul_(9)
    return translator


def test_weights_of_words_are_sums_over_source_tokens_and_means_over_target_tokens(model, tokenizer, pairs):
    for pair in pairs:
        texts = write_out(pair.english, "en"), write_out(pair.french, "fr")
        to_end = cross_attention(model, tokenizer, *texts)[..., -1].mean(dim=(0, 1)).detach().cpu().numpy()
        words = word_weights(model, tokenizer, pair)
        assert words.shape == (2, 4, len(pair.french), len(pair.english) + 1)
        np.testing.assert_allclose(words.sum(-1), 1, rtol=1e-5)
        owners = words_of_tokens(tokenizer, pair.french, "fr")
        share = [1 / len(own) if 0 in own else 0 for own in owners]  # of each token, in the first target word
        expected = np.average(to_end[: len(owners)], weights=share)
        np.testing.assert_allclose(words.mean(axis=(0, 1))[0, -1], expected, rtol=1e-4)


def test_every_sentence_layer_and_head_gets_its_own_weights(node, model, tokenizer, pairs):
    explorer = course.widgets.alignment(model, tokenizer, pairs)
    states = [explorer.state() | {"pair": i, "layer": 1, "head": head} for i in range(3) for head in (2, 4)]
    for state, shown in zip(states, node("alignment", "js.sentenceOf(get)", *states), strict=True):
        expected = word_weights(model, tokenizer, pairs[state["pair"]])[1]
        expected = expected[2] if state["head"] == 2 else expected.mean(axis=0)
        np.testing.assert_allclose(shown["weights"], expected.ravel(), rtol=1e-5, atol=1e-6)
        assert [tuple(link) for link in shown["links"]] == list(pairs[state["pair"]].alignment)


def test_the_head_that_does_best_in_most_sentences_is_counted(node, describe, model, tokenizer, pairs):
    explorer = changed(course.widgets.alignment(model, tokenizer, pairs), head=4)
    own = "js.sharesOf(get).map((row) => row.map(({ mass }) => mass))"
    expression = f"[js.everySentence(get), js.describe(get), {own}]"
    ((found, second, shares),) = node("alignment", expression, explorer)
    first = np.reshape(found["shares"][0], (2, 4))  # a column for each head, in `shares` also for their mean
    np.testing.assert_allclose(shares, np.column_stack([first, first.mean(axis=1)]), rtol=1e-4)
    tops = []
    for pair, row in zip(pairs, found["shares"], strict=True):
        weights, known = word_weights(model, tokenizer, pair), {t for _, t in pair.alignment}
        expected = sum(weights[:, :, t, s] for s, t in pair.alignment) / len(known)
        np.testing.assert_allclose(row, expected.ravel(), rtol=1e-4)
        tops.append(int(expected.argmax()))
    assert found["tops"] == tops and found["wins"] == tops.count(found["best"])
    assert found["wins"] == max(map(tops.count, tops))
    assert second.endswith(f"does best in {found['wins']} of 3 sentences.")


def test_what_is_said_follows_the_chosen_word(describe, model, tokenizer, pairs):
    explorer = changed(course.widgets.alignment(model, tokenizer, pairs), head=4)
    first, second = describe(explorer)[0], describe(changed(explorer, word=1, head=1))[0]
    for text, word, where in ((first, 0, "mean of all heads"), (second, 1, "head 1")):
        assert text.startswith(f"“{pairs[0].french[word]}” attends most") and f"\nLayer 0, {where}: " in text


def test_what_does_not_fit_is_refused(model, tokenizer, pairs):
    with pytest.raises(ValueError, match="1 to 8, got 0"):
        course.widgets.alignment(model, tokenizer, [])
    with pytest.raises(ValueError, match=r"head .* 0\.\.4, got 5"):
        changed(course.widgets.alignment(model, tokenizer, pairs), head=5)
