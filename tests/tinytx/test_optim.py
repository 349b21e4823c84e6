"""AdamW with weight decay on matrices only; Muon: orthogonal updates, everything else as AdamW does it."""

import re

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tinytx.masked_lm import MaskedLanguageModel
from tinytx.optim import Muon, make_optimizer, orthogonalised
from tinytx.settings import TrainingSettings
from tinytx.transformer import LanguageModel


def test_singular_values_become_nearly_1_and_singular_vectors_stay():
    matrices = torch.randn(3, 7, 11, dtype=torch.float64)
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    for given, (left, right) in ((matrices, (u, v)), (matrices.mT, (v.mT, u.mT))):
        found = orthogonalised(given)
        values = torch.linalg.svdvals(found)
        assert values.min() > 0.6 and values.max() < 1.3
        # The same singular vectors: in their terms the answer is diagonal.
        inside = left.mT @ found @ right.mT
        assert_close(inside, torch.diag_embed(inside.diagonal(dim1=-2, dim2=-1)), rtol=0, atol=1e-6)


def test_updates_are_those_of_torch_for_matrices_and_for_vectors():
    shapes = {"matrix": (6, 4), "vector": (5,)}
    ours, theirs = ({name: nn.Parameter(torch.ones(shape)) for name, shape in shapes.items()} for _ in "12")
    how = {"lr": 0.02, "weight_decay": 0.1}
    adamw = {"lr": 0.02, "betas": (0.9, 0.98), "weight_decay": 0.0}
    muon = Muon(
        [ours["matrix"]], [{"params": [ours["vector"]], "weight_decay": 0.0}], **how, betas=(0.9, 0.98)
    )
    its_muon = torch.optim.Muon([theirs["matrix"]], **how, adjust_lr_fn="match_rms_adamw")
    its_adamw = torch.optim.AdamW([theirs["vector"]], **adamw)
    for _ in range(3):
        for name, shape in shapes.items():
            ours[name].grad = torch.randn(shape)
            theirs[name].grad = ours[name].grad.clone()
        for optimizer in (muon, its_muon, its_adamw):
            optimizer.step()
    assert_close(ours["matrix"], theirs["matrix"], rtol=0, atol=2e-3)  # theirs rounds to bfloat16
    assert_close(ours["vector"], theirs["vector"])


MODELS = {
    "causal": lambda config: LanguageModel(config.replace(positions="learned")),
    "modern": lambda config: LanguageModel(config.replace(activation="swiglu", n_kv_heads=1, n_experts=3)),
    "masked": lambda config: MaskedLanguageModel(
        config.replace(n_segments=2, tie_embeddings=True), next_sentence=True
    ),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_decay_pulls_matrices_only_and_muon_gets_those_of_hidden_layers(config, kind, optimizer):
    """Neither for embeddings, norms and biases; heads and routers decay, but are left to AdamW."""
    model = MODELS[kind](config)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    settings = TrainingSettings(n_steps=3, optimizer=optimizer, weight_decay=0.3)
    groups = make_optimizer(model, settings).param_groups
    found = [{names[id(parameter)] for parameter in group["params"]} for group in groups]
    assert sum(map(len, found)) == len(names) == len(set().union(*found))
    pulled = {name for name in names.values() if re.fullmatch("(?!.*(norm|embed)).*weight", name)}
    output = {name for name in pulled if name.startswith("head.") or "router" in name}
    due = [pulled - output, output] if optimizer == "muon" else [pulled]
    assert found == [*due, set(names.values()) - pulled]
    assert [group["weight_decay"] for group in groups] == [0.3] * (len(groups) - 1) + [0.0]
