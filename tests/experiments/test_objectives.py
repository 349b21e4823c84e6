"""Objectives compared: operations by closed form, measures checked against the exact language."""

from collections import Counter

import numpy as np
import pytest
import torch

from experiments.objective_measures import _follows, best_label_accuracy, completion_measures, fill_measures
from experiments.objectives import (
    CONTESTANTS,
    FINETUNING_RATES,
    RATES,
    FewPositions,
    objectives,
    table,
    training_flops,
)
from tinytx.config import TransformerConfig
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.masking import Masking, draw_pairs, make_passages
from tinytx_course.counting.costs import cost_table
from tinytx_course.labs.layers import count_flops
from tinytx_run.finetune import finetune
from tinytx_run.pretrain import causal_objective, train_tokenizer
from tinyworld.world import World


@pytest.fixture(scope="module")
def tokenizer(corpus):
    return train_tokenizer(corpus.train.texts, 400, exact=False, kind="world")


@pytest.mark.proof
def test_every_contestant_is_measured_once_with_equal_tokens_and_its_own_rates(once, corpus, monkeypatch):
    reads_one_way = []

    def watched(start, *args, **how):
        reads_one_way.append((start.model.body.config.causal, how["body"]))
        return finetune(start, *args, **how)

    monkeypatch.setattr("experiments.objectives.finetune", watched)
    sizes = {"N_BLANKS": 3, "N_PREFIXES": 3, "LABEL_COUNTS": (8,), "N_BEYOND": 0}
    for name, value in {**sizes, "load_corpus": lambda name: corpus}.items():
        monkeypatch.setattr(f"experiments.objectives.{name}", value)
    found, records = once(objectives)
    tuning = {key: one for key, one in records.items() if one["measure"] == "tuning"}
    measures = Counter(one["contestant"] for one in records.values() if one["measure"] != "tuning")
    fresh = {"from scratch, one way": 1, "from scratch, both ways": 1, "bag of words": 1}
    own = {"causal": 6, "hybrid": 6, "masked": 5, "masked+nsp": 3, "causal, few positions": 2}
    assert measures == {**own, **fresh} and set(measures) == set(CONTESTANTS)
    assert len(tuning) == 4 * len(RATES) + 5 * len(FINETUNING_RATES)
    # A hybrid classifier reads both ways, too.
    assert Counter(reads_one_way) == Counter({
        (False, "pretrained"): 8, (True, "pretrained"): 4, (True, "fresh"): 4, (False, "fresh"): 4
    })  # fmt: skip
    pretraining = {one["contestant"]: one for one in records.values() if one["measure"] == "pretraining"}
    causal, masked = pretraining["causal"], pretraining["masked"]
    assert len({record["n_body"] for record in pretraining.values()}) == 1
    assert causal["n_params"] == masked["n_params"] < pretraining["masked+nsp"]["n_params"]
    assert len({record["n_steps"] for record in pretraining.values()}) == 1
    assert masked["flops_per_id"] < pretraining["hybrid"]["flops_per_id"] < causal["flops_per_id"]
    for name in ("causal", "masked", "hybrid"):
        tried = {one["excess"]: one["origin"]["recipe"]["settings"]["lr"]
                 for one in tuning.values() if one["contestant"] == name and "excess" in one}  # fmt: skip
        assert set(tried.values()) == set(RATES)
        assert pretraining[name]["origin"]["recipe"]["settings"]["lr"] == tried[min(tried)]
    for one in records.values():
        if one["measure"] == "finetune 8" and "lr" in one:
            name = one["contestant"]
            tried = {t["lr"]: t["accuracy"] for t in tuning.values() if t["contestant"] == name and "lr" in t}
            assert set(tried) == set(FINETUNING_RATES) and tried[one["lr"]] == max(tried.values())

    rows = found.set_index(["row", "variant"])
    best = best_label_accuracy(corpus.test.texts, corpus.test.labels)
    assert rows.loc[("probe 8 labels", "masked"), "exact"] == best >= 0.8
    fill = rows.loc[("fill: nats", "masked")]
    assert fill["exact"] < fill["mean"] and rows.loc[("fill: excess", "causal"), "mean"] > 0
    assert ("fill, left: nats", "masked") not in rows.index and ("next: model", "masked") not in rows.index


def test_few_positions_count_and_the_others_do_not(corpus, tokenizer):
    asked = []

    class Model:
        def loss(self, inputs, targets, ignore_id):
            asked.append((inputs, targets, ignore_id))
            return targets.sum()

    whole = causal_objective(tokenizer, corpus.train.texts, 64)
    rows = list(range(50))
    FewPositions(whole, tokenizer.pad_id).loss(Model(), rows)
    ((inputs, targets, ignored),), (own_inputs, own_targets) = asked, whole.batch(rows)
    counted = targets != ignored
    assert torch.equal(inputs, own_inputs) and torch.equal(targets[counted], own_targets[counted])
    assert 0.7 < counted.sum() / (own_targets != ignored).sum() / Masking().p < 1.3


