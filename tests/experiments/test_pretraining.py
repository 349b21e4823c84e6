"""Pretraining on real text: folds that divide no group, nothing tested is read, doses, branches, resuming."""

import dataclasses
import random

import numpy as np
import pytest
import torch

from experiments import pretraining as experiment
from experiments.pretraining import pretraining
from experiments.pretraining_data import grouped_folds, last_words, texts_of
from experiments.pretraining_models import Bodies, plan_doses
from experiments.pretraining_recipes import OBJECTIVES, RECIPES, condition, first_conditions
from tests.experiments.conftest import review
from tinytx.loop import train
from tinytx_course.labs.lesson_15 import same_text
from tinytx_run.classify import class_probabilities
from tinytx_run.corpora import Corpus, Split
from tinytx_run.intervals import paired_interval
from tinytx_run.pretrain import new_model

SMOKE = RECIPES["smoke"]
ALL_KINDS = (
    *("tfidf-words", "tfidf-letters", "scratch/tuned", "scratch/longer", "scratch/probe"),
    *("causal/tuned/2000", "causal/probe/5000", "masked/tuned/2000", "hybrid/probe/2000"),
    *("counts-both/probe", "causal-seed1/probe/2000"),
    *("tfidf-letters-last", "tfidf-letters-lsa", "tfidf-letters-lsa-labelled", "scratch-both/tuned"),
    "tfidf-letters-lsa-last",
)


def films(rng, first, n_films, *, labelled):
    """Five reviews of each film."""
    rows = [
        (review(rng, (film + i) % 2), (film + i) % 2, f"tt{film}")
        for film in range(first, first + n_films)
        for i in range(5)
    ]
    texts, labels, groups = zip(*rows, strict=True)
    return Split(texts, labels if labelled else None, groups)


@pytest.fixture(scope="module")
def corpora():
    """25 labelled films and 80 others; one unlabelled text repeats a labelled one, five share its film."""
    rng = random.Random(0)
    labelled = Corpus("films", films(rng, 0, 20, labelled=True), films(rng, 20, 5, labelled=True))
    near = films(rng, 100, 80, labelled=False)
    texts = (labelled.train.texts[0].upper() + "!", *near.texts[1:], *films(rng, 3, 1, labelled=False).texts)
    groups = (*near.groups, *["tt3"] * 5)
    return labelled, Corpus(
        "films-unlabelled", Split(texts, None, groups), films(rng, 200, 4, labelled=False)
    )


@pytest.fixture
def bodies(settings, corpora):
    """The models of the small corpora."""
    return Bodies(texts_of(*corpora), SMOKE, settings().work_dir, "cpu", lambda line: None)


@pytest.fixture
def cells(settings, corpora):
    """The cells of 24 labels of the small corpora."""
    return experiment._Cells(settings("pretraining"), texts_of(*corpora), SMOKE, (24,))


@pytest.fixture
def run(settings, corpora):
    """Runs the experiment on the small corpora."""

    def measure(*variants, **changes):
        how = settings("pretraining", **{"n_seeds": 2} | changes)
        rows = pretraining(how, corpora[0], unlabelled=corpora[1], variants=variants, label_counts=(24,))
        return rows.set_index("condition"), how.store

    return measure


# --- texts


def test_folds_divide_no_film_and_test_the_same_reviews_in_each_draw(corpora):
    split = texts_of(*corpora).labelled
    folds = grouped_folds(split, 3, 2, 30)
    assert [fold.seed for fold in folds] == list(range(6))
    tested = [set(fold.test.groups) for fold in folds]
    for k, fold in enumerate(folds):
        assert not tested[k] & set(fold.train.groups) and len(fold.train) + 30 <= len(split)
        assert sum(fold.test.labels) == 15 and fold.test == folds[k % 3].test
    n_learned = [len(fold.train) for fold in folds]
    assert not tested[0] & tested[1] and max(n_learned) - min(n_learned) <= 5
    with pytest.raises(ValueError, match="from 2 to 25, .*got 26"):
        grouped_folds(split, 26, 1, 4)


def test_nothing_tested_is_read_in_pretraining(corpora, settings):
    texts = texts_of(*corpora)
    assert texts.n_left_out == 6 and len(texts.unlabelled) == 399 and len(texts.labelled) == 125
    assert not set(map(same_text, texts.unlabelled)) & set(map(same_text, texts.labelled.texts))
    some = settings()
    for other in (texts, dataclasses.replace(texts, labelled=films(random.Random(9), 50, 9, labelled=True))):
        bodies = Bodies(other, SMOKE, some.work_dir / other.labelled.groups[0], "cpu", some.report)
        pieces = bodies.tokenizer.to_bytes()
    assert pieces == Bodies(texts, SMOKE, some.work_dir / "again", "cpu", some.report).tokenizer.to_bytes()
    assert last_words(Split(("A b C d",), (1,), ("x",)), 2) == Split(("c d",), (1,), ("x",))


