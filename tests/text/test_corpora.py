"""Splits that share no text, and errors that name the line."""

from pathlib import Path

import pytest

from tinytx.text.corpora import Corpus, Split, list_corpora, load_corpus

DATA_DIR = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_cls_books = pytest.mark.skipif(
    not (DATA_DIR / "cls-books").is_dir(), reason="the folder ../shared/data/cls-books is absent"
)


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_cls_books(data_dir, **changed):
    """A tiny folder in the layout of cls-books, with some files replaced or (None) left out."""
    files = {
        "train.review.txt": "un beau livre\nun livre rat\u00e9\nun livre\n",
        "train.label": "1\n0\n1\n",
        "valid.review.txt": "un beau livre\nun roman\n",
        "valid.label": "1\n0\n",
    }
    files |= {name.replace("_", "."): content for name, content in changed.items()}
    (data_dir / "cls-books").mkdir()
    for name, content in files.items():
        if content is not None:
            write(data_dir / "cls-books" / name, content)
    return data_dir


def test_each_line_of_a_txt_is_a_document_and_stands_in_one_split(tmp_path):
    lines = [f"ligne {i}" for i in range(200)]
    corpus = load_corpus(write(tmp_path / "prose.txt", "\n\n".join(lines) + "\n"))
    assert corpus.name == "prose.txt"
    assert [len(split) for split in corpus.splits.values()] == [180, 10, 10]
    assert sorted(text for split in corpus.splits.values() for text in split.texts) == sorted(lines)
    assert corpus.n_classes is None
    kept_order = [lines.index(text) for text in corpus.train.texts]
    assert kept_order == sorted(kept_order)


def test_a_tsv_is_split_with_equal_shares_of_each_label(tmp_path):
    rows = [f"{i % 10 == 0:d}\ttexte {i}" for i in range(300)]
    corpus = load_corpus(write(tmp_path / "reviews.tsv", "\n".join(rows)))
    counts = {name: (split.labels.count(0), split.labels.count(1)) for name, split in corpus.splits.items()}
    assert counts == {"train": (216, 24), "valid": (27, 3), "test": (27, 3)}
    for split in corpus.splits.values():
        for text, label in zip(split.texts, split.labels, strict=True):
            assert f"{label}\t{text}" in rows
    assert corpus.n_classes == 2


def test_equal_texts_never_stand_in_two_splits(tmp_path):
    lines = [f"ligne {i % 40}" for i in range(400)]
    labelled = [f"{i % 2}\tligne {i % 40 // 3}" for i in range(400)]  # the same text under both labels
    for name, content in (("a.txt", lines), ("a.tsv", labelled)):
        corpus = load_corpus(write(tmp_path / name, "\n".join(content)))
        split_texts = [set(split.texts) for split in corpus.splits.values()]
        assert sum(map(len, split_texts)) == len(set.union(*split_texts))
        assert sum(map(len, corpus.splits.values())) == 400
        assert corpus.repeated() == {"valid": 0, "test": 0}


def test_the_same_file_is_split_the_same_way_each_time(tmp_path):
    path = write(tmp_path / "prose.txt", "\n".join(f"ligne {i}" for i in range(100)))
    assert load_corpus(path) == load_corpus(str(path))


def test_three_lines_are_enough_and_two_are_not(tmp_path):
    corpus = load_corpus(write(tmp_path / "three.txt", "un\ndeux\ntrois\n"))
    assert [len(split) for split in corpus.splits.values()] == [1, 1, 1]
    with pytest.raises(ValueError, match="two.txt must hold at least 3 different texts to be split, got 2$"):
        load_corpus(write(tmp_path / "two.txt", "un\ndeux\nun\nun\n"))
    with pytest.raises(ValueError, match="3 different texts of one label to be split, got 4 over 2 labels"):
        load_corpus(write(tmp_path / "four.tsv", "0\ta\n0\tb\n1\tc\n1\td\n"))


def test_a_rare_label_stays_in_train(tmp_path):
    rows = [f"0\ttexte {i}" for i in range(10)] + ["4\trare"]
    corpus = load_corpus(write(tmp_path / "rare.tsv", "\n".join(rows)))
    assert 4 in corpus.train.labels
    assert corpus.n_classes == 5


def test_line_ends_marks_and_tabs_are_read_as_meant(tmp_path):
    content = b"\xef\xbb\xbf" + "1\tun\tdeux\r\n0\t  trois  \u2028 quatre\r\n\r\n1\tcinq\r\n0\tsix\n".encode()
    corpus = load_corpus(write(tmp_path / "windows.TSV", content + b"1\tsept\n0\thuit"))
    texts = {text for split in corpus.splits.values() for text in split.texts}
    assert texts == {"un\tdeux", "  trois  \u2028 quatre", "cinq", "six", "sept", "huit"}


