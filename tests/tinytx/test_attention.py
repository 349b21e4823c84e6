"""Attention: loops = matrices = fused kernel = torch, for every mask; the multi-head module; recording."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from tests.tinytx.against_torch import shaken
from tinytx.attention import (
    MultiHeadAttention,
    attention,
    attention_weights,
    fused_attention,
    record_attention,
    split_heads,
)
from tinytx.masks import causal_mask
from tinytx.positions import AlibiPositions, RotaryPositions, alibi_bias

B, H, T, S, K = 2, 3, 5, 7, 11
KINDS = ["none", "causal", "padding", "both", "blind", "nowhere"]
PATHS = [attention, fused_attention]


def make_qkv(seq_len=T, mem_len=T):
    lengths = (seq_len, mem_len, mem_len)
    return tuple(torch.randn(B, H, n, K, dtype=torch.float64, requires_grad=True) for n in lengths)


def make_mask(kind):
    """A mask that broadcasts to (B, H, T, T); "blind": query 3 of row 1 may attend to no key."""
    if kind == "none":
        return None
    if kind == "nowhere":
        return torch.zeros(T, T, dtype=torch.bool)
    keys = torch.ones(B, 1, 1, T, dtype=torch.bool)
    keys[1, ..., 3:] = False
    if kind == "padding":
        return keys
    if kind == "causal":
        return causal_mask(T)
    mask = keys & causal_mask(T)
    if kind == "blind":
        mask[1, :, 3] = False
    return mask


def gradients(context, inputs):
    return torch.autograd.grad((context * torch.linspace(-1, 2, K, dtype=context.dtype)).sum(), inputs)


def loops(q, k, v, mask):
    """The definition, one query at a time."""
    context = torch.zeros_like(q)
    allowed = torch.ones(B, H, T, T, dtype=torch.bool) if mask is None else mask.expand(B, H, T, T)
    for b in range(B):
        for h in range(H):
            for t in range(T):
                keys = [s for s in range(T) if allowed[b, h, t, s]]
                scores = [math.exp(float(q[b, h, t] @ k[b, h, s]) / math.sqrt(K)) for s in keys]
                for s, score in zip(keys, scores, strict=True):
                    context[b, h, t] += score / sum(scores) * v[b, h, s]
    return context


@pytest.mark.parametrize("kind", KINDS)
def test_both_paths_equal_loops_and_torch_and_masked_weights_are_exactly_zero(kind):
    inputs, mask = make_qkv(), make_mask(kind)
    allowed = torch.ones(B, H, T, T, dtype=torch.bool) if mask is None else mask.expand(B, H, T, T)
    its = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    its_gradients = gradients(its, inputs)
    assert_close(its.detach(), loops(*(x.detach() for x in inputs), mask))
    for path in PATHS:
        ours = path(*inputs, mask)
        assert_close(ours, its)
        assert_close(gradients(ours, inputs), its_gradients)
        assert (ours[~allowed.any(-1)] == 0).all(), "of a query without allowed keys"
    weights = attention_weights(*inputs[:2], mask)
    assert (weights[~allowed] == 0).all() and (weights >= 0).all()
    assert_close(weights.sum(-1), allowed.any(-1).double())


def test_only_the_causal_mask_is_taken_for_it():
    for changed in [(0, 1), (4, 0), (3, 3)]:
        inputs, mask = make_qkv(), causal_mask(T)
        mask[changed] = ~mask[changed]
        assert_close(fused_attention(*inputs, mask), attention(*inputs, mask))
    q, k, v = make_qkv(T, S)  # more keys than queries
    assert_close(fused_attention(q, k, v, causal_mask(S)[:T]), attention(q, k, v, causal_mask(S)[:T]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seq_len", [1, T, 300])
def test_bfloat16_stays_close_and_so_do_its_gradients(kind, seq_len):
    mask = make_mask(kind) if seq_len == T else None if kind == "none" else causal_mask(seq_len)
    exact = make_qkv(seq_len, seq_len)
    low = [tensor.detach().bfloat16().requires_grad_() for tensor in exact]
    expected, got = attention(*exact, mask), fused_attention(*low, mask)
    assert_close(got.double(), expected, atol=0.03, rtol=0.03)
    for ours, reference in zip(gradients(got, low), gradients(expected, exact), strict=True):
        assert (ours.double() - reference).norm() < 0.02 * reference.norm() + 1e-9
    if kind == "blind" and seq_len == T:
        assert (got[1, :, 3] == 0).all()
    if seq_len == 300:
        assert_close(fused_attention(*(tensor[0, 0] for tensor in low), mask), got[0, 0])


def test_blocks_of_queries_in_bfloat16_read_no_later_key():
    q, k, v = (tensor.detach().bfloat16() for tensor in make_qkv(1021, 1021))
    mask = causal_mask(1021)
    assert_close(fused_attention(q, k, v, mask), attention(q, k, v, mask), atol=0.03, rtol=0.03)
    k[..., 600:, :] = torch.nan
    context = fused_attention(q, k, v, mask)  # blocks of 256
    assert context[..., :512, :].isfinite().all() and context[..., 768:, :].isnan().all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(T,), (T, T), (H, T, T), (H, 1, T), (B, 1, 1, T)])
def test_a_bias_is_added_to_the_scores_in_both_paths(kind, shape):
    """Forward and backward; written out with a fill of -1e300, and zeros where all is masked."""
    inputs, mask = make_qkv(), make_mask(kind)
    bias = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    scores = inputs[0] @ inputs[1].transpose(-2, -1) / math.sqrt(K) + bias
    weights = scores.softmax(-1)
    if mask is not None:
        weights = scores.masked_fill(~mask, -1e300).softmax(-1) * mask.any(-1, keepdim=True)
    expected = weights @ inputs[2]
    by_hand = gradients(expected, (*inputs, bias))
    assert_close(attention_weights(*inputs[:2], mask, bias), weights)
    for path in PATHS:
        context = path(*inputs, mask, bias)
        assert_close(context, expected)
        assert_close(gradients(context, (*inputs, bias)), by_hand)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mem_len", [T, 300])
def test_a_bias_in_bfloat16_stays_close(kind, mem_len):
    """By two products, and with many keys by the fused kernel."""
    mask = make_mask(kind) if mem_len == T else None if kind == "none" else torch.arange(mem_len) < 200
    exact, bias = make_qkv(mem_len, mem_len), alibi_bias(H, mem_len)
    got = fused_attention(*(tensor.detach().bfloat16() for tensor in exact), mask, bias)
    assert got.dtype == torch.bfloat16
    assert_close(got.double(), attention(*exact, mask, bias.double()), atol=0.03, rtol=0.03)
    plain = attention(*(tensor.detach().bfloat16() for tensor in exact), mask, bias)
    assert plain.dtype == torch.bfloat16
    assert_close(plain.double(), attention(*exact, mask, bias.double()), atol=0.05, rtol=0.05)


@pytest.mark.parametrize("shape", [(S,), (1, S), (T, 1), (T, S), (H, T, S), (B, 1, 1, S), (B, H, 1, S)])
def test_masks_of_every_shape_that_broadcasts(shape):
    q, k, v = make_qkv(T, S)
    mask = torch.rand(shape) < 0.6
    everywhere = attention(q, k, v, mask.expand(B, H, T, S))
    for path in PATHS:
        assert_close(path(q, k, v, mask), everywhere)
    for path in PATHS:  # no leading axes are needed
        assert_close(path(q[1, 2], k[1, 2], v[1, 2], mask.expand(B, H, T, S)[1, 2]), everywhere[1, 2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_large_scores_do_not_overflow_and_masks_hold_in_low_precision(dtype):
    q = torch.full((1, 1, T, K), 60.0, dtype=dtype)
    weights = attention_weights(q, q, causal_mask(T))[0, 0].float()
    assert_close(weights, causal_mask(T) / torch.arange(1, T + 1)[:, None], rtol=0, atol=2e-3)
    assert (weights[~causal_mask(T)] == 0).all()


@pytest.mark.parametrize("path", PATHS)
def test_masks_and_biases_of_a_wrong_kind_or_shape_are_refused(path):
    inputs = make_qkv()
    for arguments, error, got in [
        ((torch.zeros(T, T),), TypeError, "float32"),
        ((torch.ones(B, T, dtype=torch.bool),), ValueError, r"\(2, 3, 5, 5\).*\(2, 5\)"),
        ((None, causal_mask(T)), TypeError, "bool"),
        ((None, torch.zeros(B, T)), ValueError, r"\(2, 3, 5, 5\).*\(2, 5\)"),
    ]:
        with pytest.raises(error, match=got):
            path(*inputs, *arguments)


@pytest.mark.parametrize("path", PATHS)
def test_queries_keys_and_values_that_do_not_fit_are_refused(path):
    q, k, v = make_qkv(mem_len=S)
    for operands, error, got in [
        ((q.tolist(), k, v), TypeError, "q .*list"),
        ((q.long(), k.long(), v.long()), TypeError, "q .*int64"),
        ((q, k.float(), v), TypeError, "k .*float64, got torch.float32"),
        ((q, k, v.bfloat16()), TypeError, "v .*float64, got torch.bfloat16"),
        ((q, k, v.int()), TypeError, "v .*int32"),
        ((q[0, 0, 0], k, v), ValueError, r"q .*\(11,\)"),
        ((q[..., :0], k[..., :0], v), ValueError, r"at least 1.*\(2, 3, 5, 0\)"),
        ((q, k[..., 1:], v), ValueError, r"one width.*\(2, 3, 5, 11\).*\(2, 3, 7, 10\)"),
        ((q, k, v[..., 1:, :]), ValueError, r"one value for each key.*\(2, 3, 6, 11\)"),
        ((q, k[:, :2], v), ValueError, r"before the last two.*\(2, 2, 7, 11\)"),
    ]:
        with pytest.raises(error, match=got):
            path(*operands)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("masked", [False, True])
def test_shorter_shapes_and_axes_of_1_broadcast(path, dtype, masked):
    q, k, v = (x.detach().to(dtype) for x in make_qkv())
    mask = causal_mask(T) if masked else None
    whole = [(q, k[:1, :1].expand_as(k), v[:1, :1].expand_as(v)), (q[:1, :1].expand_as(q), k, v)]
    whole.append((q[:, :1].expand_as(q), k[:1].expand_as(k), v[:1].expand_as(v)))
    parts = [(q, k[:1, :1], v[:1, 0]), (q[0, 0], k, v), (q[:, :1], k[:1], v[:1])]
    for given, expanded in zip(parts, whole, strict=True):
        expected = attention(*(x.double() for x in expanded), mask)
        atol = 1e-12 if dtype == torch.float64 else 0.05
        assert_close(path(*given, mask).double(), expected, rtol=0, atol=atol)
    assert_close(path(q[0, 0], k, v, mask=torch.ones(B, 1, 1, T, dtype=torch.bool)), path(q[0, 0], k, v))


@pytest.mark.parametrize("path", PATHS)
def test_a_mask_of_one_entry_hides_no_key_of_one_query(path):
    q, k, v = make_qkv(1, S)
    everything = torch.ones(1, 1, dtype=torch.bool)
    assert_close(path(q, k, v, everything), attention(q, k, v))
    assert path(q, k, v, ~everything).count_nonzero() == 0


D = H * 2


def make_inputs():
    return torch.randn(B, T, D, dtype=torch.float64, requires_grad=True), torch.randn(B, S, D).double()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positions", [None, RotaryPositions(T, 2), AlibiPositions(H)])
def test_recorded_weights_are_those_of_the_formula_and_change_no_output(kind, positions):
    attn = shaken(MultiHeadAttention(d_model=D, n_heads=H).double()).train()
    attn.positions, attn.dropout = positions, 0.9
    (x, _), mask = make_inputs(), make_mask(kind)
    with record_attention(attn) as recorded:
        output = attn(x, mask=mask)  # nothing is dropped while it records, unlike before and after
    assert kind == "nowhere" or not torch.allclose(attn(x, mask=mask), output)
    q, k, bias = *(split_heads(proj(x), H) for proj in (attn.q_proj, attn.k_proj)), None
    if positions is not None:
        q, k, bias = positions(q, k)
    assert_close(recorded[""], attention_weights(q, k, mask, bias))
    assert_close(output, attn.eval()(x, mask=mask))
    if kind == "blind":  # nothing but the bias of the last projection is left
        assert torch.equal(output[1, 3], attn.out_proj.bias)


def test_recording_ends_even_with_an_error_and_lets_gradients_through():
    attn = MultiHeadAttention(d_model=D, n_heads=H).double()
    x, _ = make_inputs()
    with pytest.raises(TypeError), record_attention(nn.ModuleDict({"inner": attn})) as recorded:
        attn(x)
        attn(x, mask=torch.zeros(T, T))
    assert list(recorded) == ["inner"]
    attn(x)
    (gradient,) = torch.autograd.grad(recorded["inner"].square().sum(), attn.q_proj.weight)
    assert gradient.any() and recorded["inner"].shape == (B, H, T, T)


@pytest.mark.parametrize("positions", [RotaryPositions(S, 2), AlibiPositions(H)])
def test_bad_sizes_and_a_memory_with_relative_positions_are_refused(positions):
    with pytest.raises(ValueError, match="d_model=200, n_heads=3"):
        MultiHeadAttention(d_model=200, n_heads=3)
    with pytest.raises(ValueError, match=r"n_kv_heads must divide n_heads.* n_heads=6, n_kv_heads=4"):
        MultiHeadAttention(d_model=12, n_heads=6, n_kv_heads=4)
    with pytest.raises(ValueError, match=r"\[0, 1\), got 1.5"):
        MultiHeadAttention(d_model=D, n_heads=H, dropout=1.5)
    plain = MultiHeadAttention(d_model=D, n_heads=1)
    for inputs, got in (
        ((torch.ones(T, D),), r"x .* width 6, got shape \(5, 6\)"),
        ((torch.ones(B, T, D + 1),), r"x .* width 6, got shape \(2, 5, 7\)"),
        ((torch.ones(B, T, D), torch.ones(S, D)), r"memory .* width 6, got shape \(7, 6\)"),
    ):
        with pytest.raises(ValueError, match=got):
            plain(*inputs)
    attn = MultiHeadAttention(d_model=D, n_heads=H, positions=positions).double()
    with pytest.raises(ValueError, match=r"\(2, 7, 6\)"):
        attn(*make_inputs())