def test_on_its_test_split_a_corpus_lends_all_other_labels_and_nothing_tested_is_learned(corpora, settings):
    ours, unlabelled = corpora
    with pytest.raises(ValueError, match="on must be folds, .*got test of films"):
        texts_of(ours, unlabelled, "test")
    tested = films(random.Random(1), 60, 20, labelled=True)
    again = (ours.train.texts[7], unlabelled.train.texts[9])  # one was labelled, one is read in pretraining
    tested = dataclasses.replace(tested, texts=(*again, *tested.texts[2:]))
    texts = texts_of(dataclasses.replace(ours, test=tested), unlabelled, "test")
    assert texts.name == "films, test" and texts.n_left_out == 7 and len(texts.labelled) == 124
    learned = set(map(same_text, texts.labelled.texts + texts.unlabelled))
    assert not learned & set(map(same_text, tested.texts))
    for fold in experiment._Cells(settings("pretraining", n_seeds=2), texts, SMOKE, (24,)).folds:
        assert fold.train == texts.labelled and set(fold.test.texts) < set(tested.texts)


def test_texts_without_groups_or_labels_are_refused(corpora, settings):
    lone = dataclasses.replace(corpora[0], train=dataclasses.replace(corpora[0].train, groups=None))
    with pytest.raises(ValueError, match="must be grouped.*films without groups"):
        pretraining(settings(), lone)
    with pytest.raises(ValueError, match="must be grouped.*films-unlabelled without labels"):
        texts_of(corpora[1], corpora[1])


def test_reviews_without_titles_are_grouped_by_their_words_and_other_text_is_named(corpora):
    texts = ("Bien!", "bien", "Mal.", "Pas mal", "Oui", "Non")
    books = Corpus("cls-books", Split(texts[:4], (1, 1, 0, 1)), Split(texts[4:], (0, 1)))
    novels = Split(("il pleut", "BIEN", "il neige"), None)
    found = texts_of(books, Corpus("novels", novels, Split(("il vente",), None)))
    assert found.name == "cls-books+novels" and found.n_left_out == 1
    assert found.labelled.groups[0] == found.labelled.groups[1] and len(set(found.labelled.groups)) == 5
    assert found.unlabelled == ("il pleut", "il neige") and found.held_out == ("il vente",)
    assert texts_of(*corpora).name == "films"


def test_a_transformer_and_one_bag_read_the_end_of_a_text(corpora, cells):
    early = [dataclasses.replace(part, texts=tuple(f"{text} {'of ' * SMOKE.n_words}" for text in part.texts))
             for part in (corpora[0].train, corpora[0].valid)]  # fmt: skip
    last, letters, probe = (
        condition(name, SMOKE) for name in ("tfidf-letters-last", "tfidf-letters", "scratch/probe")
    )
    read = [cells._bag(each, *early, 0)[0] for each in (letters, last)]
    read.append(cells._probe(probe, *early, 0)[0])
    whole, *ends = (experiment._n_correct(scores, early[1]) for scores in read)
    assert whole >= 24 and max(ends) <= 16


# --- doses and branches


@pytest.mark.parametrize("start", OBJECTIVES)
def test_doses_are_the_fewest_steps_that_read_them(bodies, start):
    objective, pad_id = bodies._objective(start), bodies.tokenizer.pad_id
    read, passes = [], []
    for epoch in range(9):
        for rows in objective.epoch_batches(seed=0, epoch=epoch, tokens_per_batch=SMOKE.tokens_per_batch):
            read.append(sum(sum(i != pad_id for i in row) for row in objective.batch(rows)[0].tolist()))
        passes.append(sum(read))
    one_pass = passes[0]
    for dose, reach in bodies.doses(start).items():
        assert sum(read[: reach.n_steps]) == reach.n_tokens >= dose > sum(read[: reach.n_steps - 1])
        assert reach.n_decay == max(1, round(0.2 * reach.n_steps))
        assert reach.n_distinct == min(one_pass, reach.n_tokens)
        assert reach.passes == pytest.approx(reach.n_tokens / one_pass, abs=1e-3)
    later = plan_doses(objective, bodies._settings(start, 1), pad_id, (3 * one_pass,), 0.2)[3 * one_pass]
    assert later.n_distinct == one_pass and later.passes == pytest.approx(3, abs=0.3)


def test_a_branch_ends_in_the_same_bytes_as_one_run_with_its_schedule(bodies):
    facts = bodies.pretrained("causal", 5_000)
    found, reach = bodies._finished("causal", 5_000), bodies.doses("causal")[5_000]
    whole = bodies._settings("causal", reach.n_steps, reach.n_decay)
    model = new_model(bodies._training_recipe("causal", whole), 0)
    history = train(model, bodies._objective("causal"), whole)
    for mine, expected in zip(found.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, expected)
    rates = dict(zip(history.step, history.lr, strict=True))
    assert rates[reach.n_steps] == 0 and whole.lr_at(reach.n_steps - reach.n_decay) == whole.lr
    assert 0 < facts["held_out_nats"] < np.log(SMOKE.vocab_size) + 1
    trunks = {f"trunk-{r.n_steps - r.n_decay}" for r in bodies.doses("causal").values()}
    made = {path.name for path in (bodies.folder / "causal").iterdir()}
    assert made == {"doses-2000-5000.json", "dose-5000", *trunks}


