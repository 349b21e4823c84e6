"""One block: equal to torch's encoder layer with copied weights, fused = plain, batch = single tokens."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tinytx.model.config import TransformerConfig
from tinytx.model.masks import causal_mask
from tinytx.model.transformer import Block, FeedForward

B, T, D, F = 3, 5, 14, 11
CONFIG = TransformerConfig(vocab_size=2, d_model=D, n_heads=7, n_layers=2, d_ff=F)


def make_pair(config):
    """Our block and torch's layer with the same weights, in float64."""
    ours = Block(config).double()
    theirs = nn.TransformerEncoderLayer(
        D,
        config.n_heads,
        F,
        dropout=0.0,
        activation=config.activation,
        batch_first=True,
        norm_first=config.norm == "first",
        bias=config.bias,
    ).double()
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.5)  # norms and biases too, so that a missing one is seen
    kinds = ["weight", "bias"] if config.bias else ["weight"]
    attn, their_attn = ours.attn, theirs.self_attn
    with torch.no_grad():
        for kind in kinds:
            packed = [getattr(projection, kind) for projection in (attn.q_proj, attn.k_proj, attn.v_proj)]
            getattr(their_attn, f"in_proj_{kind}").copy_(torch.cat(packed))
            for target, source in [
                (their_attn.out_proj, attn.out_proj),
                (theirs.linear1, ours.ff.up_proj),
                (theirs.linear2, ours.ff.down_proj),
                (theirs.norm1, ours.attn_norm),
                (theirs.norm2, ours.ff_norm),
            ]:
                getattr(target, kind).copy_(getattr(source, kind))
    return ours, theirs


@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
@pytest.mark.parametrize("bias", [True, False])
def test_block_equals_the_layer_of_torch(norm, activation, bias):
    ours, theirs = make_pair(CONFIG.replace(norm=norm, activation=activation, bias=bias))
    x = torch.randn(B, T, D, dtype=torch.float64)
    assert_close(ours(x), theirs(x))
    assert_close(ours(x, is_causal=True), theirs(x, src_mask=~causal_mask(T)))
    assert_close(ours(x, causal_mask(T)), theirs(x, src_mask=~causal_mask(T)))


@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("is_causal", [False, True])
def test_trace_equals_forward_and_holds_the_weights_of_its_attention(norm, is_causal):
    block, _ = make_pair(CONFIG.replace(norm=norm))
    x = torch.randn(B, T, D, dtype=torch.float64)
    seen = block.trace(x, is_causal=is_causal)
    assert_close(seen.hidden, block(x, is_causal=is_causal))
    attn_input = block.attn_norm(x) if norm == "first" else x
    assert_close(seen.attn_weights, block.attn.weights(attn_input, is_causal=is_causal))


def test_feed_forward_treats_every_token_alike_and_alone():
    ff = FeedForward(CONFIG).double()
    x = torch.randn(B, T, D, dtype=torch.float64)
    together = ff(x)
    for b in range(B):
        for t in range(T):
            assert_close(together[b, t], ff(x[b, t]))


def test_norm_first_lets_the_input_through_untouched():
    """With its two last maps at zero a block adds nothing: the residual stream is the identity."""
    block = Block(CONFIG)
    for linear in (block.attn.out_proj, block.ff.down_proj):
        nn.init.zeros_(linear.weight)
        nn.init.zeros_(linear.bias)
    x = torch.randn(B, T, D)
    assert torch.equal(block(x), x)


def test_input_is_not_modified():
    block, x = Block(CONFIG), torch.randn(B, T, D)
    before = x.clone()
    block(x, causal_mask(T))
    assert torch.equal(x, before)
