"""AdamW with weight decay on matrices only; Muon: orthogonal updates, everything else as AdamW does it."""

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


def test_embeddings_norms_biases_and_the_head_are_left_to_adamw(config):
    model = LanguageModel(config.replace(activation="swiglu", n_kv_heads=1, n_experts=3))
    settings = TrainingSettings(n_steps=3, optimizer="muon")
    optimizer = make_optimizer(model, settings)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    by_muon = {names[id(parameter)] for parameter in optimizer.param_groups[0]["params"]}
    assert by_muon == {name for name in names.values() if "proj.weight" in name}
    everything = [p for group in optimizer.param_groups for p in group["params"]]
    assert any("router" in name for name in names.values() if name not in by_muon)
    assert len(everything) == len(names) == len({id(parameter) for parameter in everything})


def test_weight_decay_pulls_matrices_only(config):
    model = LanguageModel(config.replace(positions="learned"))
    optimizer = make_optimizer(model, TrainingSettings(n_steps=3, weight_decay=0.3))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    decay = {
        names[id(parameter)]: group["weight_decay"]
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    assert decay.keys() == set(names.values())
    pulled = {name for name, value in decay.items() if value == 0.3}
    spared = {name for name, value in decay.items() if value == 0.0}
    assert pulled | spared == decay.keys()
    assert all(name.endswith("weight") and "norm" not in name and "embed" not in name for name in pulled)
    assert {"body.token_embed.weight", "head.bias", "body.final_norm.weight"} <= spared
    assert "head.weight" in pulled and any("q_proj" in name for name in pulled)


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


def test_muon_decays_its_matrices_and_no_embedding_norm_or_bias(config):
    settings = TrainingSettings(n_steps=3, optimizer="muon", weight_decay=0.3)
    groups = make_optimizer(LanguageModel(config), settings).param_groups
    assert [group["weight_decay"] for group in groups] == [0.3, 0.3, 0.0]


def test_segments_are_embeddings_and_a_masked_head_is_a_head(config):
    model = MaskedLanguageModel(config.replace(n_segments=2, tie_embeddings=True), next_sentence=True)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    adamw = make_optimizer(model, TrainingSettings(n_steps=3, weight_decay=0.3))
    spared = {names[id(p)] for g in adamw.param_groups if not g["weight_decay"] for p in g["params"]}
    assert {"body.segment_embed.weight", "body.token_embed.weight"} <= spared
    muon = make_optimizer(model, TrainingSettings(n_steps=3, optimizer="muon"))
    by_muon = {names[id(p)] for p in muon.param_groups[0]["params"]}
    assert "next_head.pooler.weight" in by_muon and not any(name.startswith("head.") for name in by_muon)
