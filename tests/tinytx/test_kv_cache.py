"""Incremental decoding: the scores that reading the whole row gives, for every model, in any order."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tinytx import kv_cache
from tinytx.attention import record_attention
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.kv_cache import IncrementalDecoder, KeyValues, few_rows, is_as_built
from tinytx.positions import RotaryPositions
from tinytx.transformer import Classifier, LanguageModel

N, BEAMS, S, T = 3, 2, 5, 7
R, H, K = 5, 2, 3
POSITIONS = ["sinusoidal", "learned", "rotary", "alibi", "none"]


def make_config(**changes):
    sizes = {"vocab_size": 11, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 5, "max_len": 9}
    return TransformerConfig(**sizes | changes)


def shaken(model):
    """Biases and norms that are not what they start with, so that each is seen to be used."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


@pytest.mark.parametrize("n_rows", [1, 4])
@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@torch.no_grad()
def test_a_language_model_read_in_steps(positions, norm, n_rows, dtype, tolerance):
    model = shaken(LanguageModel(make_config(positions=positions, norm=norm)).to(dtype))
    ids = torch.randint(11, (n_rows, 9))
    whole = model(ids)
    for start in (1, 4):  # of a prompt, read at once
        decoder = IncrementalDecoder(model.body, model.head, n_rows=n_rows, max_len=9)
        assert_close(decoder.read(ids[:, :start]), whole[:, start - 1], rtol=tolerance, atol=tolerance)
        for t in range(start, 9):
            assert decoder.length == t
            assert_close(decoder.read(ids[:, t : t + 1]), whole[:, t], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "changes",
    [
        {"bias": False},
        {"tie_embeddings": True, "scale_embeddings": False},
        {"activation": "relu", "embed_norm": True, "n_segments": 2},
        {"activation": "silu", "positions": "learned", "position_offset": 2},
        {"activation": "gelu-tanh", "norm_eps": 0.1, "head_bias": False},
        {"norm_kind": "rms", "activation": "swiglu", "positions": "rotary", "rotary_base": 50.0},
        {"n_heads": 6, "n_kv_heads": 2, "positions": "rotary", "activation": "swiglu", "bias": False},
        {"n_heads": 6, "n_kv_heads": 3, "positions": "alibi"},
        {"n_kv_heads": 1, "norm": "last"},
        {"n_experts": 5, "experts_per_token": 2, "activation": "swiglu"},
    ],
)
@torch.no_grad()
def test_every_setting_is_followed(changes):
    model = shaken(LanguageModel(make_config(**changes)).double())
    ids = torch.randint(11, (2, 6))
    decoder = IncrementalDecoder(model.body, model.head, n_rows=2, max_len=6)
    stepped = torch.stack([decoder.read(ids[:, t : t + 1]) for t in range(6)], dim=1)
    assert_close(stepped, model(ids), rtol=0, atol=1e-10)


GROUPED = {"n_heads": 6, "n_kv_heads": 2, "activation": "swiglu", "norm_kind": "rms", "n_experts": 3}


@pytest.mark.parametrize("changes", [{}, GROUPED])
@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])
@pytest.mark.parametrize("lengths", [(5, 3, 1), (5, 0, 5)])  # a source without any real token
@torch.no_grad()
def test_a_decoder_read_in_steps(norm, positions, lengths, changes):
    model = shaken(Translator(make_config(norm=norm, positions=positions, **changes)).double())
    memory, tgt_ids = torch.randn(N, S, 12, dtype=torch.double), torch.randint(11, (N * BEAMS, T))
    real = torch.arange(S) < torch.tensor(lengths)[:, None]
    decoder = IncrementalDecoder(
        model.decoder, model.head, n_rows=N * BEAMS, max_len=T, memory=memory, memory_padding_mask=real
    )
    whole = model.decode(tgt_ids, memory.repeat_interleave(BEAMS, 0), real.repeat_interleave(BEAMS, 0))
    for t in range(T):
        assert_close(decoder.read(tgt_ids[:, t : t + 1]), whole[:, t])


@torch.no_grad()
def test_rows_continue_in_another_order_and_sources_may_leave():
    model = shaken(Translator(make_config()).double())
    memory = model.encode(torch.randint(11, (N, S)))
    real = torch.arange(S) < torch.tensor([[5], [2], [3]])
    tgt_ids = torch.randint(11, (N * BEAMS, 3))
    decoder = IncrementalDecoder(
        model.decoder, model.head, n_rows=N * BEAMS, max_len=9, memory=memory, memory_padding_mask=real
    )
    decoder.read(tgt_ids)
    # Source 0 swaps its rows, source 1 leaves, source 2 continues with one of its rows twice.
    rows = torch.tensor([1, 0, 5, 5])
    decoder.select(rows)
    new_ids = torch.randint(11, (4, 1))
    longer = torch.cat([tgt_ids[rows], new_ids], dim=1)
    sources = [0, 0, 2, 2]
    assert_close(decoder.read(new_ids), model.decode(longer, memory[sources], real[sources])[:, -1])


