"""Objectives against definitions written out, and against their own slow versions."""

import random

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from tinytx.batching import pad_batch
from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.masking import Masking
from tinytx.objectives import (
    CausalObjective,
    ClassificationObjective,
    HybridObjective,
    MaskedObjective,
    TranslationObjective,
    causal_batch,
)
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel

IDS = {"bos_id": 2, "eos_id": 3, "pad_id": 0}


@pytest.mark.parametrize("max_len", [1, 3, 50])
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


def test_causal_batches_and_loss_are_those_written_out(config):
    model = LanguageModel(config).eval()
    sequences = [[7, 8, 9], [10]]
    objective = CausalObjective(sequences, **IDS, max_len=config.max_len)
    inputs, targets = causal_batch(pad_batch([[2, 7, 8, 9, 3], [2, 10, 3]], pad_id=0))
    assert targets.tolist() == [[7, 8, 9, 3], [10, 3, 0, 0]]
    assert all(map(torch.equal, objective.batch([0, 1]), (inputs, targets)))
    wanted = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), ignore_index=0)
    assert_close(objective.loss(model, [0, 1]), wanted)


def test_classification_batches_give_what_single_texts_give(config):
    model = Classifier(config, n_classes=3).eval()
    sequences = [[2, 7, 8, 9, 9], [2, 10], [2, 11, 12]]
    objective = ClassificationObjective(sequences, [0, 2, 1], pad_id=0)
    together = objective.logits(model, [2, 0, 1])
    singly = torch.cat([model(torch.tensor([sequences[i]])) for i in (2, 0, 1)])
    assert_close(together, singly, atol=1e-5, rtol=1e-5)
    wanted = F.cross_entropy(singly, torch.tensor([1, 0, 2]))
    assert_close(objective.loss(model, [2, 0, 1]), wanted, atol=1e-5, rtol=1e-5)


def masked(corpus, tokenizer, max_len=24, **masking):
    return MaskedObjective(tokenizer, corpus.train.texts, max_len=max_len, masking=Masking(**masking))


def all_batches(learning, seed=0, epoch=0):
    batches = learning.epoch_batches(seed=seed, epoch=epoch, tokens_per_batch=200)
    return [learning.batch(indices) for indices in batches]


@pytest.mark.parametrize("max_len", [5, 24])
def test_rows_are_windows_of_texts_between_marks_and_nothing_is_lost(corpus, tokenizer, max_len):
    learning = masked(corpus, tokenizer, max_len)
    found = []
    for inputs, labels, segments, follows in all_batches(learning):
        assert segments is None and follows is None
        original = torch.where(labels == -100, inputs, labels)
        for row in original.tolist():
            ids = [one for one in row if one != tokenizer.pad_id]
            assert ids[0] == tokenizer.cls_id and ids[-1] == tokenizer.sep_id and len(ids) <= max_len
            found += ids[1:-1]
    wanted = [one for ids in tokenizer.encode_batch(corpus.train.texts) for one in ids]
    assert sorted(found) == sorted(wanted)


def test_masks_change_from_epoch_to_epoch_and_depend_on_seed_and_epoch_alone(corpus, tokenizer):
    learning = masked(corpus, tokenizer)
    seen = {}
    for seed, epoch in [(0, 0), (0, 1), (1, 0), (0, 0)]:
        learning.epoch_batches(seed=seed, epoch=epoch, tokens_per_batch=200)
        labels = learning.batch(range(20))[1]
        if (seed, epoch) in seen:
            assert torch.equal(seen[seed, epoch], labels)
        seen[seed, epoch] = labels
    assert not torch.equal(seen[0, 0], seen[0, 1]) and not torch.equal(seen[0, 0], seen[1, 0])
    other = masked(corpus, tokenizer)
    other.epoch_batches(seed=0, epoch=1, tokens_per_batch=999)
    assert torch.equal(other.batch(range(20))[1], seen[0, 1])


