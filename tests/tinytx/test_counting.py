"""The closed form: numbers of the lab, numel for every configuration, formulas that mean what they say."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinytx.config import PRESETS, TransformerConfig
from tinytx.counting import build_empty, count_parameters, parameter_table

SEED_LAB = PRESETS["seed-lab"]


HEADS = ["lm", "classifier", "translation", "masked", "masked+nsp", None]


@pytest.mark.parametrize(("head", "n_params"), [("lm", 1_008_100), ("classifier", 988_402), (None, 988_000)])
def test_seed_lab_has_the_numbers_of_the_lab(head, n_params):
    assert parameter_table(SEED_LAB, head).total == n_params
    assert count_parameters(build_empty(SEED_LAB, head, 2)) == n_params


@st.composite
def configurations(draw):
    n_kv_heads, n_shared, n_experts = (draw(st.integers(1, 3)) for _ in range(3))
    n_heads = n_kv_heads * n_shared
    positions = draw(st.sampled_from(["sinusoidal", "learned", "rotary", "alibi", "none"]))
    head_dim = draw(st.integers(1, 6)) * (2 if positions in ("sinusoidal", "rotary") else 1)
    return TransformerConfig(
        vocab_size=draw(st.integers(1, 50)),
        d_model=n_heads * head_dim,
        n_heads=n_heads,
        n_layers=draw(st.integers(1, 4)),
        d_ff=draw(st.integers(1, 40)),
        max_len=draw(st.integers(1, 40)),
        causal=draw(st.booleans()),
        norm=draw(st.sampled_from(["first", "last"])),
        activation=draw(st.sampled_from(["gelu", "gelu-tanh", "relu", "silu", "swiglu"])),
        positions=positions,
        position_offset=draw(st.integers(0, 3)) if positions == "learned" else 0,
        bias=draw(st.booleans()),
        tie_embeddings=draw(st.booleans()),
        embed_norm=draw(st.booleans()),
        head_bias=draw(st.sampled_from([None, True, False])),
        norm_kind=draw(st.sampled_from(["layer", "rms"])),
        n_kv_heads=draw(st.sampled_from([None, n_kv_heads])),
        n_experts=n_experts,
        experts_per_token=draw(st.integers(1, n_experts)),
    )


@settings(max_examples=150)
@given(configurations(), st.sampled_from(HEADS), st.integers(1, 7))
def test_closed_form_equals_numel(config, head, n_classes):
    """Encoder, decoder and encoder-decoder, every switch, every width."""
    if head != "translation":
        config = config.replace(n_segments=n_classes - 1)
    table = parameter_table(config, head, n_classes)
    assert table.total == count_parameters(build_empty(config, head, n_classes))
    assert table.total == sum(table.parts.values()) == sum(table.kinds.values())


@given(configurations(), st.sampled_from(HEADS), st.integers(1, 7))
def test_every_printed_formula_has_the_printed_value(config, head, n_classes):
    """Read as Python, a formula gives its count, with letters as with numbers."""
    letters = {"V": config.vocab_size, "D": config.d_model, "F": config.d_ff, "K": config.head_dim}
    letters |= {"C": n_classes, "n_kv_heads": config.kv_heads, "n_experts": config.n_experts}
    letters |= {name: getattr(config, name) for name in ("max_len", "n_segments", "position_offset")}
    for row in parameter_table(config, head, n_classes).rows:
        assert eval(row.formula.replace("·", "*"), {}, letters) == row.count
        assert eval(row.numbers.replace("·", "*")) == row.count
        assert not re.search("[A-Za-z]", row.numbers)


def test_the_transformer_of_the_paper_counted_by_hand():
    attention, feed_forward = 4 * (512 * 512 + 512), 2 * 512 * 2_048 + 2_048 + 512
    encoder, decoder = attention + feed_forward + 2 * 1_024, 2 * attention + feed_forward + 3 * 1_024
    base = TransformerConfig(vocab_size=37_000, d_model=512, n_heads=8, n_layers=6, d_ff=2_048)
    table = parameter_table(base.replace(norm="last", tie_embeddings=True), "translation")
    assert table.parts == {
        "embeddings": 37_000 * 512,
        "encoder": 6 * encoder,
        "decoder": 6 * decoder,
        "head": 0,
    }
    norms = 30 * 1_024
    assert list(table.kinds.values()) == [37_000 * 512, 18 * attention, 12 * feed_forward, norms, 0]


def test_printed_table_holds_every_term_with_formula_and_number():
    table = parameter_table(SEED_LAB)
    lines = str(table).splitlines()
    for row in table.rows:
        (line,) = [
            line for line in lines if line.split("  ")[0] == row.name or line.startswith(f"  {row.name} ")
        ]
        assert row.formula in line and row.numbers in line and line.endswith(f" {row.count:,}")
    assert re.search(r"^one block +242,000$", str(table), re.M)
    assert re.search(r"^all blocks .* 4·242,000 +968,000$", str(table), re.M)
    assert re.search(r"^total +20,000 \+ 968,000 \+ 20,100 +1,008,100$", str(table), re.M)
    assert len({len(line) for line in lines}) == 1


@given(configurations(), st.sampled_from(HEADS))
def test_proportions_of_any_model_can_be_drawn(config, head):
    table = parameter_table(config, head)
    for line, (kind, count) in zip(table.proportions(8).splitlines(), table.kinds.items(), strict=True):
        assert line.startswith(kind) and bool(re.search("[█▏▎▍▌▋▊▉]", line)) is (count > 0)


@pytest.mark.parametrize("function", [parameter_table, build_empty])
def test_bad_arguments_are_refused(function):
    with pytest.raises(ValueError, match=r"masked\+nsp.* got 'mlm'"):
        function(SEED_LAB, "mlm")
    with pytest.raises(ValueError, match="n_classes .* 0"):
        function(SEED_LAB, "classifier", 0)
