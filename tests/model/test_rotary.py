"""Rotary positions: the rotation of `shift_matrix`, scores that know distances only, and those of Llama."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from tinytx.model.attention import MultiHeadAttention, attention_weights
from tinytx.model.positions import RotaryPositions, rotate, shift_matrix, sinusoidal_positions

B, H, T, S, K = 2, 3, 5, 7, 14


def vectors(seq_len, head_dim=K, dtype=torch.float64):
    return torch.randn(B, H, seq_len, head_dim, dtype=dtype)


def test_a_pair_turned_by_hand():
    """Speeds 1 and 0.1 (base 100, K = 4): place 3 turns by 3 and by 0.3."""
    x = torch.tensor([[2.0, 5.0, 7.0, 11.0]])
    expected = [
        2 * math.cos(3) + 5 * math.sin(3),
        5 * math.cos(3) - 2 * math.sin(3),
        7 * math.cos(0.3) + 11 * math.sin(0.3),
        11 * math.cos(0.3) - 7 * math.sin(0.3),
    ]
    assert_close(rotate(x, torch.tensor([3]), base=100), torch.tensor([expected]))


@pytest.mark.parametrize("base", [100.0, 10_000.0])
def test_turning_is_the_matrix_that_shifts_sinusoidal_positions(base):
    x = vectors(T)
    places = torch.tensor([0, 1, 511, -3, 8])
    turned = rotate(x, places, base)
    for t, place in enumerate(places.tolist()):
        assert_close(turned[:, :, t], x[:, :, t] @ shift_matrix(place, K, base).T)


def test_the_clock_of_place_0_turns_into_the_table_of_positions():
    start = sinusoidal_positions(1, K, dtype=torch.float64).expand(50, K)
    assert_close(rotate(start), sinusoidal_positions(50, K, dtype=torch.float64))


@given(st.integers(-10_000, 10_000), st.integers(0, 2**31))
def test_weights_depend_on_distances_only(shift, seed):
    draw = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(H, n, K, dtype=torch.float64, generator=draw) for n in (T, S))
    at_q, at_k = (torch.randint(100, (n,), generator=draw) for n in (T, S))
    here = attention_weights(rotate(q, at_q), rotate(k, at_k))
    there = attention_weights(rotate(q, at_q + shift), rotate(k, at_k + shift))
    assert_close(there, here, rtol=0, atol=1e-9)


def test_lengths_are_kept_and_inputs_untouched():
    x = vectors(T)
    before = x.clone()
    assert_close(rotate(x, torch.tensor([9, 0, 4, 700, 2])).norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(x, before)


def test_rotary_of_llama_is_the_same_up_to_the_order_of_the_numbers():
    """Llama pairs number i with number i + K/2, and has the two of a pair the other way round."""
    llama = pytest.importorskip(
        "transformers.models.llama.modeling_llama", reason="the extra `parity` is not installed"
    )
    config = llama.LlamaConfig(hidden_size=H * K, num_attention_heads=H, head_dim=K)
    q, k = vectors(T, dtype=torch.float32), vectors(T, dtype=torch.float32)
    places = torch.tensor([0, 1, 2, 30, 400])
    cos, sin = llama.LlamaRotaryEmbedding(config)(q, places[None])

    def halves(x):
        return torch.cat((x[..., 1::2], x[..., 0::2]), dim=-1)

    by_llama = llama.apply_rotary_pos_emb(halves(q), halves(k), cos, sin)
    for ours, theirs in zip((q, k), by_llama, strict=True):
        # Llama's angles are in float32: some 1e-5 off at place 400.
        assert_close(halves(rotate(ours, places)), theirs, rtol=0, atol=2e-4)


def test_angles_are_computed_in_float64():
    far = torch.tensor([100_000])
    turned = rotate(torch.tensor([[0.0, 1.0]]), far)
    assert turned.dtype == torch.float32
    assert turned[0, 0].item() == pytest.approx(math.sin(100_000), abs=1e-7)
    kept = RotaryPositions(100_001, 2)
    assert kept.sin[100_000, 0].item() == pytest.approx(math.sin(100_000), abs=1e-7)


def test_module_turns_queries_and_keys_by_their_places():
    q, k = vectors(T, dtype=torch.float32), vectors(T, dtype=torch.float32)
    turned_q, turned_k, bias = RotaryPositions(11, K)(q, k)
    assert_close(turned_q, rotate(q))
    assert_close(turned_k, rotate(k))
    assert bias is None


def test_fewer_queries_than_keys_stand_at_the_end():
    module, q, k = RotaryPositions(11, K), vectors(S), vectors(S)
    whole, _, _ = module(q, k)
    assert_close(module(q[:, :, -2:], k)[0], whole[:, :, -2:])


def test_low_precision_stays_and_comes_close():
    q, k = vectors(T), vectors(T)
    turned_q, turned_k, _ = RotaryPositions(11, K)(q.bfloat16(), k.bfloat16())
    assert turned_q.dtype == turned_k.dtype == torch.bfloat16
    assert_close(turned_q.double(), rotate(q), rtol=0.02, atol=0.02)


def test_module_learns_and_saves_nothing():
    module = RotaryPositions(11, K)
    assert list(module.parameters()) == [] and module.state_dict() == {}


def test_attention_with_rotary_is_attention_of_turned_heads():
    attn = MultiHeadAttention(d_model=H * K, n_heads=H, positions=RotaryPositions(11, K))
    x = torch.randn(B, T, H * K)
    q, k = (proj(x).unflatten(-1, (H, K)).transpose(1, 2) for proj in (attn.q_proj, attn.k_proj))
    assert_close(attn.weights(x), attention_weights(rotate(q), rotate(k)))


def test_errors_state_rule_and_value():
    with pytest.raises(ValueError, match="^head_dim must be even and positive, got head_dim=7$"):
        rotate(torch.ones(T, 7))
    with pytest.raises(ValueError, match="^head_dim must be even and positive, got head_dim=7$"):
        RotaryPositions(11, 7)
    with pytest.raises(ValueError, match="^max_len must be at least 1, got 0$"):
        RotaryPositions(0, K)
    with pytest.raises(ValueError, match="^base must be positive, got base=0$"):
        rotate(torch.ones(T, K), base=0)
    with pytest.raises(ValueError, match=r"^positions must have shape \(5,\), got \(7,\)$"):
        rotate(torch.ones(T, K), torch.arange(S))
    with pytest.raises(ValueError, match="^a sequence must hold at most max_len=6 tokens, got 7$"):
        RotaryPositions(6, K)(vectors(S), vectors(S))
    with pytest.raises(ValueError, match="^there must be at least as many keys as queries, got T=7, S=5$"):
        RotaryPositions(11, K)(vectors(S), vectors(T))
