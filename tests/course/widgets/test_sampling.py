"""The explorer of sampling against the package and the world, and its JavaScript against its Python."""

import numpy as np
import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.generate import next_token_probs
from tinytx_course.widgets.drawing import draws, entropy_in_bits, stages
from tinytx_course.widgets.sampling import SamplingExplorer


def some(seed):
    random = np.random.default_rng(seed)
    n_contexts, size = (int(n) for n in random.integers(1, 40, 2))
    logits = random.normal(scale=3, size=(n_contexts, size)).astype(np.float32)
    logits[:, 1:][random.random((n_contexts, size - 1)) < 0.2] = -np.inf
    pairs = [[0, 0.75, size - 1, 0.25] if size > 1 else [0, 1.0]] * n_contexts
    return SamplingExplorer(
        contexts=[f"context {i}" for i in range(n_contexts)],
        tokens=[str(word) for word in random.choice(["▁le", "s", "(the end)"], size)],
        logits=logits.tobytes(),
        truth=pairs if seed % 2 else [],
        context=int(random.integers(n_contexts)),
        temperature=float(random.uniform(0.1, 5)),
        top_k=int(random.integers(1, size + 1)),
        top_p=float(random.uniform(0.01, 1)) if seed % 3 else 1.0,
        n_draws=int(random.integers(0, 200)),
        seed=int(random.integers(10_000)),
    )


@pytest.fixture(scope="module")
def world():
    return tx.World()


@pytest.fixture(scope="module")
def reader(world):
    """A tokenizer and an untrained model."""
    tokenizer = Tokenizer.train([" ".join(one.words) for one in world.reviews(300, seed=0)], vocab_size=200)
    torch.manual_seed(0)
    return tx.LanguageModel(tx.PRESETS["tiny"].replace(vocab_size=tokenizer.vocab_size)).eval(), tokenizer


@pytest.mark.parametrize("seed", range(40))
def test_what_is_drawn_from_is_what_the_package_draws_from(seed):
    explorer = some(seed)
    size = len(explorer.tokens)
    logits = torch.frombuffer(bytearray(explorer.logits), dtype=torch.float32).view(-1, size)
    how = (explorer.temperature, explorer.top_k, explorer.top_p)
    expected = next_token_probs(logits[explorer.context], *how)
    np.testing.assert_allclose(explorer.stages().final, expected, atol=1e-5)


def test_the_stages_can_be_checked_on_paper():
    found = stages(np.log([0.1, 0.4, 0.2, 0.3]), 1.0, top_k=3, top_p=0.6)
    np.testing.assert_array_equal(found.order, [1, 3, 2, 0])
    np.testing.assert_array_equal(found.by_top_k, [True, False, False, False])
    np.testing.assert_array_equal(found.by_top_p, [True, False, True, False])
    np.testing.assert_allclose(found.final, [0, 4 / 7, 0, 3 / 7])
    cold = stages(np.log([0.4, 0.3, 0.2, 0.1]), 0.5, top_k=4, top_p=1.0)
    np.testing.assert_allclose(cold.final * 0.3, [0.16, 0.09, 0.04, 0.01])
    half = stages(np.log([0.5, 0.5]), 1.0, top_k=2, top_p=0.5)  # the first reaches it exactly
    np.testing.assert_array_equal(half.left, [True, False])


def test_draws_follow_the_distribution_and_repeat():
    found = stages(np.log([0.5, 0.3, 0.15, 0.05]), 1.0, top_k=3, top_p=1.0)
    drawn = draws(found, 10_000, seed=3)
    shares = np.bincount(drawn, minlength=4) / 10_000
    np.testing.assert_allclose(shares, found.final, atol=0.015)
    assert shares[3] == 0
    np.testing.assert_array_equal(draws(found, 100, seed=3), drawn[:100])
    assert (draws(found, 100, seed=4) != drawn[:100]).any()


