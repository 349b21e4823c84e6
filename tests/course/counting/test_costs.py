"""The closed form of costs against what torch counts: operations, parameters, saved tensors, cache."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from tests.tinytx.test_counting import configurations
from tinytx.attention import record_attention
from tinytx.classifier import Classifier
from tinytx.config import PRESETS
from tinytx.counting import count_parameters
from tinytx.transformer import LanguageModel, Transformer
from tinytx_course.counting.costs import cost_table

C = 3


def build(config, head):
    if head == "lm":
        return LanguageModel(config)
    return Classifier(config, C) if head == "classifier" else Transformer(config)


def loss_of(model, head, path, batch_size, seq_len):
    """Return a function that runs the model by one of its paths, to the loss where it has one."""
    body = model if head is None else model.body
    token_ids = torch.randint(body.config.vocab_size, (batch_size, seq_len))
    n_answers = body.config.vocab_size if head == "lm" else C
    targets = torch.randint(n_answers, (batch_size, seq_len) if head == "lm" else (batch_size,))

    def run():
        if path == "fused":
            out = model(token_ids)
        else:
            with record_attention(model):
                out = model(token_ids)
        return out.sum() if head is None else F.cross_entropy(out.flatten(0, -2), targets.flatten())

    return run


def count_flops(task):
    """Operations of the products in a task; those of fused attention on a CPU count 0."""
    with FlopCounterMode(display=False) as counter:
        task()
    return counter.get_total_flops()


def count_saved_bytes(task, ignore):
    """Bytes that autograd saves: shared memory counts once, that of tensors to ignore not at all."""
    ignored = {tensor.untyped_storage().data_ptr() for tensor in ignore}
    sizes = {}
    alive = []  # freed memory may be reused, and would then count once

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in ignored:
            sizes[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        task()
    return sum(sizes.values())


@st.composite
def cases(draw):
    config = draw(configurations())
    d_model = config.n_heads * draw(st.sampled_from([12, 14]))
    config = config.replace(d_model=d_model, max_len=32, scale_embeddings=draw(st.booleans()))
    head = draw(st.sampled_from(["lm", "classifier", None]))
    return config, head, {"batch_size": draw(st.integers(1, 5)), "seq_len": draw(st.integers(2, 17))}


@settings(max_examples=12)
@given(cases())
def test_operations_equal_those_that_torch_counts(case):
    config, head, sizes = case
    table = cost_table(config, head, n_classes=C, **sizes)
    run = loss_of(build(config, head), head, "plain", **sizes)
    assert table.flops_forward == count_flops(run)
    assert table.flops_training == count_flops(lambda: run().backward())


@settings(max_examples=30)
@given(cases(), st.sampled_from(["fused", "plain"]))
def test_activations_are_within_two_percent_of_what_autograd_saves(case, path):
    config, head, sizes = case
    model = build(config, head)
    table = cost_table(config, head, n_classes=C, attention=path, **sizes)
    constants = [*model.parameters(), *model.buffers()]
    saved = count_saved_bytes(loss_of(model, head, path, **sizes), constants)
    assert table.activations.total == pytest.approx(saved, rel=0.02)


@settings(max_examples=8)
@given(cases())
def test_parameters_and_cache_are_those_of_the_model(case):
    config, _, sizes = case
    model = LanguageModel(config)
    table = cost_table(config, **sizes)
    assert table.parameters.total == count_parameters(model)

    keys_and_values = []
    for block in model.body.blocks:
        for proj in (block.attn.k_proj, block.attn.v_proj):
            proj.register_forward_hook(lambda module, args, out: keys_and_values.append(out))
    run = loss_of(model, "lm", "fused", **sizes)
    run().backward()
    assert table.kv_cache.total == config.causal * sum(each.nbytes for each in keys_and_values)


LAB = PRESETS["seed-lab"]


def test_the_lab_by_hand():
    table = cost_table(LAB, batch_size=1, seq_len=10)
    maps = 4 * 200 * 200 + 2 * 200 * 200  # weights of one block
    assert table.flops_forward == 2 * 10 * (4 * (maps + 2 * 10 * 200) + 200 * 100)
    assert table.parameters.total == 1_008_100
    assert table.kv_cache.total == 2 * 4 * 10 * 200 * 4  # K and V, 4 layers, 10 tokens


def test_what_does_not_generate_keeps_no_cache():
    for config, head in ((LAB.replace(causal=False), "lm"), (LAB, "classifier"), (LAB, None)):
        assert cost_table(config, head, batch_size=1, seq_len=3).kv_cache.total == 0


@pytest.mark.parametrize(
    ("changes", "values"),
    [
        ({"head": "translation"}, "'translation'"),
        ({"attention": "flash"}, "'flash'"),
        ({"batch_size": 0}, "batch_size .* 0"),
        ({"n_classes": 0}, "n_classes .* 0"),
        ({"seq_len": 513}, "max_len=512, got 513"),
    ],
)
def test_bad_input_is_refused(changes, values):
    with pytest.raises(ValueError, match=values):
        cost_table(**{"config": LAB, "batch_size": 1, "seq_len": 1, **changes})
