"""Peers compute what ours computes: with our weights logits agree, and sizes are as stated."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from benchmarks.peers import HuggingFaceGPT2, TorchEncoder, x_transformers
from tinytx.hf.convert import GPT2, to_transformers
from tinytx.model.config import TransformerConfig
from tinytx.model.counting import count_parameters
from tinytx.model.transformer import LanguageModel

CONFIG = TransformerConfig(vocab_size=23, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=7, **GPT2)


@pytest.fixture
def ours():
    torch.manual_seed(0)
    model = LanguageModel(CONFIG).eval()
    for parameter in model.parameters():  # so that no weight is 0 or 1 by chance of the start
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return model


def fill_encoder(theirs, ours):
    """Copy our weights into torch's encoder."""
    own = ours.state_dict()
    theirs.token_embed.weight.data.copy_(own["body.token_embed.weight"])
    theirs.pos_embed.weight.data.copy_(own["body.pos_embed.table"])
    for block, layer in zip(ours.body.blocks, theirs.encoder.layers, strict=True):
        attn = block.attn
        for kind in ("weight", "bias"):
            parts = [getattr(part, kind) for part in (attn.q_proj, attn.k_proj, attn.v_proj)]
            getattr(layer.self_attn, f"in_proj_{kind}").data.copy_(torch.cat(parts))
        for target, source in (
            (layer.self_attn.out_proj, attn.out_proj),
            (layer.linear1, block.ff.up_proj),
            (layer.linear2, block.ff.down_proj),
            (layer.norm1, block.attn_norm),
            (layer.norm2, block.ff_norm),
        ):
            target.load_state_dict(source.state_dict())
    theirs.encoder.norm.load_state_dict(ours.body.final_norm.state_dict())
    return theirs


def fill_x_transformers(theirs, ours):
    """Copy our weights into x-transformers', which has no biases in attention and norms: ours become 0."""
    body = ours.body
    for block in body.blocks:
        for part in (block.attn.q_proj, block.attn.k_proj, block.attn.v_proj, block.attn.out_proj):
            part.bias.data.zero_()
        block.attn_norm.bias.data.zero_()
        block.ff_norm.bias.data.zero_()
    body.final_norm.bias.data.zero_()
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


def fill_gpt2(theirs, ours):
    theirs.model.load_state_dict(to_transformers(ours).state_dict())
    return theirs


@pytest.mark.parametrize(
    ("make", "fill", "n_missing"),
    [
        (TorchEncoder, fill_encoder, 0),
        (HuggingFaceGPT2, fill_gpt2, 0),
        (x_transformers, fill_x_transformers, 2 * 4 * 12 + (2 * 2 + 1) * 12),  # biases of attention and norms
    ],
)
def test_with_our_weights_a_peer_has_our_logits_and_gradients(ours, make, fill, n_missing):
    token_ids = torch.randint(23, (3, 7), generator=torch.Generator().manual_seed(1))
    theirs = fill(make(CONFIG), ours).eval()
    assert count_parameters(theirs) == count_parameters(ours) - n_missing
    assert_close(theirs(token_ids), ours(token_ids), atol=2e-5, rtol=1e-4)
    for model in (ours, theirs):
        F.cross_entropy(model(token_ids)[:, :-1].flatten(0, 1), token_ids[:, 1:].flatten()).backward()
    table = next(p for p in theirs.parameters() if p.shape == (23, 12))
    assert_close(table.grad, ours.body.token_embed.weight.grad, atol=1e-5, rtol=1e-3)