def test_pairs_are_framed_with_a_segment_each(corpus, tokenizer):
    learning = masked(corpus, tokenizer, next_sentence=True)
    answers = []
    for inputs, labels, segments, follows in all_batches(learning):
        original = torch.where(labels == -100, inputs, labels)
        answers += follows.tolist()
        for row, segment in zip(original.tolist(), segments.tolist(), strict=True):
            ids = [one for one in row if one != tokenizer.pad_id]
            first = ids.index(tokenizer.sep_id)
            assert (ids[0], ids[-1]) == (tokenizer.cls_id, tokenizer.sep_id)
            assert ids.count(tokenizer.sep_id) == 2
            assert segment[: len(ids)] == [0] * (first + 1) + [1] * (len(ids) - first - 1)
            assert not any(segment[len(ids) :])
    assert 0.3 < sum(answers) / len(answers) < 0.7


def test_the_loss_is_that_of_all_logits_at_drawn_tokens(corpus, tokenizer, config):
    learning = masked(corpus, tokenizer, next_sentence=True)
    model = MaskedLanguageModel(config.replace(n_segments=2), next_sentence=True)
    indices = learning.epoch_batches(seed=0, epoch=0, tokens_per_batch=200)[0]
    inputs, labels, segments, follows = learning.batch(indices)
    real = inputs != tokenizer.pad_id
    masked_part = F.cross_entropy(model(inputs, real, segments).flatten(0, 1), labels.flatten().long())
    pairs_part = F.cross_entropy(model.follows(inputs, real, segments), follows)
    assert_close(learning.loss(model, indices), torch.stack([masked_part, pairs_part]))
    assert_close(model.losses(inputs, labels, real, segments, follows), (masked_part, pairs_part))
    assert_close(model.losses(inputs, labels, real, segments)[0], masked_part)
    assert learning.n_predictions(indices) == [(labels != -100).sum(), len(indices)]


def test_whole_words_are_hidden_together(corpus, tokenizer):
    learning = masked(corpus, tokenizer, whole_words=True, p=0.5)
    n_parted = 0
    for inputs, labels, _, _ in all_batches(learning):
        original = torch.where(labels == -100, inputs, labels)
        for row, label in zip(original.tolist(), labels.tolist(), strict=True):
            for place in range(2, len(row)):  # a window may begin within a word
                inside = row[place] > tokenizer.sep_id and not tokenizer.piece(row[place]).startswith("▁")
                if inside:
                    n_parted += 1
                    assert (label[place] == -100) == (label[place - 1] == -100)
    assert n_parted > 100


def test_the_loss_is_that_of_torch_over_all_real_target_positions():
    rng = random.Random(0)
    sides = [[[rng.randint(7, 19) for _ in range(rng.randint(1, 6))] for _ in range(11)] for _ in range(2)]
    objective = TranslationObjective(*sides, max_len=9, label_smoothing=0.1, **IDS)
    config = TransformerConfig(vocab_size=20, d_model=12, n_heads=3, n_layers=1, d_ff=8, max_len=9)
    model = Translator(config.replace(tie_embeddings=True)).double()
    scored, wanted = [], []
    for source, target in zip(*sides, strict=True):  # one by one, without any padding
        scored.append(model(torch.tensor([[*source, 3]]), torch.tensor([[2, *target]]))[0])
        wanted += [*target, 3]
    its = nn.CrossEntropyLoss(label_smoothing=0.1)(torch.cat(scored), torch.tensor(wanted))
    assert_close(objective.loss(model, list(range(11))), its)
    assert objective.n_tokens == len(wanted) == objective.n_predictions(range(11))


def test_pairs_that_are_too_long_are_left_out_and_counted():
    objective = TranslationObjective([[7] * 8, [7] * 9, [7]], [[8], [8], [8] * 9], max_len=9, **IDS)
    assert objective.n_left_out == 2 and objective.n_tokens == 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda _: CausalObjective([], **IDS, max_len=5), "at least one text"),
        (lambda _: ClassificationObjective([[2], [2]], [1], pad_id=0), "got 2 and 1"),
        (lambda it: MaskedObjective(it, [""], max_len=9, masking=Masking()), "at least one text"),
        (lambda it: MaskedObjective(it, ["le"], max_len=2, masking=Masking()), "got 2"),
        (lambda _: TranslationObjective([[7] * 9], [[8]], max_len=9, **IDS), "at most 8 .* got 1 pairs"),
    ],
)
def test_nothing_to_learn_from_is_refused(tokenizer, make, words):
    with pytest.raises(ValueError, match=words):
        make(tokenizer)


# --- hybrid: next tokens in some batches, masked ones in the others


