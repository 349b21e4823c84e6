"""The tokenizer explorer: how its JavaScript cuts a text, compared with the package."""

import pytest

import tinytx_course as course
from tinytx.bpe import learn_merges, segment
from tinytx.tokenizer import SPECIAL_PIECES

TEXTS = [
    "",
    "La fin est inoubliable .",
    "  two  spaces ",
    "▁ aaaaa",
    "Quel prix : 20 € 👍🏽 !",
    "elle belle sel",
]
LE = ["le le le le le le", "les les les", "elle belle elle"]


@pytest.fixture(scope="module")
def corpus(world):
    return [" ".join(review.words) for review in world.reviews(60, seed=1)]


@pytest.fixture(scope="module")
def merges(corpus):
    return learn_merges(corpus, 400)


@pytest.fixture(scope="module")
def explorer(corpus):
    return course.widgets.tokenizer(corpus, "Le livre")


def test_every_text_is_cut_as_the_package_cuts_it(node, explorer, corpus, merges):
    texts = [*TEXTS, " ".join(corpus[3].split()[:20])]
    states = [explorer.state() | {"text": text} for text in texts]
    stages = (0, 1, 37, len(merges))
    answers = node("tokenizer", f"{list(stages)}.map((n) => js.encode(get, n))", *states)
    vocabulary = [*SPECIAL_PIECES, *explorer.characters, *(merge.piece for merge in merges)]
    for text, cuts in zip(texts, answers, strict=True):
        for n, tokens in zip(stages, cuts, strict=True):
            assert [token for token, _ in tokens] == segment(text, merges[:n])
            for token, token_id in tokens:
                assert vocabulary[token_id] == (token if token in vocabulary else "<unk>")


def test_the_curve_counts_the_tokens_after_each_number_of_merges(node, explorer, merges):
    states = [explorer.state() | {"text": text} for text in TEXTS]
    for text, counts in zip(TEXTS, node("tokenizer", "js.countsOf(get)", *states), strict=True):
        assert counts == [len(segment(text, merges[:n])) for n in range(len(merges) + 1)]


def test_a_word_is_one_token_or_unknown(node, explorer, corpus):
    text = corpus[0].split()[0] + " xyz"
    ((known, unknown),) = node("tokenizer", "js.encodeWords(get)", explorer.state() | {"text": text})
    assert explorer.words[known[1] - len(SPECIAL_PIECES)] == known[0] == text.split()[0]
    assert unknown == ["xyz", SPECIAL_PIECES.index("<unk>")]


def test_what_is_said_can_be_checked_by_hand(node):
    le = course.widgets.tokenizer(LE, ["belle sel", "bé", ""])
    states = [le.state() | {"text": text, "n_merges": 4} for text in le.samples]
    states.append(le.state() | {"text": "le", "n_merges": 0})
    begun, odd, empty, start = node("tokenizer", "js.describe(get)", *states)
    assert begun == (
        "Merge 4: “el” + “le” → “elle”, adjacent 3 times in the corpus.\n"
        "2 words. characters: 10 tokens, 5.0 a word; vocabulary 12. BPE, 4 merges: 6 tokens, 3.0 a word; "
        "vocabulary 16. words: 2 tokens, 1.0 a word, 1 unknown; vocabulary 11. "
        "Tokens of BPE: ▁ | b | elle | ▁ | s | el"
    )
    assert "The corpus has no “é”: BPE" in odd and empty == "No text, no tokens. Type something."
    assert "BPE, 0 merges: 3 tokens" in start and "every character is a token" in start


def test_it_begins_after_a_merge_that_changes_the_first_sample(corpus, merges):
    explorer = course.widgets.tokenizer(corpus, corpus[5])
    before, after = (len(segment(corpus[5], merges[: explorer.n_merges - one])) for one in (1, 0))
    assert explorer.n_merges >= 60 and after < before
    assert course.widgets.tokenizer(corpus, "").n_merges == 60
