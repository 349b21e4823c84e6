"""Published models: their known counts, and the models that `transformers` builds from the same settings."""

import random
import re

import pytest
import torch

from tinytx.model.counting import KINDS, count_parameters
from tinytx_course.labs.lesson_06 import FAMILIES, PUBLISHED, published_table

# The totals of the bare models, as `transformers` and the papers' code have them.
KNOWN = {
    "Transformer base": 63_082_496,
    "Transformer big": 214_245_376,
    "BERT base": 109_482_240,
    "BERT large": 335_141_888,
    "RoBERTa base": 124_645_632,
    "RoBERTa large": 355_359_744,
    "CamemBERT base": 110_621_952,
    "DistilBERT base": 66_362_880,
    "GPT-2 small": 124_439_808,
    "GPT-2 medium": 354_823_168,
    "GPT-2 large": 774_030_080,
    "GPT-2 XL": 1_557_611_200,
    "BARThez": 139_221_504,
    "mBART": 610_851_840,
    "T5 small": 60_506_624,
}
CONFIGS = {
    "bert": "BertConfig",
    "roberta": "RobertaConfig",
    "camembert": "CamembertConfig",
    "distilbert": "DistilBertConfig",
    "gpt2": "GPT2Config",
    "mbart": "MBartConfig",
    "t5": "T5Config",
}
CLASSES = {PUBLISHED[name].family: PUBLISHED[name].counted_as for name in PUBLISHED}


@pytest.fixture(scope="module")
def transformers():
    module = pytest.importorskip("transformers", reason="the extra `parity` is not installed")
    module.logging.set_verbosity_error()
    return module


def count_as_transformers_does(transformers, family, settings):
    config = getattr(transformers, CONFIGS[family])(**settings)
    with torch.device("meta"):  # nothing is allocated, nothing is downloaded
        return count_parameters(getattr(transformers, CLASSES[family])(config))


@pytest.mark.parametrize("name", PUBLISHED)
def test_totals_are_the_known_ones_and_made_of_terms(name):
    table = PUBLISHED[name].table()
    assert table.total == KNOWN[name]
    assert sum(table.parts.values()) == sum(table.kinds.values()) == table.total
    assert set(table.kinds) <= set(KINDS)
    for row in table.rows:
        assert eval(row.numbers.replace("·", "*")) == row.count


@pytest.mark.parametrize("name", [name for name in PUBLISHED if PUBLISHED[name].family in CONFIGS])
def test_totals_are_those_of_the_model_that_transformers_builds(transformers, name):
    model = PUBLISHED[name]
    assert model.table().total == count_as_transformers_does(transformers, model.family, model.settings)


@pytest.mark.parametrize("name", [name for name in PUBLISHED if PUBLISHED[name].family == "transformer"])
def test_the_original_has_the_layers_of_torch_and_one_matrix(name):
    settings = PUBLISHED[name].settings
    with torch.device("meta"):
        stacks = torch.nn.Transformer(
            settings["d_model"],
            settings["n_heads"],
            settings["n_layers"],
            settings["n_layers"],
            settings["d_ff"],
            batch_first=True,
        )
    stacks.encoder.norm = stacks.decoder.norm = None  # torch adds a norm that the paper has not
    matrix = settings["vocab_size"] * settings["d_model"]
    assert PUBLISHED[name].table().total == count_parameters(stacks) + matrix


def random_settings(family, draw):
    """Small settings of a family under the names of its `config.json`, no two sizes alike."""
    n_heads = draw.choice([1, 2, 4])
    width = n_heads * 2 * draw.randint(1, 6)
    common = {"vocab_size": draw.randint(9, 90), "max_position_embeddings": draw.randint(5, 30)}
    if family in ("bert", "roberta", "camembert"):
        return common | {
            "hidden_size": width,
            "num_hidden_layers": draw.randint(1, 4),
            "num_attention_heads": n_heads,
            "intermediate_size": draw.randint(1, 40),
            "type_vocab_size": draw.randint(1, 3),
        }
    if family == "distilbert":
        return common | {
            "dim": width,
            "n_layers": draw.randint(1, 4),
            "n_heads": n_heads,
            "hidden_dim": draw.randint(1, 40),
        }
    if family == "gpt2":
        return {
            "vocab_size": common["vocab_size"],
            "n_positions": draw.randint(5, 30),
            "n_embd": width,
            "n_layer": draw.randint(1, 4),
            "n_head": n_heads,
            "n_inner": draw.choice([None, draw.randint(1, 40)]),
        }
    if family == "mbart":
        halves = {
            f"{half}_{name}": value
            for half in ("encoder", "decoder")
            for name, value in [
                ("layers", draw.randint(1, 4)),
                ("attention_heads", n_heads),
                ("ffn_dim", draw.randint(1, 40)),
            ]
        }
        return common | {"d_model": width, **halves}
    return {
        "vocab_size": common["vocab_size"],
        "d_model": width,
        "d_kv": draw.randint(1, 9),  # in T5 the heads together need not be as wide as the model
        "d_ff": draw.randint(1, 40),
        "num_layers": draw.randint(1, 4),
        "num_decoder_layers": draw.choice([None, draw.randint(1, 4)]),
        "num_heads": n_heads,
        "relative_attention_num_buckets": draw.randint(2, 40),
        "feed_forward_proj": draw.choice(["relu", "gated-gelu"]),
    }


@pytest.mark.parametrize("family", CONFIGS)
def test_any_settings_of_a_family_are_counted_rightly(transformers, family):
    draw = random.Random(family)
    for _ in range(8):
        settings = random_settings(family, draw)
        expected = count_as_transformers_does(transformers, family, settings)
        assert published_table(family, settings).total == expected, settings


def test_every_family_is_counted_against_something():
    assert set(FAMILIES) == {*CONFIGS, "transformer"}
    assert set(KNOWN) == set(PUBLISHED)


def test_what_a_paper_states_is_close_but_for_the_gaps_that_are_told():
    """Rounding explains some; gaps above 2 % are listed here, and the course states them without a reason."""
    gaps = {
        name: round(model.table().total / 1e6 - model.stated, 1)
        for name, model in PUBLISHED.items()
        if model.stated is not None and abs(model.table().total / 1e6 / model.stated - 1) > 0.02
    }
    assert gaps == {
        "Transformer base": -1.9,
        "GPT-2 small": 7.4,
        "GPT-2 medium": 9.8,
        "BARThez": -25.8,
        "mBART": -69.1,
    }


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(ValueError, match=r"^family must be one of transformer, .*, t5, got 'llama'$"):
        published_table("llama", {})
    with pytest.raises(ValueError, match=r"^settings of bert must hold vocab_size, got none$"):
        published_table("bert", {})


def test_nothing_but_settings_is_needed():
    for model in PUBLISHED.values():
        assert all(isinstance(value, int) for value in model.settings.values())
        assert re.search(r"arXiv \d{4}\.\d{5}|Radford", model.source)
