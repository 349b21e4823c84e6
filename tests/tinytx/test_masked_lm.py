"""The masked language model: both sides are read, BERT's heads, segments, settings and errors."""

import pytest
import torch
from torch.nn import functional as F

from tinytx.config import TransformerConfig
from tinytx.counting import parameter_table
from tinytx.encoder_decoder import Translator
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.transformer import LanguageModel, Transformer

CONFIG = TransformerConfig(vocab_size=11, d_model=6, n_heads=3, n_layers=2, d_ff=5, max_len=7)
IDS = torch.tensor([[1, 8, 3, 9, 2]])


@pytest.mark.parametrize("causal", [True, False])
def test_every_place_looks_both_ways_whatever_causal_says(causal):
    model = MaskedLanguageModel(CONFIG.replace(causal=causal)).eval()
    assert not model.config.causal
    for changed in range(5):
        other = IDS.clone()
        other[0, changed] = 10
        moved = (model(IDS) - model(other)).abs().amax(dim=-1)[0] > 1e-7
        assert moved.all()


def test_the_head_is_dense_activation_norm_and_tied_output():
    model = MaskedLanguageModel(CONFIG.replace(tie_embeddings=True)).eval()
    hidden = model.body(IDS)
    linear = model.head.dense[0]
    inner = F.gelu(hidden @ linear.weight.T + linear.bias)
    inner = (inner - inner.mean(-1, keepdim=True)) / (inner.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    expected = inner @ model.body.token_embed.weight.T + model.head.output.bias
    torch.testing.assert_close(model(IDS), expected)
    assert model.head.output.weight is model.body.token_embed.weight


def test_without_transform_it_has_the_parameters_and_the_function_of_a_language_model():
    config = CONFIG.replace(causal=False, tie_embeddings=True)
    masked, plain = MaskedLanguageModel(config, transform=False), LanguageModel(config)
    plain.body.load_state_dict(masked.body.state_dict())
    torch.testing.assert_close(masked(IDS), plain(IDS))
    assert sum(p.numel() for p in masked.parameters()) == parameter_table(config, "lm").total


def test_only_masked_positions_reach_the_head():
    model, targets, rows = MaskedLanguageModel(CONFIG), torch.tensor([[-100, 7, -100, 5, -100]]), []
    model.head.output.register_forward_hook(lambda module, inputs, output: rows.append(len(inputs[0])))
    model.loss(IDS, targets)
    assert rows == [2]


def test_segments_are_added_and_the_first_is_taken_where_none_is_given():
    body = Transformer(CONFIG.replace(n_segments=3, causal=False)).eval()
    zeros = torch.zeros_like(IDS)
    torch.testing.assert_close(body(IDS), body(IDS, segment_ids=zeros), rtol=0, atol=0)
    segments = torch.tensor([[0, 0, 1, 2, 2]])
    moved, table = body.embed(IDS, segment_ids=segments) - body.embed(IDS), body.segment_embed.weight
    torch.testing.assert_close(moved, table[segments] - table[zeros])


@pytest.mark.parametrize(
    ("call", "values"),
    [
        (lambda: Translator(CONFIG.replace(n_segments=2)), "n_segments=2"),
        (lambda: parameter_table(CONFIG.replace(n_segments=2), "translation"), "n_segments=2"),
        (lambda: Transformer(CONFIG)(IDS, segment_ids=IDS), "n_segments=0"),
        (lambda: Transformer(CONFIG.replace(n_segments=2))(IDS, segment_ids=IDS), r"0\.\.1, got 1 to 9"),
        (lambda: Transformer(CONFIG.replace(n_segments=2))(IDS, segment_ids=IDS[:, 1:]), r"got \(1, 4\)"),
        (lambda: MaskedLanguageModel(CONFIG).follows(IDS), "next_sentence=False"),
    ],
)
def test_impossible_requests_are_refused(call, values):
    with pytest.raises(ValueError, match=values):
        call()
