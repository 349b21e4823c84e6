"""Pretraining on real text: folds that divide no group, nothing tested is read, doses, branches, resuming."""

import dataclasses
import random

import numpy as np
import pytest
import torch

from experiments import pretraining as experiment
from experiments.pretraining import pretraining
from experiments.pretraining_data import grouped_folds, last_words, pieces, texts_of
from experiments.pretraining_files import write_folds
from experiments.pretraining_models import Bodies, plan_doses
from experiments.pretraining_recipes import OBJECTIVES, RECIPES, condition, first_conditions
from tests.experiments.conftest import BAD, GOOD, review
from tinytx.loop import train
from tinytx_course.labs.lesson_15 import same_text
from tinytx_run.classify import class_probabilities
from tinytx_run.corpora import Corpus, Split, load_corpus
from tinytx_run.intervals import paired_interval
from tinytx_run.pretrain import new_model

SMOKE = RECIPES["smoke"]
ALL_KINDS = (
    *("tfidf-words", "tfidf-letters", "scratch/tuned", "scratch/longer", "scratch/probe"),
    *("causal/tuned/2000", "causal/probe/5000", "masked/tuned/2000", "hybrid/probe/2000"),
    *("counts-both/probe", "causal-seed1/probe/2000", "causal/with-tfidf/2000", "hybrid-counts/probe/2000"),
    *("tfidf-letters-last", "tfidf-letters-pseudo", "hybrid/probe-whole/2000", "scratch/tuned-whole"),
    *("causal/tuned-seeds/2000", "causal/tuned-pseudo/2000", "causal/tuned-kept/2000"),
    *("scratch/tuned-by-loss", "scratch/tuned-end", "scratch/probe-end"),
    *("tfidf-letters-lsa", "scratch-both/tuned"),
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
        how = settings("pretraining", n_seeds=2, **changes)
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


def test_files_of_a_fold_hold_its_labels_and_texts_that_no_cell_tests(corpora, tmp_path):
    texts = texts_of(*corpora)
    recipe = dataclasses.replace(SMOKE, n_test=8)
    write_folds(tmp_path, texts, recipe, 24)
    whole = dict(zip(texts.labelled.texts, texts.labelled.groups, strict=True))
    ends = {last_words(Split((text,)), recipe.n_words).texts[0]: text for text in whole}
    for fold in grouped_folds(texts.labelled, recipe.n_folds, 1, recipe.n_test):
        written = load_corpus(str(tmp_path / f"fold-{fold.number}"))
        assert len(written.train) == 24
        tested = {ends[text] for text in (*written.test.texts, *written.valid.texts)}
        assert tested and not tested & {*fold.train.texts, *fold.test.texts}
        assert not {whole[text] for text in tested} & set(fold.train.groups)


def test_the_bag_and_the_frozen_body_read_the_end_of_a_text_or_all_of_it(corpora, cells):
    texts, n_words = cells.texts, SMOKE.n_words
    body = cells.bodies.body(condition("scratch/probe", SMOKE), 0)
    one, whole = (condition(f"scratch/{way}", SMOKE) for way in ("probe", "probe-whole"))
    short = Split(tuple(" ".join(text.split()[:n_words]) for text in texts.labelled.texts[:7]))
    ends = cells._columns(one, body, short)
    np.testing.assert_allclose(cells._columns(whole, body, short), ends, rtol=1e-4, atol=1e-6)
    begins = Split(tuple(" ".join(text.split()[:3]) for text in texts.labelled.texts[9:16]))
    joined = Split(tuple(map(" ".join, zip(begins.texts, short.texts, strict=True))))
    expected = (n_words * ends + 3 * cells._columns(one, body, begins)) / (n_words + 3)
    np.testing.assert_allclose(cells._columns(whole, body, joined), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(cells._columns(one, body, joined), ends, rtol=1e-4, atol=1e-6)

    early = [dataclasses.replace(part, texts=tuple(f"{text} {'of ' * n_words}" for text in part.texts))
             for part in (corpora[0].train, corpora[0].valid)]  # fmt: skip
    last, letters = (condition(name, SMOKE) for name in ("tfidf-letters-last", "tfidf-letters"))
    correct = [experiment._n_correct(cells._bag(each, *early, 0)[0], early[1]) for each in (letters, last)]
    assert correct[0] >= 24 and correct[1] <= 16


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


def test_pretraining_starts_from_counts_where_asked_and_from_new_weights_elsewhere(bodies):
    seen = []
    bodies._objectives = {start: bodies._objective(start) for start in ("causal", "causal-counts")}
    for start, objective in bodies._objectives.items():

        def first_weights(model, rows, start=start, loss=objective.loss):
            seen.append((start, model.body.token_embed.weight.detach().clone()))
            return loss(model, rows)

        objective.loss = first_weights
        bodies._finished(start, 2_000)
    first = dict(reversed(seen))
    counted = bodies._counted["weight"]
    assert torch.equal(first["causal-counts"], counted) and not torch.equal(first["causal"], counted)


# --- ways to fine-tune


@pytest.fixture
def fine_tunings(corpora, cells, monkeypatch):
    """Fine-tunes new weights on 24 reviews; gives the records of all models that were trained, and scores."""
    train, test = corpora[0].train.take(range(24)), corpora[0].valid
    trained = []

    def watched(body, tokenizer, split, tuned=experiment.tuned, **how):
        trained.append((split, how["seed"], tuned(body, tokenizer, split, **how)))
        return trained[-1][-1]

    def learn(way):
        trained.clear()
        one = condition(f"scratch/{way}", SMOKE)
        body = cells.bodies.body(one, 0)
        scores, found = cells._tuned(one, body, train, test, 7)
        assert set(found["search"]) == {"0.001", "0.0003", "0.003"} and scores.shape == (25, 2)
        return body, scores, trained[len(found["search"]) :]  # what was trained after the search

    monkeypatch.setattr(experiment, "tuned", watched)
    return cells, train, test, learn


def test_whole_texts_are_learned_and_answered_piece_by_piece(fine_tunings):
    cells, train, test, learn = fine_tunings
    _, scores, ((split, _, model),) = learn("tuned-whole")
    parts, owners = pieces(train, SMOKE.n_words)
    assert split == parts and len(parts) > len(train) and parts.labels[-1] == train.labels[owners[-1]]
    last = test.texts[-1].lower().split()
    runs = [" ".join(last[: -SMOKE.n_words]), " ".join(last[-SMOKE.n_words :])]
    expected = np.log(class_probabilities(model, cells.bodies.tokenizer, runs)).sum(0)
    np.testing.assert_allclose(scores[-1], expected, rtol=1e-4)


def test_words_that_are_too_many_tokens_lose_their_end_or_their_beginning(fine_tunings, monkeypatch):
    cells, train, *_, learn = fine_tunings
    tokenizer = cells.bodies.tokenizer
    monkeypatch.setattr(cells, "recipe", dataclasses.replace(SMOKE, max_len=9))
    (split, *_), *_ = learn("tuned")[-1]
    assert split == last_words(train, SMOKE.n_words)
    fold = cells.folds[0]
    measured = cells.measured(condition("scratch/probe-end", cells.recipe), 24, fold)
    cut = [len(tokenizer.encode(text)) > 7 for text in last_words(fold.test, SMOKE.n_words).texts]
    assert measured["n_shortened"] == sum(cut) > 0
    (split, *_), *_ = learn("tuned-end")[-1]
    for whole, kept in zip(last_words(train, SMOKE.n_words).texts, split.texts, strict=True):
        assert whole.endswith(kept) and len(tokenizer.encode(kept)) <= 7
        longer = " ".join(whole.split(" ")[-len(kept.split(" ")) - 1 :])
        assert kept == whole or len(tokenizer.encode(longer)) > 7
    assert any(kept != whole for whole, kept in zip(last_words(train, 10).texts, split.texts, strict=True))


def test_seeds_are_averaged_pseudo_labels_are_added_and_kept_embeddings_stay(fine_tunings):
    cells, train, test, learn = fine_tunings
    ends = last_words(train, SMOKE.n_words)
    _, scores, heads = learn("tuned-seeds")
    assert [seed for _, seed, _ in heads] == [7, 1007, 2007, 3007, 4007] and heads[0][0] == ends
    texts = last_words(test, SMOKE.n_words).texts
    each = [np.log(class_probabilities(model, cells.bodies.tokenizer, texts)) for *_, model in heads]
    np.testing.assert_allclose(scores, np.mean(each, axis=0), rtol=1e-4)

    _, _, ((teacher, *_), (student, *_)) = learn("tuned-pseudo")
    assert teacher == ends and student.texts[:24] == ends.texts and len(student) == 24 + 398 // 2 // 2 * 2
    added = set(student.texts[24:])
    assert added <= set(last_words(cells._guessed, SMOKE.n_words).texts)
    assert sum(student.labels[24:]) == len(student.labels[24:]) / 2

    for way, stays in (("tuned-kept", True), ("tuned", False)):
        body, _, ((*_, model),) = learn(way)
        assert torch.equal(model.body.token_embed.weight, body.token_embed.weight) == stays


def test_a_rate_is_chosen_by_right_answers_or_by_log_loss(fine_tunings, monkeypatch):
    cells, train, _, _ = fine_tunings
    sure = {0.001: (0.9, 0.9, 0.001), 0.0003: (0.4, 0.6, 0.6), 0.003: (0.7, 0.7, 0.4)}  # of three labels

    def answered(model, tokenizer, texts):
        known = np.resize(sure[model], len(texts))
        labels = np.array([dict(zip(ends.texts, ends.labels, strict=True))[text] for text in texts])
        return np.where(labels[:, None] == np.arange(2), known[:, None], 1 - known[:, None])

    ends = last_words(train, SMOKE.n_words)
    monkeypatch.setattr(cells, "_learned", lambda body, tuning, split, seed: tuning.lr)
    monkeypatch.setattr(experiment, "class_probabilities", answered)
    for way, rate in (("tuned", "0.001"), ("tuned-by-loss", "0.003")):
        _, found = cells._tuned(condition(f"scratch/{way}", SMOKE), None, train, train, 7)
        assert found["chosen"] == rate


# --- ratings


def rated_corpora():
    """French books without titles, and rated texts: as many good as bad ones, some between, two that leak."""
    rng = random.Random(1)
    labels = [i % 2 for i in range(60)]
    books = Split(tuple(review(rng, label) for label in labels), tuple(labels))
    stars = [(0, 2, 1)[i % 3] for i in range(300)]
    texts = [review(rng, label // 2 if label != 1 else 0) for label in stars]
    texts[0], texts[1] = books.texts[0], books.texts[1].upper()
    near = Corpus("stars", Split(tuple(texts), tuple(stars)), Split((review(rng, 1),), (2,)))
    return Corpus("cls-books", books, books.take([0])), near


def test_rated_texts_are_those_with_stars_that_do_not_leak():
    texts = texts_of(*rated_corpora())
    assert set(texts.rated.labels) == {0, 1} and len(texts.rated) == 198 and texts.n_left_out == 2
    words = {0: set(BAD), 1: set(GOOD)}
    for text, label in zip(texts.rated.texts, texts.rated.labels, strict=True):
        assert set(text.split()) & words[label] and not set(text.split()) & words[1 - label]


def test_ratings_help_the_bag_and_each_body_learns_from_them_once(settings, monkeypatch):
    books, near = rated_corpora()
    learned = []

    def counted(body, tokenizer, split, tuned=experiment.tuned, **how):
        model = tuned(body, tokenizer, split, **how)
        changed = not torch.equal(model.body.final_norm.weight, body.final_norm.weight)
        if len(split) > 8:
            learned.append((len(split), how["tuning"].n_epochs, changed))
        return model

    monkeypatch.setattr(experiment, "tuned", counted)
    names = ("tfidf-letters", "tfidf-letters-rated", "scratch/tuned", "scratch/rated", "causal/rated/2000")
    how = settings("pretraining")
    rows = pretraining(how, books, unlabelled=near, variants=names, label_counts=(8,)).set_index("condition")
    assert rows.loc["tfidf-letters-rated", "mean"] > 0.9 and set(rows.index) == set(names)
    assert learned == [(198, 1, True)] * 2
    key = "cls-books+stars/smoke/{}/labels 8/fold 0/draw 0"
    rated, plain = (how.store.get(key.format(name)) for name in ("scratch/rated", "scratch/tuned"))
    assert rated["origin"].keys() - plain["origin"].keys() == {"rated"}


def test_ratings_are_refused_where_there_are_none(run):
    with pytest.raises(ValueError, match="rated needs unlabelled texts with labels 0, 1 and 2.*got films"):
        run("scratch/rated")


# --- the experiment


def test_every_kind_of_condition_is_measured_once(run, stop_after):
    rows, store = run(*ALL_KINDS)
    assert set(rows.index) == set(ALL_KINDS) and set(rows["n"]) == {4}
    assert len(store.data) == 4 * len(ALL_KINDS) + 6 + 1  # of each pretrained body, and of the search
    stop_after(0)
    assert run(*ALL_KINDS)[0].equals(rows)
    assert (rows.loc[["tfidf-words", "tfidf-letters"], "mean"] > 0.9).all()
    assert store.get("films/smoke/search")["origin"]["search"]["tuned"]["lr"] == [1e-3, 3e-4, 3e-3]
    tuned = store.get("films/smoke/causal/tuned/2000/labels 24/fold 1/draw 0")
    assert set(tuned["search"]) == {"0.001", "0.0003", "0.003"} and tuned["n_held_out"] == 6
    assert tuned["search"][tuned["chosen"]] == max(tuned["search"].values())
    read = store.get("films/smoke/pretraining causal/2000")
    assert read["n_distinct"] <= read["n_tokens"] and read["passes"] > 0 and read["tokens_per_second"] > 0


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
    added = (
        "scratch-seed1/tuned",
        "causal-seed0/probe/2000",
        "counts-both-counts/tuned",
        "scratch-wide/tuned",
    )
    for name in (*unknown, *added, "scratch-wide/tuned"):
        with pytest.raises(ValueError, match=f"condition must be .*got '{name}'"):
            condition(name, SMOKE)
    with pytest.raises(ValueError, match="budget must be one of smoke, study, got 3.0"):
        run("tfidf-words", budget=3.0)
