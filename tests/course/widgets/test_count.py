"""The count explorer: what its JavaScript counts, compared with tables and models of the package."""

import numpy as np
import pytest

import tinytx as tx
import tinytx_course as course
from tests.course.widgets.conftest import changed
from tinytx_course.counting.costs import cost_table
from tinytx_course.labs.lesson_06 import PUBLISHED
from tinytx_course.widgets.count import SETTINGS, SIZES, SWITCHES

BARS = "[js.barsOf(js.settingsOf(get)), js.barsOf(get('pinned')), js.settingsOf(get)]"


@pytest.fixture
def bars(node):
    """Return ``run(*explorers)``: for each the bars of its state and of the pinned one, and the state."""

    def whole(groups):
        return {group: {name: int(n) for name, n in rows.items()} for group, rows in groups.items()}

    def run(*explorers):
        return [(whole(now), whole(then), state) for now, then, state in node("count", BARS, *explorers)]

    return run


def random_count(seed):
    random = np.random.default_rng(seed)
    explorer = course.widgets.count()
    for name, most in SIZES.items():
        setattr(explorer, name, int(most ** random.random()))
    for name in SWITCHES:
        setattr(explorer, name, bool(random.random() < 0.5))
    explorer.head = str(random.choice(["lm", "classifier"]))
    return explorer


def opened(**state):
    """Return an explorer that opens, and is pinned, in a state."""
    explorer = changed(course.widgets.count(), **state)
    return changed(explorer, pinned=explorer.pinned | state)


def sizes_of(preset):
    return {name: value for name, value in preset.items() if name != "name"}


def config_of(state):
    """Return the configuration that a state of the page describes."""
    fixed = "none" if state["d_model"] % 2 else "sinusoidal"
    names = ("vocab_size", "d_model", "n_layers", "n_heads", "d_ff", "causal", "bias", "tie_embeddings")
    return tx.TransformerConfig(
        **{name: state[name] for name in names},
        max_len=max(state["max_len"], state["seq_len"]),
        norm="first" if state["norm_first"] else "last",
        activation="gelu" if state["gelu"] else "relu",
        positions="learned" if state["learned"] else fixed,
    )


def check(bars, state):
    """Compare the bars of a state with the package's table of costs."""
    options = {name: state[name] for name in ("batch_size", "seq_len", "n_classes")}
    attention = "plain" if state["plain"] else "fused"
    table = cost_table(config_of(state), state["head"], attention=attention, **options)
    learned, stored, compute = table.parameters.kinds, table.activations, table.flops.kinds
    kinds = ("embeddings", "attention", "feed_forward", "norms", "head")
    assert [*bars["parameters"].values()] == [learned[kind] for kind in kinds]
    pairs = sum(row.total for row in table.flops.rows if row.name in ("scores", "weighted sums"))
    maps = compute["attention"] - pairs
    assert [*bars["compute"].values()] == [maps, pairs, compute["feed_forward"], compute["head"]]
    weights, training = 4 * table.parameters.total, [*bars["training"].values()]
    attention = stored.kinds["attention"]
    inner = sum(row.total for row in stored.rows if row.part == "blocks" and row.kind != "attention")
    assert training[:3] == [weights, weights, 2 * weights]  # Adam has two moments
    assert training[3:] == [attention, inner, stored.total - attention - inner]
    assert [*bars["generating"].values()] == [weights, table.kv_cache.total]


def test_the_page_counts_what_the_package_counts_to_the_last_unit(bars):
    explorers = [course.widgets.count(), *map(random_count, range(40))]
    biggest = 0
    for explorer, (now, then, state) in zip(explorers, bars(*explorers), strict=True):
        assert list(state) == list(SETTINGS)
        check(now, state)
        check(then, explorer.pinned)
        biggest = max(biggest, *now["compute"].values())
    assert biggest > 2**53  # where floating point would no longer count


def test_the_lab_can_be_checked_on_paper(bars, describe):
    explorer = opened(seq_len=10, batch_size=1)
    ((_, _, state),) = bars(explorer)
    assert config_of(state) == tx.PRESETS["seed-lab"]
    same = opened(seq_len=10)
    explorer.pinned = explorer.pinned | {"seq_len": 2}
    text, same = describe(explorer, same)
    assert "\nChanged: length 2 → 10. " in text
    assert " 1,008,100 parameters, the largest part attention (64%)." in text
    assert text.startswith("Against length 2: compute × ") and " Pairs of tokens × 25.00, cache " in text
    assert text.partition("\n")[0].endswith(", parameters the same.")
    assert same.partition("\n")[0].endswith("Change something, and it is compared.")


def test_a_name_may_break_at_its_hyphen_and_nothing_is_pinned_at_first(node):
    state = course.widgets.count().state()
    assert state["pinned"]["seq_len"] == state["seq_len"] == 512
    assert node("count", "js.fitsIn(['feed-forward'], 60, 40, 13)", state) == [True]


