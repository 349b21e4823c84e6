"""50 steps of two recipes, and 100 random models, next to torch: what any kernel computes shows in them."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import tinytx as tx
from tests.course.engine.conftest import KINDS, case, default_dtype, twin
from tests.course.engine.test_training import GRADIENTS, with_targets
from tinytx.batching import pad_batch
from tinytx.objectives import causal_batch
from tinytx.optim import make_optimizer
from tinytx.settings import TrainingSettings

N_STEPS, BATCH_SIZE = 50, 3
FIRST = {"float64": 1e-9, "float32": 1e-5, "wasm": 1e-5}  # of the first loss, by kind of kernels
ALL = {"float64": 1e-6, "float32": 1e-2, "wasm": 1e-2}
TRAIN = """
const lm = new LanguageModel(one.config, await kernelsFor(one.kernels)).load(tensors);
const step = new TrainingStep(lm, one.settings), told = [];
for (let i = 0; i < one.settings.n_steps; i++) {
  const { shape, data } = tensors.get(`ids ${i}`);
  const { loss, norm, lr } = step.learn(data, tensors.get(`targets ${i}`).data, ...shape);
  told.push([loss, norm, lr]);
}
return told;
"""


@pytest.fixture(scope="module")
def batches(world):
    """Batches of the world, in words; 0 begins, ends and fills up."""
    rows = [[world.automaton.word_ids[word] + 1 for word in one.words] for one in world.reviews(300, seed=5)]
    ids = [rows[i * BATCH_SIZE : (i + 1) * BATCH_SIZE] for i in range(N_STEPS)]
    pairs = [causal_batch(pad_batch([[0, *row, 0] for row in some], -100)) for some in ids]
    return [(inputs.clamp(min=0), targets) for inputs, targets in pairs], len(world.vocabulary) + 1


def steps_of_torch(model, batches, settings):
    """Loss, norm of the gradient and learning rate of each step."""
    optimizer, told = make_optimizer(model, settings), []
    for step, (ids, targets) in enumerate(batches, start=1):
        loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten(), ignore_index=-100)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        for group in optimizer.param_groups:
            group["lr"] = settings.lr_at(step)
        optimizer.step()
        optimizer.zero_grad()
        told.append([loss.item(), norm.item(), settings.lr_at(step)])
    return np.array(told)


@pytest.mark.parametrize(("optimizer", "clip_norm"), [("adamw", 0.3), ("muon", 1e9)])
def test_fifty_steps_are_those_of_torch_clipped_or_not(engine, batches, optimizer, clip_norm):
    batches, vocab_size = batches
    settings = TrainingSettings(
        n_steps=N_STEPS, lr=1e-2, warmup_steps=5, decay="linear", final_lr_fraction=0.1,
        optimizer=optimizer, clip_norm=clip_norm, precision="fp32",
    )  # fmt: skip
    with default_dtype(torch.float64):
        torch.manual_seed(0)
        sizes = {"vocab_size": vocab_size, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20}
        model = tx.LanguageModel(
            tx.TransformerConfig(**sizes, positions="alibi", activation="relu", bias=False)
        )
    arrays = {f"ids {i}": ids.int().numpy() for i, (ids, _) in enumerate(batches)}
    arrays |= {f"targets {i}": targets.int().numpy() for i, (_, targets) in enumerate(batches)}
    facts, weights = case(model, batches[0][0], settings=settings.to_dict())
    cases = [({**facts, "kernels": kernels}, {**weights, **arrays}) for kernels in KINDS]
    answers = engine(TRAIN, *cases)
    expected = steps_of_torch(model, batches, settings)
    assert expected[-1, 0] < expected[0, 0] - 1
    for kernels, (_, told) in zip(KINDS, answers, strict=True):
        np.testing.assert_allclose(told[0][0], expected[0, 0], rtol=FIRST[kernels])
        np.testing.assert_allclose(told, expected, rtol=ALL[kernels])
        np.testing.assert_allclose(np.array(told)[:, 2], expected[:, 2], rtol=1e-9)


def random_model(number):
    """A model whose sizes and kind are drawn, with ids and targets."""
    rng, kernels = np.random.default_rng(number), list(KINDS)[number % 3]
    # Width 4 or more: a norm of two nearly equal numbers loses their digits.
    n_heads = int(rng.integers(1, 6))
    head_dim = int(rng.choice([4, 6] if n_heads == 1 else [2, 4, 6]))
    fields = {
        **{"vocab_size": int(rng.integers(2, 30)), "d_model": n_heads * head_dim, "n_heads": n_heads},
        **{"n_layers": int(rng.integers(1, 4)), "d_ff": int(rng.integers(1, 20)), "max_len": 20},
        **{name: bool(rng.integers(2)) for name in ("causal", "bias", "tie_embeddings", "scale_embeddings")},
        **{"norm": str(rng.choice(["first", "last"])), "activation": str(rng.choice(["relu", "gelu"]))},
        "positions": str(rng.choice(["alibi", "sinusoidal", "learned", "none"])),
        **{"norm_eps": float(rng.choice([1e-5, 0.1])), "head_bias": bool(rng.integers(2))},
    }
    model = twin(seed=number, dtype=torch.float64, **fields)
    generator = torch.Generator().manual_seed(number)
    shape = (int(rng.integers(1, 5)), int(rng.integers(1, 14)))
    ids = torch.randint(model.config.vocab_size, shape, generator=generator)
    ignored = int(rng.integers(0, ids.numel()))
    one, targets = with_targets(model, ids, kernels, ignored)
    return model, ids, one, targets


def compare_models(engine, numbers):
    drawn = [random_model(number) for number in numbers]
    answers = engine(GRADIENTS, *(one for _, _, one, _ in drawn))
    for number, (model, ids, (facts, _), targets), (grads, value) in zip(
        numbers, drawn, answers, strict=True
    ):
        loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten(), ignore_index=-100)
        loss.backward()
        near = FIRST[facts["kernels"]]
        np.testing.assert_allclose(value, loss.item(), rtol=near, err_msg=f"case {number}, {facts}")
        assert grads.keys() == dict(model.named_parameters()).keys()
        for name, parameter in model.named_parameters():
            where = f"case {number}, {facts}, {name}: "
            atol = near * max(1.0, parameter.grad.abs().max().item())
            message = lambda text, at=where: at + text  # noqa: E731
            assert_close(grads[name].double(), parameter.grad, rtol=near, atol=atol, msg=message)


def test_random_models_have_the_loss_and_the_gradients_of_torch(engine):
    compare_models(engine, range(100))


@pytest.mark.proof
@pytest.mark.parametrize("first", range(100, 1100, 500))
def test_a_thousand_random_models(engine, first):
    compare_models(engine, range(first, first + 500))
