"""LoRA: nothing changes at first, only A and B learn, and the merged model computes the same."""

import copy

import pytest
import torch
import torch.nn.functional as F

from tinytx.config import TransformerConfig
from tinytx.lora import LoRALinear, add_lora, merge_lora, remove_lora
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.transformer import LanguageModel

D, LAYERS, RANK = 14, 2, 3
CONFIG = TransformerConfig(vocab_size=13, d_model=D, n_heads=7, n_layers=LAYERS, d_ff=5, max_len=11)
IDS = torch.randint(13, (2, 7), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return LanguageModel(CONFIG).eval()


@pytest.mark.parametrize(("kind", "name"), [(LanguageModel, "head"), (MaskedLanguageModel, "output")])
def test_a_tied_weight_is_not_adapted_as_merging_would_change_the_embeddings(kind, name):
    with pytest.raises(ValueError, match=f"{name} must have a weight of its own"):
        add_lora(kind(CONFIG.replace(tie_embeddings=True)), names=(name,))
    model = LanguageModel(CONFIG)
    add_lora(model, names=("head",))
    with pytest.raises(ValueError, match="before"):
        add_lora(model)


@pytest.mark.parametrize("wrong", [{"names": ("qproj",)}, {"rank": 0}])
def test_what_is_refused_leaves_the_model_as_it_was(model, wrong):
    before = {name: type(module) for name, module in model.named_modules()}
    with pytest.raises(ValueError, match="named qproj, got none|rank must be at least 1, got 0"):
        add_lora(model, **wrong)
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert {name: type(module) for name, module in model.named_modules()} == before


def learned(model):
    """The same model after a few steps: neither A nor B is at its start."""
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(model(IDS).flatten(0, 1), IDS.flatten()).backward()
        optimizer.step()
    return model


def test_the_formula_is_that_of_the_paper_with_and_without_a_bias():
    for bias in (True, False):
        base = torch.nn.Linear(5, 7, bias=bias)
        layer, x = LoRALinear(base, rank=2, alpha=3.0), torch.randn(3, 2, 5)
        torch.nn.init.normal_(layer.b)
        expected = F.linear(x, base.weight + 3.0 / 2 * layer.b @ layer.a, base.bias)
        torch.testing.assert_close(layer(x), expected, atol=1e-6, rtol=1e-6)


def test_only_a_and_b_get_gradients_and_learn(model):
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    layers = add_lora(model, RANK)
    assert {(*layer.a.shape, *layer.b.shape) for layer in layers} == {(RANK, D, D, RANK)}
    learned(model)
    trained = {name for name, weight in model.named_parameters() if weight.grad is not None}
    ends = {f"body.blocks.{i}.attn.{part}_proj.{x}" for i in range(LAYERS) for part in "qv" for x in "ab"}
    assert trained == ends
    assert all(weight.abs().sum() > 0 for name, weight in model.named_parameters() if name.endswith(".b"))
    now = {name.replace(".base.", "."): weight for name, weight in model.state_dict().items()}
    assert all(torch.equal(now[name], weight) for name, weight in before.items())


def test_new_updates_change_nothing_merged_ones_all_they_did_and_removed_ones_leave_what_was(model):
    original = copy.deepcopy(model)
    add_lora(model, RANK)
    assert torch.equal(model(IDS), original(IDS))
    adapted = learned(model)
    due = adapted(IDS)
    assert (due - original(IDS)).abs().max() > 1e-2
    merged = copy.deepcopy(adapted)
    merge_lora(merged)
    torch.testing.assert_close(merged(IDS), due, atol=1e-6, rtol=1e-6)
    remove_lora(adapted)
    assert torch.equal(adapted(IDS), original(IDS))
    for plain in (merged, adapted):
        assert [name for name, _ in plain.named_parameters()] == [n for n, _ in original.named_parameters()]
