"""Attention: loops = matrices = fused kernel = torch, for every kind of mask, forward and backward."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from tinytx.model.attention import attention, attention_weights, fused_attention
from tinytx.model.masks import causal_mask
from tinytx.model.positions import alibi_bias

B, H, T, S, K = 2, 3, 5, 7, 11
KINDS = ["none", "causal", "padding", "both", "blind"]


def make_qkv(seq_len=T, mem_len=T):
    q = torch.randn(B, H, seq_len, K, dtype=torch.float64, requires_grad=True)
    k = torch.randn(B, H, mem_len, K, dtype=torch.float64, requires_grad=True)
    v = torch.randn(B, H, mem_len, K, dtype=torch.float64, requires_grad=True)
    return q, k, v


def make_mask(kind):
    """A mask that broadcasts to (B, H, T, T); "blind": query 3 of row 1 may see nothing."""
    if kind == "none":
        return None
    keys = torch.ones(B, 1, 1, T, dtype=torch.bool)
    keys[1, ..., 3:] = False
    if kind == "padding":
        return keys
    if kind == "both":
        return keys & causal_mask(T)
    if kind == "blind":
        mask = (keys & causal_mask(T)).clone()
        mask[1, :, 3] = False
        return mask
    return causal_mask(T)


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
def test_attention_equals_loops(kind):
    q, k, v = (x.detach() for x in make_qkv())
    assert_close(attention(q, k, v, make_mask(kind)), loops(q, k, v, make_mask(kind)))


@pytest.mark.parametrize("kind", KINDS)
def test_fused_equals_plain_forward_and_backward(kind):
    inputs, mask = make_qkv(), make_mask(kind)
    plain, fused = attention(*inputs, mask), fused_attention(*inputs, mask)
    assert_close(fused, plain)
    for by_fused, by_plain in zip(gradients(fused, inputs), gradients(plain, inputs), strict=True):
        assert by_plain.isfinite().all()
        assert_close(by_fused, by_plain)


@pytest.mark.parametrize("kind", KINDS)
def test_is_causal_equals_adding_the_causal_mask(kind):
    inputs, mask = make_qkv(), make_mask(kind)
    explicit = causal_mask(T) if mask is None else mask & causal_mask(T)
    assert_close(fused_attention(*inputs, mask, is_causal=True), attention(*inputs, explicit))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_causal", [False, True])
def test_fused_in_bfloat16_stays_close_to_plain(kind, is_causal):
    mask = make_mask(kind)
    exact = make_qkv()
    low = [tensor.detach().bfloat16().requires_grad_() for tensor in exact]
    full = mask if not is_causal else causal_mask(T) if mask is None else mask & causal_mask(T)
    expected, got = attention(*exact, full), fused_attention(*low, mask, is_causal=is_causal)
    assert_close(got.double(), expected, atol=0.03, rtol=0.03)
    for tensor, reference in zip(gradients(got, low), gradients(expected, exact), strict=True):
        assert_close(tensor.double(), reference, atol=0.1, rtol=0.05)
    if kind == "blind":
        assert (got[1, :, 3] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_plain_equals_the_function_of_torch(kind):
    inputs, mask = make_qkv(), make_mask(kind)
    ours, theirs = attention(*inputs, mask), F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    assert_close(ours, theirs)
    for our, their in zip(gradients(ours, inputs), gradients(theirs, inputs), strict=True):
        assert_close(our, their)


@pytest.mark.parametrize("path", [attention, fused_attention])
def test_a_query_that_may_see_nothing_gets_exact_zeros_and_finite_gradients(path):
    inputs, mask = make_qkv(), make_mask("blind")
    context = path(*inputs, mask)
    assert (context[1, :, 3] == 0).all()
    by_query, by_key, by_value = gradients(context, inputs)
    assert (by_query[1, :, 3] == 0).all()
    assert all(gradient.isfinite().all() for gradient in (by_query, by_key, by_value))


@pytest.mark.parametrize("path", [attention, fused_attention])
def test_all_queries_blind(path):
    inputs = make_qkv()
    context = path(*inputs, torch.zeros(T, T, dtype=torch.bool))
    assert (context == 0).all()
    assert all((gradient == 0).all() for gradient in gradients(context, inputs))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_sum_to_one_and_blocked_ones_are_exactly_zero(kind):
    q, k, _ = make_qkv()
    mask = make_mask(kind)
    weights = attention_weights(q, k, mask)
    allowed = torch.ones(B, H, T, T, dtype=torch.bool) if mask is None else mask.expand(B, H, T, T)
    assert (weights[~allowed] == 0).all() and (weights >= 0).all()
    assert_close(weights.sum(-1), allowed.any(-1).double())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("shape", [(T,), (T, T), (H, T, T), (H, 1, T), (B, 1, 1, T)])
def test_a_bias_is_added_to_the_scores_in_both_paths(kind, is_causal, shape):
    """Forward and backward; written out with a fill of -1e300, and zeros where all is blocked."""
    inputs, mask = make_qkv(), make_mask(kind)
    bias = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    full = mask if not is_causal else causal_mask(T) if mask is None else mask & causal_mask(T)
    scores = inputs[0] @ inputs[1].transpose(-2, -1) / math.sqrt(K) + bias
    if full is not None:
        scores = scores.masked_fill(~full, -1e300)
    weights = scores.softmax(-1) if full is None else scores.softmax(-1) * full.any(-1, keepdim=True)
    expected = weights @ inputs[2]
    by_hand = gradients(expected, (*inputs, bias))
    assert_close(attention_weights(*inputs[:2], full, bias), weights)
    for context in (
        attention(*inputs, full, bias),
        fused_attention(*inputs, mask, bias, is_causal=is_causal),
    ):
        assert_close(context, expected)
        for ours, reference in zip(gradients(context, (*inputs, bias)), by_hand, strict=True):
            assert_close(ours, reference)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("mem_len", [T, 300])
def test_a_bias_in_bfloat16_stays_close(kind, is_causal, mem_len):
    """By two products, and with many keys by the fused kernel."""
    if mem_len == T:
        exact, mask = make_qkv(), make_mask(kind)
        full = mask if not is_causal else causal_mask(T) if mask is None else mask & causal_mask(T)
    else:
        exact = make_qkv(mem_len, mem_len)
        full = mask = None if kind == "none" else torch.arange(mem_len) < 200
        is_causal = False
    bias = alibi_bias(H, mem_len)
    low = [tensor.detach().bfloat16() for tensor in exact]
    got = fused_attention(*low, mask, bias, is_causal=is_causal)
    assert got.dtype == torch.bfloat16
    assert_close(got.double(), attention(*exact, full, bias.double()), atol=0.03, rtol=0.03)
    if kind == "blind" and mem_len == T:
        assert (got[1, :, 3] == 0).all()


def test_a_bias_of_a_wrong_kind_or_shape_is_refused():
    inputs = make_qkv()
    for path in (attention, fused_attention):
        with pytest.raises(TypeError, match="^bias must hold real numbers, got torch.bool$"):
            path(*inputs, None, causal_mask(T))
        with pytest.raises(ValueError, match=r"^bias must broadcast to \(2, 3, 5, 5\), got shape \(2, 5\)$"):
            path(*inputs, None, torch.zeros(B, T))


def test_memory_may_have_another_length_and_a_mask_may_be_broadcast():
    q, k, v = make_qkv(T, S)
    keys = torch.tensor([True] * 5 + [False] * 2)
    assert_close(attention(q, k, v, keys), attention(q, k[:, :, :5], v[:, :, :5]))
    assert_close(fused_attention(q, k, v, keys), attention(q, k[:, :, :5], v[:, :, :5]))


def test_no_leading_axes_are_needed():
    q, k, v = make_qkv()
    context = attention(q, k, v, causal_mask(T))
    assert_close(attention(q[1, 2], k[1, 2], v[1, 2], causal_mask(T)), context[1, 2])
    assert_close(fused_attention(q[1, 2], k[1, 2], v[1, 2], causal_mask(T)), context[1, 2])


@pytest.mark.parametrize("shape", [(S,), (1, S), (T, 1), (T, S), (H, T, S), (B, 1, 1, S), (B, H, 1, S)])
def test_masks_of_every_shape_that_broadcasts(shape):
    q, k, v = make_qkv(T, S)
    mask = torch.rand(shape) < 0.6
    everywhere = mask.expand(B, H, T, S)
    assert_close(attention(q, k, v, mask), attention(q, k, v, everywhere))
    assert_close(fused_attention(q, k, v, mask), attention(q, k, v, everywhere))


@pytest.mark.parametrize("path", [attention, fused_attention])
def test_inputs_are_not_modified(path):
    inputs, mask = make_qkv(), make_mask("blind")
    before, mask_before = [x.detach().clone() for x in inputs], mask.clone()
    path(*inputs, mask)
    for after, kept in zip([*inputs, mask], [*before, mask_before], strict=True):
        assert torch.equal(after, kept)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_large_scores_do_not_overflow_and_masks_hold_in_low_precision(dtype):
    q = torch.full((1, 1, T, K), 60.0, dtype=dtype)
    weights = attention_weights(q, q, causal_mask(T))
    expected = causal_mask(T).float() / torch.arange(1, T + 1)[:, None]
    assert_close(weights[0, 0].float(), expected, rtol=0, atol=2e-3)
    assert (weights[0, 0][~causal_mask(T)] == 0).all()


@pytest.mark.parametrize("path", [attention, fused_attention])
def test_masks_of_numbers_or_of_a_wrong_shape_are_refused(path):
    inputs = make_qkv()
    with pytest.raises(TypeError, match=r"^mask must be boolean \(True = may attend\), got torch.float32$"):
        path(*inputs, torch.zeros(T, T))
    with pytest.raises(ValueError, match=r"^mask must broadcast to \(2, 3, 5, 5\), got shape \(2, 5\)$"):
        path(*inputs, torch.ones(B, T, dtype=torch.bool))


def test_is_causal_needs_as_many_keys_as_queries():
    with pytest.raises(ValueError, match="^is_causal needs as many keys as queries, got T=5, S=7$"):
        fused_attention(*make_qkv(T, S), is_causal=True)


@pytest.mark.parametrize("seq_len", [1, 7, 300])
def test_causal_attention_in_bfloat16_stays_close_and_so_do_its_gradients(seq_len):
    exact = make_qkv(seq_len, seq_len)
    low = [tensor.detach().bfloat16().requires_grad_() for tensor in exact]
    got = fused_attention(*low, is_causal=True)
    wanted = attention(*exact, causal_mask(seq_len))
    assert_close(got.double(), wanted, atol=0.03, rtol=0.03)
    for ours, reference in zip(gradients(got, low), gradients(wanted, exact), strict=True):
        assert (ours.double() - reference).norm() < 0.02 * reference.norm() + 1e-9
    assert_close(fused_attention(*(tensor[0, 0] for tensor in low), is_causal=True), got[0, 0])
