"""The body as a whole: torch's encoder, the leak test, padding, order, and what it refuses."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tinytx.model.config import PRESETS, TransformerConfig
from tinytx.model.positions import sinusoidal_positions
from tinytx.model.transformer import LanguageModel, Transformer

TINY = TransformerConfig(vocab_size=11, d_model=6, n_heads=3, n_layers=3, d_ff=5, max_len=13)
B, T = 2, 7


@pytest.fixture
def float64():
    """Build everything in float64, tables included."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


class Reference(nn.Module):
    """Embedding, sinusoidal positions, `torch.nn.TransformerEncoder` and a linear layer, as in the lab."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        layer = nn.TransformerEncoderLayer(
            config.d_model,
            config.n_heads,
            config.d_ff,
            dropout=0.0,
            activation=config.activation,
            batch_first=True,
            norm_first=config.norm == "first",
        )
        last = nn.LayerNorm(config.d_model) if config.norm == "first" else None
        self.embed = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = nn.TransformerEncoder(layer, config.n_layers, norm=last, enable_nested_tensor=False)
        self.head = nn.Linear(config.d_model, config.vocab_size)

    def forward(self, token_ids, padding_mask=None):
        x = self.embed(token_ids) * self.config.d_model**0.5
        x = x + sinusoidal_positions(token_ids.shape[1], self.config.d_model)
        blocked = ~torch.ones(token_ids.shape[1], token_ids.shape[1]).tril().bool()
        padded = None if padding_mask is None else ~padding_mask
        x = self.encoder(x, mask=blocked if self.config.causal else None, src_key_padding_mask=padded)
        return self.head(x)


def pairs_of_parameters(ours, theirs):
    """Our parameters, where need be side by side, with those of torch's model."""
    yield [ours.body.token_embed.weight], theirs.embed.weight
    for block, layer in zip(ours.body.blocks, theirs.encoder.layers, strict=True):
        projections = (block.attn.q_proj, block.attn.k_proj, block.attn.v_proj)
        yield [projection.weight for projection in projections], layer.self_attn.in_proj_weight
        yield [projection.bias for projection in projections], layer.self_attn.in_proj_bias
        for mine, its in [
            (block.attn.out_proj, layer.self_attn.out_proj),
            (block.attn_norm, layer.norm1),
            (block.ff.up_proj, layer.linear1),
            (block.ff.down_proj, layer.linear2),
            (block.ff_norm, layer.norm2),
        ]:
            yield [mine.weight], its.weight
            yield [mine.bias], its.bias
    if ours.config.norm == "first":
        yield [ours.body.final_norm.weight], theirs.encoder.norm.weight
        yield [ours.body.final_norm.bias], theirs.encoder.norm.bias
    yield [ours.head.weight], theirs.head.weight
    yield [ours.head.bias], theirs.head.bias


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("norm", ["last", "first"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("padded", [False, True])
def test_seed_lab_equals_the_encoder_of_torch_forward_and_backward(norm, causal, padded):
    config = PRESETS["seed-lab"].replace(norm=norm, causal=causal)
    ours, theirs = LanguageModel(config), Reference(config)
    with torch.no_grad():
        for mine, its in pairs_of_parameters(ours, theirs):
            its.copy_(torch.cat(mine))
    assert sum(its.numel() for _, its in pairs_of_parameters(ours, theirs)) == sum(
        parameter.numel() for parameter in theirs.parameters()
    )  # nothing was left uncopied
    token_ids = torch.randint(config.vocab_size, (3, 11))
    real = torch.arange(11) < torch.tensor([[11], [7], [2]]) if padded else None
    logits, expected = ours(token_ids, real), theirs(token_ids, real)
    assert_close(logits, expected, rtol=0, atol=1e-9)
    weighting = torch.randn_like(logits)
    (logits * weighting).sum().backward()
    (expected * weighting).sum().backward()
    for mine, its in pairs_of_parameters(ours, theirs):
        assert_close(torch.cat([parameter.grad for parameter in mine]), its.grad, rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("norm", ["last", "first"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])
def test_trace_equals_forward(norm, positions):
    body = Transformer(TINY.replace(norm=norm, positions=positions))
    token_ids = torch.randint(11, (B, T))
    real = torch.arange(T) < torch.tensor([[7], [5]])
    for padding_mask in (None, real):
        trace = body.trace(token_ids, padding_mask)
        assert_close(trace.hidden[-1], body(token_ids, padding_mask))
        assert len(trace.hidden) == 4 and {tuple(x.shape) for x in trace.hidden} == {(B, T, 6)}
        assert len(trace.attn_weights) == 3 and {tuple(x.shape) for x in trace.attn_weights} == {(B, 3, T, T)}
        for weights in trace.attn_weights:
            assert_close(weights.sum(-1), torch.ones(B, 3, T))


def outputs_of_every_layer(body, token_ids, padding_mask=None):
    trace = body.trace(token_ids, padding_mask)
    return [*trace.hidden, body(token_ids, padding_mask)]


@pytest.mark.parametrize("norm", ["last", "first"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])
@pytest.mark.parametrize("with_padding_mask", [False, True])
def test_changing_a_token_moves_nothing_before_it_in_any_layer(norm, positions, with_padding_mask):
    body = Transformer(TINY.replace(norm=norm, positions=positions))
    token_ids = torch.randint(11, (B, T))
    real = torch.ones(B, T, dtype=torch.bool) if with_padding_mask else None
    before = outputs_of_every_layer(body, token_ids, real)
    for j in range(T):
        changed = token_ids.clone()
        changed[:, j] = (changed[:, j] + 1) % 11
        for depth, (old, new) in enumerate(
            zip(before, outputs_of_every_layer(body, changed, real), strict=True)
        ):
            assert torch.equal(old[:, :j], new[:, :j])
            assert not torch.isclose(old[:, j], new[:, j]).all()
            if depth > 0:  # from the first block on, the change reaches everything after it
                assert all(not torch.equal(old[:, t], new[:, t]) for t in range(j, T))


@pytest.mark.parametrize("norm", ["last", "first"])
def test_without_the_mask_a_changed_token_moves_what_stands_before_it(norm):
    body = Transformer(TINY.replace(norm=norm, causal=False))
    token_ids = torch.randint(11, (B, T))
    before = outputs_of_every_layer(body, token_ids)
    changed = token_ids.clone()
    changed[:, T - 1] = (changed[:, T - 1] + 1) % 11
    after = outputs_of_every_layer(body, changed)
    assert torch.equal(before[0][:, : T - 1], after[0][:, : T - 1])  # embeddings know no context
    for old, new in zip(before[1:], after[1:], strict=True):
        assert all(not torch.equal(old[:, t], new[:, t]) for t in range(T))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])
def test_a_padded_batch_gives_what_single_rows_give(causal, positions):
    body = Transformer(TINY.replace(causal=causal, positions=positions))
    rows = [torch.randint(11, (length,)) for length in (7, 5, 2, 1)]
    batch = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=3)
    real = torch.arange(7) < torch.tensor([[len(row)] for row in rows])
    padded, traced = body(batch, real), body.trace(batch, real).hidden[-1]
    unmasked = body(batch)
    for i, row in enumerate(rows):
        single = body(row[None])[0]
        assert_close(padded[i, : len(row)], single)
        assert_close(traced[i, : len(row)], single)
        if causal:  # real tokens never see the padding that follows them
            assert_close(unmasked[i, : len(row)], single)


