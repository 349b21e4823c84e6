"""The explorer of one query: what its JavaScript computes, compared with torch and the package."""

import numpy as np
import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tests.course.widgets.conftest import changed, close

CHAIN = (
    "(() => { const c = js.chainOf(get); return [c.products, c.scores, c.powers, c.weights, c.context]; })()"
)


def test_every_query_gets_the_weights_and_the_context_of_the_package(node):
    q, k, v = torch.randn(3, 5), torch.randn(7, 5), torch.randn(7, 2)
    mask = torch.rand(3, 7) < 0.5
    mask[1] = False
    explorer = changed(course.widgets.one_query(q, k, v), allowed=mask.int().flatten().tolist())
    states = [(query, scaled) for query in range(3) for scaled in (True, False)]
    made = [explorer.state() | {"query": query, "scaled": scaled} for query, scaled in states]
    found = node("one_query", CHAIN, *made)
    for (query, scaled), (products, scores, powers, shares, mean) in zip(states, found, strict=True):
        alike = q if scaled else q * 5**0.5
        close(products, k @ q[query])
        close(scores, k @ alike[query] / 5**0.5)
        close(shares, tx.attention_weights(alike, k, mask)[query])
        close([sum(powers) * share for share in shares], torch.tensor(powers, dtype=torch.float64))
        close(mean, tx.attention(alike, k, v, mask)[query])


def test_each_step_is_said_in_numbers(describe):
    places = [(step, 1) for step in range(6)] + [(3, 4), (4, 4)]
    made = [changed(course.widgets.one_query(), step=s, key=k, key_tokens=list("abcde")) for s, k in places]
    blind = changed(course.widgets.one_query([[1.0]], [[1.0]], [[1.0]]), allowed=[0], step=4)
    texts = describe(*made, blind)
    expected = [
        "asks with q = (2.00, 0.00, 1.00, −1.00)", "= 6.00.", "6.00 / √4 = 3.00", "stays 3.00",
        "exp(3.00 − 3.00) = 1.000", "All keys together: context (",
        "Key 4 “e” is blocked: its score 2.50 becomes −∞.", "exp(−∞) = 0", "Nothing may be seen",
    ]  # fmt: skip
    for text, words in zip(texts, expected, strict=True):
        assert words in text
    assert "Largest" not in texts[-1]


def test_the_mask_that_is_put_on_hides_what_comes_later_or_the_last_key(node, describe):
    q, k, v = torch.randn(4, 3), torch.randn(4, 3), torch.randn(4, 2)
    found = "js.maskOf(get)"
    ((words),) = node("one_query", found, course.widgets.one_query(q, k, v, query=1))
    assert words["label"] == "causal mask" and not words["on"] and words["open"] == [1] * 16
    assert words["masked"] == tx.causal_mask(4).int().flatten().tolist()
    explorer = changed(course.widgets.one_query(q, k, v, query=1), allowed=words["masked"], step=3, key=2)
    ((_, scores, _, weights, context),) = node("one_query", CHAIN, explorer)
    close(weights, tx.attention_weights(q, k, tx.causal_mask(4))[1])
    close(context, tx.attention(q, k, v, tx.causal_mask(4))[1])
    minus = f"{scores[2]:.2f}".replace("-", "−")
    assert f"is blocked: its score {minus} becomes −∞." in describe(explorer)[0]
    assert "Masked: 2 of 4 keys." in describe(changed(explorer, key=0))[0]
    cross = changed(course.widgets.one_query(q[:2], k[:3], v[:3]), key_tokens=["elle", "chante", "bien"])
    kinds = node("one_query", found, course.widgets.one_query(), cross, explorer)
    assert [kind["on"] for kind in kinds] == [True, False, True]
    assert kinds[1]["masked"] == [1, 1, 0] * 2 and "2 “bien”" in kinds[1]["label"]
    other = changed(course.widgets.one_query(q, k, v), allowed=torch.eye(4).int().flatten().tolist())
    assert node("one_query", found, other, course.widgets.one_query(q, k[:1], v[:1])) == [None, None]
    assert "No key is masked here." in describe(changed(cross, step=3))[0]


def test_numbers_of_ones_own_take_the_place_of_the_query_and_the_context_follows(node, describe):
    q, k, v = torch.randn(2, 3), torch.randn(5, 3), torch.randn(5, 7)
    own = [0.5, -2.25, 1.0]
    explorer = course.widgets.one_query(q, k, v, query=1)
    assert explorer.key == (k @ q[1]).abs().argmax()
    explorer.own_q = own
    ((products, _, _, weights, context),) = node("one_query", CHAIN, explorer)
    close(products, k @ torch.tensor(own))
    close(weights, tx.attention_weights(torch.tensor([own]), k)[0])
    close(context, tx.attention(torch.tensor([own]), k, v)[0])
    assert "asks with your q = (0.50, −2.25, 1.00)" in describe(changed(explorer, step=0))[0]
    with pytest.raises(ValueError, match=r"3 finite numbers or none, got \[1.0\]"):
        explorer.own_q = [1.0]
    explorer.own_q = []
    close(node("one_query", CHAIN, explorer)[0][0], k @ q[1])


def test_the_second_view_says_what_the_division_does_and_the_first_does_not(describe):
    steps, why = course.widgets.one_query(), changed(course.widgets.one_query(), view="why", head_dim=32)
    texts = describe(steps, why)
    assert texts[0].startswith("Step 2") and "Random" not in texts[0]
    assert texts[1].startswith("Random q and k, d = 32: the largest of 8 weights is on average 0.")


def test_random_weights_are_attention_over_normal_numbers(node):
    ((drawn, raw, divided),) = node(
        "one_query", "[js.normals(), js.randomWeights(37, false), js.randomWeights(37, true)]"
    )
    drawn = torch.tensor(drawn, dtype=torch.float64)
    assert abs(drawn.mean()) < 0.02 and abs(drawn.std() - 1) < 0.02
    assert abs((drawn.abs() < 1).double().mean() - 0.6827) < 0.01
    assert abs((drawn[:-1] * drawn[1:]).mean()) < 0.02
    q, k = drawn.view(-1, 512)[:, :37].split([64, 8])
    for found, weights in ((raw, (q @ k.T).softmax(-1)), (divided, tx.attention_weights(q, k))):
        close(found, weights)
        ((largest, bits),) = node("one_query", f"js.sharpness({found})")
        assert largest == pytest.approx(float(weights.amax(1).mean()))
        assert bits == pytest.approx(float(-torch.special.xlogy(weights, weights).sum(1).mean()) / np.log(2))
