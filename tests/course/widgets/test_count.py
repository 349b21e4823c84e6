"""The count explorer against tables and models of the package, and its JavaScript against its Python."""

import numpy as np
import pytest

import tinytx as tx
import tinytx_course as course
from tinytx.model.costs import cost_table
from tinytx.model.counting import build_empty, count_parameters
from tinytx_course.labs.lesson_06 import PUBLISHED
from tinytx_course.widgets.count_state import SETTINGS, SIZES, SWITCHES
from tinytx_course.widgets.count_words import ratio


def some(seed):
    random = np.random.default_rng(seed)
    explorer = course.widgets.count(attention=["plain", "fused"][seed % 2])
    for name, most in SIZES.items():
        setattr(explorer, name, int(most ** random.random()))
    for name in SWITCHES:
        setattr(explorer, name, bool(random.random() < 0.5))
    explorer.head = str(random.choice(["lm", "classifier"]))
    if seed % 3 == 0:
        explorer.pin()
    if seed % 4 == 0:
        explorer.n_layers = 7
    return explorer


@pytest.mark.parametrize("seed", range(8))
def test_bars_are_the_tables_of_the_package_and_the_count_of_the_model(seed):
    explorer = some(seed)
    explorer.n_layers = min(explorer.n_layers, 3)  # the model is built, though without numbers
    config, bars = explorer.config(), explorer.bars()
    table = cost_table(
        config,
        explorer.head,
        batch_size=explorer.batch_size,
        seq_len=explorer.seq_len,
        n_classes=explorer.n_classes,
        attention="plain" if explorer.plain else "fused",
    )
    sums = {group: sum(rows.values()) for group, rows in bars.items()}
    model = build_empty(config, explorer.head, explorer.n_classes)
    assert sums["parameters"] == count_parameters(model)
    assert sums["compute"] == table.flops_forward
    assert sums["training"] == table.bytes_training
    assert sums["generating"] == table.bytes_generating


def test_length_and_heads_cost_no_parameters_but_attention_costs():
    explorer = course.widgets.count()
    now, then = explorer.bars(), explorer.bars(pinned=True)
    assert explorer.seq_len == 4 * explorer.pinned["seq_len"]
    assert now["parameters"] == then["parameters"]
    assert now["compute"]["attention, pairs"] == 16 * then["compute"]["attention, pairs"]
    assert now["compute"]["attention, maps"] == 4 * then["compute"]["attention, maps"]
    assert now["generating"]["key-value cache"] == 4 * then["generating"]["key-value cache"]
    explorer.pin()
    explorer.n_heads = 8
    now, then = explorer.bars(), explorer.bars(pinned=True)
    assert now["parameters"] == then["parameters"] and now["compute"] == then["compute"]
    kept = now["training"]["activations, attention"] - then["training"]["activations, attention"]
    assert kept == 6 * 4 * 2 * 4 * 8 * 512 * 512  # heads, layers, twice, bytes, batch, pairs


def test_the_lab_can_be_checked_on_paper():
    explorer = course.widgets.count(seq_len=10, batch_size=1)
    assert explorer.bars()["parameters"]["attention"] == 4 * 4 * (200 * 200 + 200)
    assert explorer.bars()["compute"]["attention, pairs"] == 4 * 4 * 10 * 10 * 200
    assert explorer.bars()["generating"]["key-value cache"] == 4 * 2 * 4 * 10 * 200
    assert explorer.config() == tx.PRESETS["seed-lab"]
    text = explorer.describe()
    assert text.startswith("1,008,100 parameters, the largest part attention (64%).")
    assert "(length 2 → 10): parameters the same, compute × " in text and "(pairs × 25.00)" in text
    explorer.pin()
    assert explorer.describe().endswith("This is the pinned state.")


def test_embeddings_rule_small_models():
    explorer = course.widgets.count(tx.PRESETS["tiny"])
    explorer.vocab_size = 30_000
    assert "the largest part embeddings" in explorer.describe()
    explorer.d_model = explorer.d_ff = 4_096
    assert "the largest part attention" in explorer.describe()