@torch.no_grad()
def test_grouped_queries_store_their_own_heads_of_keys_only():
    model = LanguageModel(make_config(n_heads=6, n_kv_heads=2)).eval()
    decoder = IncrementalDecoder(model.body, model.head, n_rows=R, max_len=9)
    decoder.read(torch.randint(11, (R, 7)))
    assert [tuple(attn.cache._stored.shape) for attn in decoder._attentions] == [(2, R, 2, 9, 2)] * 2


def test_tokens_are_stored_in_their_order_up_to_the_longest_row():
    new = torch.randn(2, R, H, 7, K)
    cache = KeyValues(7)
    cache.append(new[:, :, :, :4])
    for t in range(4, 7):
        keys, values = cache.append(new[:, :, :, t : t + 1])
        assert_close(torch.stack([keys, values]), new[:, :, :, : t + 1])
    assert cache.length == 7
    with pytest.raises(ValueError, match="max_len=7 tokens, got 8"):
        cache.append(new[:, :, :, :1])


@pytest.mark.parametrize("rows", [[4, 0, 0, 3, 1], [0, 1, 2, 3, 4], [3, 3, 0], [2] * 8])
def test_cached_rows_continue_in_any_order_and_number(rows):
    new, more = torch.randn(2, R, H, 4, K), torch.randn(2, len(rows), H, 1, K)
    cache = KeyValues(5)
    cache.append(new)
    cache.select(torch.tensor(rows))
    keys, values = cache.append(more)
    assert_close(torch.stack([keys, values]), torch.cat([new[:, rows], more], dim=3))


def test_what_is_equal_before_start_is_not_copied():
    new = torch.randn(2, R, H, 4, K)
    new[:, :, :, :2] = new[:, :1, :, :2]  # all rows begin alike
    cache = KeyValues(5)
    cache.append(new)
    cache.select(torch.tensor([1, 1, 4, 3, 0]), start=2)
    keys, values = cache.append(new[:, :, :, :1])
    assert_close(torch.stack([keys, values])[:, :, :, :4], new[:, [1, 1, 4, 3, 0]])


@pytest.mark.parametrize("n_rows", [1, 5])
@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@torch.no_grad()
def test_products_laid_out_for_few_rows_are_those_of_the_layers(monkeypatch, n_rows, onednn, bias):
    monkeypatch.setattr(kv_cache, "_ONEDNN", onednn and kv_cache._ONEDNN)
    layers = [nn.Linear(7, 11, bias=bias), nn.Linear(7, 2, bias=bias)]
    product = few_rows(layers, n_rows)
    for rows in (n_rows, 3):  # others than were announced, too
        x = torch.randn(rows, 7)
        assert_close(product(x), torch.cat([layer(x) for layer in layers], dim=1))


CHANGES = {
    "replaced": lambda model: setattr(model.body.blocks[1].attn, "positions", RotaryPositions(9, 2)),
    "left out": lambda model: model.body.blocks.__delitem__(1),
    "put in": lambda model: setattr(model.body, "pos_embed", nn.Identity()),
    "hooked": lambda model: model.body.blocks[0].ff.register_forward_hook(lambda module, x, made: made * 0),
    "own forward": lambda model: setattr(model.body.final_norm, "forward", lambda x: x),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_is_noticed(change):
    model = LanguageModel(make_config())
    assert is_as_built(model.double().train()) and is_as_built(Translator(model.config))
    CHANGES[change](model)
    assert not is_as_built(model) and not is_as_built(Classifier(model.config))


def test_while_its_attention_is_recorded_a_model_is_not_read_in_another_way():
    model = LanguageModel(make_config())
    with record_attention(model) as outer:
        with record_attention(model) as inner:
            assert not is_as_built(model)
            model(torch.zeros(1, 2, dtype=torch.long))
        model(torch.zeros(1, 3, dtype=torch.long))
    assert is_as_built(model)
    lengths = [[weights.shape[2] for weights in recorded.values()] for recorded in (inner, outer)]
    assert lengths == [[2, 2], [3, 3]]
