"""The explorer of sampling: what its JavaScript computes, compared with the package and the world."""

import numpy as np
import torch

import tinytx_course as course
from tests.course.widgets.conftest import changed, close
from tinytx.training.generate import next_token_probs
from tinytx_course.widgets.sampling import SamplingExplorer

STAGES = """(() => { const s = js.stagesOf(get);
  return [s.model, s.heated, s.final, s.left, s.order, s.byTopK, s.byTopP]; })()"""


def of_logits(logits, **settings):
    """Return an explorer of one context with these logits."""
    values = np.array(logits, np.float32)
    names = [f"t{i}" for i in range(values.size)]
    known = {"contexts": ["x"], "tokens": names, "logits": values.tobytes(), "top_k": values.size}
    return SamplingExplorer(**known | settings)


def random_sampling(seed):
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 40))
    logits = random.normal(scale=3, size=size)
    logits[1:][random.random(size - 1) < 0.2] = -np.inf
    return of_logits(
        logits,
        temperature=float(random.uniform(0.1, 5)),
        top_k=int(random.integers(1, size + 1)),
        top_p=float(random.uniform(0.01, 1)) if seed % 3 else 1.0,
    )


def test_every_stage_is_what_the_package_draws_from(node):
    explorers = [random_sampling(seed) for seed in range(40)]
    answers = node("sampling", STAGES, *explorers)
    for explorer, (model, heated, final, left, *_) in zip(explorers, answers, strict=True):
        logits = torch.frombuffer(bytearray(explorer.logits), dtype=torch.float32)
        expected = next_token_probs(logits, explorer.temperature, explorer.top_k, explorer.top_p)
        close(model, logits.softmax(-1), atol=1e-5, rtol=1e-4)
        close(heated, (logits / explorer.temperature).softmax(-1), atol=1e-5, rtol=1e-4)
        close(final, expected, atol=1e-5, rtol=1e-4)
        close(left, expected > 0)


def test_the_stages_can_be_checked_on_paper(node):
    explorers = [
        of_logits(np.log([0.1, 0.4, 0.2, 0.3]), top_k=3, top_p=0.6),
        of_logits(np.log([0.4, 0.3, 0.2, 0.1]), temperature=0.5),
        of_logits(np.log([0.5, 0.5]), top_p=0.5),  # the first reaches it exactly
    ]
    (first, cold, half) = node("sampling", STAGES, *explorers)
    assert first[4] == [1, 3, 2, 0]
    assert first[5] == [True, False, False, False] and first[6] == [True, False, True, False]
    np.testing.assert_allclose(first[2], [0, 4 / 7, 0, 3 / 7], atol=1e-6)
    np.testing.assert_allclose(np.array(cold[2]) * 0.3, [0.16, 0.09, 0.04, 0.01], atol=1e-6)
    assert half[3] == [True, False]


def test_draws_follow_the_distribution_and_repeat(node):
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    settings = [{"n_draws": 10_000, "seed": 3}, {"n_draws": 100, "seed": 3}, {"n_draws": 100, "seed": 4}]
    explorers = [of_logits(logits, top_k=3, **each) for each in settings]
    many, few, other = node("sampling", "js.drawsOf(get)", *explorers)
    shares = np.bincount(many, minlength=4) / 10_000
    np.testing.assert_allclose(shares[:3] * 0.95, [0.5, 0.3, 0.15], atol=0.015)
    assert shares[3] == 0
    assert few == many[:100] and few != other


def test_what_is_said_can_be_checked_by_hand(describe):
    explorer = of_logits(np.log([0.5, 0.25, 0.25]), top_k=2, truth=[[0, 0.75, 2, 0.25]])
    assert describe(explorer)[0] == (
        "After “x”: temperature 1.00, top-k 2, top-p off. Of 3 tokens top-k cuts 1 and top-p 0: 2 are left, "
        "which held 75.0% and are scaled to 100%. Entropy: 1.50 bits as the model says, 0.92 as drawn, 0.81 "
        "in the world. Most probable: “t0” 66.7%, in the world 75.0%. The world never says 33.3% of what is "
        "drawn. Nothing was drawn yet."
    )


def test_the_slider_of_top_k_reaches_every_small_number_and_the_end(node):
    ((one, twenty, thousand),) = node("sampling", "[1, 20, 1000].map(js.cutsUpTo)")
    assert one == [1] and twenty == thousand[:20] == list(range(1, 21))
    assert thousand[-1] == 1000 and thousand == sorted(set(thousand))


def test_a_model_is_compared_with_the_world_token_by_token(reader, world, node, describe):
    model, tokenizer = reader
    explorer = changed(
        course.widgets.sampling(model, tokenizer, ["Le livre", "C'est"], world=world), context=1
    )
    ids = [tokenizer.bos_id, *tokenizer.encode("C' est")]
    with torch.no_grad():
        expected = model(torch.tensor([ids]))[0, -1].softmax(dim=-1)
    allowed = np.setdiff1d(np.arange(tokenizer.vocab_size), [0, 1, 2, 4, 5, 6])
    ((shown, truth),) = node("sampling", "[js.stagesOf(get).model, js.truthOf(get)]", explorer)
    np.testing.assert_allclose(
        np.array(shown)[allowed], expected[allowed] / expected[allowed].sum(), atol=1e-5
    )
    np.testing.assert_allclose(truth, world.through(tokenizer).next_token(ids), atol=2e-6)
    assert explorer.tokens[tokenizer.eos_id] == "(the end)"
    alone = course.widgets.sampling(model, tokenizer, "Le livre")
    texts = describe(explorer, alone)
    assert "The world never says" in texts[0] and "world" not in texts[1]


def test_the_world_alone_is_the_perfect_model(world, node):
    settings = {"temperature": 1, "top_k": None, "top_p": None}
    explorer = course.widgets.sampling(world=world, **settings)
    states = [explorer.state() | {"context": i} for i in range(4)]
    answers = node("sampling", "[js.stagesOf(get).final, js.truthOf(get)]", *states)
    for context, (final, truth) in zip(explorer.contexts, answers, strict=True):
        true = world.next_word(world.split(context))
        words = [None if token == "(the end)" else token for token in explorer.tokens]
        np.testing.assert_allclose(truth, [true.get(word, 0.0) for word in words], atol=2e-6)
        np.testing.assert_allclose(final, truth, atol=2e-6)
