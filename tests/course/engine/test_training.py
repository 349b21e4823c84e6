"""Training in the page is training with tinytx: gradients, optimizer, schedule, defaults, first weights."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import ks_2samp, kstest
from torch.testing import assert_close

import tinytx as tx
from tests.course.engine.conftest import KINDS, case, default_dtype, twin
from tests.course.engine.test_model import VARIANTS, some_ids
from tinytx.optim import make_optimizer
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


def loss_of(model, ids, targets):
    return F.cross_entropy(model(ids).flatten(0, 1), targets.flatten(), ignore_index=-100)


@pytest.mark.parametrize("kernels", KINDS)
def test_loss_and_gradients_are_those_of_torch(engine, kernels):
    dtype = KINDS[kernels]
    models = [twin(dtype=dtype, **fields) for fields in VARIANTS.values()]
    ids = [some_ids(model) for model in models]
    cases = [with_targets(model, rows, kernels) for model, rows in zip(models, ids, strict=True)]
    answers = engine(GRADIENTS, *(one for one, _ in cases))
    for (grads, loss), model, rows, (_, targets) in zip(answers, models, ids, cases, strict=True):
        expected = loss_of(model, rows, targets)
        expected.backward()
        assert_close(torch.tensor(loss, dtype=dtype), expected.detach(), **NEAR[dtype])
        assert grads.keys() == dict(model.named_parameters()).keys()
        for name, parameter in model.named_parameters():
            assert_close(
                grads[name], parameter.grad, **NEAR[dtype], msg=lambda text, name=name: f"{name}: {text}"
            )


LEARN = """
const lm = new LanguageModel(one.config, await kernelsFor(one.kernels)).load(tensors);
const step = new TrainingStep(lm, one.settings);
const ids = tensors.get("ids").data, targets = tensors.get("targets").data;
const told = Array.from({ length: one.settings.n_steps }, () => step.learn(ids, targets, ...one.sizes));
for (const [name, parameter] of lm.parameters) answer(name, parameter);
return told;
"""


@pytest.mark.parametrize("clip_norm", [0.3, 1e9])
def test_steps_are_those_of_tinytx_clipped_or_not(engine, clip_norm):
    settings = TrainingSettings(
        n_steps=4, lr=0.02, warmup_steps=2, decay="linear", clip_norm=clip_norm, final_lr_fraction=0.1
    )
    model = twin(positions="learned")
    ids = some_ids(model)
    one, targets = with_targets(model, ids, settings=settings.to_dict())
    ((weights, told),) = engine(LEARN, one)
    optimizer = make_optimizer(model, settings)
    for step in range(1, 5):
        loss = loss_of(model, ids, targets)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        for group in optimizer.param_groups:
            group["lr"] = settings.lr_at(step)
        optimizer.step()
        optimizer.zero_grad()
        expected = [loss.item(), norm.item(), settings.lr_at(step)]
        np.testing.assert_allclose(
            [told[step - 1][key] for key in ("loss", "norm", "lr")], expected, rtol=1e-9
        )
    for name, parameter in model.named_parameters():
        assert_close(weights[name], parameter.detach(), rtol=1e-8, atol=1e-9)


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
