"""What goes in comes out, pieces keep to their words, and bad settings are named."""

import itertools
import pickle
import unicodedata
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tinytx.tokenizer import (
    MODEL_TYPES,
    SPACE_MARK,
    SPECIAL_PIECES,
    Tokenizer,
    UnknownTokensWarning,
    canonical,
    plain,
    warn_of_unknown,
)

TEXTS = [
    "le livre est beau et la fin du livre est belle",
    "la table de la voisine est grande, la petite table aussi",
    "le chat mange la souris  ici, le chien mange le chat",
    "j'aime bien l'auteur et j'aime l'histoire de l'auteur",
    "un texte avec <mask> et <pad> et <unk> dedans",
    "des signes \u2581 \u2585 \t \n \r \x00 \x01 \x05 \x07 \x1b \x1f dedans",
] * 3
WORDS = sorted({word for text in TEXTS for word in text.split(" ") if word})
RESERVED = "\u2581\u2585\t\x00\n\r\x1f\x01\x02\x03\x04\x05\x06\x07\x1b"
known_text = st.text(sorted(set("".join(TEXTS)))) | st.text(RESERVED + " a")
words = st.lists(st.sampled_from(WORDS), max_size=6)
UNIGRAM = Tokenizer.train(TEXTS[:4] * 3, vocab_size=48)


@pytest.fixture(scope="module", params=MODEL_TYPES)
def tokenizer(request):
    return Tokenizer.train(TEXTS, vocab_size=66, model_type=request.param)


@pytest.fixture(scope="module", params=MODEL_TYPES)
def byte_tokenizer(request):
    return Tokenizer.train(TEXTS, vocab_size=320, model_type=request.param, byte_fallback=True)


