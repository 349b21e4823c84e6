"""Whole models: the first loss, tying, pooling, precision, and that they can learn at all."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import Classifier, LanguageModel, pool

TINY = TransformerConfig(vocab_size=11, d_model=6, n_heads=3, n_layers=2, d_ff=5, max_len=13)


def make_batch(lengths=(7, 5, 2)):
    rows = [torch.randint(TINY.vocab_size, (length,)) for length in lengths]
    batch = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=3)
    return rows, batch, torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("vocab_size", [97, 1_000, 8_000])
@pytest.mark.parametrize("d_model", [64, 256])
def test_first_loss_is_that_of_a_guess(tied, norm, vocab_size, d_model):
    config = TransformerConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        n_heads=4,
        n_layers=4,
        d_ff=4 * d_model,
        norm=norm,
        tie_embeddings=tied,
    )
    token_ids = torch.randint(vocab_size, (4, 65))
    logits = LanguageModel(config)(token_ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), token_ids[:, 1:].flatten())
    assert loss.item() == pytest.approx(math.log(vocab_size), abs=0.1)


def test_logits_are_head_of_body():
    model = LanguageModel(TINY)
    _, batch, real = make_batch()
    logits = model(batch, real)
    assert logits.shape == (3, 7, 11)
    assert torch.equal(logits, model.head(model.body(batch, real)))


def test_a_tied_head_is_the_embedding_matrix_and_stays_it():
    model = LanguageModel(TINY.replace(tie_embeddings=True))
    assert model.head.weight is model.body.token_embed.weight
    _, batch, _ = make_batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(batch).square().mean().backward()
    optimizer.step()
    assert model.head.weight is model.body.token_embed.weight
    assert model.to(torch.float64).head.weight is model.body.token_embed.weight


@pytest.mark.parametrize("tied", [False, True])
def test_without_bias_no_parameter_is_a_bias(tied):
    for model in (
        LanguageModel(TINY.replace(bias=False, tie_embeddings=tied)),
        Classifier(TINY.replace(bias=False)),
    ):
        assert not [name for name, _ in model.named_parameters() if name.endswith("bias")]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "last", "first"])
def test_classifier_gives_for_a_padded_batch_what_it_gives_for_single_rows(causal, pooling):
    model = Classifier(TINY.replace(causal=causal), n_classes=5, pooling=pooling).double()
    rows, batch, real = make_batch()
    logits = model(batch, real)
    assert logits.shape == (3, 5)
    assert_close(logits, torch.cat([model(row[None]) for row in rows]))


@pytest.mark.parametrize("causal", [True, False])
def test_language_model_gives_for_a_padded_batch_what_it_gives_for_single_rows(causal):
    model = LanguageModel(TINY.replace(causal=causal)).double()
    rows, batch, real = make_batch()
    logits = model(batch, real)
    for i, row in enumerate(rows):
        assert_close(logits[i, : len(row)], model(row[None])[0])


def test_pooling_reads_real_tokens_only():
    hidden = torch.randn(3, 7, 5, dtype=torch.float64)
    real = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0, 0]]).bool()
    spans = [(0, 7), (0, 3), (2, 5)]
    hidden[~real] = float("nan")  # whatever stands at padding means nothing
    assert_close(
        pool(hidden, real, "mean"), torch.stack([hidden[i, a:b].mean(0) for i, (a, b) in enumerate(spans)])
    )
    assert_close(pool(hidden, real, "first"), torch.stack([hidden[i, a] for i, (a, _) in enumerate(spans)]))
    assert_close(
        pool(hidden, real, "last"), torch.stack([hidden[i, b - 1] for i, (_, b) in enumerate(spans)])
    )


@pytest.mark.parametrize("pooling", ["mean", "last", "first"])
def test_pooling_a_row_of_padding_alone_is_finite(pooling):
    pooled = pool(torch.randn(2, 3, 5), torch.tensor([[True] * 3, [False] * 3]), pooling)
    assert pooled.shape == (2, 5) and pooled.isfinite().all()


def test_from_body_keeps_the_very_body():
    model = LanguageModel(TINY)
    classifier = Classifier.from_body(model.body, n_classes=7, pooling="last", dropout=0.5)
    assert classifier.body is model.body and classifier.config is model.config
    assert classifier.head.weight.shape == (7, 6)
    assert (classifier.pooling, classifier.dropout.p) == ("last", 0.5)


def test_classifier_arguments_are_checked():
    with pytest.raises(ValueError, match="^pooling must be one of mean, last, first, got 'max'$"):
        Classifier(TINY, pooling="max")
    with pytest.raises(ValueError, match="^n_classes must be at least 1, got 0$"):
        Classifier(TINY, n_classes=0)


def test_dropout_acts_in_training_only():
    model = LanguageModel(TINY.replace(dropout=0.5))
    _, batch, real = make_batch()
    assert not torch.equal(model(batch, real), model(batch, real))
    model.eval()
    assert torch.equal(model(batch, real), model(batch, real))


@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("masked", [False, True])
def test_bfloat16_autocast_stays_close_to_float32(norm, masked):
    model = LanguageModel(TINY.replace(norm=norm))
    _, batch, real = make_batch()
    padding_mask = real if masked else None
    expected = model(batch, padding_mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(batch, padding_mask)
        traced = model.head(model.body.trace(batch, padding_mask).hidden[-1])
        classes = Classifier.from_body(model.body)(batch, padding_mask)
    assert logits.dtype == torch.bfloat16 and classes.isfinite().all()
    assert_close(logits.float(), expected, rtol=0, atol=0.05)
    assert_close(traced.float(), expected, rtol=0, atol=0.05)
    logits.float().square().mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_one_batch_is_learned_by_heart(norm, positions):
    config = TINY.replace(d_model=30, d_ff=35, norm=norm, positions=positions)
    model = LanguageModel(config)
    token_ids = torch.randint(11, (3, 8))
    token_ids[:, 0] = torch.tensor([2, 3, 5])  # rows begin differently: nothing else could tell them apart
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150):
        logits = model(token_ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), token_ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05


@pytest.mark.parametrize("pooling", ["mean", "last", "first"])
def test_classifier_learns_which_token_stands_first(pooling):
    """All three poolings can solve this one, "first" and "last" even in a causal body."""
    model = Classifier(TINY.replace(d_model=30), pooling=pooling)
    token_ids = torch.randint(11, (64, 5))
    labels = (token_ids[:, 0] > 5).long()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(100):
        loss = F.cross_entropy(model(token_ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1
