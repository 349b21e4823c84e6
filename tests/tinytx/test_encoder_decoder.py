"""The encoder-decoder: torch's own with copied weights, padding, tied matrices, errors."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from tests.tinytx.against_torch import assert_same_gradients, copy_weights, parameter_pairs
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.positions import sinusoidal_positions

CONFIG = TransformerConfig(vocab_size=11, d_model=6, n_heads=3, n_layers=2, d_ff=5, max_len=13)
B, S, T = 2, 7, 5


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm", ["last", "first"])
@pytest.mark.parametrize("padded", [False, True])
def test_equals_the_transformer_of_torch_forward_and_backward(norm, padded):
    config = CONFIG.replace(norm=norm, tie_embeddings=True)
    sizes = config.d_model, config.n_heads, config.n_layers, config.n_layers, config.d_ff
    how = {"activation": config.activation, "norm_first": norm == "first", "dtype": torch.double}
    ours, its = Translator(config).double(), nn.Transformer(*sizes, dropout=0.0, batch_first=True, **how)
    if norm == "last":  # torch would normalise twice
        its.encoder.norm = its.decoder.norm = None
    halves = [(ours.encoder, its.encoder), (ours.decoder, its.decoder)]
    blocks = [pair for a, b in halves for pair in zip(a.blocks, b.layers, strict=True)]
    norms = [(a.final_norm, b.norm) for a, b in halves] if norm == "first" else []
    pairs = [*parameter_pairs(norms, blocks)]
    copy_weights(pairs, its)
    matrix = ours.encoder.token_embed.weight.detach().clone().requires_grad_()
    src_ids, tgt_ids = torch.randint(11, (3, S)), torch.randint(11, (3, T))
    src_real = torch.arange(S) < torch.tensor([[7], [4], [1]]) if padded else None
    tgt_real = torch.arange(T) < torch.tensor([[3], [5], [2]]) if padded else None

    def embed(token_ids):
        x = F.embedding(token_ids, matrix) * math.sqrt(config.d_model)
        return x + sinusoidal_positions(token_ids.shape[1], config.d_model)

    hidden = its(
        embed(src_ids),
        embed(tgt_ids),
        tgt_mask=~torch.ones(T, T).tril().bool(),
        src_key_padding_mask=~src_real if padded else None,
        memory_key_padding_mask=~src_real if padded else None,
        tgt_key_padding_mask=~tgt_real if padded else None,
    )
    pairs.append(([ours.encoder.token_embed.weight], matrix))
    assert_same_gradients(ours(src_ids, tgt_ids, src_real, tgt_real), hidden @ matrix.T, pairs)


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_relative_positions_act_within_each_sequence_and_not_between_them(positions):
    decoder = Translator(CONFIG.replace(positions=positions)).decoder
    assert all(block.attn.positions is not None for block in decoder.blocks)
    assert all(block.cross_attn.positions is None for block in decoder.blocks)
    tgt_ids, memory = torch.randint(11, (B, T)), torch.randn(B, S, 6)
    order = torch.tensor([3, 0, 6, 4, 1, 2, 5])  # a decoder reads the source by what it says, not by place
    assert_close(decoder(tgt_ids, memory[:, order]), decoder(tgt_ids, memory))


def test_what_does_not_fit_is_refused():
    model = Translator(CONFIG)
    src_ids, tgt_ids = torch.randint(11, (B, S)), torch.randint(11, (B, T))
    with pytest.raises(ValueError, match=r"\(2, S, 6\), got \(1, 7, 6\)"):
        model.decode(tgt_ids, model.encode(src_ids)[:1])
    with pytest.raises(ValueError, match=r"\(2, 7\), got \(2, 5\)"):
        model.decode(tgt_ids, model.encode(src_ids), None, torch.ones(B, T, dtype=torch.bool))
    with pytest.raises(ValueError, match="max_len=13"):
        model(src_ids, torch.zeros(B, 14, dtype=torch.long))
    with pytest.raises(TypeError, match="memory_padding_mask"):
        model.decode(tgt_ids, model.encode(src_ids), None, torch.ones(B, S))
