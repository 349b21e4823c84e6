"""Settings: checked when built, immutable, and the same again after a trip through JSON."""

import dataclasses
import json

import pytest

from tinytx.config import PRESETS, TransformerConfig

SIZES = {"vocab_size": 11, "d_model": 6, "n_heads": 3, "n_layers": 2, "d_ff": 5}


@pytest.mark.parametrize("name", PRESETS)
def test_presets_survive_json(name):
    text = json.dumps(PRESETS[name].to_dict())
    assert TransformerConfig.from_dict(json.loads(text)) == PRESETS[name]


def test_configuration_cannot_be_changed_but_replaced():
    config = TransformerConfig(**SIZES)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 8
    assert config.replace(d_ff=7).d_ff == 7 and config.d_ff == 5


@pytest.mark.parametrize(
    ("change", "error", "values"),
    [
        ({"d_model": 7, "n_heads": 7}, ValueError, "sinusoidal .* d_model=7"),
        ({"positions": "rotary", "d_model": 9}, ValueError, "rotary .* d_model=9, n_heads=3"),
        ({"n_layers": 0}, ValueError, "n_layers .* 1, got 0"),
        ({"vocab_size": -1}, ValueError, "vocab_size .* 1, got -1"),
        ({"d_ff": 5.0}, TypeError, "d_ff .* 5.0"),
        ({"max_len": True}, TypeError, "max_len .* True"),
        ({"causal": 1}, TypeError, "causal .* 1"),
        ({"norm": "pre"}, ValueError, "first, last, got 'pre'"),
        ({"activation": "tanh"}, ValueError, "gelu, gelu-tanh, relu, silu, swiglu, got 'tanh'"),
        ({"positions": None}, ValueError, "sinusoidal, learned, rotary, alibi, none, got None"),
        ({"head_bias": 0}, TypeError, "head_bias .* 0"),
        ({"position_offset": -1}, ValueError, "position_offset .* 0, got -1"),
        ({"position_offset": 2}, ValueError, "position_offset=2, positions='sinusoidal'"),
        ({"dropout": 1.0}, ValueError, "dropout .* 1.0"),
        ({"dropout": "0"}, TypeError, "dropout .* '0'"),
        ({"n_segments": -1}, ValueError, "n_segments .* 0, got -1"),
        ({"embed_norm": 1}, TypeError, "embed_norm .* 1"),
        ({"norm_eps": 0}, ValueError, "norm_eps .* 0"),
        ({"norm_kind": "last"}, ValueError, "norm_kind .* layer, rms, got 'last'"),
        ({"n_kv_heads": 2}, ValueError, "n_kv_heads must divide n_heads.* n_heads=3, n_kv_heads=2"),
        ({"n_kv_heads": 6}, ValueError, "n_heads=3, n_kv_heads=6"),
        ({"n_kv_heads": 0}, ValueError, "n_kv_heads .* 1, got 0"),
        ({"n_kv_heads": 1.0}, TypeError, "n_kv_heads .* 1.0"),
        ({"rotary_base": 0.0}, ValueError, "rotary_base .* 0.0"),
        ({"rotary_base": "1"}, TypeError, "rotary_base .* '1'"),
        ({"n_experts": 0}, ValueError, "n_experts .* 1, got 0"),
        ({"experts_per_token": 0}, ValueError, "experts_per_token .* 1, got 0"),
        ({"experts_per_token": 2}, ValueError, "experts_per_token=2, n_experts=1"),
        ({"n_experts": 3, "experts_per_token": 5}, ValueError, "experts_per_token=5, n_experts=3"),
    ],
)
def test_errors_name_rule_and_value(change, error, values):
    with pytest.raises(error, match=values):
        TransformerConfig(**{**SIZES, **change})


def test_from_dict_names_every_unknown_and_every_missing_field():
    with pytest.raises(ValueError, match=r"unknown n_head \(did you mean n_heads\?\), zzz$"):
        TransformerConfig.from_dict({**SIZES, "n_head": 2, "zzz": 1})
    with pytest.raises(ValueError, match="got none for d_model, d_ff$"):
        TransformerConfig.from_dict({"vocab_size": 11, "n_heads": 3, "n_layers": 2})


def test_rare_fields_are_written_only_where_they_differ():
    config = TransformerConfig(**SIZES)
    changes = {"n_segments": 2, "embed_norm": True, "norm_eps": 1e-12, "norm_kind": "rms", "n_kv_heads": 1}
    changes |= {"rotary_base": 5e5, "n_experts": 3, "experts_per_token": 2}
    assert not set(changes) & set(config.to_dict())
    rare = config.replace(**changes)
    assert TransformerConfig.from_dict(rare.to_dict()) == rare