def test_the_page_computes_what_python_computes(node, world):
    explorers = [*map(some, range(40)), course.widgets.sampling(world=world)]
    found = node(
        "sampling",
        "(() => { const s = js.stagesOf(get); return [s.model, s.heated, s.final, s.left, js.drawsOf(get), "
        "js.describe(get)]; })()",
        *explorers,
    )
    for explorer, (model, heated, final, left, drawn, text) in zip(explorers, found, strict=True):
        own = explorer.stages()
        np.testing.assert_allclose(model, own.model, atol=1e-5)
        np.testing.assert_allclose(heated, own.heated, atol=1e-5)
        np.testing.assert_allclose(final, own.final, atol=1e-5)
        np.testing.assert_array_equal(left, own.left)
        np.testing.assert_array_equal(drawn, draws(own, explorer.n_draws, explorer.seed))
        assert text == explorer.describe()


def test_the_slider_of_top_k_reaches_every_small_number_and_the_end(node):
    (found,) = node("sampling", "[1, 2, 20, 1000].map(js.cutsUpTo)")
    assert found[0] == [1] and found[1] == [1, 2] and found[2] == list(range(1, 21))
    assert found[3][:20] == list(range(1, 21)) and found[3][-1] == 1000
    assert all(a < b for a, b in zip(found[3], found[3][1:], strict=False))


def test_a_model_is_compared_with_the_world_piece_by_piece(reader, world):
    model, tokenizer = reader
    explorer = course.widgets.sampling(model, tokenizer, ["Le livre", "C'est"], world=world, context=1)
    ids = [tokenizer.bos_id, *tokenizer.encode("C' est")]
    with torch.no_grad():
        expected = model(torch.tensor([ids]))[0, -1].softmax(dim=-1)
    allowed = np.setdiff1d(np.arange(tokenizer.vocab_size), [0, 1, 2, 4, 5, 6])
    np.testing.assert_allclose(
        explorer.stages().model[allowed], expected[allowed] / expected[allowed].sum(), atol=1e-5
    )
    np.testing.assert_allclose(explorer.world_probs(), world.through(tokenizer).next_token(ids), atol=2e-6)
    assert explorer.tokens[tokenizer.eos_id] == "(the end)"
    assert "The world never says" in explorer.describe()
    alone = course.widgets.sampling(model, tokenizer, "Le livre")
    assert alone.world_probs() is None and "world" not in alone.describe()


def test_the_world_alone_is_the_perfect_model(world):
    explorer = course.widgets.sampling(world=world, temperature=1, top_k=None, top_p=None)
    for place, beginning in enumerate(explorer.contexts):
        explorer.context = place
        np.testing.assert_allclose(explorer.stages().final, explorer.world_probs(), atol=2e-6)
        true = np.array([*world.next_word(world.split(beginning)).values()])
        assert abs(entropy_in_bits(explorer.world_probs()) - entropy_in_bits(true)) < 1e-3
    assert "top-k off, top-p off" in explorer.describe()


def test_what_does_not_fit_is_refused(reader, world):
    model, tokenizer = reader
    with pytest.raises(TypeError, match="a model needs the tokenizer it was trained with, got NoneType"):
        course.widgets.sampling(model)
    with pytest.raises(ValueError, match="at least one text"):
        course.widgets.sampling(beginnings=[], world=world)
    with pytest.raises(ValueError, match="'monde'"):
        course.widgets.sampling(beginnings=["Bonjour le monde"], world=world)
    with pytest.raises(ValueError, match="at most 24000 numbers, got 121 beginnings of 200 tokens"):
        course.widgets.sampling(model, tokenizer, ["a"] * 121)
    for wrong, text in (
        ({"temperature": 0}, r"temperature must lie in 0\.1\.\.5\.0, got 0"),
        ({"top_k": 0}, r"top_k must lie in 1\.\.\d+, got 0"),
        ({"top_p": 0}, r"top_p must lie in 0\.01\.\.1\.0, got 0"),
        ({"n_draws": 10_001}, r"n_draws must lie in 0\.\.10000, got 10001"),
        ({"seed": -1}, r"seed must lie in 0\.\.9999, got -1"),
        ({"context": 4}, r"context must lie in 0\.\.3, got 4"),
    ):
        with pytest.raises(ValueError, match=text):
            course.widgets.sampling(world=world, **wrong)
