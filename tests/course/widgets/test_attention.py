"""The attention explorer: weights of any model of the package, and its JavaScript against its Python."""

import base64
import json
import re
import time

import numpy as np
import pytest
import torch

import tinytx as tx
import tinytx_course as course

WORDS = ["the", "cat", "saw", "the", "dog"]  # a word twice: tokens are told apart by place


def softmaxed(seed, *shape, mask=None):
    random = torch.Generator().manual_seed(seed)
    scores = 2 * torch.randn(*shape, generator=random, dtype=torch.float64)
    return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)


def some(seed):
    """Return an explorer of random sizes, with or without a mask, with a row that may see nothing."""
    random = np.random.default_rng(seed)
    n_layers, n_heads, n_queries, n_keys = (int(n) for n in random.integers(1, 8, 4))
    mask = torch.tensor(random.random((n_queries, n_keys)) < 0.7)
    weights = softmaxed(seed, n_layers, n_heads, n_queries, n_keys, mask=mask).nan_to_num(0.0)
    return course.widgets.attention(
        weights,
        [str(word) for word in random.choice(WORDS, n_queries)],
        [str(word) for word in random.choice(WORDS, n_keys)],
        mask=mask,
        layer=int(random.integers(n_layers)),
        head=int(random.integers(n_heads)),
        query=int(random.integers(n_queries)),
    )


def test_a_language_model_shows_its_weights_and_its_causal_mask():
    model = tx.LanguageModel(tx.PRESETS["tiny"]).train()
    ids = [5, 7, 2, 5, 9]
    explorer = course.widgets.attention(model, WORDS, token_ids=ids)
    assert model.training
    model.eval()
    with tx.record_attention(model) as recorded:
        model(torch.tensor([ids]))
    shown = torch.tensor(explorer.open_part())
    torch.testing.assert_close(shown, torch.cat(list(recorded.values())))
    np.testing.assert_array_equal(explorer.allowed(), tx.causal_mask(5))


def test_a_list_of_layers_and_one_array_are_the_same():
    weights = softmaxed(1, 3, 2, 5, 5)
    ways = [weights, list(weights), [layer[None] for layer in weights], weights.numpy(), weights.tolist()]
    for source in ways:
        explorer = course.widgets.attention(source, WORDS)
        np.testing.assert_allclose(explorer.open_part(), weights, atol=1e-6)
    one = course.widgets.attention(weights[0, 0], WORDS)
    assert one.sizes == [[1, 1, 5, 5]]


def test_a_classifier_that_sees_both_ways_has_no_mask():
    model = tx.Classifier(tx.PRESETS["tiny"].replace(causal=False), n_classes=2)
    assert course.widgets.attention(model, WORDS, token_ids=torch.arange(5)).allowed().all()


def test_a_translator_shows_three_kinds_of_attention():
    model = tx.Translator(tx.PRESETS["tiny"]).eval()
    target, source = [1, 2, 3], [4, 5, 6, 7, 8]
    explorer = course.widgets.attention(
        model, ["a", "b", "c"], WORDS, token_ids=target, key_ids=source, query=2, layer=1
    )
    with tx.record_attention(model) as recorded:
        model(torch.tensor([source]), torch.tensor([target]))
    expected = [
        [weights for name, weights in recorded.items() if name.startswith(half) and name.endswith(kind)]
        for half, kind in (("decoder", ".cross_attn"), ("encoder", ".attn"), ("decoder", ".attn"))
    ]
    assert explorer.names == ["target to source", "source to source", "target to target"]
    for part, weights in enumerate(expected):
        explorer.part = part
        torch.testing.assert_close(torch.tensor(explorer.open_part()), torch.cat(weights))
    np.testing.assert_array_equal(explorer.allowed(), tx.causal_mask(3))
    explorer.part, explorer.query = 1, 4
    assert "query 4 “dog”" in explorer.describe()
    explorer.part = 0  # three queries only: the last one is shown
    assert "query 2 “c”" in explorer.describe()


def test_the_words_by_hand():
    weights = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    explorer = course.widgets.attention(weights, ["a", "b", "a"], mask=tx.causal_mask(3), query=1)
    assert explorer.describe() == (
        "Attention, layer 0, head 0: query 1 “b” looks at 0 “a” 50%, 1 “b” 50%. "
        "Entropy 1.00 of at most 1.00 bits over 2 open keys."
    )
    explorer.query = 2
    assert explorer.describe().endswith("query 2 “a” may look at nothing.")


def test_the_page_computes_what_python_computes(node):
    explorers = [some(seed) for seed in range(12)]
    found = node(
        "attention",
        "(() => { const p = js.openPart(get); return [p.row(p.layer, p.at, p.query), js.rowEntropies(p), "
        "js.describe(get)]; })()",
        *explorers,
    )
    for explorer, (row, entropies, text) in zip(explorers, found, strict=True):
        layer, head, query = explorer.place()
        np.testing.assert_allclose(row, explorer.open_part()[layer, head, query], atol=1e-7)
        np.testing.assert_allclose(entropies, explorer.entropies(), atol=1e-5)
        assert text == explorer.describe()


def test_the_largest_is_made_fast_and_pages_round_it_to_less_than_can_be_seen():
    mask = tx.causal_mask(128)
    weights = softmaxed(0, 12, 12, 128, 128, mask=mask).float()
    words = [f"w{i}" for i in range(128)]
    start = time.process_time()
    explorer = course.widgets.attention(weights, words, mask=mask)
    assert time.process_time() - start < 5
    page = explorer.to_html()
    content = json.loads(re.search(r"data-tx-explorer='([^']*)'", page)[1])
    rounded = np.frombuffer(base64.b64decode(content["buffers"]["weights"]["uint16"]), "<u2") / 65535
    assert abs(rounded.reshape(weights.shape) - weights.numpy()).max() < 1e-5


def test_a_small_one_keeps_every_digit_in_its_page():
    explorer = some(2)
    content = json.loads(re.search(r"data-tx-explorer='([^']*)'", explorer.to_html())[1])
    assert base64.b64decode(content["buffers"]["weights"]["float32"]) == explorer.weights


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((softmaxed(0, 4, 5), WORDS), {}, "a row for each of 5 queries and a column for each of 5 keys"),
        ((2 * softmaxed(0, 5, 5), WORDS), {}, "each row must sum to 1"),
        ((softmaxed(0, 5), WORDS), {}, "weights must have 2 to 4 axes"),
        ((softmaxed(0, 13, 1, 2, 2), ["a", "b"]), {}, "at most 12 layers, 12 heads and 128 tokens"),
        ((softmaxed(0, 5, 5), WORDS), {"query": 5}, r"query must lie in 0\.\.4, got 5"),
        ((softmaxed(0, 5, 5), WORDS), {"mask": tx.causal_mask(4)}, r"mask must broadcast to \(5, 5\)"),
        ((torch.full((2, 2), torch.nan), ["a", "b"]), {}, "weights must be finite"),
        ((tx.LanguageModel(tx.PRESETS["tiny"]), WORDS), {}, "token_ids must say what the model reads"),
        ((tx.Translator(tx.PRESETS["tiny"]), WORDS), {"token_ids": [1]}, "key_ids must say"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, options, words):
    with pytest.raises(ValueError, match=words):
        course.widgets.attention(*arguments, **options)


def test_a_mask_of_unknown_sign_is_refused():
    with pytest.raises(TypeError, match=r"mask must be boolean \(True = may attend\), got int64"):
        course.widgets.attention(softmaxed(0, 5, 5), WORDS, mask=np.ones((5, 5), int))