@pytest.mark.parametrize("name", ["missing.txt", "missing.tsv", "missing.csv", "missing.jsonl"])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(ValueError, match=f"corpus file must exist, got .*{name}"):
        load_corpus(tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"\n\n \n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["empty.txt", "empty.tsv"])
def test_an_empty_file_is_refused(tmp_path, name, content):
    with pytest.raises(ValueError, match=f"{name} must hold at least one line of text, got an empty file"):
        load_corpus(write(tmp_path / name, content))


def test_bytes_that_are_no_utf8_are_named_with_their_line(tmp_path):
    path = write(tmp_path / "latin1.txt", "un\nd\u00e9j\u00e0\n\u00e9t\u00e9\n".encode("latin-1"))
    with pytest.raises(ValueError, match="latin1.txt, line 2: must be UTF-8 text, got the byte 0xe9"):
        load_corpus(path)
    after_mark = write(tmp_path / "marked.txt", b"\xef\xbb\xbfun\ndeux\n\xff")
    with pytest.raises(ValueError, match="line 3: must be UTF-8 text, got the byte 0xff"):
        load_corpus(after_mark)


@pytest.mark.parametrize("label", ["positif", "1.0", "-1", "", "1_0", "\u0661"])
def test_a_label_that_is_no_integer_is_named_with_its_line(tmp_path, label):
    path = write(tmp_path / "bad.tsv", f"1\tbon\n\n{label}\tmauvais\n")
    with pytest.raises(ValueError, match="bad.tsv, line 3: the label must be an integer from 0 up, got"):
        load_corpus(path)


def test_a_missing_tab_and_a_missing_text_are_named_with_their_line(tmp_path):
    with pytest.raises(ValueError, match="bad.tsv, line 2: must be a label, a tab and a text, got no tab"):
        load_corpus(write(tmp_path / "bad.tsv", "1\tbon\n0 mauvais\n"))
    with pytest.raises(ValueError, match="bad.tsv, line 2: must be a label, a tab and a text, got no text"):
        load_corpus(write(tmp_path / "bad.tsv", "1\tbon\n0\t \n"))


@pytest.mark.parametrize("name", ["wrold", "prose.pdf", ""])
def test_an_unknown_name_is_answered_with_the_known_ones(name):
    with pytest.raises(ValueError, match=f"one of world, cls-books, .* or the path of a .txt.*'{name}'"):
        load_corpus(name)


def test_named_corpora_say_whether_they_can_be_read(tmp_path):
    found = {info.name: (info.labelled, info.available) for info in list_corpora(tmp_path)}
    assert found["world"] == (True, True)
    assert found["cls-books"] == found["reader-reviews-fr"] == (True, False)
    assert found["eltec-fra"] == found["tinyshakespeare"] == (False, False)
    assert list_corpora(write_cls_books(tmp_path))[1].available


def test_cls_books_is_read_from_its_folder(tmp_path):
    corpus = load_corpus("cls-books", write_cls_books(tmp_path))
    assert corpus.train == Split(("un beau livre", "un livre rat\u00e9", "un livre"), (1, 0, 1))
    assert corpus.valid == Split(("un beau livre", "un roman"), (1, 0))
    assert corpus.test is None
    assert corpus.repeated() == {"valid": 1}


def test_cls_books_takes_a_test_split_and_published_pieces(tmp_path):
    data_dir = write_cls_books(
        tmp_path, test_label="1\n", test_review_spm="\u2581J ' ai \u2581ai m\u00e9 .\n"
    )
    assert load_corpus("cls-books", data_dir).test == Split(("J'ai aim\u00e9.",), (1,))


def test_cls_books_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYTX_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="nowhere.cls-books: `tinytx data get cls-books` brings it there"):
        load_corpus("cls-books")
    with pytest.raises(ValueError, match="must hold the folder cls-books, looked for .*cls-books"):
        load_corpus("cls-books", tmp_path)
    write_cls_books(tmp_path, valid_label=None)
    with pytest.raises(ValueError, match=r"corpus file must exist, got .*valid\.label"):
        load_corpus("cls-books", tmp_path)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("1\n\n0\n1\n", r"train\.label, line 2: must label the text in the same line, got a text without"),
        ("1\n0\n1\n1\n", r"train\.label, line 4: must label the text in the same line, got a label without"),
        ("1\nbien\n1\n", r"train\.label, line 2: the label must be an integer from 0 up, got 'bien'"),
    ],
)
def test_cls_books_names_the_line_of_a_bad_label(tmp_path, labels, message):
    with pytest.raises(ValueError, match=message):
        load_corpus("cls-books", write_cls_books(tmp_path, train_label=labels))


@needs_cls_books
def test_cls_books_has_the_published_sizes_and_balance():
    corpus = load_corpus("cls-books", DATA_DIR)
    assert len(corpus.train) == 1600
    assert len(corpus.valid) == 400
    for split in corpus.splits.values():
        assert 2 * sum(split.labels) == len(split)
    assert corpus.repeated()["valid"] == 13


@needs_cls_books
def test_pieces_of_cls_books_give_its_plain_text(tmp_path):
    folder = tmp_path / "cls-books"
    folder.mkdir()
    for source in (DATA_DIR / "cls-books").iterdir():
        if source.suffix in (".label", ".spm"):
            (folder / source.name).symlink_to(source)
    assert load_corpus("cls-books", tmp_path) == load_corpus("cls-books", DATA_DIR)


def test_a_split_without_texts_or_with_too_few_labels_is_refused():
    with pytest.raises(ValueError, match="at least one text, got none"):
        Split(())
    with pytest.raises(ValueError, match="got 1 labels, 2 texts"):
        Split(("a", "b"), (1,))


def test_the_world_has_its_sizes_and_is_drawn_once():
    corpus = load_corpus("world")
    assert isinstance(corpus, Corpus)
    assert {name: len(split) for name, split in corpus.splits.items()} == {
        "train": 30_000,
        "valid": 2_000,
        "test": 2_000,
    }
    assert load_corpus("world") is corpus
    for split in corpus.splits.values():
        assert set(split.labels) == {0, 1}
        assert 0.45 < sum(split.labels) / len(split) < 0.55
        assert not any(text != text.strip() or "  " in text for text in split.texts)
