"""Moves weights from where they begin, copies them into the layers of torch, compares gradients."""

import torch
from torch.testing import assert_close

ENCODER = {
    "attn_norm": "norm1",
    "ff_norm": "norm2",
    "ff.up_proj": "linear1",
    "ff.down_proj": "linear2",
    "attn.out_proj": "self_attn.out_proj",
}
DECODER = ENCODER | {
    "cross_norm": "norm2",
    "ff_norm": "norm3",
    "cross_attn.out_proj": "multihead_attn.out_proj",
}


def parameter_pairs(modules, blocks=()):
    """Our parameters, three in a row where torch packs them, with torch's: of modules, and of blocks."""
    for mine, its in modules:
        for name, parameter in mine.named_parameters():
            yield [parameter], its.get_parameter(name)
    for block, layer in blocks:
        cross = hasattr(block, "cross_attn")
        names = DECODER if cross else ENCODER
        yield from parameter_pairs((block.get_submodule(a), layer.get_submodule(b)) for a, b in names.items())
        attentions = [(block.attn, layer.self_attn)]
        for mine, its in attentions + ([(block.cross_attn, layer.multihead_attn)] if cross else []):
            for kind in ("weight", "bias"):
                if getattr(mine.q_proj, kind) is not None:
                    projections = (mine.q_proj, mine.k_proj, mine.v_proj)
                    yield [getattr(p, kind) for p in projections], getattr(its, f"in_proj_{kind}")


@torch.no_grad()
def shaken(model, by=0.3):
    """Move all weights, in place: biases and norms that are not used, or choices by a tie, would be seen."""
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter) * by)
    return model.eval()


@torch.no_grad()
def copy_weights(pairs, theirs):
    """Copy all parameters, biases and norms moved first: zeros would hide one that is not added."""
    n_copied = 0
    for mine, its in pairs:
        if its.dim() == 1:
            for parameter in mine:
                parameter.add_(torch.randn_like(parameter) * 0.3)
        its.copy_(torch.cat(mine))
        n_copied += its.numel()
    assert n_copied == sum(parameter.numel() for parameter in theirs.parameters())


def assert_same_gradients(ours, theirs, pairs):
    """Compare two outputs, and what a random weighting of both sends back."""
    assert_close(ours, theirs, rtol=0, atol=1e-9)
    weighting = torch.randn_like(ours)
    (ours * weighting).sum().backward()
    (theirs * weighting).sum().backward()
    for mine, its in pairs:
        assert_close(torch.cat([parameter.grad for parameter in mine]), its.grad, rtol=1e-9, atol=1e-9)
