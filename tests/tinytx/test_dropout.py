"""Dropout: its share, its mean, its gradient, and when it does nothing."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.tinytx.against_torch import copy_weights, parameter_pairs
from tinytx.attention import fused_attention
from tinytx.config import TransformerConfig
from tinytx.dropout import Dropout, dropout
from tinytx.encoder_decoder import DecoderBlock
from tinytx.transformer import Block, Classifier, record_hidden_states

TINY = TransformerConfig(vocab_size=11, d_model=6, n_heads=3, n_layers=3, d_ff=5, max_len=13, dropout=0.1)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.999])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_share_is_right_and_the_rest_is_scaled_so_that_the_mean_stays(p, dtype):
    dropped = dropout(torch.ones(401, 257, dtype=dtype), p)
    level = min(round(p * 256), 255)
    assert abs((dropped == 0).double().mean().item() - level / 256) < 0.01
    (scale,) = dropped[dropped != 0].unique().tolist()
    assert_close(scale, torch.tensor(256 / (256 - level), dtype=dtype).item())


def test_the_gradient_passes_where_the_number_passed():
    x = torch.randn(7, 11, 3, requires_grad=True)
    dropped = dropout(x, 0.4)
    weighting = torch.randn_like(dropped)
    (dropped * weighting).sum().backward()
    assert_close(x.grad, weighting * dropped.detach() / x.detach())


def test_equal_seeds_drop_the_same_and_neighbours_are_independent():
    x = torch.ones(100_003)
    torch.manual_seed(3)
    first, second = dropout(x, 0.25), dropout(x, 0.25)
    torch.manual_seed(3)
    assert torch.equal(dropout(x, 0.25), first) and not torch.equal(first, second)
    zeros = (first == 0).double()
    for lag in (1, 2, 7, 8, 64):
        assert abs((zeros[lag:] * zeros[:-lag]).mean().item() - 0.25**2) < 0.01


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5])
def test_a_share_outside_its_range_is_refused(p):
    with pytest.raises(ValueError, match=rf"\[0, 1\), got {p}"):
        dropout(torch.ones(3), p)


def test_outside_training_and_at_0_the_input_is_returned_itself():
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x and Dropout(0.0)(x) is x
    assert not torch.equal(Dropout(0.5)(x), x)


@pytest.fixture
def a_factor(monkeypatch):
    """Each dropout becomes a factor of 0.7: one that is missing, or in another place, changes the output."""
    for kind in (nn.Dropout, Dropout):
        monkeypatch.setattr(kind, "forward", lambda self, x: 0.7 * x if self.p else x)


@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("kind", [Block, DecoderBlock])
def test_it_acts_where_it_does_in_the_layers_of_torch(a_factor, norm, kind):
    layer = nn.TransformerEncoderLayer if kind is Block else nn.TransformerDecoderLayer
    ours = kind(TINY.replace(norm=norm)).double()
    how = {"dropout": 0.1, "activation": "gelu", "batch_first": True, "norm_first": norm == "first"}
    theirs = layer(6, 3, 5, **how).double()
    copy_weights(parameter_pairs([], [(ours, theirs)]), theirs)
    for attn in (*ours.modules(), *theirs.modules()):
        if isinstance(getattr(attn, "dropout", None), float):
            assert attn.dropout == 0.1
            attn.dropout = 0.0
    x, memory = (torch.randn(2, n, 6, dtype=torch.float64) for n in (7, 5))
    inputs = (x,) if kind is Block else (x, memory)
    assert_close(ours(*inputs), theirs(*inputs))


def test_it_acts_on_embeddings_and_before_the_classes(a_factor):
    token_ids = torch.randint(11, (2, 7))
    model = Classifier(TINY)
    with record_hidden_states(model.body) as hidden:
        logits = model(token_ids)
    x = model.body.token_embed(token_ids) * 6**0.5
    assert_close(hidden[0], 0.7 * model.body.pos_embed(x))
    assert_close(logits, model.head(0.7 * hidden[-1].mean(dim=1)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_acts_on_attention_weights(dtype):
    q, k, v = (torch.randn(1, 2, 5, 4).to(dtype) for _ in range(3))
    assert not torch.equal(fused_attention(q, k, v, dropout=0.5), fused_attention(q, k, v, dropout=0.5))
