"""Attention against the grammar's alignment: which piece writes which word, and masses by hand."""

import pytest
import torch
from torch.testing import assert_close

from tinytx.model.config import TransformerConfig
from tinytx.model.encoder_decoder import Translator
from tinytx.text.tokenizer import Tokenizer
from tinytx.world.reviews import write_out
from tinytx.world.sampling import SentencePair
from tinytx.world.world import World
from tinytx_course.labs.lesson_11 import alignment_mass, cross_attention, true_alignment, words_of_pieces


@pytest.fixture(scope="module")
def pairs():
    return World().sentence_pairs(60, seed=4)


@pytest.fixture(scope="module")
def tokenizer(pairs):
    texts = [write_out(p.english, "en") for p in pairs] + [write_out(p.french, "fr") for p in pairs]
    return Tokenizer.train(texts, vocab_size=250, model_type="bpe")


def test_pieces_belong_to_the_words_that_they_write(pairs, tokenizer):
    for pair in pairs:
        for words, language in ((pair.english, "en"), (pair.french, "fr")):
            owners = words_of_pieces(tokenizer, words, language)
            written = [""] * len(words)
            for piece, own in zip(tokenizer.pieces(write_out(words, language)), owners, strict=True):
                for word in own:
                    written[word] += piece.replace("\u2581", "")
            assert all(word in found for word, found in zip(words, written, strict=True))
            assert [min(own) for own in owners] == sorted(min(own) for own in owners)
            assert set().union(*owners) == set(range(len(words)))


def test_the_true_alignment_by_hand():
    pair = SentencePair(("The", "cat", "."), ("L'", "eau", "!"), ((0, 0), (1, 1), (2, 2)))
    tokenizer = Tokenizer.train(["The cat.", "L'eau !"], vocab_size=22, model_type="bpe")
    sources = [min(own) for own in words_of_pieces(tokenizer, pair.english, "en")]
    targets = [min(own) for own in words_of_pieces(tokenizer, pair.french, "fr")]
    table = true_alignment(tokenizer, pair)
    assert table.shape == (len(targets) + 1, len(sources) + 1)
    assert not table[-1].any() and not table[:, -1].any()
    expected = torch.tensor([[source == target for source in sources] for target in targets])
    assert torch.equal(table[:-1, :-1], expected)


def test_attention_that_is_spread_evenly_has_the_uniform_mass(pairs, tokenizer):
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=12, n_heads=3, n_layers=2, d_ff=8, max_len=64
    )
    model = Translator(config).double().eval()
    english, french = write_out(pairs[0].english, "en"), write_out(pairs[0].french, "fr")
    weights = cross_attention(model, tokenizer, english, french)
    truth = true_alignment(tokenizer, pairs[0])
    assert weights.shape == (2, 3, *truth.shape)
    assert_close(weights.sum(-1), torch.ones(2, 3, len(truth), dtype=torch.float64))
    by_hand = (weights * truth).sum(-1)[..., truth.any(1)].mean(-1)
    alone = alignment_mass(model, tokenizer, pairs[:1])
    assert_close(torch.from_numpy(alone.mass), by_hand)
    with torch.no_grad():
        for block in model.decoder.blocks:
            block.cross_attn.q_proj.weight.zero_()
            block.cross_attn.q_proj.bias.zero_()
    even = alignment_mass(model, tokenizer, pairs)
    assert even.mass == pytest.approx(even.uniform) and even.n_pieces > 100
    with pytest.raises(ValueError, match="must hold an aligned word, got 0 pairs"):
        alignment_mass(model, tokenizer, [])
