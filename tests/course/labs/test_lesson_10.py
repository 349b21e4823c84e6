"""Lesson 10: batches, stored results, kinds of words, blanks."""

import numpy as np
import pytest
import torch

from tinytx.batching import pad_batch
from tinytx.config import TransformerConfig
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.settings import TrainingSettings
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_course.labs import lesson_10 as lab
from tinytx_course.labs.lesson_10 import (
    KINDS,
    Blanks,
    ObjectiveRow,
    best_at_an_end,
    by_kind,
    findings,
    kinds_in,
    objective_rows,
    train,
)
from tinytx_course.results import read_results


def test_batches_of_a_causal_model_are_shifted_and_a_share_of_the_labels_counts(tokenizer):
    rows = [list(range(7, 7 + n % 11)) for n in range(2, 95)]
    whole, few = lab.causal_batches(tokenizer), lab.causal_batches(tokenizer, share=0.15)
    before = (dice := torch.Generator().manual_seed(3)).get_state()
    inputs, labels = whole(rows, dice)
    assert torch.equal(dice.get_state(), before)  # nothing is drawn
    for row, read, asked in zip(rows, inputs.tolist(), labels.tolist(), strict=True):
        n = len(row) + 1
        assert read[:n] == [tokenizer.bos_id, *row] and asked[:n] == [*row, tokenizer.eos_id]
        assert set(asked[n:]) <= {-100}
    same, fewer = few(rows, dice)
    assert torch.equal(same, inputs)
    counted = fewer != -100
    assert torch.equal(fewer[counted], labels[counted])
    assert 0.1 < counted.sum() / (labels != -100).sum() < 0.2


def test_stored_rows_are_over_seeds_that_have_every_cell():
    def cell(seed, name, measure, **fields):
        return {f"study/seed {seed}/{name}/{measure}": fields}

    records = {"smoke/seed 0/causal/fill": {"nats": 9.0, "excess": 9.0, "accuracy": 0.0}}
    for seed in (0, 1):
        for name in ("causal", "masked"):
            value = seed + (name == "masked") / 2
            records |= cell(seed, name, "fill", nats=value, excess=value, accuracy=value)
            records |= cell(seed, name, "finetune 100", accuracy=value)
    records |= cell(2, "causal", "fill", nats=7.0, excess=7.0, accuracy=7.0)
    rows = {(row.measure, row.contestant): row for row in objective_rows(records, "study")}
    measures = ("fill: nats", "fill: excess", "finetune 100 labels")
    assert set(rows) == {(measure, name) for measure in measures for name in ("causal", "masked")}
    assert rows["fill: nats", "masked"].values == (0.5, 1.5)
    chosen = {"study/tuning/causal/0.1": {"measure": "tuning", "excess": 0.2}}  # no seed
    assert objective_rows(records | chosen, "study") == objective_rows(records, "study")
    assert objective_rows(records, "laptop") == []
    assert len(objective_rows(read_results("objectives").data, "laptop")) == 20


def row(measure, contestant, *values):
    return ObjectiveRow(measure, contestant, values)


def test_a_question_is_answered_by_the_interval_of_its_pairs_and_is_open_where_it_holds_zero():
    rows = [
        row("fill, left: excess", "causal", 0.1, 0.2, 0.3, 0.4),
        row("fill: excess", "masked", 0.3, 0.41, 0.49, 0.6),
        row("finetune 100 labels", "masked", 0.5, 0.7, 0.6, 0.6),
        row("finetune 100 labels", "from scratch, both ways", 0.6, 0.6, 0.5, 0.7),
        row("finetune 100 labels", "bag of words", 0.7, 0.91, 0.81, 0.82),
    ]
    nearer, pretrained, counting = findings(rows)
    assert "? yes: 0.25 against 0.45 nats of excess, +0.20 [" in nearer
    assert "new weights? open: 0.60 against 0.60" in pretrained
    assert "counting words? no, the reverse: 0.60 against 0.81, -0.21 [" in counting
    alone = float(findings(rows[:2])[0].split("[")[1].split(",")[0])
    assert float(nearer.split("[")[1].split(",")[0]) < alone  # one of three is wider than one
    assert findings(rows[:1]) == []


def test_a_best_rate_at_an_end_of_those_tried_is_named():
    def tuned(name, lr, excess):
        recipe = {"settings": {"lr": lr}}
        return {"measure": "tuning", "contestant": name, "excess": excess, "origin": {"recipe": recipe}}

    tried = {"causal": [(1, 0.3), (2, 0.2), (4, 0.4)], "masked": [(1, 0.3), (2, 0.2)]}
    records = {f"{name} {lr}": tuned(name, lr, excess) for name in tried for lr, excess in tried[name]}
    assert best_at_an_end(records | {"a": {"measure": "fill"}}) == ["masked"]


def test_kinds_of_words_by_hand(world):
    words = ["La", "fin", "est", "belle", ".", "Je", "l'", "ai", "lu", "."]
    kinds = ["first word", "noun", "est, sont, ai", "adjective", "punctuation"]
    kinds += ["first word", "other", "est, sont, ai", "verb", "punctuation"]
    assert kinds_in(world, words).tolist() == kinds


def test_means_by_kind_are_those_of_its_words_largest_first():
    kinds = [np.array(["noun", "verb", "noun"]), np.array([*KINDS])]
    values = [np.array([1.0, 5.0, 2.0]), np.arange(8.0)]
    means = by_kind(values, kinds)
    assert means["noun"].mean == pytest.approx((1 + 2 + 5) / 3) and means["verb"].mean == pytest.approx(4.5)
    assert [*means] == sorted(means, key=lambda kind: -means[kind].mean) and set(means) == {*KINDS}


@pytest.mark.parametrize("both", [False, True])
def test_blanks_are_predicted_where_the_exact_language_is_asked_and_training_brings_them_nearer(world, both):
    texts = [" ".join(one.words) for one in world.reviews(30, seed=0)]
    tokenizer = Tokenizer.train([*texts, *world.vocabulary], vocab_size=300, model_type="bpe")
    config = TransformerConfig(vocab_size=tokenizer.vocab_size, d_model=12, n_heads=3, n_layers=1, d_ff=20)
    torch.manual_seed(0)
    model = (
        MaskedLanguageModel(config, transform=False) if both else LanguageModel(config.replace(causal=True))
    )
    blanks = Blanks.drawn(tokenizer, texts[:5], seed=1)
    for i, (ids, t) in enumerate(zip(blanks.rows, blanks.positions, strict=True)):
        first, hidden = (tokenizer.cls_id, tokenizer.mask_id) if both else (tokenizer.bos_id, ids[t])
        row = torch.tensor([[first, *ids[:t], hidden, *ids[t + 1 :], tokenizer.sep_id]])
        by_hand = -model(row)[0, t + both].log_softmax(dim=-1)[ids[t]].item()
        assert blanks.nats(model)[i] == pytest.approx(by_hand, abs=1e-4)
    assert (blanks.exact(world, "both").mean() < blanks.exact(world, "left").mean()) and len(blanks.rows) == 5

    def make_batch(rows, generator):
        ids = pad_batch(rows, tokenizer.pad_id)
        return ids, ids.masked_fill(ids == tokenizer.pad_id, -100)

    settings = TrainingSettings(n_steps=20, lr=1e-2, tokens_per_batch=200)
    nats = train(model, make_batch, texts, settings, blanks)
    assert [*nats] == [0, *range(2, 21, 2)] and nats[20] < nats[0]
