"""Objectives against definitions written out, and against their own slow versions."""

import math

import pytest
import torch

from tinytx.model.transformer import Classifier, LanguageModel
from tinytx.text.batching import pad_batch
from tinytx.training.objectives import (
    CausalObjective,
    ClassificationObjective,
    PackedSequences,
    causal_batch,
    language_model_loss,
    output_loss,
)

IDS = {"bos_id": 2, "eos_id": 3, "pad_id": 0}


def test_loss_is_the_mean_surprise_over_real_tokens():
    logits = torch.tensor([[[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]], [[1.0, 1.0, 1.0], [9.0, 9.0, 9.0]]])
    targets = torch.tensor([[2, 1], [1, 0]])  # the last one is padding
    surprises = [
        -math.log(math.exp(2) / (1 + math.exp(1) + math.exp(2))),
        -math.log(1 / (math.exp(3) + 2)),
        math.log(3),
    ]
    assert language_model_loss(logits, targets, pad_id=0).item() == pytest.approx(
        sum(surprises) / 3, rel=1e-6
    )


def test_loss_is_float32_for_logits_of_lower_precision():
    loss = language_model_loss(torch.zeros(1, 2, 7).bfloat16(), torch.tensor([[1, 2]]), pad_id=0)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(math.log(7))


def test_packed_rows_equal_padding_one_by_one():
    sequences = [[5, 6, 7], [8], [9, 10, 11, 12, 13], [14, 15]]
    packed = PackedSequences(sequences, pad_id=0)
    for indices in ([0], [3, 1], [2, 0, 1], [1, 1, 3, 2, 0]):
        torch.testing.assert_close(packed.rows(indices), pad_batch([sequences[i] for i in indices], 0))


def test_objective_batch_equals_causal_batch():
    sequences = [[5, 6, 7], [8], [9, 10]]
    objective = CausalObjective(sequences, **IDS, max_len=10)
    inputs, targets = objective.batch([0, 1, 2])
    wanted_inputs, wanted_targets = causal_batch(sequences, **IDS)
    torch.testing.assert_close(targets, wanted_targets)
    real = wanted_targets != 0
    torch.testing.assert_close(inputs[real], wanted_inputs[real])


@pytest.mark.parametrize("max_len", [1, 2, 3, 5, 50])
def test_every_token_and_every_end_is_predicted_exactly_once(max_len):
    sequences = [[10, 11, 12, 13, 14, 15, 16], [17], [], [18, 19, 20]]
    objective = CausalObjective(sequences, **IDS, max_len=max_len)
    predicted = []
    for batch in objective.epoch_batches(seed=1, epoch=0, tokens_per_batch=7):
        inputs, targets = objective.batch(batch)
        assert inputs.shape[1] <= max_len
        predicted += targets[targets != 0].tolist()
    assert sorted(predicted) == sorted([*range(10, 21), 3, 3, 3, 3])
    assert objective.n_tokens == len(predicted)


def test_order_depends_on_seed_and_epoch_alone():
    objective = CausalObjective([[5] * n for n in range(1, 30)], **IDS, max_len=40)

    def order(seed, epoch):
        return objective.epoch_batches(seed=seed, epoch=epoch, tokens_per_batch=64)

    assert order(0, 0) == order(0, 0)
    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)


def test_causal_loss_equals_the_loss_of_the_whole_model(config):
    model = LanguageModel(config).eval()
    sequences = [[7, 8, 9], [10]]
    objective = CausalObjective(sequences, **IDS, max_len=config.max_len)
    inputs, targets = causal_batch(sequences, **IDS)
    wanted = language_model_loss(model(inputs), targets, pad_id=0)
    torch.testing.assert_close(objective.loss(model, [0, 1]), wanted)


def test_classification_batches_give_what_single_texts_give(config):
    model = Classifier(config, n_classes=3).eval()
    sequences = [[2, 7, 8, 9, 9], [2, 10], [2, 11, 12]]
    objective = ClassificationObjective(sequences, [0, 2, 1], pad_id=0)
    together = objective.logits(model, [2, 0, 1])
    singly = torch.cat([model(torch.tensor([sequences[i]])) for i in (2, 0, 1)])
    torch.testing.assert_close(together, singly, atol=1e-5, rtol=1e-5)


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(ValueError, match="at least one text to learn from, got none"):
        CausalObjective([], **IDS, max_len=5)
    with pytest.raises(ValueError, match="as many, at least one, got 2 and 1"):
        ClassificationObjective([[2], [2]], [1], pad_id=0)


@pytest.mark.parametrize("n_padding", [0, 4])
def test_the_loss_of_an_output_layer_is_that_of_all_its_logits(n_padding):
    hidden, head = torch.randn(3, 5, 7, requires_grad=True), torch.nn.Linear(7, 11)
    targets = torch.randint(1, 11, (3, 5))
    targets.flatten()[:n_padding] = 0
    ours = output_loss(head, hidden, targets, pad_id=0)
    plain = language_model_loss(head(hidden), targets, pad_id=0)
    torch.testing.assert_close(ours, plain)
    leaves = [hidden, head.weight, head.bias]
    for mine, other in zip(
        torch.autograd.grad(ours, leaves), torch.autograd.grad(plain, leaves), strict=True
    ):
        torch.testing.assert_close(mine, other)