def test_embeddings_dominate_small_models_and_what_is_new_is_named(describe):
    tiny = tx.PRESETS["tiny"].replace(vocab_size=30_000)
    small, large = course.widgets.count(tiny), course.widgets.count(tiny)
    large.d_model = large.d_ff = 4_096
    other = opened(head="classifier")
    other.head = "lm"
    texts = describe(small, large, other)
    assert "the largest part embeddings" in texts[0] and "the largest part attention" in texts[1]
    assert "head classifier → lm" in texts[2] and ", cache new." in texts[2]


def test_a_small_share_of_the_pinned_state_has_two_digits(bars, describe):
    explorer = course.widgets.count()
    large = next(one for one in explorer.presets if one["name"].startswith("GPT-2 XL"))
    explorer.pinned = explorer.pinned | sizes_of(large)
    ((now, then, _),) = bars(explorer)
    ratio = sum(now["parameters"].values()) / sum(then["parameters"].values())
    assert 0 < ratio < 0.005 and f"parameters × {ratio:.2g}" in describe(explorer)[0]


def test_heads_that_do_not_divide_the_width_become_fewer(bars):
    odd, narrow = (changed(course.widgets.count(), n_heads=7, d_model=d) for d in (200, 3))
    assert [state["n_heads"] for _, _, state in bars(odd, narrow)] == [5, 3]


def test_learned_positions_are_named_as_what_a_longer_text_costs(node):
    preset = next(one for one in course.widgets.count().presets if one["name"].startswith("GPT-2 small"))
    explorers = [changed(course.widgets.count(), seq_len=n, **sizes_of(preset)) for n in (512, 1_536)]
    explorers.append(course.widgets.count())
    found = node(
        "count", "(() => { const s = js.settingsOf(get), all = js.barsOf(s).parameters;"
        " const n = Object.values(all).reduce((a, b) => a + b);"
        " return [n, js.costsNone(s), js.lettersIn('V·D + M·D', s, n), js.describe(get)]; })()", *explorers
    )  # fmt: skip
    assert [int(n) for n, *_ in found] == [124_490_065, 124_883_281, 1_008_100]
    assert [letters for _, _, letters, _ in found[:2]] == [
        f"M = {m} rows of the position table" for m in ("1,024", "1,536")
    ]
    for _, says, *_ in found[:2]:
        assert "T above 1,024 adds rows to M" in says and "length, batch and heads" not in says
    assert found[2][1].endswith("length, batch and heads cost no parameters.") and ", with" not in found[2][3]


def test_presets_are_those_of_the_package_and_count_like_the_published(bars):
    presets = course.widgets.count().presets
    assert [preset["name"] for preset in presets][: len(tx.PRESETS)] == list(tx.PRESETS)
    explorers = [changed(course.widgets.count(), seq_len=64, **sizes_of(preset)) for preset in presets]
    found = bars(*explorers)
    for preset, (_, _, state) in zip(presets, found, strict=True):
        if preset["name"] in tx.PRESETS:
            assert config_of(state) == tx.PRESETS[preset["name"]]
    xl, _, state = found[-1]
    expected = PUBLISHED["GPT-2 XL"].table().total + state["vocab_size"]  # the bias of our head
    assert sum(xl["parameters"].values()) == expected


def test_bytes_by_use_can_be_checked_on_paper(node):
    explorer = changed(course.widgets.count(), seq_len=10, batch_size=1)
    expression = """(() => { const uses = js.usesOf(js.barsOf(js.settingsOf(get))).map(({ bytes }) => bytes);
      const most = 8n * 10n ** 9n, amounts = [most, most + 1n, 10n ** 12n];
      return [uses, amounts.map((bytes) => js.cardFor(bytes, get("cards")))]; })()"""
    ((uses, cards),) = node("count", expression, explorer)
    n, config = 1_008_100, tx.PRESETS["seed-lab"]
    table = cost_table(config, "lm", attention="plain", batch_size=1, seq_len=10)
    activations, cache = table.activations.total, 4 * 2 * 4 * 10 * 200
    assert [int(each) for each in uses] == [
        16 * n + activations, 16 * n + -(-activations // 2), 4 * n + cache, 2 * n + cache // 2,
        n // 2 + cache // 2,
    ]  # fmt: skip
    assert cards == ["RTX 4060, 8 GB", "RTX 4070, 12 GB", "6 × MI300X, 192 GB"]


def test_areas_of_the_treemap_are_shares_and_the_frame_holds_them(node):
    values = [5.0, 0.0, 30.0, 2.0, 13.0]
    ((rects, frames),) = node(
        "count", f"[js.treemap({values}, 1.9), [[1000, []], [1000, [1500, 1e9]], [1000, [7000]]]"
        ".map(([now, others]) => js.frameOf(now, others))]"
    )  # fmt: skip
    assert rects[1] is None
    for value, rect in zip(values, rects, strict=True):
        assert rect is None or rect[2] * rect[3] == pytest.approx(value / sum(values))
        assert rect is None or max(rect[0] + rect[2], rect[1] + rect[3]) <= 1 + 1e-9
    assert frames == [1024, 2048, 1024]  # a model that is a little larger is in view


def test_the_address_holds_all_that_is_counted(node):
    (kept,) = node("count", "js.default.keep(get)", course.widgets.count())
    assert set(kept) == {"view", "part", *SETTINGS}
    assert {name: kept[name] for name in SIZES} == {name: [1, most] for name, most in SIZES.items()}
