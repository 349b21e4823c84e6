"""Which package does a docstring come from: balanced, without its name, split by module."""

import re
from collections import Counter, defaultdict

import pytest

from tinytx.text.corpora import list_corpora, load_corpus
from tinytx_course.labs import docstrings
from tinytx_course.labs.docstrings import GIVEAWAYS, Document, Gathered, label_packages, without_giveaways


def made(**sizes):
    """So many documents of each package, in modules of 1 to 7."""
    documents = []
    for package, n in sizes.items():
        module, left = 0, 0
        for i in range(n):
            if not left:
                module, left = module + 1, 1 + (3 * module) % 7
            left -= 1
            text = f"Return the {package}th part of the number {i} that is given to the function."
            documents.append(Document(package, f"module{module}", text))
    return Gathered(tuple(documents), ())


def test_classes_are_equally_large_in_every_split_and_small_packages_are_none():
    corpus = label_packages(made(one=400, two=300, few=50), ["two", "few", "one"], min_documents=300)
    assert corpus.label_names == ("two", "one") and corpus.n_classes == 2
    for split in corpus.splits.values():
        counts = Counter(split.labels)
        assert counts[0] == counts[1]
        for text, label in zip(split.texts, split.labels, strict=True):
            assert f"the {corpus.label_names[label]}th part" in text
    sizes = {name: len(split) for name, split in corpus.splits.items()}
    assert 50 <= sizes["test"] <= 60 and 50 <= sizes["valid"] <= 60 and sizes["train"] >= 470
    with pytest.raises(ValueError, match="at least 2 packages of 300 documents, got 1"):
        label_packages(made(one=400, few=50), ["one", "few"], min_documents=300)


def test_a_module_stands_in_one_split_whatever_else_is_there():
    alone, together = made(one=400), made(other=500, one=400)
    places = [dict(docstrings._placed(found.documents)) for found in (alone, together)]
    assert all(places[1][document] == split for document, split in places[0].items())
    splits_of = defaultdict(set)
    for document, split in places[1].items():
        splits_of[document.package, document.module].add(split)
    assert all(len(splits) == 1 for splits in splits_of.values())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("It is fast. NumPy is not. So it goes.", "It is fast. So it goes."),
        ("It is fast, e.g. for 0.5 of them.", "It is fast, e.g. for 0.5 of them."),
        ("It is fast. See linalg.norm for that.", "It is fast."),
        ("It is fast. Unlike scikit-learn's it is small.", "It is fast."),
        ("It is fast. It lies in io/common.py there.", "It is fast."),
        ("Use np for that.", ""),
        ("A torchlight of a pandasaurus is no package.", "A torchlight of a pandasaurus is no package."),
    ],
)
def test_sentences_that_name_a_package_or_a_path_go(text, left):
    assert without_giveaways(text) == left


def test_both_corpora_are_listed_and_ready():
    rows = {info.name: info for info in list_corpora()}
    assert not rows["docstrings"].labelled and rows["docstrings"].available
    assert rows["docstrings-packages"].labelled and rows["docstrings-packages"].available


@pytest.mark.slow
def test_the_text_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYTX_DATA", str(tmp_path))
    for function in (docstrings._gathered, docstrings.docstrings_corpus, docstrings.packages_corpus):
        function.cache_clear()
    prose, packages = load_corpus("docstrings"), load_corpus("docstrings-packages")
    assert len(list((tmp_path / "docstrings").iterdir())) == 1
    texts = [text for split in prose.splits.values() for text in split.texts]
    assert len(texts) == len(set(texts)) and len(" ".join(texts).split()) > 300_000
    shares = {name: len(split) / len(texts) for name, split in prose.splits.items()}
    assert shares["test"] == pytest.approx(0.1, abs=0.01) == pytest.approx(shares["valid"], abs=0.01)
    assert prose.repeated() == packages.repeated() == {"valid": 0, "test": 0}
    assert packages.label_names[:2] == ("python", "numpy")
    held_out = set(re.findall(r"\w+", " ".join(packages.test.texts).lower()))
    assert not held_out & (GIVEAWAYS - {"scikit-learn"})
    learned = set(prose.train.texts)  # texts of the one's test are new to who learned from the other's train
    assert not learned & set(packages.test.texts)