@pytest.fixture(scope="module")
def hybrid():
    """An objective over texts of many lengths, its batches of one epoch, and a causal model for it."""
    rng = random.Random(2)
    words = ["".join(rng.choices("abcdefg", k=3)) for _ in range(30)]
    texts = [" ".join(rng.choices(words, k=rng.randint(1, 20))) for _ in range(60)]
    tokenizer = Tokenizer.train(texts, vocab_size=40)
    objective = HybridObjective(tokenizer, texts, max_len=13, masking=Masking(p=0.4, causal_share=0.5))
    batches = objective.epoch_batches(seed=3, epoch=1, tokens_per_batch=50)
    config = TransformerConfig(vocab_size=40, d_model=10, n_heads=5, n_layers=2, d_ff=7, max_len=13)
    torch.manual_seed(0)
    return objective, batches, LanguageModel(config).eval(), tokenizer


def test_a_masked_batch_predicts_the_original_of_each_masked_token_one_position_before_it(hybrid):
    objective, batches, model, tokenizer = hybrid
    causal = CausalObjective.batch
    masked = [batch for batch in batches if batch[0] in objective._masked_rows]
    assert 0.2 < len(masked) / len(batches) < 0.8
    n_chosen = 0
    for batch in masked:
        inputs, targets, is_masked = objective.batch(batch)
        assert is_masked
        original, following = causal(objective, batch)
        chosen = targets != -100
        assert_close(targets[chosen], following[chosen])
        hidden = inputs[:, 1:] != original[:, 1:]
        framed = (original == tokenizer.eos_id) | (original == tokenizer.bos_id)
        assert not (hidden & ~chosen[:, :-1] & ~framed[:, 1:]).any(), "what is not predicted stays as it is"
        assert not (inputs == tokenizer.bos_id).any() and not (inputs == tokenizer.eos_id).any()
        assert objective.n_predictions(batch) == int(chosen.sum())
        n_chosen += int(chosen.sum())
    assert 0.25 < n_chosen / sum(CausalObjective.n_predictions(objective, batch) for batch in masked) < 0.5


def test_the_hybrid_loss_is_that_of_one_model_that_reads_one_way_or_both(hybrid):
    objective, batches, model, tokenizer = hybrid
    both = LanguageModel(model.config.replace(causal=False)).eval()
    both.load_state_dict(model.state_dict())
    for batch in batches:
        inputs, targets, masked = objective.batch(batch)
        assert masked == (batch[0] in objective._masked_rows)
        reader, ignored = (both, -100) if masked else (model, tokenizer.pad_id)
        logits = reader(inputs, inputs != tokenizer.pad_id)
        expected = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=ignored)
        assert_close(objective.loss(model, batch), expected)
    assert model.body.config.causal, "the model is a causal one again"


def test_a_masked_batch_without_a_masked_token_costs_nothing(hybrid):
    _, _, model, tokenizer = hybrid
    objective = HybridObjective(tokenizer, ["aaa"], max_len=13, masking=Masking(p=1e-9, causal_share=1e-9))
    (batch,) = objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=50)
    loss = objective.loss(model, batch)
    loss.backward()
    assert loss == 0 and objective.n_predictions(batch) == 0
    for broken in ({"causal_share": 1.0}, {"causal_share": 0.5, "whole_words": True}):
        with pytest.raises(ValueError, match="causal_share|hybrid"):
            Masking(**broken)


def test_pairs_directions_and_masks_are_drawn_anew_in_each_epoch(corpus, tokenizer):
    how = {"seed": 0, "tokens_per_batch": 200}
    follows = masked(corpus, tokenizer, next_sentence=True)
    both = HybridObjective(tokenizer, corpus.train.texts, max_len=24, masking=Masking(causal_share=0.5))
    answers, kinds, labels = [], [], []
    for epoch in (0, 1):
        follows.epoch_batches(epoch=epoch, **how)
        answers.append(follows.batch(range(20))[3].tolist())
        batches = both.epoch_batches(epoch=epoch, **how)
        kinds.append([batch[0] in both._masked_rows for batch in batches])
        labels.append(both._labels.rows(range(20)))
    assert answers[0] != answers[1] and kinds[0] != kinds[1] and not torch.equal(*labels)