def test_heads_that_do_not_divide_the_width_become_fewer():
    explorer = course.widgets.count()
    explorer.n_heads = 7
    assert explorer.settings()["n_heads"] == 5 and explorer.config().n_heads == 5
    explorer.d_model = 3
    assert explorer.settings()["n_heads"] == 3 and explorer.config().positions == "none"


def test_a_learned_table_grows_with_a_length_beyond_it_only():
    explorer = course.widgets.count()
    explorer.learned = True
    explorer.seq_len = 100
    assert explorer.bars()["parameters"]["embeddings"] == 100 * 200 + 512 * 200
    explorer.seq_len = 1_000
    assert explorer.bars()["parameters"]["embeddings"] == 100 * 200 + 1_000 * 200


def test_presets_are_those_of_the_package_and_count_like_the_published():
    explorer = course.widgets.count(seq_len=64)
    for preset in explorer.presets:
        for name in set(preset) - {"name"}:
            setattr(explorer, name, preset[name])
        if preset["name"] in tx.PRESETS:
            assert explorer.config() == tx.PRESETS[preset["name"]]
    assert [preset["name"] for preset in explorer.presets][: len(tx.PRESETS)] == list(tx.PRESETS)
    xl = PUBLISHED["GPT-2 XL"].table().total
    assert sum(explorer.bars()["parameters"].values()) == xl + explorer.vocab_size  # the bias of our head


def test_the_page_counts_what_python_counts_to_the_last_unit(node):
    explorers = [course.widgets.count(), *map(some, range(40))]
    found = node(
        "count",
        "JSON.parse(JSON.stringify([js.settingsOf(get), js.barsOf(js.settingsOf(get)), "
        "js.barsOf(get('pinned')), js.describe(get)], "
        "(_, value) => (typeof value === 'bigint' ? String(value) : value)))",
        *explorers,
    )
    biggest = 0
    for explorer, (settings, now, then, text) in zip(explorers, found, strict=True):
        assert settings == explorer.settings() and list(settings) == list(SETTINGS)
        for theirs, ours in ((now, explorer.bars()), (then, explorer.bars(pinned=True))):
            assert theirs == {g: {name: str(n) for name, n in rows.items()} for g, rows in ours.items()}
            biggest = max(biggest, *ours["compute"].values())
        assert text == explorer.describe()
    assert biggest > 2**53  # where floating point would no longer count


def test_ratios_name_what_is_new():
    assert [ratio(0, 0), ratio(4, 0), ratio(0, 4)] == ["the same", "new", "× 0.00"]
    explorer = course.widgets.count(head="classifier")
    explorer.pin()
    explorer.head = "lm"
    assert "(head classifier → lm)" in explorer.describe() and explorer.describe().endswith("cache new.")


def test_the_page_is_small():
    assert len(course.widgets.count().to_html()) < 60_000


def test_what_does_not_fit_is_refused():
    count = course.widgets.count
    with pytest.raises(ValueError, match=r"seq_len must lie in 1\.\.131072, got 0"):
        count(seq_len=0)
    with pytest.raises(ValueError, match=r"batch_size must lie in 1\.\.4096, got 5000"):
        count(batch_size=5_000)
    with pytest.raises(ValueError, match="attention must be 'plain' or 'fused', got 'flash'"):
        count(attention="flash")
    with pytest.raises(ValueError, match="positions must be sinusoidal, learned or none, got 'alibi'"):
        count(tx.PRESETS["tiny"].replace(positions="alibi"))
    with pytest.raises(ValueError, match="pinned must hold vocab_size, d_model"):
        count().pinned = {"seq_len": 3}
    with pytest.raises(ValueError, match="n_layers must be at least 1, got 0"):
        count().pinned = count().pinned | {"n_layers": 0}
