"""Datasets of the library `datasets`; without it, words instead of a trace."""

import importlib.util
import sys

import pytest

from tinytx.text.corpora import load_corpus
from tinytx.text.reading import CorpusWarning

here = importlib.util.find_spec("datasets") is not None
needs_datasets = pytest.mark.skipif(not here, reason="the library datasets, of the extra test, is absent")


def test_without_the_library_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)  # as Python marks what cannot be imported
    with pytest.raises(ValueError, match="library datasets, which is not installed: pip install datasets"):
        load_corpus("hf:imdb")


@pytest.fixture
def saved(tmp_path):
    """Writes a dataset with named classes, as the library saves it."""
    import datasets

    features = datasets.Features(
        {"review": datasets.Value("string"), "mood": datasets.ClassLabel(names=["sad", "glad"])}
    )

    def save(**splits):
        parts = {
            name: datasets.Dataset.from_dict({"review": texts, "mood": labels}, features=features)
            for name, (texts, labels) in splits.items()
        }
        datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "saved"))
        return tmp_path / "saved"

    return save


COLUMNS = {"text_column": "review", "label_column": "mood"}
TRAIN = ([f"texte {i}" for i in range(30)], [i % 2 for i in range(30)])


@needs_datasets
@pytest.mark.parametrize("form", ["{}", "hf:{}"])
def test_a_saved_folder_gives_its_splits_and_the_names_of_its_classes(saved, form):
    folder = saved(train=TRAIN, validation=(["un", "deux"], [1, 0]), test=(["trois", "quatre"], [0, 1]))
    corpus = load_corpus(form.format(folder), **COLUMNS)
    assert (corpus.name, corpus.label_names, corpus.n_classes) == ("hf:saved", ("sad", "glad"), 2)
    assert corpus.train.texts == tuple(TRAIN[0]) and corpus.train.labels == tuple(TRAIN[1])
    assert corpus.valid.texts == ("un", "deux") and corpus.valid.labels == (1, 0)
    assert corpus.test.labels == (0, 1)


@needs_datasets
def test_a_split_whose_labels_are_kept_secret_is_left_out_with_a_warning(saved):
    folder = saved(train=TRAIN, test=(["trois", "quatre"], [-1, -1]))
    with pytest.warns(CorpusWarning, match="labels of test are not told: left out"):
        corpus = load_corpus(folder, **COLUMNS)
    assert {name: len(split) for name, split in corpus.splits.items()} == {"train": 22, "valid": 4, "test": 4}


@needs_datasets
def test_rows_without_a_text_are_counted_by_their_numbers(saved):
    folder = saved(train=(["un", None, "deux", "  ", "trois"], [0, 1, 0, 1, 1]))
    message = r"hf:saved \(train\), row 2: must have a text in the column review, got none; 2 of 5 rows"
    with pytest.raises(ValueError, match=message):
        load_corpus(folder, **COLUMNS)
    with pytest.raises(ValueError, match="which has review, mood; got text"):
        load_corpus(folder)


@needs_datasets
def test_a_name_that_the_library_cannot_read_is_refused_in_its_words(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="must be a dataset that can be had, got: "):
        load_corpus(f"hf:{tmp_path / 'empty'}")
