"""Texts in, texts out: order, empty lines, lines too long, typography, errors of the stream."""

import pytest
import torch

from tests.tinytx.against_torch import shaken
from tinytx.beam import Hypothesis, Search
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.inference import in_blocks
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx.translate import _joined, translate, translate_ids

WORDS = ["le", "la", "un", "une", "chat", "chien", "mange", "voit", "belle", "petit", "grand"]


@pytest.fixture(scope="module")
def tokenizer():
    texts = [f"{a} {b}'{a} {b}. {a} ? {a} ! {b}" for a in WORDS for b in WORDS]
    return Tokenizer.train(texts, vocab_size=60, model_type="bpe")


@pytest.fixture(scope="module")
def model(tokenizer):
    torch.manual_seed(3)
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=12, n_heads=3, n_layers=1, d_ff=20, max_len=16
    )
    return shaken(Translator(config).double())


def test_texts_keep_their_order_and_are_what_single_texts_give(model, tokenizer):
    texts = ["le chat mange", "", "un", "la belle chat voit un chien", "  ", "petit chien"]
    reported = []
    found = translate(model, tokenizer, texts, search=Search(beam_size=2), report=reported.append)
    assert [one.source for one in found] == texts and reported == []
    assert [one.n_parts for one in found] == [1, 0, 1, 1, 0, 1]
    assert found[1].text == found[4].text == "" and found[0].text
    for text, one in zip(texts, found, strict=True):
        (alone,) = translate(model, tokenizer, [text], search=Search(beam_size=2))
        assert (alone.text, alone.token_ids) == (one.text, one.token_ids)


def test_a_text_too_long_is_cut_at_sentence_ends_then_between_words_then_within_one(model, tokenizer):
    sentences = ["le chat mange un chien.", "la belle voit un chien ?", "un petit chat !"]
    words, word, reported = " ".join(["chat"] * 40), "chat" * 40, []
    texts = ["un", " ".join(sentences), words, word]
    found = translate(model, tokenizer, texts, report=reported.append)
    parts = translate(model, tokenizer, sentences)
    assert found[1].n_parts == 3 and found[1].text == " ".join(part.text for part in parts)
    assert found[1].token_ids == tuple(i for part in parts for i in part.token_ids)
    assert found[2].n_parts >= 3 and found[3].n_parts >= 3 and all(one.token_ids for one in found)
    assert [line.split(":")[0] for line in reported] == ["line 2", "line 3", "line 4"]
    assert "3 parts" in reported[0]


def test_typography_makes_no_difference(model, tokenizer):
    plain, other = translate(model, tokenizer, ["le chat'la ?", "le\u00a0chat\u2019la\u202f?"])
    assert plain.token_ids == other.token_ids and other.source.endswith("\u202f?")


def test_lines_come_block_by_block_and_those_before_an_error_first(model, tokenizer):
    lines = ["un", "", " ".join(["chat"] * 30), "le chien", " ".join(["la"] * 30)]

    def broken():
        yield from lines
        raise OSError("line 6 is broken")

    def answer(block, first_line):
        return translate(model, tokenizer, block, report=reported.append, first_line=first_line)

    reported, found = [], []
    with pytest.raises(OSError, match="line 6 is broken"):
        found.extend(in_blocks(answer, lines, 2))
        assert [line.split(":")[0] for line in reported] == ["line 3", "line 5"]
        for one in in_blocks(answer, broken(), 256):
            found.append(one)
    assert [one.source for one in found] == lines * 2
    assert [one.text for one in found[:5]] == [one.text for one in found[5:]]


def test_other_models_and_tokenizers_one_str_and_a_model_without_room_raise(model, tokenizer):
    with pytest.raises(ValueError, match="got a LanguageModel"):
        translate(LanguageModel(model.config), tokenizer, ["un"])
    with pytest.raises(ValueError, match="60 tokens and vocab_size=61"):
        translate(Translator(model.config.replace(vocab_size=61)), tokenizer, ["un"])
    with pytest.raises(TypeError, match="got one str"):
        translate(model, tokenizer, "un deux")
    with pytest.raises(ValueError, match="max_len must be at least 2 to translate, got 1"):
        translate(Translator(model.config.replace(max_len=1)), tokenizer, ["un deux"])
    assert translate(model, tokenizer, iter(["un"])) == translate(model, tokenizer, ["un"])


def test_texts_are_translated_by_the_search_that_was_asked_for(model, tokenizer):
    search, texts = Search(beam_size=4, length_penalty=0.0), [f"{a} {b}" for a in WORDS for b in WORDS]
    ids = tokenizer.encode_batch(texts)
    found = [one.token_ids for one in translate(model, tokenizer, texts, search=search)]
    assert found == [one.token_ids for one in translate_ids(model, ids, search=search)]
    assert found != [one.token_ids for one in translate_ids(model, ids)]


def test_a_text_is_finished_only_if_each_of_its_parts_is(tokenizer):
    done, cut = Hypothesis((9, 3), -1.0, True), Hypothesis((9, 9), -2.0, False)
    finished = [
        _joined(tokenizer, "le chat", parts).finished for parts in ([done, done], [done, cut], [cut, done])
    ]
    assert finished == [True, False, False]
