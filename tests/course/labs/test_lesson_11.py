"""Lesson 11: torch's twin, stored results, attention against the true alignment."""

import pytest
import torch
from torch.testing import assert_close

from tests.tinytx.against_torch import shaken
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.tokenizer import Tokenizer
from tinytx_course.labs.lesson_11 import (
    TorchTranslator,
    alignment_mass,
    cross_attention,
    true_alignment,
    word_for_word,
    words_of_tokens,
)
from tinyworld.reviews import write_out
from tinyworld.sampling import SentencePair

CONFIG = TransformerConfig(
    vocab_size=11, d_model=6, n_heads=3, n_layers=2, d_ff=5, max_len=13, tie_embeddings=True
)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("norm", ["first", "last"])
def test_the_twin_gives_what_ours_gives(norm):
    ours = shaken(Translator(CONFIG.replace(norm=norm)).double())
    src_ids, tgt_ids = torch.randint(1, 11, (3, 7)), torch.randint(1, 11, (3, 5))
    real = torch.arange(7) < torch.tensor([[7], [4], [1]])
    theirs = TorchTranslator(ours)
    assert_close(theirs(src_ids, tgt_ids, real), ours(src_ids, tgt_ids, real), rtol=0, atol=1e-9)
    with torch.no_grad():
        ours.encoder.token_embed.weight.mul_(2)
    assert not torch.equal(theirs.matrix, ours.head.weight)  # a copy: the twin stays as it was


@pytest.mark.parametrize("changes", [{"tie_embeddings": False}, {"positions": "rotary"}])
def test_what_torch_does_not_have_raises(changes):
    with pytest.raises(ValueError, match="got tie_embeddings="):
        TorchTranslator(Translator(CONFIG.replace(**changes)))


@pytest.fixture(scope="module")
def world_pairs(world):
    return world.sentence_pairs(60, seed=4)


@pytest.fixture(scope="module")
def tokenizer(world_pairs):
    sides = [(p.english, "en") for p in world_pairs] + [(p.french, "fr") for p in world_pairs]
    return Tokenizer.train([write_out(*side) for side in sides], vocab_size=250, model_type="bpe")


def test_word_for_word_takes_the_commonest_translation_and_leaves_an_unknown_word():
    examples = [SentencePair(("the",), (word,), ((0, 0),)) for word in ("le", "la", "la")]
    assert word_for_word([SentencePair(("the", "cat"), (), ())], examples) == ["la cat"]


def test_tokens_belong_to_the_words_that_they_are_part_of(world_pairs, tokenizer):
    for pair in world_pairs:
        for words, language in ((pair.english, "en"), (pair.french, "fr")):
            owners = words_of_tokens(tokenizer, words, language)
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
    sources = [min(own) for own in words_of_tokens(tokenizer, pair.english, "en")]
    targets = [min(own) for own in words_of_tokens(tokenizer, pair.french, "fr")]
    table = true_alignment(tokenizer, pair)
    assert table.shape == (len(targets) + 1, len(sources) + 1)
    assert not table[-1].any() and not table[:, -1].any()
    expected = torch.tensor([[source == target for source in sources] for target in targets])
    assert torch.equal(table[:-1, :-1], expected)


def test_even_attention_has_the_uniform_mass(world_pairs, tokenizer):
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=12, n_heads=3, n_layers=2, d_ff=8, max_len=64
    )
    model = Translator(config).double().eval()
    english, french = write_out(world_pairs[0].english, "en"), write_out(world_pairs[0].french, "fr")
    weights = cross_attention(model, tokenizer, english, french)
    truth = true_alignment(tokenizer, world_pairs[0])
    assert weights.shape == (2, 3, *truth.shape)
    assert_close(weights.sum(-1), torch.ones(2, 3, len(truth), dtype=torch.float64))
    by_hand = (weights * truth).sum(-1)[..., truth.any(1)].mean(-1)
    alone = alignment_mass(model, tokenizer, world_pairs[:1])
    assert_close(torch.from_numpy(alone.mass), by_hand)
    with torch.no_grad():
        for block in model.decoder.blocks:
            block.cross_attn.q_proj.weight.zero_()
            block.cross_attn.q_proj.bias.zero_()
    even = alignment_mass(model, tokenizer, world_pairs)
    assert even.mass == pytest.approx(even.uniform) and even.n_tokens > 100
    with pytest.raises(ValueError, match="got 0 pairs"):
        alignment_mass(model, tokenizer, [])