def test_the_table_has_the_optimum_and_differences_from_the_causal_model():
    def cell(name, measure, seed, **fields):
        return {"contestant": name, "measure": measure, "seed": seed, **fields}

    cells = [cell("causal", "probe 8", s, accuracy=0.5, exact={"accuracy": 0.9}) for s in (0, 1)]
    cells += [cell("masked", "probe 8", s, accuracy=0.6 + s / 10, exact={"accuracy": 0.9}) for s in (0, 1)]
    cells += [cell("causal", "complete", 0, possible=0.25, words_before_error=3.0)]
    rows = table({f"smoke/{i}": one for i, one in enumerate(cells)}).set_index(["row", "variant"])
    masked, possible = rows.loc[("probe 8 labels", "masked")], rows.loc[("complete: possible", "causal")]
    assert masked["minus causal"] == pytest.approx(0.15) and masked["exact"] == 0.9
    assert possible["exact"] == 1 and np.isnan(rows.loc[("complete: good words", "causal"), "exact"])


def test_a_hybrid_model_pays_for_the_output_layer_of_its_causal_batches():
    config = TransformerConfig(vocab_size=41, d_model=14, n_heads=7, n_layers=3, d_ff=5)
    share = Masking(p=0.2, causal_share=0.25, transform=False)
    masked, hybrid, causal = (
        training_flops(config, masking) for masking in (Masking(p=0.2, transform=False), share, None)
    )
    assert hybrid == pytest.approx(0.25 * causal + 0.75 * masked)


@pytest.mark.parametrize("transform", [False, True])
def test_operations_of_a_masked_output_are_those_that_torch_counts(transform):
    config = TransformerConfig(vocab_size=41, d_model=14, n_heads=7, n_layers=3, d_ff=5, causal=False)
    model = MaskedLanguageModel(config, transform=transform, next_sentence=True)
    hidden, is_masked = torch.randn(1, 20, 14), torch.arange(20) < 5
    masking = Masking(p=0.25, transform=transform, next_sentence=True)
    counted = count_flops(lambda: (model.next_head(hidden), model.head(hidden[:, is_masked])))
    backbone = cost_table(config, None, batch_size=1, seq_len=20).flops_forward
    assert 20 * training_flops(config, masking, 20) - backbone == pytest.approx(counted)


def test_answers_do_not_depend_on_the_other_pairs_of_a_batch(tokenizer, corpus):
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=12, n_heads=3, n_layers=2, d_ff=7, causal=False
    )
    model = MaskedLanguageModel(config.replace(n_segments=2), next_sentence=True).eval()
    pairs = draw_pairs(make_passages(tokenizer, corpus.valid.texts, 60), 60, np.random.default_rng(0))
    logits = []
    for first, second in zip(pairs.firsts, pairs.seconds, strict=True):
        row = [tokenizer.cls_id, *first, tokenizer.sep_id, *second, tokenizer.sep_id]
        segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
        logits.append(model.follows(torch.tensor([row]), segment_ids=torch.tensor([segments])).detach()[0])
    odds = torch.stack(logits).diff()[:, 0]
    model.next_head.output.bias.data[1] -= odds.mean()  # so that both answers occur
    expected = (odds > odds.mean()).int().tolist()
    assert _follows(model, tokenizer, pairs).tolist() == expected
    assert 0 < sum(expected) < len(expected)


@pytest.mark.parametrize("sides", ["both", "left"])
def test_the_exact_distribution_given_a_side_has_no_excess(tokenizer, corpus, monkeypatch, sides):
    through = World().through(tokenizer)

    def exact_probs(model, tokenizer, ids, position, sides, hybrid):
        if sides == "both":
            return through.fill_token(ids, position)
        probs = through.next_token(ids[:position])
        words = np.arange(len(probs)) != tokenizer.eos_id
        return np.where(words, probs, 0) / probs[words].sum()

    monkeypatch.setattr("experiments.objective_measures.fill_probs", exact_probs)
    found = fill_measures(None, tokenizer, corpus.test.texts, 5, sides)
    assert found["exact_given"] == sides
    assert found["excess"] == pytest.approx(0, abs=1e-9)
    assert found["nats"] == pytest.approx(found["exact"]["nats"])
    assert found["accuracy"] == found["exact"]["accuracy"]


def test_a_completion_counts_words_before_the_first_impossible_one(tokenizer, corpus, monkeypatch):
    texts = corpus.test.texts[:4]
    rest = {}
    for text in texts:
        words = text.split(" ")
        rest[tuple(tokenizer.encode(" ".join(words[: len(words) // 2])))] = words[len(words) // 2 :]
    n_new = np.mean([len(words) for words in rest.values()])
    for n_true, added, expected in ((None, [], (1, n_new, n_new)), (2, ["le", "le"], (0, 2, 4))):
        monkeypatch.setattr(
            "experiments.objective_measures._continued",
            lambda m, t, start, seed, n=n_true, more=added: tokenizer.encode(
                " ".join([*rest[tuple(start)][:n], *more])
            ),
        )
        found = completion_measures(None, tokenizer, texts, 4)
        assert (found["possible"], found["new_words"]) == (expected[0], expected[2])
        assert expected[1] <= found["words_before_error"] <= expected[1] + (n_true is not None)
