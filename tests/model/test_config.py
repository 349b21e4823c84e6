"""Settings: checked when built, immutable, and the same again after a trip through JSON."""

import dataclasses
import json

import pytest

from tinytx.model.config import PRESETS, TransformerConfig

SIZES = {"vocab_size": 11, "d_model": 6, "n_heads": 3, "n_layers": 2, "d_ff": 5}


def test_seed_lab_is_the_model_of_the_lab():
    expected = TransformerConfig(
        vocab_size=100,
        d_model=200,
        n_heads=2,
        n_layers=4,
        d_ff=200,
        max_len=512,
        causal=True,
        norm="last",
        activation="relu",
        positions="sinusoidal",
        tie_embeddings=False,
    )
    assert PRESETS["seed-lab"] == expected


def test_head_dim_times_heads_is_the_width():
    config = TransformerConfig(**SIZES)
    assert (config.head_dim, config.head_dim * config.n_heads) == (2, config.d_model)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_survive_json(name):
    text = json.dumps(PRESETS[name].to_dict())
    assert TransformerConfig.from_dict(json.loads(text)) == PRESETS[name]


def test_configuration_cannot_be_changed_but_replaced():
    config = TransformerConfig(**SIZES)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 8
    assert config.replace(d_ff=7).d_ff == 7 and config.d_ff == 5


def test_replace_checks_again():
    with pytest.raises(ValueError, match="^n_heads must divide d_model, got d_model=200, n_heads=3$"):
        PRESETS["seed-lab"].replace(n_heads=3)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_heads": 4}, ValueError, "n_heads must divide d_model, got d_model=6, n_heads=4"),
        (
            {"d_model": 7, "n_heads": 7},
            ValueError,
            "d_model must be even for sinusoidal positions, got d_model=7",
        ),
        (
            {"positions": "rotary", "d_model": 9},
            ValueError,
            "head_dim = d_model / n_heads must be even for rotary positions, got d_model=9, n_heads=3",
        ),
        ({"n_layers": 0}, ValueError, "n_layers must be at least 1, got 0"),
        ({"vocab_size": -1}, ValueError, "vocab_size must be at least 1, got -1"),
        ({"d_ff": 5.0}, TypeError, "d_ff must be an integer, got 5.0"),
        ({"max_len": True}, TypeError, "max_len must be an integer, got True"),
        ({"causal": 1}, TypeError, "causal must be True or False, got 1"),
        ({"norm": "pre"}, ValueError, "norm must be one of first, last, got 'pre'"),
        (
            {"activation": "tanh"},
            ValueError,
            "activation must be one of gelu, gelu-tanh, relu, silu, got 'tanh'",
        ),
        (
            {"positions": None},
            ValueError,
            "positions must be one of sinusoidal, learned, rotary, alibi, none, got None",
        ),
        ({"head_bias": 0}, TypeError, "head_bias must be True, False or None, got 0"),
        ({"position_offset": -1}, ValueError, "position_offset must be at least 0, got -1"),
        (
            {"position_offset": 2},
            ValueError,
            "position_offset must be 0 unless positions are learned, "
            "got position_offset=2, positions='sinusoidal'",
        ),
        ({"dropout": 1.0}, ValueError, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"dropout": "0"}, TypeError, "dropout must be a number, got '0'"),
    ],
)
def test_errors_state_rule_and_value(change, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        TransformerConfig(**{**SIZES, **change})


@pytest.mark.parametrize("positions", ["learned", "alibi", "none"])
def test_odd_width_is_fine_without_sinusoids(positions):
    assert TransformerConfig(**{**SIZES, "d_model": 9, "positions": positions}).head_dim == 3


def test_from_dict_names_every_unknown_field():
    with pytest.raises(ValueError, match=r"unknown n_head \(did you mean n_heads\?\), zzz$"):
        TransformerConfig.from_dict({**SIZES, "n_head": 2, "zzz": 1})


def test_from_dict_names_every_missing_field():
    with pytest.raises(ValueError, match="got none for d_model, d_ff$"):
        TransformerConfig.from_dict({"vocab_size": 11, "n_heads": 3, "n_layers": 2})
