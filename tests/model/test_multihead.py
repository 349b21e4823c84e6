"""Multi-head attention: equal to torch's module with copied weights, and both its paths equal."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tinytx.model.attention import MultiHeadAttention, attention
from tinytx.model.masks import causal_mask
from tinytx.model.positions import AlibiPositions, RotaryPositions

B, H, T, S, K = 2, 3, 5, 7, 2
D = H * K


def make_pair(bias=True):
    """Ours and torch's module with the same weights, in float64."""
    ours = MultiHeadAttention(d_model=D, n_heads=H, bias=bias).double()
    theirs = nn.MultiheadAttention(D, H, bias=bias, batch_first=True).double()
    projections = (ours.q_proj, ours.k_proj, ours.v_proj)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        theirs.out_proj.weight.copy_(ours.out_proj.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
            theirs.out_proj.bias.copy_(ours.out_proj.bias)
    return ours, theirs


def make_inputs():
    x = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    memory = torch.randn(B, S, D, dtype=torch.float64, requires_grad=True)
    return x, memory


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("masked", [False, True])
def test_self_attention_equals_torch_forward_and_backward(bias, masked):
    ours, theirs = make_pair(bias)
    x, _ = make_inputs()
    mask = causal_mask(T) if masked else None
    blocked = None if mask is None else ~mask  # torch's modules read True as blocked
    expected, expected_weights = theirs(x, x, x, attn_mask=blocked, average_attn_weights=False)
    output = ours(x, mask=mask)
    assert_close(output, expected)
    assert_close(ours.weights(x, mask=mask), expected_weights)
    (by_x,) = torch.autograd.grad(output.square().sum(), x, retain_graph=True)
    (expected_by_x,) = torch.autograd.grad(expected.square().sum(), x, retain_graph=True)
    assert_close(by_x, expected_by_x)
    output.square().sum().backward()
    expected.square().sum().backward()
    packed = torch.cat([ours.q_proj.weight.grad, ours.k_proj.weight.grad, ours.v_proj.weight.grad])
    assert_close(packed, theirs.in_proj_weight.grad)
    assert_close(ours.out_proj.weight.grad, theirs.out_proj.weight.grad)


def test_cross_attention_with_padded_memory_equals_torch():
    ours, theirs = make_pair()
    x, memory = make_inputs()
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    expected, expected_weights = theirs(x, memory, memory, key_padding_mask=~real, average_attn_weights=False)
    mask = real[:, None, None, :]
    assert_close(ours(x, memory, mask), expected)
    assert_close(ours.weights(x, memory, mask), expected_weights)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("kind", ["none", "padding", "blind"])
@pytest.mark.parametrize("positions", [None, RotaryPositions(T, K), AlibiPositions(H)])
def test_fused_and_plain_path_agree(is_causal, kind, positions):
    attn, _ = make_pair()
    attn.positions = positions
    x, _ = make_inputs()
    mask = None
    if kind != "none":
        mask = torch.ones(B, 1, T, T, dtype=torch.bool)
        mask[1, :, :, 2:] = False
    if kind == "blind":
        mask[0, :, 3] = False
    seen = attn.trace(x, mask=mask, is_causal=is_causal)
    assert_close(seen.output, attn(x, mask=mask, is_causal=is_causal))
    assert_close(seen.attn_weights, attn.weights(x, mask=mask, is_causal=is_causal))
    if kind == "blind":  # nothing but the bias of the last projection is left
        assert torch.equal(seen.output[0, 3], attn.out_proj.bias)


def test_heads_are_attention_on_slices_of_the_width():
    attn, _ = make_pair()
    x, memory = make_inputs()
    q, k, v = attn.q_proj(x), attn.k_proj(memory), attn.v_proj(memory)
    heads = [slice(h * K, (h + 1) * K) for h in range(H)]
    context = torch.cat([attention(q[..., h], k[..., h], v[..., h]) for h in heads], dim=-1)
    assert_close(attn(x, memory), attn.out_proj(context))


def test_reordered_tokens_give_reordered_outputs():
    attn, _ = make_pair()
    x, _ = make_inputs()
    order = torch.tensor([3, 0, 4, 1, 2])
    assert_close(attn(x[:, order]), attn(x)[:, order])


def test_dropout_acts_in_training_only():
    attn = MultiHeadAttention(d_model=D, n_heads=H, dropout=0.5)
    x = torch.randn(B, T, D)
    assert not torch.equal(attn(x), attn(x))
    attn.eval()
    assert torch.equal(attn(x), attn(x))


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="^n_heads must divide d_model, got d_model=200, n_heads=3$"):
        MultiHeadAttention(d_model=200, n_heads=3)


@pytest.mark.parametrize("positions", [RotaryPositions(S, K), AlibiPositions(H)])
def test_a_memory_is_refused_where_positions_act_in_attention(positions):
    attn = MultiHeadAttention(d_model=D, n_heads=H, positions=positions).double()
    for call in (attn, attn.trace, attn.weights):
        with pytest.raises(ValueError, match=r"^memory must be left out .* got shape \(2, 7, 6\)$"):
            call(*make_inputs())


def test_causal_attention_to_a_memory_of_another_length_is_refused():
    attn, _ = make_pair()
    with pytest.raises(ValueError, match="T=5, S=7"):
        attn(*make_inputs(), is_causal=True)
