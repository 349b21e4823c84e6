"""The chunked loss and the losses of the models: torch's own, gradients included, and a hand number."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from tinytx import output_loss as module
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.output_loss import IGNORE_ID, output_loss
from tinytx.transformer import Classifier, LanguageModel

V, B, S, T = 11, 3, 7, 5
CONFIG = TransformerConfig(vocab_size=V, d_model=6, n_heads=3, n_layers=2, d_ff=5, max_len=13)


@pytest.fixture(autouse=True)
def chunks_of_four_rows(monkeypatch):
    monkeypatch.setattr(module, "LOGITS_AT_ONCE", 4 * V)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("ignored", [False, True])
def test_equals_torch_forward_and_backward(smoothing, biased, ignored):
    hidden = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(V, 3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(V, dtype=torch.float64, requires_grad=True) if biased else None
    targets = torch.randint(1, V, (2, 5))
    if ignored:
        targets[1, 3:] = 0
    leaves = [leaf for leaf in (hidden, weight, bias) if leaf is not None]
    ours = output_loss(hidden, weight, targets, bias=bias, ignore_id=0, label_smoothing=smoothing)
    logits = F.linear(hidden, weight, bias).flatten(0, 1)
    its = F.cross_entropy(logits, targets.flatten(), ignore_index=0, label_smoothing=smoothing)
    assert_close(ours, its)
    assert_close(torch.autograd.grad(ours * 3, leaves), torch.autograd.grad(its * 3, leaves))


def test_by_hand():
    # Logits 0 and ln 3: probabilities 1/4 and 3/4. Smoothed by 0.2 the target has 0.9, the other 0.1.
    hidden, weight = torch.tensor([[1.0]]), torch.tensor([[0.0], [math.log(3)]])
    loss = output_loss(hidden, weight, torch.tensor([1]), label_smoothing=0.2)
    assert_close(loss.item(), -(0.9 * math.log(0.75) + 0.1 * math.log(0.25)), rtol=0, atol=1e-6)


def test_every_target_ignored_gives_nan_as_in_torch_and_the_smoothing_is_checked():
    inputs = torch.randn(2, 3), torch.randn(4, 3), torch.tensor([IGNORE_ID] * 2)
    assert output_loss(*inputs).isnan()
    with pytest.raises(ValueError, match="1.5"):
        output_loss(*inputs, label_smoothing=1.5)


def test_targets_of_another_shape_are_refused():
    """As they are by torch: fewer targets would be taken for those of the first positions."""
    model, token_ids = LanguageModel(CONFIG), torch.randint(V, (B, S))
    for targets in (token_ids[:, 1:], token_ids[:1], token_ids.flatten()):
        with pytest.raises(ValueError, match=r"targets must have shape \(3, 7\), got"):
            model.loss(token_ids, targets)


def test_targets_and_labels_may_be_int32():
    token_ids, labels = torch.randint(V, (B, S)), torch.randint(2, (B,))
    masked, classes = MaskedLanguageModel(CONFIG, next_sentence=True), Classifier(CONFIG)
    whole = masked.loss(token_ids, token_ids, next_labels=labels)
    assert_close(masked.loss(token_ids.int(), token_ids.int(), next_labels=labels.int()), whole)
    assert_close(classes.loss(token_ids.int(), labels.int()), classes.loss(token_ids, labels))


def test_a_second_derivative_is_refused_rather_than_left_out():
    hidden, weight = torch.randn(2, 3, requires_grad=True), torch.randn(4, 3)
    with pytest.raises(RuntimeError, match="create_graph=True"):
        torch.autograd.grad(output_loss(hidden, weight, torch.tensor([1, 2])), hidden, create_graph=True)


def test_logits_far_apart_leave_loss_and_gradients_finite():
    weight = torch.tensor([[0.0], [500.0], [-500.0]], requires_grad=True)
    loss = output_loss(torch.tensor([[1.0]], requires_grad=True), weight, torch.tensor([2]))
    assert loss.item() == 1000.0
    loss.backward()
    assert_close(weight.grad, torch.tensor([[0.0], [1.0], [-1.0]]))


def gradients(loss, model):
    return torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("ignore_id", [0, IGNORE_ID])
def test_the_loss_of_a_language_model_is_the_cross_entropy_of_its_logits(tied, ignore_id):
    model = LanguageModel(CONFIG.replace(tie_embeddings=tied)).double()
    token_ids, targets = torch.randint(V, (B, T)), torch.randint(1, V, (B, T))
    targets[1, 2:] = ignore_id
    loss = model.loss(token_ids, targets, ignore_id=ignore_id)
    its = F.cross_entropy(model(token_ids).flatten(0, 1), targets.flatten(), ignore_index=ignore_id)
    assert_close(loss, its)
    assert_close(gradients(loss, model), gradients(its, model))


@pytest.mark.parametrize("tied", [False, True])
def test_the_loss_in_bfloat16_stays_close_and_is_a_float32(tied):
    model = LanguageModel(CONFIG.replace(tie_embeddings=tied))
    token_ids, targets = torch.randint(V, (B, T)), torch.randint(V, (B, T))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model.loss(token_ids, targets)
        its = F.cross_entropy(model(token_ids).flatten(0, 1).float(), targets.flatten())
    assert loss.dtype == torch.float32
    assert_close(loss, its, rtol=0.01, atol=0)
    for ours, other in zip(gradients(loss, model), gradients(its, model), strict=True):
        assert ours.dtype == torch.float32
        assert (ours - other).norm() <= 0.05 * other.norm() + 1e-3


def test_the_loss_of_a_classifier_is_the_cross_entropy_of_its_logits():
    model, token_ids = Classifier(CONFIG, n_classes=3).double(), torch.randint(V, (B, T))
    real, labels = torch.arange(T) < torch.tensor([[5], [2], [4]]), torch.tensor([0, 2, 1])
    # The loss is taken in float32 whatever the precision of the logits.
    assert_close(model.loss(token_ids, labels, real), F.cross_entropy(model(token_ids, real).float(), labels))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_a_translator_is_the_cross_entropy_of_its_logits(tied, smoothing):
    model = Translator(CONFIG.replace(tie_embeddings=tied)).double()
    src_ids, tgt_ids, targets = (
        torch.randint(V, (B, S)),
        torch.randint(V, (B, T)),
        torch.randint(1, V, (B, T)),
    )
    real = torch.arange(S) < torch.tensor([[7], [2], [4]])
    targets[2, 3:] = 0
    loss = model.loss(src_ids, tgt_ids, targets, real, ignore_id=0, label_smoothing=smoothing)
    logits = model(src_ids, tgt_ids, real).flatten(0, 1)
    its = F.cross_entropy(logits, targets.flatten(), ignore_index=0, label_smoothing=smoothing)
    assert_close(loss, its)
    assert_close(gradients(loss, model), gradients(its, model))


def test_the_loss_of_a_masked_model_counts_masked_positions_and_adds_the_pairs():
    model = MaskedLanguageModel(CONFIG.replace(tie_embeddings=True, n_segments=2), next_sentence=True)
    token_ids, targets = torch.randint(V, (B, T)), torch.full((B, T), IGNORE_ID)
    targets[0, 3], targets[2, :2] = 4, 7
    segments, labels = (torch.arange(T) > 2).long().expand(B, T), torch.tensor([0, 1, 1])
    real = torch.arange(T) < torch.tensor([[5], [2], [4]])
    masked, following = model.losses(token_ids, targets, real, segments, labels)
    logits = model(token_ids, real, segments)
    assert_close(masked, F.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    assert_close(following, F.cross_entropy(model.follows(token_ids, real, segments), labels))
    assert_close(model.loss(token_ids, targets, real, segments, labels), masked + following)
    assert_close(model.loss(token_ids, targets, real, segments), masked)


def test_without_masked_positions_the_masked_loss_and_its_gradients_are_zero():
    model = MaskedLanguageModel(CONFIG)
    loss = model.loss(torch.randint(V, (B, T)), torch.full((B, T), IGNORE_ID))
    assert loss.item() == 0
    assert not any(gradient.any() for gradient in gradients(loss, model))  # and none is missing
