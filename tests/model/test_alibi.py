"""ALiBi: slopes worked by hand and those of Bloom, biases by distance, and attention that wears them."""

import pytest
import torch
from torch.testing import assert_close

from tinytx.model.attention import MultiHeadAttention, attention, attention_weights
from tinytx.model.masks import causal_mask
from tinytx.model.positions import AlibiPositions, alibi_bias, alibi_slopes

B, H, T, S, K = 2, 3, 5, 7, 11


def test_slopes_of_eight_heads_are_those_of_the_paper():
    assert alibi_slopes(8).tolist() == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


def test_slopes_for_other_numbers_of_heads():
    assert alibi_slopes(1).tolist() == [1 / 256]
    assert alibi_slopes(3).tolist() == [1 / 16, 1 / 256, 1 / 4]  # two heads, then the first of four
    assert alibi_slopes(6).tolist() == [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]


@pytest.mark.parametrize("n_heads", range(1, 70))
def test_there_is_one_slope_a_head_and_all_differ(n_heads):
    slopes = alibi_slopes(n_heads)
    assert slopes.shape == (n_heads,) and len(set(slopes.tolist())) == n_heads
    assert ((slopes > 0) & (slopes < 1)).all()


@pytest.mark.parametrize("n_heads", [*range(1, 18), 32, 71, 112])
def test_biases_are_those_of_bloom_up_to_a_constant_in_each_row(n_heads):
    bloom = pytest.importorskip(
        "transformers.models.bloom.modeling_bloom", reason="the extra `parity` is not installed"
    )
    # (H, 1, S): the place of the query is left out, since softmax takes no notice of it.
    theirs = bloom.build_alibi_tensor(torch.ones(1, S, dtype=torch.long), n_heads, torch.float32)
    ours = alibi_bias(n_heads, S)
    for t in range(S):
        difference = (ours - theirs)[:, t, : t + 1]  # over the keys that a causal query sees
        assert_close(difference, difference[:, :1].expand(n_heads, t + 1))


def test_biases_are_minus_slope_times_distance_on_both_sides():
    bias = alibi_bias(H, T)
    for h, slope in enumerate(alibi_slopes(H).tolist()):
        for t in range(T):
            for s in range(T):
                assert bias[h, t, s].item() == pytest.approx(-slope * abs(t - s), abs=1e-7)
    assert torch.equal(bias, bias.transpose(1, 2))


def test_fewer_queries_than_keys_stand_at_the_end():
    assert torch.equal(alibi_bias(H, 2, S), alibi_bias(H, S)[:, -2:])


def test_longer_biases_begin_with_shorter_ones():
    assert torch.equal(alibi_bias(H, S)[:, :T, :T], alibi_bias(H, T))


def test_module_leaves_queries_and_keys_alone():
    q, k = torch.randn(B, H, T, K), torch.randn(B, H, S, K)
    same_q, same_k, bias = AlibiPositions(H)(q, k)
    assert same_q is q and same_k is k
    assert torch.equal(bias, alibi_bias(H, T, S))
    assert AlibiPositions(H)(q.bfloat16(), k.bfloat16())[2].dtype == torch.bfloat16


def test_module_learns_and_saves_nothing():
    module = AlibiPositions(H)
    assert list(module.parameters()) == [] and module.state_dict() == {}


def test_attention_with_alibi_is_attention_of_heads_with_their_bias():
    attn = MultiHeadAttention(d_model=H * K, n_heads=H, positions=AlibiPositions(H))
    x = torch.randn(B, T, H * K)
    q, k = (proj(x).unflatten(-1, (H, K)).transpose(1, 2) for proj in (attn.q_proj, attn.k_proj))
    assert_close(attn.weights(x), attention_weights(q, k, bias=alibi_bias(H, T)))


def test_equal_keys_are_weighed_by_distance_alone():
    """Slope 1/4 of the first of four heads: each step back weighs exp(-1/4) as much as the one before."""
    q, k, v = torch.zeros(4, T, K), torch.zeros(4, T, K), torch.randn(4, T, K)
    weights = attention_weights(q, k, causal_mask(T), alibi_bias(4, T))
    ratios = weights[0, -1, :-1] / weights[0, -1, 1:]
    assert_close(ratios, torch.full((T - 1,), -0.25).exp())
    assert_close(attention(q, k, v, causal_mask(T), alibi_bias(4, T)), weights @ v)


def test_errors_state_rule_and_value():
    for build in (alibi_slopes, AlibiPositions, lambda n_heads: alibi_bias(n_heads, T)):
        with pytest.raises(ValueError, match="^n_heads must be at least 1, got 0$"):
            build(0)
    with pytest.raises(ValueError, match="^there must be at least as many keys as queries, got T=7, S=5$"):
        alibi_bias(H, S, T)