@given(text=known_text)
def test_text_of_known_characters_comes_back_unchanged(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.unk_id not in ids
    assert tokenizer.decode(ids) == text


@given(text=st.text() | known_text | st.text("a \u2581\u2585"))
@example("")
@example(" ")
@example("  le  chat   ")
@example("\u2581")
@example("\u2581le\u2581\u2581chat \u2581")
@example("\ufeff\u00a0\u2028\u2029\u200b\u200d\x7f\x85\r\n")
@example("".join(map(chr, range(0x20))))
@example("\ufdd0\uffff\U0010ffff")
def test_any_text_comes_back_unchanged_with_byte_fallback(byte_tokenizer, text):
    ids = byte_tokenizer.encode(text)
    assert byte_tokenizer.unk_id not in ids
    assert byte_tokenizer.decode(ids) == text


@given(text=st.text(alphabet="<>pademsk \u2581") | st.lists(st.sampled_from(SPECIAL_PIECES)).map("".join))
def test_raw_text_never_gives_a_special_id(byte_tokenizer, text):
    assert all(token_id >= len(SPECIAL_PIECES) for token_id in byte_tokenizer.encode(text))


def test_no_piece_crosses_a_space(tokenizer):
    for token_id in range(len(SPECIAL_PIECES), tokenizer.vocab_size):
        assert SPACE_MARK not in tokenizer.piece(token_id)[1:]


@given(chosen=words)
def test_words_are_encoded_alike_wherever_they_stand(tokenizer, chosen):
    expected = [token_id for word in chosen for token_id in tokenizer.word_pieces(word)]
    assert tokenizer.encode(" ".join(chosen)) == expected


def test_apostrophes_join_their_letters_only_when_scripts_may_mix():
    texts = ["l' auteur l' histoire l' auteur"] * 20
    apart = Tokenizer.train(texts, vocab_size=26, model_type="bpe")
    joined = Tokenizer.train(texts, vocab_size=26, model_type="bpe", split_by_script=False)
    assert len(apart.word_pieces("l'")) == 2
    assert joined.pieces("l'") == ["\u2581l'"]


def test_special_pieces_are_fixed_silent_and_an_unknown_character_stays_visible(tokenizer):
    assert tuple(map(tokenizer.piece, range(7))) == SPECIAL_PIECES
    names = ("pad", "unk", "bos", "eos", "mask", "cls", "sep")
    assert [getattr(tokenizer, f"{name}_id") for name in names] == list(range(7))
    ids = tokenizer.encode("le chat  mange")
    framed = [tokenizer.bos_id, *ids[:2], tokenizer.mask_id, *ids[2:], tokenizer.eos_id, tokenizer.pad_id]
    assert tokenizer.decode(framed) == "le chat  mange" and tokenizer.decode([]) == ""
    assert "".join(tokenizer.pieces("le chat  mange")) == "\u2581le\u2581chat\u2581\u2581mange"
    assert tokenizer.decode(tokenizer.encode("le \u0436")) == "le \u2047"
    assert tokenizer.encode_batch([*TEXTS, ""]) == [tokenizer.encode(text) for text in [*TEXTS, ""]]


def test_bytes_that_are_no_text_decode_to_the_replacement_character(byte_tokenizer):
    first_byte_of_two = byte_tokenizer.encode("\u0436")[1]
    assert byte_tokenizer.decode([first_byte_of_two]) == "\ufffd"


def test_a_tokenizer_trained_again_saved_or_pickled_is_the_same(tokenizer, tmp_path, request):
    model_type = request.node.callspec.params["tokenizer"]
    trained = Tokenizer.train(TEXTS, vocab_size=66, model_type=model_type)
    path = tmp_path / "tokenizer.model"
    tokenizer.save(path)
    unpickled = pickle.loads(pickle.dumps(tokenizer))
    for copy in (Tokenizer.load(path), Tokenizer.from_bytes(tokenizer.to_bytes()), unpickled, trained):
        assert copy.to_bytes() == tokenizer.to_bytes()
        assert copy.encode(TEXTS[0]) == tokenizer.encode(TEXTS[0])
    assert [entry.name for entry in tmp_path.iterdir()] == ["tokenizer.model"]


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_the_limits_named_for_the_vocabulary_are_the_real_ones(model_type):
    with pytest.raises(ValueError, match="vocab_size must be at least") as too_small:
        Tokenizer.train(TEXTS, vocab_size=20, model_type=model_type)
    with pytest.raises(ValueError, match="vocab_size must be at most") as too_large:
        Tokenizer.train(TEXTS, vocab_size=5000, model_type=model_type)
    smallest = int(str(too_small.value).split()[5])
    largest = int(str(too_large.value).split()[5].rstrip(","))
    for vocab_size in (smallest, largest):
        made = Tokenizer.train(TEXTS, vocab_size=vocab_size, model_type=model_type)
        assert made.vocab_size == vocab_size
    for vocab_size in (smallest - 1, largest + 1):
        with pytest.raises(ValueError, match="vocab_size"):
            Tokenizer.train(TEXTS, vocab_size=vocab_size, model_type=model_type)


def test_a_long_line_is_learned_from_too():
    long_line = "zigzag " * 3000
    tokenizer = Tokenizer.train([long_line, "le chat"], vocab_size=25, model_type="bpe")
    assert tokenizer.pieces("zigzag") == ["\u2581zigzag"]


def test_texts_are_thinned_evenly_from_the_first_to_the_last():
    texts = ["premier mot"] * 500 + ["dernier mot"] * 500
    tokenizer = Tokenizer.train(texts, vocab_size=32, model_type="bpe", max_chars=1_100)
    assert tokenizer.pieces("premier dernier") == ["▁premier", "▁dernier"]


def test_thinned_texts_still_give_every_character():
    texts = [f"mot {chr(0x4E00 + i)}" for i in range(50)]
    tokenizer = Tokenizer.train(texts, vocab_size=62, model_type="bpe", max_chars=60)
    assert [tokenizer.decode(tokenizer.encode(text)) for text in texts] == texts


@given(before=st.text(), code=st.integers(0xD800, 0xDFFF), after=st.text())
def test_text_that_is_no_unicode_is_refused(byte_tokenizer, before, code, after):
    for read in (byte_tokenizer.encode, byte_tokenizer.pieces):
        with pytest.raises(ValueError, match=f"lone surrogate at {len(before)}$"):
            read(before + chr(code) + after)


@given(word=st.text("abcehilmnstu", min_size=1, max_size=8))
def test_unigram_takes_the_cut_with_the_largest_sum_of_scores(word):
    ids = {UNIGRAM.piece(i): i for i in range(len(SPECIAL_PIECES), UNIGRAM.vocab_size)}
    marked, sums, score = SPACE_MARK + word, [], UNIGRAM._processor.get_score
    for cuts in itertools.product((False, True), repeat=len(word)):
        ends = [i for i, cut in enumerate(cuts, start=1) if cut]
        pieces = [marked[a:b] for a, b in itertools.pairwise([0, *ends, len(marked)])]
        if all(piece in ids for piece in pieces):
            sums.append(sum(score(ids[piece]) for piece in pieces))
    found = sum(map(score, UNIGRAM.encode(word)))
    assert found == pytest.approx(max(sums), abs=1e-4)


def test_unigram_keeps_the_commonest_words_whole_though_a_space_follows_them_each_time():
    texts = [
        f"le film est {end} !" for end in ("bon", "bref", "lent", "long", "neuf", "fin") for _ in range(5)
    ]
    tokenizer = Tokenizer.train(texts, vocab_size=28)
    assert tokenizer.pieces("le film est") == [SPACE_MARK + word for word in ("le", "film", "est")]


def test_files_that_are_no_tokenizer_are_refused(tmp_path):
    with pytest.raises(ValueError, match="tokenizer file must exist"):
        Tokenizer.load(tmp_path / "missing.model")
    for content in (b"", b"not a model"):
        (tmp_path / "bad.model").write_bytes(content)
        with pytest.raises(ValueError, match="bad.model: model must be"):
            Tokenizer.load(tmp_path / "bad.model")


def test_typography_is_made_plain_and_stays_so():
    for apostrophe in ("\u2019", "\u02bc"):
        text = f"\u00abL{apostrophe}eau\u00a0?\u202f!\u2009\u00ad\u200b"
        assert plain(text) == "\u00abL'eau ? !" == plain(plain(text))


def test_contractions_are_what_they_stand_for():
    short, long = (
        "I can't swim, it won't do, we'll see he's in",
        "I cannot swim, it will not do, we will see he is in",
    )
    assert canonical(short) == canonical(long)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda _: Tokenizer.train(TEXTS, vocab_size=66, max_chars=0), ValueError, "max_chars .* 0"),
        (lambda _: Tokenizer.train(TEXTS, vocab_size=66, model_type="word"), ValueError, "bpe, got 'word'"),
        (lambda _: Tokenizer.train([], vocab_size=100), ValueError, "at least one character"),
        (lambda _: Tokenizer.train(["", "  "], vocab_size=100), ValueError, "at least one character"),
        (lambda _: Tokenizer.train(["le \udc80"], vocab_size=66), ValueError, "surrogate at 3"),
        (lambda _: Tokenizer.train("le chat", vocab_size=20), TypeError, "one str"),
        (lambda it: it.encode_batch("le chat"), TypeError, "one str"),
        (lambda it: it.word_pieces(""), ValueError, "word .* ''"),
        (lambda it: it.word_pieces("le chat"), ValueError, "word .* 'le chat'"),
        (lambda it: it.decode([-1]), ValueError, "from 0 to 65, got -1"),
        (lambda it: it.piece(66), ValueError, "token_id must be from 0 to 65, got 66"),
    ],
)
def test_bad_arguments_are_named(tokenizer, call, error, words):
    with pytest.raises(error, match=words):
        call(tokenizer)


