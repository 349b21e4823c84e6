"""AdamW with weight decay on matrices only; Muon: orthogonal updates, everything else as AdamW does it."""

import torch
from torch import nn
from torch.testing import assert_close

from tinytx.model.transformer import LanguageModel
from tinytx.training.optim import ADAM_LENGTH, Muon, make_optimizer, orthogonalised
from tinytx.training.settings import TrainingSettings


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


def test_a_matrix_moves_by_its_stride_and_a_vector_as_under_adamw():
    matrix, vector, same = (nn.Parameter(torch.randn(*shape)) for shape in ((6, 4), (5,), (5,)))
    same.data.copy_(vector.data)
    before = matrix.detach().clone()
    muon = Muon(
        [matrix], [{"params": [vector], "weight_decay": 0.0}], lr=0.01, weight_decay=0.0, betas=(0.9, 0.98)
    )
    adamw = torch.optim.AdamW([same], lr=0.01, betas=(0.9, 0.98), weight_decay=0.0)
    gradient = torch.randn(5)
    for _ in range(3):
        matrix.grad, vector.grad, same.grad = torch.randn(6, 4), gradient.clone(), gradient.clone()
        muon.step()
        adamw.step()
    assert_close(vector, same)
    # Three strides, of singular values about 1 each: none longer than their sum.
    moved = torch.linalg.matrix_norm((matrix - before).detach(), 2)
    assert 0 < moved < 3 * 1.3 * 0.01 * ADAM_LENGTH * 6**0.5


def test_embeddings_norms_biases_and_the_head_are_left_to_adamw(config):
    model = LanguageModel(config)
    settings = TrainingSettings(n_steps=3, optimizer="muon")
    optimizer = make_optimizer(model, settings)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    by_muon = {names[id(parameter)] for parameter in optimizer.param_groups[0]["params"]}
    assert by_muon == {name for name in names.values() if "proj.weight" in name}
    everything = [p for group in optimizer.param_groups for p in group["params"]]
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


def test_one_step_is_that_of_torch():
    weights = [nn.Parameter(torch.randn(6, 4)) for _ in range(2)]
    weights[1].data.copy_(weights[0].data)
    ours = Muon([weights[0]], [], lr=0.02, weight_decay=0.1, betas=(0.9, 0.98))
    theirs = torch.optim.Muon([weights[1]], lr=0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    for _ in range(3):
        gradient = torch.randn(6, 4)
        for weight, optimizer in zip(weights, (ours, theirs), strict=True):
            weight.grad = gradient.clone()
            optimizer.step()
    assert_close(weights[0], weights[1], rtol=0, atol=2e-3)  # theirs rounds to bfloat16
