"""What `data get` left, read by name."""

from __future__ import annotations

import json

import pytest

from tinytx.text.corpora import load_corpus


def put(data_dir, name, **files):
    (data_dir / name).mkdir(parents=True, exist_ok=True)
    for stem, content in files.items():
        (data_dir / name / stem.replace("__", ".")).write_bytes(content.encode())
    return data_dir


def test_novels_are_read_a_paragraph_a_text(tmp_path):
    put(tmp_path, "eltec-fra", corpus__train__txt="Un.\nDeux.\n", corpus__valid__txt="Trois.\n")
    corpus = load_corpus("eltec-fra", tmp_path)
    assert (corpus.train.texts, corpus.valid.texts, corpus.test) == (("Un.", "Deux."), ("Trois.",), None)
    assert corpus.n_classes is None and "ELTeC" in corpus.source and corpus.licence == "public domain"


def test_shakespeare_is_read_a_speech_a_text_and_split_by_characters(tmp_path):
    speeches = [f"Fool:\nline {i:02d},\nand more." for i in range(100)]
    put(tmp_path, "tinyshakespeare", input__txt="\n\n".join(speeches) + "\n")
    corpus = load_corpus("tinyshakespeare", tmp_path)
    assert corpus.train.texts == tuple(speech.replace("\n", " ") for speech in speeches[:90])
    assert corpus.valid.texts == tuple(speech.replace("\n", " ") for speech in speeches[90:])


def test_the_usual_split_of_shakespeare(shared_data):
    corpus = load_corpus("tinyshakespeare", shared_data)
    content = (shared_data / "tinyshakespeare" / "input.txt").read_text(encoding="utf-8")
    border = content.index("\n\n", int(0.9 * len(content)))
    joined = [" ".join(speech.split()) for speech in content[border:].strip().split("\n\n")]
    assert corpus.valid.texts == tuple(joined)
    letters = "".join("".join(split.texts) for split in corpus.splits.values()).replace(" ", "")
    assert letters == "".join(content.split())


def review(text, label):
    return json.dumps({"reader_review": text, "rating": 3.0, "label": label}, ensure_ascii=False)


def test_reader_reviews_have_three_labels_and_equal_ones_stay_together(tmp_path):
    rows = [review(f"avis  {i % 60}\u00a0!", i % 60 % 3 - 1) for i in range(90)] + [review("", 1)]
    sites = {"babelio_reviews__jsonl": "\n".join(rows), "critiques_libres_reviews__jsonl": review("lu", 0)}
    corpus = load_corpus("reader-reviews-fr", put(tmp_path, "reader-reviews-fr", **sites))
    assert corpus.n_classes == 3 and corpus.repeated() == {"valid": 0, "test": 0}
    assert sum(map(len, corpus.splits.values())) == 91
    for split in corpus.splits.values():
        for text, label in zip(split.texts, split.labels, strict=True):
            assert label == (1 if text == "lu" else int(text.split()[1]) % 3)


@pytest.mark.filterwarnings("ignore:.*different labels")
def test_all_reader_reviews_are_read(shared_data):
    corpus = load_corpus("reader-reviews-fr", shared_data)
    folder = shared_data / "reader-reviews-fr"
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_text("utf-8").split("\n")]
    rows = [json.loads(line) for line in lines]
    filled = [row for row in rows if row["reader_review"].strip()]
    assert sum(map(len, corpus.splits.values())) == len(filled)
    for label in range(3):
        n = sum(split.labels.count(label) for split in corpus.splits.values())
        assert n == sum(row["label"] == label - 1 for row in filled)


@pytest.mark.parametrize("line", ["{", '{"label": 1}', '{"reader_review": "x", "label": "bon"}', "[1]"])
def test_a_bad_line_of_reader_reviews_is_named(tmp_path, line):
    put(tmp_path, "reader-reviews-fr", babelio_reviews__jsonl=f"{review('x', 1)}\n{line}\n")
    with pytest.raises(ValueError, match="babelio_reviews.jsonl, line 2: must be a JSON object with"):
        load_corpus("reader-reviews-fr", tmp_path)


def test_a_corpus_is_found_where_get_leaves_it(tmp_path, monkeypatch):
    put(tmp_path, "eltec-fra", corpus__train__txt="Un.\n", corpus__valid__txt="Deux.\n")
    monkeypatch.setenv("TINYTX_DATA", str(tmp_path))
    assert load_corpus("eltec-fra").train.texts == ("Un.",)


def test_without_a_variable_the_cache_folder_of_the_user_is_looked_in(tmp_path, monkeypatch):
    monkeypatch.delenv("TINYTX_DATA", raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / project)
    with pytest.raises(ValueError, match="tinytx.data.cls-books: `tinytx data get cls-books` brings it"):
        load_corpus("cls-books")
