"""The explorer of one query: what its JavaScript computes, compared with torch and the package."""

import numpy as np
import pytest
import torch

import tinytx as tx
import tinytx_course as course

CHAIN = (
    "(() => { const c = js.chainOf(get); return [c.products, c.scores, c.powers, c.weights, c.context]; })()"
)


def test_every_query_gets_the_weights_and_the_context_of_the_package(node):
    q, k, v = torch.randn(3, 5), torch.randn(7, 5), torch.randn(7, 2)
    mask = torch.rand(3, 7) < 0.5
    mask[1] = False
    explorer = course.widgets.one_query(q, k, v, mask=mask)
    states = [explorer.state() | {"query": query} for query in range(3)]
    for query, numbers in enumerate(node("one_query", CHAIN, *states)):
        products, scores, _, weights, context = (torch.tensor(each).float() for each in numbers)
        torch.testing.assert_close(products, k @ q[query])
        torch.testing.assert_close(scores, k @ q[query] / 5**0.5)
        torch.testing.assert_close(weights, tx.attention_weights(q, k, mask)[query])
        torch.testing.assert_close(context, tx.attention(q, k, v, mask)[query])


def test_the_example_can_be_checked_on_paper(node, describe):
    explorer = course.widgets.one_query()
    assert explorer.allowed[10:15] == [1, 1, 1, 0, 0]
    ((products, scores, powers, _, _),) = node("one_query", CHAIN, explorer)
    assert products == [-1, 6, 2, -1, 5] and scores == [-0.5, 3, 1, -0.5, 2.5]
    np.testing.assert_allclose(powers, [np.exp(-3.5), 1, np.exp(-2), 0, 0], atol=1e-12)
    assert "2.00·2.00 + 0.00·0.00 + 1.00·1.00 + (−1.00)·(−1.00) = 6.00" in describe(explorer)[0]
    explorer.scaled = False
    ((products, scores, *_),) = node("one_query", CHAIN, explorer)
    assert scores == products


def test_each_step_is_said_in_numbers(describe):
    said = describe(*[course.widgets.one_query(key_tokens=list("abcde"), step=step) for step in range(6)])
    expected = [
        "asks with q = (2.00, 0.00, 1.00, −1.00)", "= 6.00.", "6.00 / √4 = 3.00", "stays 3.00",
        "exp(3.00 − 3.00) = 1.000", "All keys together: context (",
    ]  # fmt: skip
    for text, words in zip(said, expected, strict=True):
        assert words in text
    explorer = course.widgets.one_query(key_tokens=list("abcde"), step=3)
    explorer.key = 4
    assert "Key 4 “e” is blocked: its score 2.50 becomes −∞." in describe(explorer)[0]
    explorer.step = 4
    assert "exp(−∞) = 0" in describe(explorer)[0]
    (blind,) = describe(course.widgets.one_query([[1.0]], [[1.0]], [[1.0]], mask=[[False]], step=4))
    assert "Nothing may be seen" in blind and "Largest" not in blind


def test_without_the_scale_softmax_saturates_as_the_width_grows(node):
    ((raw, divided),) = node(
        "one_query", "[false, true].map((s) => [4, 32, 512].map((d) => js.sharpness(js.randomWeights(d, s))))"
    )
    assert raw[0][0] + 0.2 < raw[1][0] < raw[2][0] and raw[2][0] > 0.9
    assert raw[0][1] > raw[1][1] > raw[2][1] and raw[2][1] < 0.3
    assert max(top for top, _ in divided) - min(top for top, _ in divided) < 0.05
    assert all(bits > 2.3 for _, bits in divided)


def test_random_weights_are_attention_over_normal_numbers(node):
    ((drawn, raw, divided),) = node(
        "one_query", "[js.normals(), js.randomWeights(37, false), js.randomWeights(37, true)]"
    )
    drawn = torch.tensor(drawn, dtype=torch.float64)
    assert abs(drawn.mean()) < 0.02 and abs(drawn.std() - 1) < 0.02
    assert abs((drawn.abs() < 1).double().mean() - 0.6827) < 0.01
    assert abs((drawn[:-1] * drawn[1:]).mean()) < 0.02
    q, k = drawn.view(-1, 512)[:, :37].split([64, 8])
    for rows, expected in ((raw, (q @ k.T).softmax(-1)), (divided, tx.attention_weights(q, k))):
        torch.testing.assert_close(torch.tensor(rows, dtype=torch.float64), expected)


def test_what_does_not_fit_is_refused():
    q, k, v = np.zeros((2, 3)), np.zeros((5, 3)), np.zeros((5, 7))
    one_query = course.widgets.one_query
    refused = [
        ((q, v, v), {}, "equally wide, got 3 and 7"),
        ((q, k, q), {}, "got 5 and 2"),
        ((None, k, v), {}, "q must have 2 axes"),
        ((np.zeros((25, 3)), k, v), {}, "at most 24 tokens of 64 numbers"),
        ((q, k, v), {"mask": np.ones((5, 2), bool)}, r"mask .* \(2, 5\), got shape \(5, 2\)"),
        ((q, k, v), {"tokens": ["one"]}, "tokens .* 2 .* got 1"),
        ((q, k, v), {"key_tokens": ["one", "two"]}, "key_tokens .* 5 .* got 2"),
        ((q, k, v), {"query": 2}, r"query .* 0\.\.1, got 2"),
        ((), {"step": 6}, r"step .* 0\.\.5, got 6"),
        ((), {"head_dim": 0}, r"head_dim .* 1\.\.512, got 0"),
    ]
    for arguments, options, values in refused:
        with pytest.raises(ValueError, match=values):
            one_query(*arguments, **options)
    with pytest.raises(TypeError, match="mask .* int64"):
        one_query(q, k, v, mask=np.ones((2, 5), dtype=np.int64))
