"""The model in the page: texts that move its memory, and what it refuses; its numbers: test_fifty_steps."""

import pytest
import torch
from torch.testing import assert_close

from tests.course.engine.conftest import KINDS, case, twin

FORWARD = """
const record = {}, lm = new LanguageModel(one.config, await kernelsFor(one.kernels)).load(tensors);
answer("logits", lm.forward(tensors.get("ids").data, ...one.sizes, record));
for (const [name, tensor] of Object.entries(record)) answer(name, tensor);
"""
NEAR = {torch.float64: {"rtol": 1e-12, "atol": 1e-12}, torch.float32: {"rtol": 1e-5, "atol": 1e-5}}


def some_ids(model, batch_size=2, seq_len=5, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(model.config.vocab_size, (batch_size, seq_len), generator=generator)


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
