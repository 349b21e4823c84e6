"""Peers compute what ours computes: with our weights logits agree, and sizes are as stated."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from benchmarks.peers import HuggingFace, TorchEncoder, peers_of, x_transformers
from tests.tinytx.against_torch import parameter_pairs, shaken
from tinytx.config import TransformerConfig
from tinytx.counting import count_parameters
from tinytx.transformer import LanguageModel
from tinytx_run.hf.convert import to_transformers
from tinytx_run.hf.families import GPT2, LLAMA

CONFIG = TransformerConfig(vocab_size=23, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=7, **GPT2)
AS_LLAMA = TransformerConfig(
    vocab_size=23,
    d_model=24,
    n_heads=6,
    n_kv_heads=2,
    n_layers=2,
    d_ff=20,
    max_len=7,
    norm_eps=1e-12,  # x-transformers has none
    **{**LLAMA, "tie_embeddings": True},
)


def ours_of(config):
    torch.manual_seed(0)
    return shaken(LanguageModel(config), by=0.1)


def fill_encoder(theirs, ours):
    """Copy our weights into torch's encoder."""
    body = ours.body
    modules = [(body.token_embed, theirs.token_embed), (body.final_norm, theirs.encoder.norm)]
    pairs = parameter_pairs(modules, zip(body.blocks, theirs.encoder.layers, strict=True))
    for mine, its in [([body.pos_embed.table], theirs.pos_embed.weight), *pairs]:
        its.data.copy_(torch.cat(mine))
    return theirs


def fill_x_transformers(theirs, ours):
    """Copy our weights into x-transformers', which has no biases in attention and norms: ours become 0."""
    body = ours.body
    for name, parameter in body.named_parameters():
        if name.endswith("bias") and ("attn" in name or "norm" in name):
            parameter.data.zero_()
    theirs.token_emb.emb.weight.data.copy_(body.token_embed.weight)
    theirs.pos_emb.emb.weight.data.copy_(body.pos_embed.table / theirs.pos_emb.scale)
    layers = theirs.attn_layers.layers
    for number, block in enumerate(body.blocks):
        (norms, attn, _), (ff_norms, ff, _) = layers[2 * number], layers[2 * number + 1]
        norms[0].gamma.data.copy_(block.attn_norm.weight - 1)  # it adds 1
        ff_norms[0].gamma.data.copy_(block.ff_norm.weight - 1)
        for name in ("q", "k", "v"):
            getattr(attn, f"to_{name}").weight.data.copy_(getattr(block.attn, f"{name}_proj").weight)
        attn.to_out.weight.data.copy_(block.attn.out_proj.weight)
        up, down = (module for module in ff.modules() if isinstance(module, torch.nn.Linear))
        up.load_state_dict(block.ff.up_proj.state_dict())
        down.load_state_dict(block.ff.down_proj.state_dict())
    theirs.attn_layers.final_norm.gamma.data.copy_(body.final_norm.weight - 1)
    return theirs


def fill_x_llama(theirs, ours):
    """Copy our Llama's weights; the bias that their gate has becomes 0."""
    body = ours.body
    theirs.token_emb.emb.weight.data.copy_(body.token_embed.weight)
    layers = theirs.attn_layers.layers
    for number, block in enumerate(body.blocks):
        (norms, attn, _), (ff_norms, ff, _) = layers[2 * number], layers[2 * number + 1]
        norms[0].g.data.copy_(block.attn_norm.weight - 1)
        ff_norms[0].g.data.copy_(block.ff_norm.weight - 1)
        # It turns the other way, hence the numbers of a pair change places; and its query heads take turns
        # with the heads of keys (0 1 0 1 ...), where ours share one in a row (0 0 ... 1 1 ...).
        q, k = (getattr(block.attn, f"{name}_proj").weight.unflatten(0, (-1, 2, 2)).flip(2) for name in "qk")
        attn.to_q.weight.data.copy_(q.unflatten(0, (2, 3)).transpose(0, 1).flatten(0, 3))
        attn.to_k.weight.data.copy_(k.flatten(0, 2))
        attn.to_v.weight.data.copy_(block.attn.v_proj.weight)
        out = block.attn.out_proj.weight.unflatten(1, (2, 3, 4)).transpose(1, 2)
        attn.to_out.weight.data.copy_(out.flatten(1))
        up_and_gate, down = (module for module in ff.modules() if isinstance(module, torch.nn.Linear))
        up_and_gate.weight.data.copy_(torch.cat([block.ff.up_proj.weight, block.ff.gate_proj.weight]))
        up_and_gate.bias.data.zero_()
        down.weight.data.copy_(block.ff.down_proj.weight)
    theirs.attn_layers.final_norm.g.data.copy_(body.final_norm.weight - 1)
    return theirs


def fill_transformers(theirs, ours):
    theirs.model.load_state_dict(to_transformers(ours).state_dict())
    return theirs


@pytest.mark.parametrize(
    ("config", "make", "fill", "n_more"),
    [
        (CONFIG, TorchEncoder, fill_encoder, 0),
        (CONFIG, HuggingFace, fill_transformers, 0),
        (
            CONFIG,
            x_transformers,
            fill_x_transformers,
            -(2 * 4 + 2 * 2 + 1) * 12,
        ),  # biases of attention, norms
        (AS_LLAMA, HuggingFace, fill_transformers, 0),
        (AS_LLAMA, x_transformers, fill_x_llama, 2 * 2 * 20),  # the bias of up and gate
    ],
)
def test_with_our_weights_a_peer_has_our_logits_and_gradients(config, make, fill, n_more):
    ours = ours_of(config)
    token_ids = torch.randint(23, (3, 7), generator=torch.Generator().manual_seed(1))
    theirs = fill(make(config), ours).eval()
    assert count_parameters(theirs) == count_parameters(ours) + n_more
    assert_close(theirs(token_ids), ours(token_ids), atol=2e-5, rtol=1e-4)
    for model in (ours, theirs):
        F.cross_entropy(model(token_ids)[:, :-1].flatten(0, 1), token_ids[:, 1:].flatten()).backward()
    table = next(p for p in theirs.parameters() if p.shape == (23, config.d_model))
    assert_close(table.grad, ours.body.token_embed.weight.grad, atol=1e-5, rtol=1e-3)


def test_a_llama_is_not_compared_with_a_package_that_has_no_such_blocks():
    assert set(peers_of(CONFIG)) - set(peers_of(AS_LLAMA)) == {"torch.nn.TransformerEncoder"}
