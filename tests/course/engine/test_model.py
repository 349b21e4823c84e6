"""The model in the page computes what tinytx computes: every number on the way, in float64 and in float32."""

import math

import pytest
import torch
from torch.testing import assert_close

import tinytx as tx
from tests.course.engine.conftest import KINDS, case, twin
from tinytx.attention import split_heads

VARIANTS = {
    "the world's recipe": {"positions": "alibi", "activation": "relu", "bias": False},
    "the defaults": {},
    "post-norm": {"norm": "last", "activation": "relu"},
    "learned positions": {"positions": "learned", "tie_embeddings": True},
    "no positions": {"positions": "none", "causal": False, "scale_embeddings": False, "n_heads": 2},
    "no mask": {"positions": "alibi", "causal": False, "n_heads": 6, "head_bias": False},
    "one head": {"n_heads": 1, "n_layers": 1, "norm_eps": 0.1, "bias": False, "head_bias": True},
}
FORWARD = """
const record = {}, lm = new LanguageModel(one.config, await kernelsFor(one.kernels)).load(tensors);
answer("logits", lm.forward(tensors.get("ids").data, ...one.sizes, record));
for (const [name, tensor] of Object.entries(record)) answer(name, tensor);
"""
NEAR = {torch.float64: {"rtol": 1e-12, "atol": 1e-12}, torch.float32: {"rtol": 1e-5, "atol": 1e-5}}


def some_ids(model, batch_size=2, seq_len=5, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(model.config.vocab_size, (batch_size, seq_len), generator=generator)


@torch.no_grad()
def recorded(model, ids):
    """What the model computes on the way, by the names of the record, from hooks and tinytx's functions."""
    found, hooks, body, config = {}, [], model.body, model.config

    def note(name, module):
        hook = module.register_forward_hook(lambda module, args, out: found.__setitem__(name, out))
        hooks.append(hook)

    note("logits", model.head)
    if config.norm == "first":
        note("final_norm", body.final_norm)
    for i, block in enumerate(body.blocks):
        modules = {
            **{"attn_norm": block.attn_norm, "ff_norm": block.ff_norm, "attn_out": block.attn, "out": block},
            **{"up": block.ff.up_proj, "act": block.ff.activation, "ff_out": block.ff},
            **{"q": block.attn.q_proj, "k": block.attn.k_proj, "v": block.attn.v_proj},
        }
        for name, module in modules.items():
            note(f"blocks.{i}.{name}", module)
    with tx.record_attention(model) as weights:
        model(ids)
    for hook in hooks:
        hook.remove()
    found["embed"] = body.embed(ids)
    for i, block in enumerate(body.blocks):
        q, k, v = (split_heads(found[f"blocks.{i}.{name}"], config.n_heads) for name in "qkv")
        bias = block.attn.positions(q, k)[2] if block.attn.positions else 0.0
        scores = q @ k.mT / math.sqrt(config.head_dim) + bias
        if config.causal:
            scores = scores.masked_fill(~tx.causal_mask(ids.shape[1]), -torch.inf)
        attn_weights = weights[f"body.blocks.{i}.attn"]
        mine = {"q": q, "k": k, "v": v, "attn_scores": scores, "attn_weights": attn_weights}
        found |= {f"blocks.{i}.{name}": x for name, x in {**mine, "context": attn_weights @ v}.items()}
    return found


@pytest.mark.parametrize("kernels", KINDS)
def test_every_number_on_the_way_is_that_of_tinytx(engine, kernels):
    dtype = KINDS[kernels]
    models = [twin(dtype=dtype, **fields) for fields in VARIANTS.values()]
    ids = [some_ids(model) for model in models]
    answers = engine(FORWARD, *(case(model, rows, kernels) for model, rows in zip(models, ids, strict=True)))
    for (answer, _), model, rows in zip(answers, models, ids, strict=True):
        expected = recorded(model, rows)
        assert answer.keys() == expected.keys()
        for name, tensor in expected.items():
            assert_close(answer[name], tensor, **NEAR[dtype], msg=lambda text, name=name: f"{name}: {text}")


def test_rows_of_a_batch_are_computed_as_if_each_came_alone_and_again(engine):
    model = twin()
    ids = some_ids(model, batch_size=3, seq_len=7)
    body = """
    const lm = new LanguageModel(one.config, new Kernels(Float64Array)).load(tensors);
    const ids = tensors.get("ids").data;
    answer("all", lm.forward(ids, 3, 7));
    for (let b = 0; b < 3; b++) answer(`row ${b}`, lm.forward(ids.slice(7 * b, 7 * b + 7), 1, 7));
    answer("again", lm.forward(ids, 3, 7));
    """
    ((answer, _),) = engine(body, case(model, ids))
    rows = torch.cat([answer[f"row {b}"] for b in range(3)])
    assert_close(rows, answer["all"], rtol=0, atol=0)
    assert_close(answer["again"], answer["all"], rtol=0, atol=0)


@pytest.mark.parametrize("kernels", KINDS)
def test_many_tokens_move_the_memory_and_no_number(engine, kernels):
    model = twin(dtype=KINDS[kernels], max_len=512, d_model=48, d_ff=31)
    ids = some_ids(model, batch_size=5, seq_len=301)
    ((answer, _),) = engine(FORWARD, case(model, ids, kernels))
    assert answer["blocks.0.attn_weights"].numel() * 2 > 2**20
    assert_close(answer["logits"], model(ids).detach(), **NEAR[KINDS[kernels]])


ERRORS = """
const attempt = (make) => { try { make(); return "nothing"; } catch (error) { return error.message; } };
const make = (changes) => new LanguageModel({ ...one.config, ...changes });
const lm = make({});
return [
  ...[{ d_model: 7 }, { n_heads: 4 }, { positions: "rotary" }, { dropout: 0.1 }, { n_segments: 2 },
    { n_layers: 0 }].map((changes) => attempt(() => make(changes))),
  attempt(() => lm.forward([1, 2, 3], 2, 2)), attempt(() => lm.forward([1, 11], 1, 2)),
  attempt(() => lm.forward(new Array(9).fill(1), 1, 9)), attempt(() => lm.load(new Map())),
];
"""


def test_what_cannot_be_computed_is_said_with_rule_and_value(engine):
    model = twin()
    ((_, messages),) = engine(ERRORS, case(model, some_ids(model)))
    named = [
        *("d_model=7", "n_heads=4", "rotary", "0.1", "n_segments", "0"),
        *("2 rows of 2", "11", "max_len=8", next(iter(model.state_dict()))),
    ]
    for message, word in zip(messages, named, strict=True):
        assert word in message and ("got" in message)