@pytest.mark.parametrize(("learned", "read"), [("NFC", "NFD"), ("NFD", "NFC")])
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_a_word_is_read_in_the_form_that_is_known(model_type, learned, read):
    """French letters, Korean syllables; words that are known as they are stay so."""
    texts = [unicodedata.normalize(learned, text) for text in ("un été négatif", "한국 x\u0301")]
    smallest = len(set("".join(texts))) + len(SPECIAL_PIECES)
    tokenizer = Tokenizer.train(texts * 9, vocab_size=smallest, model_type=model_type)
    for text in texts:
        other = unicodedata.normalize(read, text)
        assert tokenizer.encode(other) == tokenizer.encode(text)
        assert tokenizer.decode(tokenizer.encode(f"{other}  漢 x\u0301")) == f"{text}  \u2047 x\u0301"
    assert tokenizer.encode("ж漢") == tokenizer.encode("漢")  # unknown in every form


def test_many_unknown_tokens_are_said_with_their_share_and_few_are_not(tokenizer):
    with pytest.warns(UnknownTokensWarning, match="50.0 % of the tokens of zh.csv are unknown"):
        warn_of_unknown(tokenizer, ["漢字"] * 3_000, "zh.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for texts in ([], [""], ["le chat mange la souris"] * 99 + ["漢字"]):
            warn_of_unknown(tokenizer, texts, "these texts")


def test_the_words_that_a_vocabulary_is_learned_from_have_a_bound(monkeypatch):
    given = []

    def stop(sentence_iterator, **settings):
        given.extend(sentence_iterator)
        raise RuntimeError("enough")

    monkeypatch.setattr("sentencepiece.SentencePieceTrainer.train", stop)
    with pytest.raises(ValueError, match="enough"):
        Tokenizer.train(["ab" * 450_001, "le chat"], vocab_size=20)
    assert given[:452] == ["ab", "le chat", *["ab" * 500] * 450] and len(given) < 460  # common words follow
    given.clear()
    with pytest.raises(ValueError, match="enough"):
        Tokenizer.train(["ab" * 450_000, "ba" * 450_000], vocab_size=20)
    assert given[:452] == ["", "", *["ab" * 500] * 225, *["ba" * 500] * 225] and len(given) < 460
