"""Lesson 10: infilling, the next-sentence baseline, stored results, kinds of words."""

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
    TopicOverlap,
    best_at_an_end,
    by_kind,
    complete_masked,
    findings,
    kinds_in,
    objective_rows,
    train,
    with_controls,
)
from tinytx_course.results import read_results
from tinytx_run.intervals import paired_interval
from tinyworld.world import World


def topical_pairs(n, rng, topics=5, words=6):
    """Each passage draws 4 words of one topic and 2 of none; a pair that follows has one topic."""
    firsts, seconds, labels = [], [], []
    for _ in range(n):
        label = int(rng.integers(2))
        first = int(rng.integers(topics))
        second = (first + label * int(rng.integers(1, topics))) % topics
        for topic, side in ((first, firsts), (second, seconds)):
            of_topic = rng.choice(words, 3, replace=False) + topic * words
            side.append([*of_topic.tolist(), *(topics * words + rng.choice(9, 2)).tolist()])
        labels.append(label)
    return firsts, seconds, labels


def test_topics_are_found_from_counts_and_shared_words_find_fewer():
    shared = TopicOverlap(9, associations=False)
    scores = shared.scores([[1, 2], [3], []], [[2, 5, 7], [3], [1]])
    assert scores.tolist() == pytest.approx([1 / 6, 1.0, 0.0])
    rng = np.random.default_rng(0)
    train, test = topical_pairs(4000, rng), topical_pairs(1000, rng)
    accuracy = {}
    for associations in (True, False):
        model = TopicOverlap(39, associations=associations).fit(*train)
        accuracy[associations] = (model.predict(*test[:2]) == np.array(test[2])).mean()
    assert accuracy[True] > 0.97 > 0.9 > accuracy[False] > 0.7


def test_a_weight_is_the_log_of_how_much_more_often_words_meet():
    # Counted are the first, third, ... pair: words 0 and 1 meet in 2 of 3 that follow, in 1 of 2 that do not.
    firsts = [[0], [2], [0], [2], [2], [2], [0], [2], [2], [2]]
    seconds = [[1], [2], [1, 1], [2], [2], [2], [1], [2], [2], [2]]
    labels = [0, 0, 0, 1, 0, 0, 1, 1, 1, 1]
    model = TopicOverlap(3, certainty=0).fit(firsts, seconds, labels)
    assert model.weights[0, 1] == pytest.approx(np.log(((2 + 1) / (3 + 1)) / ((1 + 1) / (2 + 1))))
    assert model.weights[1, 0] == pytest.approx(np.log((1 / 4) / (1 / 3)))
    both = (model.weights[0, 1] + model.weights[0, 2]) / 2
    assert model.scores([[0, 0]], [[2, 1]]) == pytest.approx([both])


def test_a_weight_that_chance_could_explain_is_zero():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=4000)
    # Word 0 meets word 1 far more often where passages follow; all else is noise.
    firsts = [[0, *rng.integers(2, 40, 3).tolist()] for _ in labels]
    seconds = [
        [*([1] if rng.random() < (0.2 if label else 0.6) else []), *rng.integers(2, 40, 3).tolist()]
        for label in labels
    ]
    model = TopicOverlap(40).fit(firsts, seconds, labels.tolist())
    assert model.weights[0, 1] == pytest.approx(np.log(3), abs=0.2)
    assert (np.delete(model.weights[2:], 1, axis=1) != 0).mean() < 0.01
    noisy = TopicOverlap(40, certainty=0).fit(firsts, seconds, labels.tolist())
    assert (noisy.weights[2:, 2:] != 0).mean() > 0.9


def test_without_evidence_the_commoner_answer_is_given():
    same = [[1]] * 8
    for labels, answer in (([0, 1, 0, 0, 0, 0, 1, 0], 0), ([0, 1, 1, 1, 0, 1, 0, 1], 1)):
        assert TopicOverlap(3).fit(same, same, labels).predict(same, same).tolist() == [answer] * 8


