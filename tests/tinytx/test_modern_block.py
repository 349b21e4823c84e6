"""What replaced parts of the block, each by its formula: RMSNorm, SwiGLU, grouped queries, experts."""

import pytest
import torch
from torch.testing import assert_close

from tinytx.attention import MultiHeadAttention, record_attention
from tinytx.config import TransformerConfig
from tinytx.masks import causal_mask
from tinytx.positions import AlibiPositions, RotaryPositions
from tinytx.transformer import FeedForward, MixtureOfExperts, make_norm

B, T, D, H, G, FF, E = 2, 5, 12, 6, 2, 7, 5
CONFIG = TransformerConfig(vocab_size=11, d_model=D, n_heads=H, n_layers=3, d_ff=FF, max_len=T)
EXPERTS = {"n_experts": E, "experts_per_token": 2}


def test_rms_norm_divides_by_the_root_of_the_mean_square():
    norm, x = make_norm(CONFIG.replace(norm_kind="rms", norm_eps=0.3)).double(), torch.randn(B, T, D).double()
    torch.nn.init.normal_(norm.weight)
    sizes = ((x * x).sum(dim=-1, keepdim=True) / D + 0.3) ** 0.5
    assert_close(norm(x), x / sizes * norm.weight)
    assert [name for name, _ in norm.named_parameters()] == ["weight"]


@pytest.mark.parametrize("bias", [True, False])
def test_swiglu_multiplies_two_projections_one_through_silu(bias):
    ff, x = FeedForward(CONFIG.replace(activation="swiglu", bias=bias)), torch.randn(B, T, D)
    up, gate, down = (
        lambda x, proj=proj: x @ proj.weight.T + (proj.bias if bias else 0)
        for proj in (ff.up_proj, ff.gate_proj, ff.down_proj)
    )
    gates = gate(x)
    assert_close(ff(x), down(gates * torch.sigmoid(gates) * up(x)))
    assert ff.gate_proj.weight.shape == (FF, D)


@pytest.mark.parametrize("positions", [None, RotaryPositions(T, D // H), AlibiPositions(H)])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_grouped_queries_are_heads_with_equal_keys_and_values(n_kv_heads, positions):
    """Many heads, of which those of one group have the same matrices, compute the same."""
    grouped = MultiHeadAttention(d_model=D, n_heads=H, n_kv_heads=n_kv_heads, positions=positions)
    full = MultiHeadAttention(d_model=D, n_heads=H, positions=positions)
    state = grouped.state_dict()
    for name in [name for name in state if name[0] in "kv"]:
        heads = state[name].unflatten(0, (n_kv_heads, D // H))
        state[name] = torch.cat([heads[h * n_kv_heads // H] for h in range(H)])
    full.load_state_dict(state)
    x, mask = torch.randn(B, T, D), causal_mask(T)
    assert_close(grouped(x, mask=mask), full(x, mask=mask))
    with record_attention(grouped) as recorded:
        assert_close(grouped(x, mask=mask), full(x, mask=mask))
    assert recorded[""].shape == (B, H, T, T)


@pytest.mark.parametrize("n_chosen", [1, 2, E])
@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_each_token_goes_through_the_experts_of_its_largest_scores(n_chosen, activation):
    config = CONFIG.replace(n_experts=E, experts_per_token=n_chosen, activation=activation)
    mixture, x = MixtureOfExperts(config).double(), torch.randn(B, T, D).double()
    expected = torch.zeros_like(x)
    for b in range(B):
        for t in range(T):
            scores = (mixture.router.weight @ x[b, t]).exp()
            for e in sorted(range(E), key=lambda e: scores[e])[-n_chosen:]:
                expected[b, t] += scores[e] / scores.sum() * mixture.experts[e](x[b, t])
    assert_close(mixture(x), expected)


def test_router_and_all_experts_get_gradients_though_one_is_never_chosen():
    mixture = MixtureOfExperts(CONFIG.replace(n_experts=E))
    with torch.no_grad():
        mixture.router.weight[3] = -100.0
    mixture(torch.rand(B, T, D)).square().sum().backward()
    assert all(parameter.grad is not None for parameter in mixture.parameters())
    assert mixture.router.weight.grad.abs().sum() > 0
    assert mixture.experts[3].up_proj.weight.grad.eq(0).all()


def test_experts_work_in_bfloat16():
    mixture, x = MixtureOfExperts(CONFIG.replace(**EXPERTS)), torch.randn(B, T, D)
    with torch.autocast("cpu", torch.bfloat16):
        assert_close(mixture(x).float(), mixture(x.bfloat16()).float(), rtol=0.1, atol=0.1)
    assert_close(mixture.bfloat16()(x.bfloat16()).float(), mixture.float()(x), rtol=0.1, atol=0.1)
