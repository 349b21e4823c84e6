"""Blocks and whole models: torch's encoder, no leak from the future, padding, order, learning, errors."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.tinytx.against_torch import assert_same_gradients, copy_weights, parameter_pairs
from tinytx.attention import record_attention
from tinytx.classifier import Classifier, pool
from tinytx.config import PRESETS, TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.positions import sinusoidal_positions
from tinytx.transformer import LanguageModel, Transformer, bidirectional, record_hidden_states

TINY = TransformerConfig(vocab_size=11, d_model=6, n_heads=3, n_layers=3, d_ff=5, max_len=13)
B, T = 2, 7
POSITIONS = ["sinusoidal", "learned", "rotary", "alibi", "none"]
MODERN = {"norm_kind": "rms", "activation": "swiglu", "positions": "rotary", "n_kv_heads": 1}
MODERN |= {"n_experts": 5, "experts_per_token": 2}


class Reference(nn.Module):
    """Embedding, sinusoidal positions, `torch.nn.TransformerEncoder` and a linear layer, as in the lab."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        last = nn.LayerNorm(config.d_model, bias=config.bias) if config.norm == "first" else None
        self.embed = nn.Embedding(config.vocab_size, config.d_model)
        sizes = config.d_model, config.n_heads, config.d_ff
        how = {"activation": config.activation, "norm_first": config.norm == "first", "bias": config.bias}
        layer = nn.TransformerEncoderLayer(*sizes, dropout=0.0, batch_first=True, **how)
        self.encoder = nn.TransformerEncoder(layer, config.n_layers, last, enable_nested_tensor=False)
        self.head = nn.Linear(config.d_model, config.vocab_size)

    def forward(self, token_ids, padding_mask=None):
        x = self.embed(token_ids) * self.config.d_model**0.5
        x = x + sinusoidal_positions(token_ids.shape[1], self.config.d_model)
        blocked = ~torch.ones(token_ids.shape[1], token_ids.shape[1]).tril().bool()
        padded = None if padding_mask is None else ~padding_mask
        x = self.encoder(x, mask=blocked if self.config.causal else None, src_key_padding_mask=padded)
        return self.head(x)


@pytest.mark.parametrize("norm", ["last", "first"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("changes", [{}, {"activation": "gelu", "bias": False, "head_bias": True}], ids=str)
def test_seed_lab_equals_the_encoder_of_torch_forward_and_backward(norm, causal, padded, changes):
    config = PRESETS["seed-lab"].replace(norm=norm, causal=causal, **changes)
    ours, theirs = LanguageModel(config).double(), Reference(config).double()
    modules = [(ours.body.token_embed, theirs.embed), (ours.head, theirs.head)]
    modules += [(ours.body.final_norm, theirs.encoder.norm)] if norm == "first" else []
    pairs = [*parameter_pairs(modules, zip(ours.body.blocks, theirs.encoder.layers, strict=True))]
    copy_weights(pairs, theirs)
    token_ids = torch.randint(config.vocab_size, (3, 11))
    real = torch.arange(11) < torch.tensor([[11], [7], [2]]) if padded else None
    assert_same_gradients(ours(token_ids, real), theirs(token_ids, real), pairs)


def hidden_states(body, *inputs):
    with record_hidden_states(body) as hidden:
        output = body(*inputs)
    assert hidden[-1] is output and len(hidden) == body.config.n_layers + 1
    return hidden


@pytest.mark.parametrize("norm", ["last", "first"])
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("with_padding_mask", [False, True])
def test_future_tokens_move_no_past_hidden_state_in_any_layer(norm, positions, with_padding_mask):
    body = Transformer(TINY.replace(norm=norm, positions=positions))
    token_ids = torch.randint(11, (B, T))
    real = torch.ones(B, T, dtype=torch.bool) if with_padding_mask else None
    before = hidden_states(body, token_ids, real)
    for j in range(T):
        changed = token_ids.clone()
        changed[:, j] = (changed[:, j] + 1) % 11
        for depth, (old, new) in enumerate(zip(before, hidden_states(body, changed, real), strict=True)):
            assert torch.equal(old[:, :j], new[:, :j])
            assert not torch.isclose(old[:, j], new[:, j]).all()
            if depth > 0:  # from the first block on, the change reaches everything after it
                assert all(not torch.equal(old[:, t], new[:, t]) for t in range(j, T))


def make_batch(lengths=(7, 5, 2)):
    rows = [torch.randint(11, (length,)) for length in lengths]
    batch = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=3)
    return rows, batch, torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    "changes", [*({"positions": kind} for kind in POSITIONS), MODERN, MODERN | {"norm": "last"}], ids=str
)
def test_a_padded_batch_gives_what_single_rows_give(causal, changes):
    model = LanguageModel(TINY.replace(causal=causal, **changes)).double()
    rows, batch, real = make_batch((7, 5, 2, 1))
    padded, unmasked = model(batch, real), model(batch)
    for i, row in enumerate(rows):
        single = model(row[None])[0]
        assert_close(padded[i, : len(row)], single)
        # In a causal model real tokens never attend to the padding that follows them.
        assert causal == torch.isclose(unmasked[i, : len(row)], single).all() or len(row) == 7