def test_another_seed_of_pretraining_is_another_body_that_read_other_texts_first(bodies):
    one, other = (condition(f"{start}/probe/2000", SMOKE) for start in ("causal", "causal-seed1"))
    assert one.causal and other.causal
    weights = [bodies.body(each, 0).token_embed.weight for each in (one, other)]
    assert not torch.equal(*weights)
    assert bodies._settings("causal-seed1", 1).replace(seed=0) == bodies._settings("causal", 1)


def test_a_wide_body_differs_in_width_and_heads_alone_and_says_so_in_what_it_follows_from(cells):
    usual, wide = (condition(f"{start}/tuned/2000", SMOKE) for start in ("hybrid", "hybrid-wide-seed1"))
    one, other = (cells.bodies.body(each, 0).config for each in (usual, wide))
    assert other == one.replace(d_model=2 * one.d_model, n_heads=2 * one.n_heads, d_ff=2 * one.d_ff)
    assert cells.bodies.doses("hybrid-wide") == cells.bodies.doses("hybrid")
    own, origin = (cells.origin(each, 24, cells.folds[0]) for each in (usual, wide))
    assert origin == own | {"times_width": 2}


def test_only_what_starts_from_counts_has_their_embeddings(bodies):
    counted = bodies._counted["weight"]
    for name, starts in (("counts-both/probe", True), ("scratch-both/tuned", False)):
        weight = bodies.body(condition(name, SMOKE), 0).token_embed.weight
        assert torch.equal(weight, counted) == starts


# --- ways to fine-tune


def test_the_ends_of_texts_are_learned_with_each_rate_and_then_with_the_best(corpora, cells, monkeypatch):
    train, test = corpora[0].train.take(range(24)), corpora[0].valid
    trained = []

    def watched(body, tokenizer, split, recipe, tuned=experiment.tuned, **how):
        trained.append((split, how["seed"], tuned(body, tokenizer, split, recipe, **how)))
        return trained[-1][-1]

    monkeypatch.setattr(experiment, "tuned", watched)
    scores, found = cells._tuned(condition("scratch/tuned", SMOKE), train, test, 7)
    assert cells._fine_tuning(condition("scratch/longer", SMOKE)).n_updates == 5 * SMOKE.n_updates
    assert set(found["search"]) == {"0.001", "0.0003", "0.003"} and {seed for _, seed, _ in trained} == {7}
    split, _, model = trained[-1]
    assert split == last_words(train, SMOKE.n_words) and len(trained) == 4
    texts = last_words(test, SMOKE.n_words).texts
    np.testing.assert_array_equal(scores, class_probabilities(model, cells.bodies.tokenizer, texts))


# --- the experiment


def test_every_kind_of_condition_is_measured_once(run, stop_after):
    rows, store = run(*ALL_KINDS, n_seeds=1)
    assert set(rows.index) == set(ALL_KINDS) and set(rows["n"]) == {2}
    assert len(store.data) == 2 * len(ALL_KINDS) + 5  # of each pretrained body
    stop_after(0)
    assert run(*ALL_KINDS, n_seeds=1)[0].equals(rows)
    assert (rows.loc[["tfidf-words", "tfidf-letters"], "mean"] > 0.9).all()
    tuned = store.get("films/smoke/causal/tuned/2000/labels 24/fold 1/draw 0")
    assert set(tuned["search"]) == {"0.001", "0.0003", "0.003"} and tuned["n_held_out"] == 6
    assert tuned["search"][tuned["chosen"]] == max(tuned["search"].values())
    read = store.get("films/smoke/pretraining causal/2000")
    assert read["n_distinct"] <= read["n_tokens"] and read["passes"] > 0


def test_without_variants_the_controls_and_each_dose_are_measured_with_corrected_intervals(run):
    rows, store = run()
    assert list(rows.index) == list(first_conditions(SMOKE))
    accuracy = {}
    for record in (one for one in store.data.values() if "accuracy" in one):
        accuracy.setdefault(record["condition"], {})[record["seed"]] = record["accuracy"]
    gaps = [accuracy["scratch/probe"][seed] - accuracy["tfidf-words"][seed] for seed in range(4)]
    expected = paired_interval(gaps, test_share=1 / (SMOKE.n_folds - 1))
    ends = rows.loc["scratch/probe", ["minus tfidf-words low", "minus tfidf-words high"]]
    assert list(ends) == pytest.approx([expected.low, expected.high])


def test_bad_requests_are_refused(run, settings):
    unknown = ("causal/tuned/7", "scratch/tuned/2000", "tfidf", "causal/probe", "scratch/guess")
    added = ("scratch-seed1/tuned", "causal-seed0/probe/2000", "counts-both-counts/tuned")
    for name in (*unknown, *added, "scratch-wide/tuned"):
        with pytest.raises(ValueError, match=f"condition must be .*got '{name}'"):
            condition(name, SMOKE)
    with pytest.raises(ValueError, match="budget must be one of smoke, study, got 3.0"):
        run("tfidf-words", budget=3.0)
