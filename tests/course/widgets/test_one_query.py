"""The explorer of one query against torch and the package, and its JavaScript against its Python."""

import numpy as np
import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tinytx_course.widgets.saturation import N_KEYS, normals, random_weights, sharpness


def some(seed):
    random = np.random.default_rng(seed)
    n_queries, n_keys = (int(n) for n in random.integers(1, 12, 2))
    width, value_width = (int(n) for n in random.integers(1, 20, 2))
    return course.widgets.one_query(
        random.normal(size=(n_queries, width)),
        random.normal(size=(n_keys, width)),
        random.normal(size=(n_keys, value_width)),
        mask=random.random((n_queries, n_keys)) < 0.6,
        tokens=[str(word) for word in random.choice(["the", "cat", "sat"], n_queries)],
        key_tokens=[str(word) for word in random.choice(["le", "chat"], n_keys)],
        query=int(random.integers(n_queries)),
        step=seed % 6,
        scaled=bool(random.random() < 0.7),
        head_dim=int(random.integers(1, 513)),
    )


def test_every_query_gets_the_weights_and_the_context_of_the_package():
    q, k, v = torch.randn(3, 5), torch.randn(7, 5), torch.randn(7, 2)
    mask = torch.rand(3, 7) < 0.5
    mask[1] = False
    explorer = course.widgets.one_query(q, k, v, mask=mask)
    weights = torch.nn.functional.softmax((q @ k.T / 5**0.5).masked_fill(~mask, -torch.inf), dim=-1)
    for query in range(3):
        explorer.query = query
        chain = explorer.chain()
        expected = tx.attention_weights(q, k, mask)[query]
        np.testing.assert_allclose(chain.weights, expected, atol=1e-6)
        np.testing.assert_allclose(chain.context, tx.attention(q, k, v, mask)[query], atol=1e-5)
        if query != 1:
            np.testing.assert_allclose(chain.weights, weights[query], atol=1e-6)


def test_the_example_can_be_checked_on_paper():
    explorer = course.widgets.one_query()
    chain = explorer.chain()
    np.testing.assert_array_equal(chain.products, [-1, 6, 2, -1, 5])
    np.testing.assert_array_equal(chain.scores, [-0.5, 3, 1, -0.5, 2.5])
    np.testing.assert_array_equal(chain.seen, [True, True, True, False, False])
    np.testing.assert_allclose(chain.powers, [np.exp(-3.5), 1, np.exp(-2), 0, 0], atol=1e-12)
    assert "2.00·2.00 + 0.00·0.00 + 1.00·1.00 + (−1.00)·(−1.00) = 6.00" in explorer.describe()
    explorer.scaled = False
    np.testing.assert_array_equal(explorer.chain().scores, chain.products)


def test_each_step_is_said_in_numbers():
    explorer = course.widgets.one_query(key_tokens=list("abcde"))
    said = []
    for explorer.step in range(6):
        said.append(explorer.describe())
    for text, words in zip(
        said,
        [
            "asks with q = (2.00, 0.00, 1.00, −1.00)",
            "= 6.00.",
            "6.00 / √4 = 3.00",
            "stays 3.00",
            "exp(3.00 − 3.00) = 1.000",
            "All keys together: context (",
        ],
        strict=True,
    ):
        assert words in text
    explorer.key, explorer.step = 4, 3
    assert "Key 4 “e” is blocked: its score 2.50 becomes −∞." in explorer.describe()
    explorer.step = 4
    assert "exp(−∞) = 0" in explorer.describe()
    blind = course.widgets.one_query([[1.0]], [[1.0]], [[1.0]], mask=[[False]], step=4)
    assert "Nothing may be seen" in blind.describe() and "Largest" not in blind.describe()


def test_without_the_scale_softmax_saturates_as_the_width_grows():
    raw, divided = (
        [sharpness(random_weights(d, scaled=scaled)) for d in (4, 32, 512)] for scaled in (False, True)
    )
    assert raw[0][0] + 0.2 < raw[1][0] < raw[2][0] and raw[2][0] > 0.9
    assert raw[0][1] > raw[1][1] > raw[2][1] and raw[2][1] < 0.3
    assert max(top for top, _ in divided) - min(top for top, _ in divided) < 0.05
    assert all(bits > 2.3 for _, bits in divided)


def test_the_random_numbers_are_those_of_a_normal_distribution():
    drawn = normals(40_000)
    assert abs(drawn.mean()) < 0.02 and abs(drawn.std() - 1) < 0.02
    assert abs((abs(drawn) < 1).mean() - 0.6827) < 0.01
    assert abs((drawn[:-1] * drawn[1:]).mean()) < 0.02
    weights = torch.tensor(random_weights(64, scaled=True))
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(64, dtype=torch.float64))
    assert weights.shape[1] == N_KEYS


def test_the_page_computes_what_python_computes(node):
    explorers = [course.widgets.one_query(), *map(some, range(18))]
    found = node(
        "one_query",
        "(() => { const c = js.chainOf(get); return [c.products, c.scores, c.powers, c.weights, c.context, "
        "[false, true].flatMap((s) => js.randomWeights(get('head_dim'), s).map((row) => [...row])), "
        "js.describe(get)]; })()",
        *explorers,
    )
    for explorer, (*numbers, weights, text) in zip(explorers, found, strict=True):
        chain = explorer.chain()
        own = (chain.products, chain.scores, chain.powers, chain.weights, chain.context)
        for theirs, ours in zip(numbers, own, strict=True):
            np.testing.assert_allclose(theirs, ours, atol=1e-5)
        both = [random_weights(explorer.head_dim, scaled=scaled) for scaled in (False, True)]
        np.testing.assert_allclose(weights, np.concatenate(both), atol=1e-5)
        assert text == explorer.describe()


def test_what_does_not_fit_is_refused():
    q, k, v = np.zeros((2, 3)), np.zeros((5, 3)), np.zeros((5, 7))
    one_query = course.widgets.one_query
    with pytest.raises(ValueError, match="q and k must be equally wide, got 3 and 7"):
        one_query(q, v, v)
    with pytest.raises(ValueError, match="k and v must have one row a token, got 5 and 2"):
        one_query(q, k, q)
    with pytest.raises(ValueError, match="q must have 2 axes"):
        one_query(None, k, v)
    with pytest.raises(ValueError, match="at most 24 tokens of 64 numbers"):
        one_query(np.zeros((25, 3)), k, v)
    with pytest.raises(TypeError, match=r"mask must be bool \(True = may attend\), got int64"):
        one_query(q, k, v, mask=np.ones((2, 5), dtype=np.int64))
    with pytest.raises(ValueError, match=r"mask must broadcast to \(2, 5\), got shape \(5, 2\)"):
        one_query(q, k, v, mask=np.ones((5, 2), bool))
    with pytest.raises(ValueError, match="tokens must name each of 2 tokens, got 1"):
        one_query(q, k, v, tokens=["one"])
    with pytest.raises(ValueError, match="key_tokens must name each of 5 tokens, got 2"):
        one_query(q, k, v, key_tokens=["one", "two"])
    with pytest.raises(ValueError, match=r"query must lie in 0\.\.1, got 2"):
        one_query(q, k, v, query=2)
    with pytest.raises(ValueError, match=r"step must lie in 0\.\.5, got 6"):
        one_query(step=6)
    with pytest.raises(ValueError, match=r"head_dim must lie in 1\.\.512, got 0"):
        one_query(head_dim=0)
