"""The explorer of shapes: its JavaScript compared with a real block and with torch's reshaping."""

import numpy as np
import pytest
import torch

import tinytx as tx
import tinytx_course as course
from tinytx.transformer import Block


def states(explorer, steps=range(16)):
    return [explorer.state() | {"step": step} for step in steps]


def test_parameters_and_shapes_are_those_of_a_real_block(node):
    config = tx.TransformerConfig(vocab_size=7, d_model=8, n_heads=4, n_layers=1, d_ff=10)
    block, seen = Block(config), {}
    parts = (
        block.attn_norm, block.attn.q_proj, block.attn.out_proj, block.ff_norm, block.ff.up_proj,
        block.ff.down_proj,
    )  # fmt: skip
    for part in parts:
        part.register_forward_hook(lambda part, _, output: seen.update({part: list(output.shape)}))
    block(torch.randn(3, 5, 8))
    explorer = course.widgets.shapes(3, 5, 8, 4, 10)
    steps = node("shapes", "[js.paramsOf(get), js.shapeOf(get)]", *states(explorer))
    count = {part: sum(p.numel() for p in part.parameters()) for part in parts}
    count[block.attn.q_proj] *= 3
    learning = [(n_params, shape) for n_params, shape in steps if n_params]
    assert learning == [(count[part], seen[part]) for part in parts]
    assert sum(n_params for n_params, _ in steps) == tx.count_parameters(block)


@pytest.mark.parametrize("n_heads", [1, 3, 12])
def test_entries_are_where_torch_puts_them(node, n_heads):
    explorer = course.widgets.shapes(2, 5, 12, n_heads)
    flat = torch.arange(2 * 5 * 12).view(2, 5, 12)
    heads = flat.unflatten(-1, (n_heads, -1))
    expected = [flat, heads, heads.transpose(1, 2), flat]
    answers = node(
        "shapes", "[js.shapeOf(get), js.labels(get), js.entryOf(get)]", *states(explorer, (2, 3, 4, 9))
    )
    names = np.array(answers[0][1])
    for axes, tensor, (shape, labels, at) in zip(
        ("btd", "bthk", "bhtk", "btd"), expected, answers, strict=True
    ):
        assert shape == list(tensor.shape)
        assert labels == names[tensor.flatten()].tolist()
        index = tuple(at[axis] for axis in axes)
        assert np.reshape(labels, shape)[index] == f"{at['b']},{at['t']},{at['d']}"


def test_the_summary_follows_one_entry_by_hand(node):
    shapes = course.widgets.shapes
    four, two = shapes(3, 5, 8, 4), shapes(3, 5, 8, 2)
    assert (four.token, four.column) == (1 * 5 + 2, 5)
    texts = node("shapes", "js.describe(get)", *states(four, [4]), *states(two, (4, 2, 5, 13)))
    assert "Shape (B, H, T, K) = (3, 4, 5, 2): 120 numbers, 3 times, no parameters." in texts[0]
    assert "Entry (b 1, t 2, d 5) is at [1, 2, 2, 1] and belongs to head 2." in texts[0]
    assert "is at [1, 1, 2, 1] and belongs to head 1." in texts[1]
    assert "3·(D·D + D) = 216 parameters" in texts[2]
    assert "the row of its token there is [1, 1, 2, :]" in texts[3]
    assert "(B, T, F) = (3, 5, 10)" in texts[4]


def test_the_length_is_moved_and_only_the_pairs_grow_with_its_square(node, describe):
    explorer = course.widgets.shapes(2, 4, 8, 2, 10)
    counts = "(() => [js.lengthOf(get), ...js.numbersOf(get)])()"
    old = {name: value for name, value in explorer.state().items() if name != "seq_len"}
    ((length, now, first),) = node("shapes", counts, old | {"step": 5})  # as in a page that is older
    assert (length, now, first) == (4, 2 * 2 * 4 * 4, 2 * 2 * 4 * 4)
    explorer.seq_len = 8
    for step, (length, now, first) in enumerate(node("shapes", counts, *states(explorer))):
        assert length == 8 and now == (4 if step in (5, 6) else 2) * first
    explorer.step = 5
    assert "B·H·T·S = 2·2·8·8 = 256 numbers, 4 times those at T = 4." in describe(explorer)[0]
    assert "T = 8" in explorer.summary()
    explorer.token = 15
    ((at,),) = node("shapes", "[js.entryOf(get)]", explorer.state() | {"seq_len": 3})
    assert (at["b"], at["t"]) == (1, 2)  # the last token of a shorter text
    explorer.seq_len, explorer.step = 16, 5
    assert "= 1024 numbers, 16 times those at T = 4." in describe(explorer)[0]
    with pytest.raises(ValueError, match=r"seq_len must lie in 1..16, got 17"):
        explorer.seq_len = 17