def test_without_a_padding_mask_a_body_that_looks_both_ways_sees_the_padding():
    body = Transformer(TINY.replace(causal=False))
    batch = torch.tensor([[5, 7, 3, 3, 3]])
    assert not torch.isclose(body(batch)[0, 0], body(batch[:, :2])[0, 0]).all()


@pytest.mark.usefixtures("float64")
def test_without_positions_reordered_tokens_give_reordered_vectors():
    order = torch.tensor([3, 0, 6, 4, 1, 2, 5])
    token_ids = torch.randint(11, (B, T))
    for positions in ("none", "sinusoidal", "learned", "rotary", "alibi"):
        body = Transformer(TINY.replace(causal=False, positions=positions))
        equivariant = torch.isclose(body(token_ids[:, order]), body(token_ids)[:, order]).all().item()
        assert equivariant == (positions == "none")


def test_any_module_may_stand_in_for_positions():
    body = Transformer(TINY)
    body.pos_embed = nn.Linear(6, 6)
    token_ids = torch.randint(11, (B, T))
    assert_close(body.trace(token_ids).hidden[0], body.pos_embed(body.token_embed(token_ids) * 6**0.5))


def test_embeddings_are_scaled_by_the_root_of_the_width():
    body = Transformer(TINY.replace(positions="none"))
    token_ids = torch.randint(11, (B, T))
    assert_close(body.trace(token_ids).hidden[0], body.token_embed(token_ids) * 6**0.5)
    unscaled = Transformer(TINY.replace(positions="none", scale_embeddings=False))
    assert_close(unscaled.trace(token_ids).hidden[0], unscaled.token_embed(token_ids))