def test_only_without_positions_do_reordered_tokens_give_reordered_hidden_states():
    order, token_ids = torch.tensor([3, 0, 6, 4, 1, 2, 5]), torch.randint(11, (B, T))
    for positions in POSITIONS:
        body = Transformer(TINY.replace(causal=False, positions=positions)).double()
        equivariant = torch.isclose(body(token_ids[:, order]), body(token_ids)[:, order]).all().item()
        assert equivariant == (positions == "none")


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("positions", POSITIONS)
def test_relative_positions_depend_on_distances_only(causal, positions):
    """Tokens behind two that are masked out have the hidden states that they have alone; else an error."""
    body = Transformer(TINY.replace(causal=causal, positions=positions)).double()
    token_ids = torch.randint(11, (B, T))
    moved, real = nn.functional.pad(token_ids, (2, 0)), (torch.arange(T + 2) >= 2).expand(B, -1)
    real = torch.cat([torch.ones_like(real[:1]), torch.zeros_like(real[:1]), real])  # all real, none real
    moved = torch.cat([moved[:1], moved[:1], moved])
    if positions in ("sinusoidal", "learned"):
        body(moved[:2], real[:2])
        with pytest.raises(ValueError, match="on the right .* absolute, got row 2"):
            body(moved, real)
    else:
        assert_close(body(moved, real)[2:, 2:], body(token_ids))


def test_embeddings_are_scaled_and_any_module_may_replace_the_positions():
    token_ids = torch.randint(11, (B, T))
    body = Transformer(TINY)
    body.pos_embed = nn.Linear(6, 6)
    assert_close(hidden_states(body, token_ids)[0], body.pos_embed(body.token_embed(token_ids) * 6**0.5))
    unscaled = Transformer(TINY.replace(positions="none", scale_embeddings=False))
    assert_close(hidden_states(unscaled, token_ids)[0], unscaled.token_embed(token_ids))


IDS = torch.zeros(2, 7).long()
ALL = torch.ones(2, 7, dtype=torch.bool)


def test_a_causal_body_reads_both_ways_for_a_while_and_also_after_an_error_one_way_again():
    torch.manual_seed(1)
    config = TINY.replace(causal=True)
    body = Transformer(config).eval()
    token_ids, other = torch.tensor([[1, 2, 3, 4, 5], [1, 2, 3, 4, 6]])
    one_way = body(token_ids[None])
    assert torch.equal(one_way[:, :4], body(other[None])[:, :4])
    with pytest.raises(ZeroDivisionError), bidirectional(body):
        assert not torch.allclose(body(token_ids[None])[:, :4], body(other[None])[:, :4], atol=1e-3)
        1 / 0  # noqa: B018
    assert body.config == config and torch.equal(body(token_ids[None]), one_way)


@pytest.mark.parametrize(
    ("inputs", "error", "values"),
    [
        ((torch.zeros(2, 14).long(),), ValueError, "max_len=13 .* 14"),
        ((torch.tensor([[3, 11]]),), ValueError, r"0\.\.10, got 3 to 11"),
        ((torch.tensor([[-1, 5]]),), ValueError, r"0\.\.10, got -1 to 5"),
        ((torch.zeros(7).long(),), ValueError, r"\(B, T\) .* \(7,\)"),
        ((torch.zeros(2, 0).long(),), ValueError, r"\(2, 0\)"),
        ((torch.zeros(2, 7),), TypeError, "float32"),
        ((IDS, ALL[:, 2:]), ValueError, r"padding_mask .* \(2, 7\), got \(2, 5\)"),
        ((IDS.to(torch.uint8),), TypeError, "token_ids must be .*uint8"),
        (([[1, 2]],), TypeError, "token_ids must be .* list"),
        ((IDS, torch.ones(2, 7)), TypeError, "padding_mask must be a boolean tensor"),
    ],
)
def test_bad_inputs_are_refused(inputs, error, values):
    with pytest.raises(error, match=values):
        Transformer(TINY)(*inputs)


def test_tables_that_can_be_computed_are_not_saved_and_equal_seeds_give_equal_weights():
    def build(positions):
        torch.manual_seed(7)
        return Transformer(TINY.replace(positions=positions)).state_dict()

    plain = build("none")
    for positions in ("sinusoidal", "rotary", "alibi"):
        saved = build(positions)
        assert saved.keys() == plain.keys() and all(torch.equal(saved[name], plain[name]) for name in plain)


