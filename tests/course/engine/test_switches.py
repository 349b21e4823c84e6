"""What a reader may switch off, and the faults of the museum, computed as torch computes them."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import tinytx as tx
from tests.course.engine.conftest import KINDS, twin
from tests.course.engine.test_model import some_ids
from tests.course.engine.test_training import NEAR, with_targets
from tinytx.attention import split_heads
from tinytx.positions import alibi_bias

SWITCHES = [{"scale": False}, {"residual": False}, {"feature_norm": False}]
SWITCHES.append({name: value for switch in SWITCHES for name, value in switch.items()})


def switched_logits(model, ids, *, scale=True, residual=True, feature_norm=True):
    """Logits of a pre- or post-norm model with ALiBi, written out, with switches."""
    config, body = model.config, model.body

    def norm(module, x):
        axis = -1 if feature_norm else 1
        variance, mean = torch.var_mean(x, dim=axis, correction=0, keepdim=True)
        return (x - mean) / (variance + module.eps).sqrt() * module.weight + (
            0 if module.bias is None else module.bias
        )

    def attend(attn, x):
        q, k, v = (split_heads(proj(x), config.n_heads) for proj in (attn.q_proj, attn.k_proj, attn.v_proj))
        scores = q @ k.mT / (math.sqrt(config.head_dim) if scale else 1)
        scores = scores + alibi_bias(config.n_heads, x.shape[1]).to(scores)
        if config.causal:
            scores = scores.masked_fill(~tx.causal_mask(x.shape[1]), -torch.inf)
        return attn.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def sublayer(module, x, f):
        out = f(norm(module, x) if config.norm == "first" else x) + (x if residual else 0)
        return out if config.norm == "first" else norm(module, out)

    x = body.embed(ids)
    for block in body.blocks:
        x = sublayer(block.attn_norm, x, lambda x, block=block: attend(block.attn, x))
        x = sublayer(block.ff_norm, x, block.ff)
    return model.head(norm(body.final_norm, x) if config.norm == "first" else x)


LEARN = """
const lm = new LanguageModel(one.config, await kernelsFor(one.kernels), one.switches).load(tensors);
const ids = tensors.get("ids").data, targets = tensors.get("targets").data;
let loss = 0;
for (let i = 0; i < one.times; i++) {
  loss = lm.loss(ids, targets, ...one.sizes, { twice: one.twice });
  lm.backward({ zeroGrad: one.zeroGrad });
}
for (const [name, grad] of lm.grads) answer(name, grad);
return loss;
"""


def assert_learned(engine, model, loss_of, kernels="float64", *, times=1, **facts):
    """Compare the loss of a model in the page, and what its gradients have added up to, with torch."""
    ids, near = some_ids(model), NEAR[KINDS[kernels]]
    facts = {"twice": False, "zeroGrad": times == 1, "switches": {}} | facts
    one, targets = with_targets(model, ids, kernels, times=times, **facts)
    ((grads, loss),) = engine(LEARN, one)
    for _ in range(times):
        expected = F.cross_entropy(loss_of(ids).flatten(0, 1), targets.flatten(), ignore_index=-100)
        expected.backward()
    assert_close(torch.tensor(loss, dtype=KINDS[kernels]), expected.detach(), **near)
    for name, parameter in model.named_parameters():
        assert_close(grads[name], parameter.grad, **near, msg=lambda text, name=name: f"{name}: {text}")
    return loss, F.cross_entropy(model(ids).flatten(0, 1), targets.flatten()).item()


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda its: "-".join(its))
@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("kernels", KINDS)
def test_a_model_with_something_switched_off_has_the_gradients_of_torch(engine, switches, norm, kernels):
    model = twin(dtype=KINDS[kernels], positions="alibi", norm=norm)
    logits = partial(switched_logits, model, **switches)
    loss, plain = assert_learned(engine, model, logits, kernels, switches=switches)
    assert abs(loss - plain) > 1e-4


@pytest.mark.parametrize("kernels", KINDS)
def test_softmax_before_cross_entropy_is_that_of_torch(engine, kernels):
    model = twin(dtype=KINDS[kernels])
    assert_learned(engine, model, lambda ids: model(ids).softmax(-1), kernels, twice=True)


def test_without_zero_grad_the_gradients_of_all_steps_add_up(engine):
    model = twin()
    assert_learned(engine, model, model, times=3)


LIVE = """
const world = new World(tensors.get("world").data);
const make = (changes) => new Run(world, new Kernels(), 0, { ...one.changes, ...changes });
const run = make({}), [batch] = [reviewBatches(world, generator(3), 200).next().value];
const given = ["tokenIds", "targets", "batchSize", "seqLen"].map((name) => batch[name]);
const lossOf = (run) => run.model.loss(...given);
for (let i = 0; i < 3; i++) run.advance();
const pairs = one.all.map((changes) => {
  run.change(changes);
  const fresh = make({ config: { ...one.changes.config, ...changes.config }, switches: changes.switches });
  fresh.model.load(run.model.parameters);
  return [lossOf(run), lossOf(fresh)];
});
const refusal = (config) => { try { run.change({ config }); } catch (error) { return error.message; } };
const refused = one.bad.map(refusal);
run.change({ faults: { targets_not_shifted: true }, settings: { lr: 0 }, tokensPerBatch: 128 });
const told = run.advance(), ids = Int32Array.from([0, 5, 7]);
return { pairs, refused, told, copied: [...run.asTargets(ids, Int32Array.from([5, 7, -100]))] };
"""


def test_what_changes_while_it_learns_is_what_a_new_model_of_these_weights_would_be(engine, tables):
    config = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8}
    every = [
        *({"config": {"causal": False}}, {"config": {"causal": True, "n_heads": 4}}),
        {"config": {"n_heads": 4, "positions": "sinusoidal"}, "switches": {"scale": False}},
        {"config": {"n_heads": 4, "positions": "none"}, "switches": {"residual": False, "scale": True}},
    ]
    bad = [{"norm": "last"}, {"n_layers": 2}, {"positions": "learned"}, {"n_heads": 3}]
    facts = {"changes": {"config": config, "settings": {"n_steps": 9}}, "all": every, "bad": bad}
    ((_, found),) = engine(LIVE, (facts, tables))
    losses = [pair[0] for pair in found["pairs"]]
    assert all(ours == fresh for ours, fresh in found["pairs"]) and len(set(losses)) == len(losses)
    assert all(
        name in message for fields, message in zip(bad, found["refused"], strict=True) for name in fields
    )
    assert "divide d_model=8, got 3" in found["refused"][-1]
    assert found["told"]["lr"] == 0 and found["copied"] == [0, 5, -100]
