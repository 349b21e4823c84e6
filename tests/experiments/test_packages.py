"""Docstrings by package: no tested text is read before, nine classes or three, and the same table."""

import dataclasses
import functools
import random

import numpy as np
import pytest

from experiments.transfer import TransferExperiment, listing
from experiments.transfer_conditions import PACKAGES
from experiments.transfer_data import DOCSTRINGS, Holds, PackageSources, same_text
from tinytx.text.corpora import Corpus, Split
from tinytx_course.labs.docstrings import docstrings_corpus, packages_corpus, without_giveaways
from tinytx_course.results import Results

TOPICS = ("axes figure plot legend", "graph node edge path", "frame column row index")
ALL = {DOCSTRINGS: 10**6}


@pytest.fixture(scope="module")
def documents():
    """240 documents of three packages; every third names a package in a sentence of its own."""
    rng = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyz"
    made = []
    for i in range(240):
        words = rng.choices(TOPICS[i % 3].split(), k=6)
        words += ["".join(rng.choices(letters, k=rng.randint(2, 4))) for _ in range(4)]
        rng.shuffle(words)
        sentences = [" ".join(words[:5]).capitalize() + ".", " ".join(words[5:]).capitalize() + "."]
        made.append(" ".join([sentences[0], *["Unlike NumPy it is fast."] * (i % 3 == 0), sentences[1]]))
    return made


@pytest.fixture(scope="module")
def packages(documents):
    """Of each document what is left without names; the topic is the label."""
    texts, labels = tuple(map(without_giveaways, documents)), tuple(i % 3 for i in range(240))
    parts = [slice(0, 150), slice(150, 180), slice(180, 240)]
    return Corpus("packages", *(Split(texts[part], labels[part]) for part in parts))


def experiment(packages, documents, tmp_path, **settings):
    sources = functools.partial(PackageSources, documents=documents)
    smoke = dataclasses.replace(PACKAGES.recipes["smoke"], vocab_size=200)
    task = dataclasses.replace(PACKAGES, sources=sources, recipes={"smoke": smoke}, n_texts=90)
    settings = {"label_counts": (20,), "n_folds": 2, "budget": "smoke", "task": task} | settings
    return TransferExperiment(
        packages,
        store=Results("transfer-packages", tmp_path / "results"),
        data_dir=None,
        work_dir=tmp_path / "build",
        device="cpu",
        **{"report": lambda line: None} | settings,
    )


def test_a_text_is_found_wherever_it_stands_as_a_whole():
    rng = random.Random(1)
    texts = [" ".join(rng.choices("abc", k=rng.randint(1, 12))) for _ in range(400)]
    wanted = [" ".join(rng.choices("abc", k=rng.randint(2, 6))) for _ in range(7)]
    holds = Holds(wanted)
    by_force = [any(f" {one} " in f" {text} " for one in wanted) for text in texts]
    assert [holds(text) for text in texts] == by_force and 0 < sum(by_force) < 400
    assert not any(map(Holds([]), texts))


def test_documents_that_hold_a_tested_text_are_left_out():
    tested = ["Return the mean of an array, quickly."]
    kept = ["Something else altogether.", "Return the mean of an array."]
    leaks = [
        "return the MEAN of an array -- quickly",
        "First this. Return the mean of an array, quickly. Then that.",
        "Return the mean of an array, quickly. See numpy.mean here.",
        "As in NumPy. Return the mean of an array, quickly. So does SciPy.",
    ]
    left = PackageSources(None, tested, [*kept, *leaks]).elsewhere(DOCSTRINGS, ALL)
    assert sorted(left) == sorted(kept)


def test_names_between_the_sentences_of_a_tested_text_hide_no_leak(packages, documents):
    assert sum(a != b for a, b in zip(documents, packages.train.texts, strict=False)) >= 50
    left = PackageSources(None, packages.train.texts, documents).elsewhere(DOCSTRINGS, ALL)
    assert sorted(left) == sorted(documents[150:])


def test_pretraining_on_this_machine_reads_no_tested_text(tmp_path):
    """The definition, by force, on texts that are drawn from the corpus itself."""
    made = TransferExperiment(
        packages_corpus(),
        store=Results("transfer", tmp_path),
        data_dir=None,
        budget="study",
        conditions=("counts:docstrings",),
        report=lambda line: None,
    )
    tested = [text for cell in made.cells for text in cell.fold.tested.texts]
    assert len(set(tested)) == len(tested) == PACKAGES.n_texts
    plan, _ = made._bodies.stages(made.cells[0].condition, made.cells[0].fold)[0]
    read = made._bodies._texts(plan, made.cells[0].fold)
    assert len(docstrings_corpus().train) * 0.7 < len(read)
    forms = " \n ".join(f"{same_text(one)} \n {same_text(without_giveaways(one))}" for one in read)
    forms = f" {forms} "
    assert not any(f" {same_text(one)} " in forms for one in random.Random(0).sample(tested, 50))
    held_out = set(docstrings_corpus().test.texts)
    assert not held_out & set(read)


def test_texts_are_drawn_from_each_class_alike_and_that_is_said(packages, documents, tmp_path):
    said = []
    made = experiment(packages, documents, tmp_path, conditions=("majority",), report=said.append)
    assert said == ["90 of 180 texts of packages are drawn and folded"]
    tested = [label for cell in made.cells for label in cell.fold.tested.labels]
    assert np.bincount(tested).tolist() == [30, 30, 30]
    (row,) = made.run()
    assert np.mean(row.accuracies) == pytest.approx(1 / 3, abs=0.05)


def test_every_condition_runs_on_three_classes(packages, documents, tmp_path):
    made = experiment(packages, documents, tmp_path)
    assert len(listing(made).unfinished) == 3  # once for all folds
    rows = {row.condition: np.mean(row.accuracies) for row in made.run()}
    assert set(rows) == set(PACKAGES.conditions) and listing(made).unfinished == ()
    assert all(rows[name] > 0.8 for name in rows if name.startswith("tfidf"))
    assert all(rows[f"counts:docstrings/{way}"] > 0.8 for way in ("tfidf", "letters"))


def test_other_documents_are_other_cells(packages, documents, tmp_path):
    first, second = (
        experiment(packages, some, tmp_path, conditions=("tfidf-logistic", "counts:docstrings"))
        for some in (documents, documents[:-1])
    )
    assert first.origin(first.cells[0]) == second.origin(second.cells[0])
    assert first.origin(first.cells[-1]) != second.origin(second.cells[-1])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("stars", "condition must be majority, .* or OBJECTIVE:TEXT, objectives counts"),
        ("tfidf+linear-stars", "condition must be majority"),
        ("counts:docstrings+stars", "condition must be majority"),
        ("counts:docstrings/tfidf+stars", "read by one of tuned, brief, probe, tfidf, letters, got"),
        ("masked:novels", "text must be one of docstrings, got 'novels'"),
    ],
)
def test_what_this_task_has_not_is_refused(packages, documents, tmp_path, name, words):
    with pytest.raises(ValueError, match=words):
        experiment(packages, documents, tmp_path, conditions=(name,))
