"""Training in the page is training with tinytx: gradients, optimizer, schedule, defaults, first weights."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy.stats import ks_2samp, kstest

import tinytx as tx
from tests.course.engine.conftest import case, default_dtype
from tests.course.engine.test_model import some_ids
from tinytx.settings import TrainingSettings

GRADIENTS = """
const lm = new LanguageModel(one.config, await kernelsFor(one.kernels)).load(tensors);
const loss = lm.loss(tensors.get("ids").data, tensors.get("targets").data, ...one.sizes);
lm.backward();
for (const [name, grad] of lm.grads) answer(name, grad);
return loss;
"""
NEAR = {torch.float64: {"rtol": 1e-9, "atol": 1e-11}, torch.float32: {"rtol": 1e-5, "atol": 1e-5}}


def with_targets(model, ids, kernels=None, ignored=3, **facts):
    """A case with targets, of which some are to be ignored; also the targets."""
    targets = some_ids(model, *ids.shape, seed=2)
    targets.view(-1)[:ignored] = -100
    facts, arrays = case(model, ids, kernels, **facts)
    return (facts, {**arrays, "targets": targets.int().numpy()}), targets


def test_defaults_and_schedule_are_those_of_tinytx(engine):
    schedules = [
        {},
        {"warmup_steps": 3, "lr": 0.5},
        {"decay": "linear", "warmup_steps": 7, "final_lr_fraction": 0},
    ]
    settings = [TrainingSettings(n_steps=7, **changes) for changes in schedules]
    sizes = {"vocab_size": 1, "d_model": 2, "n_heads": 1, "n_layers": 1, "d_ff": 1}
    facts = {"settings": [its.to_dict() for its in settings], "sizes": sizes}
    body = """
    const { config } = new LanguageModel(one.sizes), steps = [1, 2, 3, 4, 5, 6, 7];
    return [DEFAULT_SETTINGS, config, one.settings.map((its) => steps.map((step) => lrAt(its, step)))];
    """
    ((_, (defaults, config, rates)),) = engine(body, (facts, {}))
    fields = {field.name: field.default for field in dataclasses.fields(TrainingSettings)}
    assert defaults == {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in fields.items()
        if name in defaults
    }
    assert {"lr", "weight_decay", "betas", "clip_norm", "decay"} <= defaults.keys()
    known = {field.name: field.default for field in dataclasses.fields(tx.TransformerConfig)}
    assert config == {**{name: known[name] for name in config}, **sizes}
    for its, row in zip(settings, rates, strict=True):
        np.testing.assert_allclose(row, [its.lr_at(step) for step in range(1, 8)], rtol=1e-12, atol=1e-15)


DRAW = """
const lm = initialise(new LanguageModel(one.config, new Kernels(Float64Array)), one.seed);
for (const [name, parameter] of lm.parameters) answer(name, parameter);
const random = generator(one.seed);
answer("uniform", { shape: [one.n], data: Float64Array.from({ length: one.n }, random) });
"""
LARGE = {"vocab_size": 90, "d_model": 48, "n_heads": 2, "n_layers": 3, "d_ff": 70, "max_len": 60}


@pytest.mark.parametrize("fields", [{}, {"norm": "last", "tie_embeddings": True}, {"positions": "learned"}])
def test_first_weights_have_the_distributions_of_tinytx(engine, fields):
    config = tx.TransformerConfig(**{**LARGE, **fields})
    ((drawn, _),) = engine(DRAW, ({"config": config.to_dict(), "seed": 5, "n": 1}, {}))
    with default_dtype(torch.float64):
        model = tx.LanguageModel(config)
    for name, parameter in model.named_parameters():
        mine, theirs = drawn[name].flatten().numpy(), parameter.detach().flatten().numpy()
        if theirs.std() == 0:
            assert (mine == theirs).all(), name
        else:
            assert ks_2samp(mine, theirs).pvalue > 1e-4, name
            assert abs(mine.std() / theirs.std() - 1) < 0.06, name
            np.testing.assert_allclose(np.abs(mine).max(), np.abs(theirs).max(), rtol=0.35)


def test_the_generator_is_uniform_without_memory_and_differs_by_seed_alone(engine):
    n, config = 40_000, tx.TransformerConfig(**LARGE).to_dict()
    answers = engine(DRAW, *(({"config": config, "seed": seed, "n": n}, {}) for seed in (0, 0, 1)))
    first, again, other = (found["uniform"].numpy() for found, _ in answers)
    assert (first == again).all() and first.min() >= 0 and first.max() < 1
    for numbers in (first, other):
        assert kstest(numbers, "uniform").pvalue > 1e-4
        np.testing.assert_allclose(numbers.std(), 12**-0.5, rtol=0.02)
        for lag in (1, 2, 7):
            assert abs(np.corrcoef(numbers[lag:], numbers[:-lag])[0, 1]) < 0.03
    assert abs(np.corrcoef(first, other)[0, 1]) < 0.03
    weights = [found["head.weight"] for found, _ in answers]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
