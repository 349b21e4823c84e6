"""Merges worked by hand, and equal to those of sentencepiece, down to the last tie."""

from hypothesis import given
from hypothesis import strategies as st

from tinytx.bpe import Merge, learn_merges, segment
from tinytx.tokenizer import SPACE_MARK, SPECIAL_PIECES, Tokenizer

# Six times "le", three times "les", twice "elle", once "belle": 6·3 + 3·4 + 2·5 + 6 = 46 with their marks.
LE = ["le le le le le le", "les les les", "elle belle elle"]
texts_in = st.lists(
    st.lists(st.text("abé", min_size=1, max_size=7), min_size=1, max_size=6).map(" ".join),
    min_size=1,
    max_size=5,
)


def test_merges_worked_by_hand():
    mark = SPACE_MARK
    assert learn_merges(LE, 6) == [
        Merge("l", "e", 12),
        Merge(mark, "le", 9),
        Merge("e", "l", 3),
        Merge("el", "le", 3),
        Merge(mark + "le", "s", 3),
        Merge(mark, "elle", 2),
    ]


@given(texts=texts_in, n_merges=st.integers(0, 12))
def test_merges_are_those_of_sentencepiece(texts, n_merges):
    merges = learn_merges(texts, n_merges)
    n_letters, first = len(set("".join(texts)) - {" "}) + 1, len(SPECIAL_PIECES)
    tokenizer = Tokenizer.train(texts, vocab_size=first + n_letters + len(merges), model_type="bpe")
    assert [merge.piece for merge in merges] == [tokenizer.piece(first + i) for i in range(len(merges))]
    for text in texts:
        assert segment(text, merges) == tokenizer.pieces(text)


@given(text=st.text("abé "), training=texts_in)
def test_pieces_spell_the_words(text, training):
    spelled = "".join(segment(text, learn_merges(training, 9)))
    assert spelled == "".join(SPACE_MARK + word for word in text.split(" ") if word)


def test_merging_ends_when_every_word_is_one_piece():
    merges = learn_merges(["le les", "le"], 100)
    assert [merge.piece for merge in merges][-1] == SPACE_MARK + "les"
    assert learn_merges([], 5) == learn_merges(["le"], 0) == []