@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])
@pytest.mark.parametrize("masked", [False, True])
def test_bfloat16_autocast_stays_close_to_float32(norm, positions, masked):
    model = LanguageModel(TINY.replace(norm=norm, positions=positions))
    _, batch, real = make_batch()
    inputs = (batch, real) if masked else (batch,)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(*inputs)
        classes = Classifier.from_body(model.body)(*inputs)
        with record_attention(model):
            recorded = model(*inputs)
    assert logits.dtype == torch.bfloat16 and classes.isfinite().all()
    assert_close(logits.float(), model(*inputs), rtol=0, atol=0.05)
    assert_close(recorded.float(), model(*inputs), rtol=0, atol=0.05)
    logits.float().square().mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("kind", [LanguageModel, MaskedLanguageModel, Translator])
def test_the_first_loss_is_that_of_a_uniform_guess(tied, norm, kind):
    sizes = {"vocab_size": 1_000, "d_model": 64, "d_ff": 256, "n_heads": 4, "max_len": 64}
    model = kind(TINY.replace(**sizes, norm=norm, tie_embeddings=tied))
    inputs = [torch.randint(1_000, (4, 64)) for _ in range(3 if kind is Translator else 2)]
    assert model.loss(*inputs).item() == pytest.approx(
        math.log(1_000), abs=(0.25 if norm == "first" else 0.6) if tied else 0.15
    )


def test_tied_tokens_weigh_about_as_much_as_the_positions_that_are_added_to_them():
    model = LanguageModel(
        TINY.replace(vocab_size=1_000, d_model=64, d_ff=256, n_heads=4, tie_embeddings=True)
    )
    tokens, positions = model.body.token_embed.weight * 64**0.5, model.body.pos_embed.table
    assert 0.6 < (tokens.square().mean() / positions.square().mean()).sqrt().item() < 1.5


def test_pooling_reads_real_tokens_only():
    hidden = torch.randn(3, 7, 5, dtype=torch.float64)
    real = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0, 0]]).bool()
    rows = [hidden[0], hidden[1, :3], hidden[2, 2:5]]
    hidden[~real] = float("nan")  # hidden states of padding mean nothing
    assert_close(pool(hidden, real, "mean"), torch.stack([row.mean(0) for row in rows]))
    assert_close(pool(hidden, real, "first"), torch.stack([row[0] for row in rows]))
    assert_close(pool(hidden, real, "last"), torch.stack([row[-1] for row in rows]))
    for pooling in ("mean", "first", "last"):  # a row of padding alone
        assert pool(torch.randn(1, 7, 5), torch.zeros(1, 7, dtype=torch.bool), pooling).isfinite().all()


def test_from_body_takes_the_very_body_and_arguments_are_checked():
    model = LanguageModel(TINY)
    classifier = Classifier.from_body(model.body, n_classes=7, pooling="last", dropout=0.5)
    assert classifier.body is model.body and classifier.config is model.config
    assert classifier.head.weight.shape == (7, 6)
    assert (classifier.pooling, classifier.dropout.p) == ("last", 0.5)
    with pytest.raises(ValueError, match="'max'"):
        Classifier(TINY, pooling="max")
    with pytest.raises(ValueError, match="got 0"):
        Classifier(TINY, n_classes=0)
    with pytest.raises(TypeError, match="model.body, got a LanguageModel"):
        Classifier(TINY, body=model)


@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_one_batch_is_overfitted(norm, positions):
    model = LanguageModel(TINY.replace(n_layers=2, d_model=30, d_ff=35, norm=norm, positions=positions))
    token_ids = torch.randint(11, (3, 8))
    token_ids[:, 0] = torch.tensor([2, 3, 5])  # rows begin differently: nothing else could tell them apart
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150):
        loss = model.loss(token_ids[:, :-1], token_ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05


@pytest.mark.parametrize(("kind", "n_sublayers"), [(LanguageModel, 2), (Translator, 3)])
@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("changes", [{}, MODERN])
def test_what_writes_into_the_stream_starts_smaller(kind, n_sublayers, norm, changes):
    model = kind(TINY.replace(d_model=60, d_ff=70, norm=norm, **changes))
    stack = model.decoder if kind is Translator else model.body
    gain = (n_sublayers * 3) ** -0.5 if norm == "first" else 1.0
    for name, proj in stack.blocks.named_modules():
        if isinstance(proj, nn.Linear) and not name.endswith("router"):
            own = gain if name.endswith(("out_proj", "down_proj")) else 1.0
            bound = own * (6 / sum(proj.weight.shape)) ** 0.5  # of Glorot's uniform distribution
            assert proj.weight.abs().max().item() == pytest.approx(bound, rel=0.02)