@pytest.mark.parametrize(
    ("token_ids", "error", "message"),
    [
        (torch.zeros(2, 14).long(), ValueError, "a row must hold at most max_len=13 token ids, got 14"),
        (torch.tensor([[3, 11]]), ValueError, "token_ids must lie in 0..10, got 3 to 11"),
        (torch.tensor([[-1, 5]]), ValueError, "token_ids must lie in 0..10, got -1 to 5"),
        (torch.zeros(7).long(), ValueError, r"token_ids must have shape \(B, T\) .* got \(7,\)"),
        (torch.zeros(2, 0).long(), ValueError, r"token_ids must have shape .* got \(2, 0\)"),
        (torch.zeros(2, 7), TypeError, "token_ids must be integers, got torch.float32"),
    ],
)  # fmt: skip
def test_bad_token_ids_are_refused(token_ids, error, message):
    body = Transformer(TINY)
    for call in (body, body.trace):
        with pytest.raises(error, match=f"^{message}$"):
            call(token_ids)


def test_bad_padding_masks_are_refused():
    body, token_ids = Transformer(TINY), torch.zeros(2, 7).long()
    with pytest.raises(
        ValueError, match=r"^padding_mask must have the shape of token_ids, \(2, 7\), got \(2, 5\)$"
    ):
        body(token_ids, torch.ones(2, 5, dtype=torch.bool))
    with pytest.raises(TypeError, match="^padding_mask must be boolean"):
        body(token_ids, torch.ones(2, 7))


def test_the_longest_sequence_is_taken():
    assert Transformer(TINY)(torch.zeros(1, 13).long()).shape == (1, 13, 6)


def test_inputs_are_not_modified():
    body, token_ids = Transformer(TINY), torch.randint(11, (B, T))
    real = torch.arange(T) < torch.tensor([[7], [5]])
    ids_before, real_before = token_ids.clone(), real.clone()
    body(token_ids, real)
    body.trace(token_ids, real)
    assert torch.equal(token_ids, ids_before) and torch.equal(real, real_before)


@pytest.mark.parametrize("norm", ["last", "first"])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])
def test_a_row_of_padding_alone_gives_finite_vectors_and_gradients(norm, positions):
    body = Transformer(TINY.replace(norm=norm, positions=positions))
    real = torch.tensor([[True] * 7, [False] * 7])
    hidden = body(torch.randint(11, (B, T)), real)
    hidden.square().sum().backward()
    assert hidden.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in body.parameters())


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])
def test_what_can_be_computed_again_is_not_saved(positions):
    saved = Transformer(TINY.replace(positions=positions)).state_dict()
    assert saved.keys() == Transformer(TINY.replace(positions="none")).state_dict().keys()


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_relative_positions_know_distances_and_no_places(causal, positions):
    """Tokens moved on by two places, with the first two out of sight, give the same vectors."""
    body = Transformer(TINY.replace(causal=causal, positions=positions))
    token_ids = torch.randint(11, (B, T))
    moved = nn.functional.pad(token_ids, (2, 0))
    real = (torch.arange(T + 2) >= 2).expand(B, -1)
    assert_close(body(moved, real)[:, 2:], body(token_ids))
    absolute = Transformer(TINY.replace(causal=causal, positions="sinusoidal"))
    assert not torch.isclose(absolute(moved, real)[:, 2:], absolute(token_ids)).all()


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_bfloat16_on_the_cpu_stays_close_to_float32(positions):
    body = Transformer(TINY.replace(positions=positions))
    token_ids = torch.randint(11, (B, T))
    for padding_mask in (None, torch.arange(T) < torch.tensor([[7], [5]])):
        expected = body(token_ids, padding_mask)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert_close(body(token_ids, padding_mask).float(), expected, rtol=0.05, atol=0.05)


def test_equal_seeds_give_equal_weights():
    def build():
        torch.manual_seed(7)
        return Transformer(TINY).state_dict()

    first, second = build(), build()
    assert all(torch.equal(first[name], second[name]) for name in first)
