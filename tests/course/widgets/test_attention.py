"""The attention explorer: weights of any model of the package, and what its JavaScript computes of them."""

import base64
import json
import re

import numpy as np
import torch

import tinytx as tx
import tinytx_course as course
from tests.course.widgets.conftest import close

WORDS = ["the", "cat", "saw", "the", "dog"]


def softmaxed(seed, *shape, mask=None):
    random = torch.Generator().manual_seed(seed)
    scores = 2 * torch.randn(*shape, generator=random, dtype=torch.float64)
    return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)


def random_weights(seed):
    """Return weights of random sizes, with a mask and a row that attends to nothing, and the mask."""
    random = np.random.default_rng(seed)
    n_layers, n_heads, n_queries, n_keys = (int(n) for n in random.integers(1, 8, 4))
    mask = torch.tensor(random.random((n_queries, n_keys)) < 0.7)
    mask[0] = False
    return softmaxed(seed, n_layers, n_heads, n_queries, n_keys, mask=mask).nan_to_num(0.0), mask


def shown(explorer, part=0):
    """Return the weights (L, H, T, S) of a part of an explorer's state, and its mask (T, S)."""
    sizes = [np.prod(size) for size in explorer.sizes]
    weights = np.split(np.frombuffer(explorer.weights, np.float32), np.cumsum(sizes))[part]
    allowed = torch.tensor([[cell == "1" for cell in row] for row in explorer.masks[part]])
    return torch.tensor(weights).view(*explorer.sizes[part]), allowed


def test_a_language_model_shows_the_weights_it_computes_and_its_causal_mask():
    model = tx.LanguageModel(tx.PRESETS["tiny"]).train()
    ids = [5, 7, 2, 5, 9]
    weights, allowed = shown(course.widgets.attention(model, WORDS, token_ids=ids))
    assert model.training and model.body.training
    with tx.record_attention(model.eval()) as recorded:
        model(torch.tensor([ids]))
    torch.testing.assert_close(weights, torch.cat(list(recorded.values())))
    torch.testing.assert_close(allowed, tx.causal_mask(5))


def test_a_list_of_layers_and_one_array_are_the_same():
    weights = softmaxed(1, 3, 2, 5, 5)
    lists = (list(weights), [layer[None] for layer in weights], weights.tolist())
    for source in (weights, weights.numpy(), *lists):
        torch.testing.assert_close(shown(course.widgets.attention(source, WORDS))[0], weights.float())
    assert course.widgets.attention(weights[0, 0], WORDS).sizes == [[1, 1, 5, 5]]


def test_a_classifier_that_attends_both_ways_has_no_mask():
    model = tx.Classifier(tx.PRESETS["tiny"].replace(causal=False), n_classes=2)
    assert shown(course.widgets.attention(model, WORDS, token_ids=torch.arange(5)))[1].all()


def test_the_words_by_hand(describe):
    weights = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    explorers = [
        course.widgets.attention(weights, ["a", "b", "a"], mask=tx.causal_mask(3), query=query)
        for query in (1, 2)
    ]
    text, nothing = describe(*explorers)
    assert text == (
        "Attention, layer 0, head 0: query 1 “b” attends to 0 “a” 50%, 1 “b” 50%.\n"
        "Entropy 1.00 of at most 1.00 bits over 2 open keys."
    )
    assert nothing.endswith("query 2 “a” may attend to nothing.")


def test_the_open_head_of_the_page_is_that_of_torch(node):
    cases, explorers = [random_weights(seed) for seed in range(6)], []
    for weights, mask in cases:
        n_layers, n_heads, *sides = weights.shape
        queries, keys = (["x"] * n for n in sides)
        explorers.append(
            course.widgets.attention(weights, queries, keys, mask=mask, layer=n_layers - 1, head=n_heads - 1)
        )
    page = "(() => { const p = js.openPart(get); return p.head(p.layer, p.at); })()"
    for (weights, _), head in zip(cases, node("attention", page, *explorers), strict=True):
        close(head, weights[-1, -1].float())


def test_what_a_head_does_is_the_mean_weight_on_its_favourite_and_sorting_brings_the_like_together(node):
    eye, rest = torch.eye(5), torch.full((5, 5), 0.2)
    before, first = torch.eye(5)[[0, 0, 1, 2, 3]], torch.eye(5)[[0] * 5]
    two = torch.eye(5)[[0, 0, 0, 1, 2]]
    heads = [rest, 0.7 * before + 0.3 * rest, 0.5 * first + 0.5 * rest, eye, 0.9 * before + 0.1 * rest]
    heads.append(0.8 * two + 0.2 * rest)
    same = course.widgets.attention(torch.stack(heads), list("abcde"))
    other = course.widgets.attention(torch.stack(heads), list("abcde"), list("vwxyz"))
    page = "(() => { const p = js.openPart(get); return [js.habitsOf(p), js.orderOf(p, true)]; })()"
    (habits, order), (crossed, _) = node("attention", page, same, other)
    assert [name for name, _ in habits] == ["spread", "before", "first", "itself", "before", "two before"]
    shares = torch.tensor([0.2, 0.76, 0.6, 1.0, 0.92, 0.84])
    close([share for _, share in habits], shares, atol=1e-6, rtol=1e-6)
    assert order == [4, 1, 5, 3, 2, 0]
    assert [name for name, _ in crossed] == ["spread", *["sharp"] * 5]


def test_trained_and_untrained_are_two_parts_of_one_view(describe):
    model = tx.LanguageModel(tx.PRESETS["tiny"])
    before = torch.random.get_rng_state()
    explorer = course.widgets.attention(model, WORDS, token_ids=range(5), untrained=True)
    assert torch.equal(torch.random.get_rng_state(), before)  # the numbers of a lesson stay what they are
    models = {"trained": model, "untrained": tx.LanguageModel(model.config)}
    for part, (name, each) in enumerate(models.items()):
        explorer.part = part
        assert explorer.names[part] == name and describe(explorer)[0].startswith(f"{name.title()}, layer 0")
        alone = course.widgets.attention(each, WORDS, token_ids=range(5))
        torch.testing.assert_close(shown(explorer, part)[0], shown(alone)[0])
        torch.testing.assert_close(shown(explorer, part)[1], tx.causal_mask(5))
    assert not torch.equal(shown(explorer, 0)[0], shown(explorer, 1)[0])


def test_a_page_rounds_large_weights_to_less_than_can_be_seen_and_small_ones_not_at_all():
    def packed(explorer):
        content = json.loads(re.search(r"data-tx-explorer='([^']*)'", explorer.to_html())[1])
        return {kind: base64.b64decode(text) for kind, text in content["buffers"]["weights"].items()}

    mask = tx.causal_mask(96)
    weights = softmaxed(0, 2, 3, 96, 96, mask=mask).float()
    explorer = course.widgets.attention(weights, [f"w{i}" for i in range(96)], mask=mask)
    rounded = np.frombuffer(packed(explorer)["uint16"], "<u2") / 65535
    assert abs(rounded.reshape(weights.shape) - weights.numpy()).max() < 1e-5
    small = course.widgets.attention(softmaxed(2, 5, 5), WORDS)
    assert packed(small)["float32"] == small.weights