def test_requests_that_the_baseline_cannot_answer_raise():
    for call, words in (
        (lambda: TopicOverlap(0), "vocab_size must be at least 1"),
        (lambda: TopicOverlap(3, certainty=-1), "certainty must be 0 or more"),
        (lambda: TopicOverlap(3).predict([[1]], [[1]]), "must be fitted"),
        (lambda: TopicOverlap(3).fit([[1]] * 4, [[1]] * 4, [0] * 4), "of both kinds, got 4 labels"),
        (lambda: TopicOverlap(3).scores([[1]], []), "must be as many, got 1 and 0"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


PREFIXES = ([9, 12, 15], [8], [])
N_NEW = [4, 1, 6]


@pytest.fixture(scope="module")
def tokenizer():
    words = ["le", "la", "chat", "chien", "mange", "voit", "un", "une", "belle", "petit"]
    return Tokenizer.train([f"{a} {b}" for a in words for b in words], vocab_size=30)


@pytest.fixture
def model():
    return MaskedLanguageModel(
        TransformerConfig(vocab_size=30, d_model=12, n_heads=3, n_layers=2, d_ff=20, max_len=24)
    ).eval()


def test_so_many_tokens_are_sampled_and_none_is_special(model, tokenizer):
    found, again, other = (
        complete_masked(model, tokenizer, PREFIXES, N_NEW, n_sweeps=2, seed=seed) for seed in (0, 0, 1)
    )
    assert [len(ids) for ids in found] == N_NEW
    assert all(one > tokenizer.sep_id for ids in found for one in ids)
    assert found == again != other
    assert complete_masked(model, tokenizer, [], []) == []


def test_the_first_sweep_goes_from_left_to_right(model, tokenizer):
    prefix, ids = [9, 12], [9, 12]
    found = complete_masked(model, tokenizer, [prefix], [3], n_sweeps=0, temperature=1e-4)[0]
    for n_left in (3, 2, 1):
        row = [tokenizer.cls_id, *ids, *[tokenizer.mask_id] * n_left, tokenizer.sep_id]
        with torch.no_grad():
            logits = model(torch.tensor([row]))[0, len(ids) + 1]
        ids.append(7 + int(logits[7:].argmax()))
    assert found == ids[2:]


def test_later_sweeps_mask_each_token_alone(model, tokenizer):
    calls = []
    model.body.register_forward_pre_hook(lambda module, inputs: calls.append(inputs[0].clone()))
    complete_masked(model, tokenizer, [[9, 12]], [3], n_sweeps=2)
    assert len(calls) == 3 * 3
    hidden = [[(row == tokenizer.mask_id).nonzero()[:, 0].tolist() for row in call] for call in calls]
    assert [places for (places,) in hidden[:3]] == [[3, 4, 5], [4, 5], [5]]
    for sweep in (hidden[3:6], hidden[6:]):
        assert sorted(places for (places,) in sweep) == [[3], [4], [5]]


def test_a_batch_gives_what_single_rows_give(model, tokenizer):
    together = complete_masked(model, tokenizer, PREFIXES, N_NEW, n_sweeps=0, temperature=1e-4)
    for prefix, n, found in zip(PREFIXES, N_NEW, together, strict=True):
        assert complete_masked(model, tokenizer, [prefix], [n], n_sweeps=0, temperature=1e-4) == [found]


def test_impossible_completions_raise(model, tokenizer):
    for prefixes, n_new, words in (
        ([[9]], [0], "1 or more"),
        ([[9]], [1, 2], "1 prefixes"),
        ([[9] * 20], [3], "24 ids, got 25"),
    ):
        with pytest.raises(ValueError, match=words):
            complete_masked(model, tokenizer, prefixes, n_new)
    with pytest.raises(ValueError, match="temperature must be positive"):
        complete_masked(model, tokenizer, [[9]], [1], temperature=0)


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
        return {f"study/seed {seed}/{name}/{measure}": {"exact": {"nats": 0.5}, **fields}}

    records = {"smoke/seed 0/causal/fill": {"nats": 9.0, "excess": 9.0, "accuracy": 0.0}}
    for seed in (0, 1):
        for name in ("causal", "masked"):
            value = seed + (name == "masked") / 2
            records |= cell(seed, name, "fill", nats=value, excess=value, accuracy=value)
            records |= cell(seed, name, "probe, 50", accuracy=value)
    records |= cell(2, "causal", "fill", nats=7.0, excess=7.0, accuracy=7.0)
    rows = {(row.measure, row.contestant): row for row in objective_rows(records, "study")}
    measures = ("fill: nats", "fill: excess", "fill: accuracy", "probe, 50 labels")
    assert set(rows) == {(measure, name) for measure in measures for name in ("causal", "masked")}
    assert rows["fill: nats", "masked"].values == (0.5, 1.5) and rows["fill: nats", "masked"].exact == 0.5
    assert rows["fill: excess", "causal"].exact == 0.0 and rows["fill: excess", "causal"].interval.mean == 0.5
    chosen = {"study/tuning/causal/0.1": {"measure": "tuning", "excess": 0.2}}  # no seed
    assert objective_rows(records | chosen, "study") == objective_rows(records, "study")
    assert objective_rows(records, "laptop") == []
    assert len(objective_rows(read_results("objectives").data, "laptop")) > 25


def row(measure, contestant, *values):
    return ObjectiveRow(measure, contestant, values, paired_interval(values), None)


def test_a_question_is_answered_by_the_interval_of_its_pairs_and_is_open_where_it_holds_zero():
    rows = [
        row("fill, left: excess", "causal", 0.1, 0.2, 0.3, 0.4),
        row("fill: excess", "masked", 0.3, 0.41, 0.49, 0.6),
        row("finetune 100 labels", "masked", 0.5, 0.7, 0.6, 0.6),
        row("finetune 100 labels", "from scratch, both ways", 0.6, 0.6, 0.5, 0.7),
        row("finetune 100 labels", "bag of words", 0.7, 0.91, 0.81, 0.82),
    ]
    nearer, pretrained, counting = findings(rows)
    assert "? yes: 0.25 against 0.45, +0.20 [" in nearer
    assert "new weights? open: 0.60 against 0.60" in pretrained
    assert "counting words? no, the reverse: 0.60 against 0.81, -0.21 [" in counting
    alone = float(findings(rows[:2])[0].split("[")[1].split(",")[0])
    assert float(nearer.split("[")[1].split(",")[0]) < alone  # one of three is wider than one
    assert findings(rows[:1]) == []


def test_labels_without_a_bag_of_words_are_left_out_and_shares_are_cut_at_one():
    rows = [row("finetune 100 labels", "causal", 0.9, 1.0), row("fill: nats", "causal", 0.5, 1.9)]
    assert with_controls(rows) == rows[1:]
    with_bag = [*rows, row("finetune 100 labels", "bag of words", 0.7, 0.7)]
    assert with_controls(with_bag) == with_bag
    assert str(rows[0]).endswith(", 1.00]") and str(rows[1]).startswith("1.20 [0.00, 1")


def test_a_best_rate_at_an_end_of_those_tried_is_named():
    def tuned(name, lr, excess):
        recipe = {"settings": {"lr": lr}}
        return {"measure": "tuning", "contestant": name, "excess": excess, "origin": {"recipe": recipe}}

    tried = [
        ("causal", 1, 0.3),
        ("causal", 2, 0.2),
        ("causal", 4, 0.4),
        ("masked", 1, 0.3),
        ("masked", 2, 0.2),
    ]
    records = {str(i): tuned(*one) for i, one in enumerate(tried)}
    assert best_at_an_end(records | {"a": {"measure": "fill"}}) == ["masked"]


def test_kinds_of_words_by_hand():
    words = ["La", "fin", "est", "belle", ".", "Je", "l'", "ai", "lu", "."]
    kinds = ["first word", "noun", "est, sont, ai", "adjective", "punctuation"]
    kinds += ["first word", "other", "est, sont, ai", "verb", "punctuation"]
    assert kinds_in(World(), words).tolist() == kinds


def test_means_by_kind_are_those_of_its_words_largest_first():
    kinds = [np.array(["noun", "verb", "noun"]), np.array([*KINDS])]
    values = [np.array([1.0, 5.0, 2.0]), np.arange(8.0)]
    means = by_kind(values, kinds)
    assert means["noun"].mean == pytest.approx((1 + 2 + 5) / 3) and means["verb"].mean == pytest.approx(4.5)
    assert [*means] == sorted(means, key=lambda kind: -means[kind].mean) and set(means) == {*KINDS}


@pytest.mark.parametrize("both", [False, True])
def test_blanks_are_predicted_where_the_exact_language_is_asked_and_training_brings_them_nearer(both):
    world = World()
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
