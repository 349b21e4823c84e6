"""A reader's own texts: what is wrong is counted, named by its line, and nothing is lost in silence."""

import json
import tracemalloc
import warnings

import pytest

from tinytx.text import reading
from tinytx.text.corpora import load_corpus
from tinytx.text.reading import CorpusWarning, read_lines

ROWS = [(f"texte {i}", "bon" if i % 2 else "raté") for i in range(40)]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def all_rows(corpus):
    names = corpus.label_names
    return {
        (text, names[label] if names else label)
        for split in corpus.splits.values()
        for text, label in zip(split.texts, split.labels, strict=True)
    }


@pytest.mark.parametrize(
    ("name", "sign"), [("a.csv", ","), ("a.csv", ";"), ("a.csv", "\t"), ("a.csv", "|"), ("a.tsv", "\t")]
)
def test_a_table_is_read_by_the_names_of_its_columns(tmp_path, name, sign):
    lines = [sign.join(("nr", "avis", "note"))]
    lines += [sign.join((str(i), *row)) for i, row in enumerate(ROWS)]
    path = write(tmp_path / name, b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    corpus = load_corpus(path, text_column="avis", label_column="note")
    assert all_rows(corpus) == set(ROWS)
    assert corpus.label_names == ("bon", "raté") and corpus.n_classes == 2
    assert {name: len(split) for name, split in corpus.splits.items()} == {"train": 32, "valid": 4, "test": 4}


def test_json_lines_are_read_and_have_labels_where_there_is_such_a_column(tmp_path):
    rows = [{"text": text, "label": label == "bon"} for text, label in ROWS]
    path = write(tmp_path / "a.jsonl", "\n\n".join(map(json.dumps, rows)))
    assert all_rows(load_corpus(path)) == {(text, int(label == "bon")) for text, label in ROWS}
    bare = write(tmp_path / "b.jsonl", "\n".join(json.dumps({"text": text}) for text, _ in ROWS))
    assert load_corpus(bare).train.labels is None


def test_quoted_cells_may_hold_line_ends_quotes_and_delimiters(tmp_path):
    odd = '"Il dit ""non"",\r\npuis\n\n  oui"'
    lines = ["text,label", f"{odd},0", *(f"texte {i},{i % 2}" for i in range(8))]
    corpus = load_corpus(write(tmp_path / "a.csv", "\n".join(lines)))
    assert ('Il dit "non", puis oui', 0) in all_rows(corpus)
    with pytest.raises(
        ValueError, match=r"a.csv, line 5: the label must be an integer|label must be a number"
    ):
        load_corpus(write(tmp_path / "a.csv", "\n".join([*lines[:2], "x,y", *lines[3:]])))


def test_in_a_tsv_a_quote_is_a_sign_like_others(tmp_path):
    lines = ['text\tlabel\n"Oui\t0', *(f"texte {i}\t{i % 2}" for i in range(8))]
    corpus = load_corpus(write(tmp_path / "a.tsv", "\n".join(lines)), text_column="text")
    assert ('"Oui', 0) in all_rows(corpus)


def test_a_quote_that_is_never_closed_is_named_by_the_line_where_it_opens(tmp_path):
    lines = ["text,label", *(f"texte {i},0" for i in range(5)), '"jamais,1', *["texte,1"] * 20]
    with pytest.raises(ValueError, match="a.csv, line 7: must be a row of a table.*never closed"):
        load_corpus(write(tmp_path / "a.csv", "\n".join(lines)))


def test_a_column_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    path = write(tmp_path / "a.csv", "avis;note\nbon;1\n")
    with pytest.raises(
        ValueError, match="text_column must be a column of .*a.csv, which has avis, note; got t"
    ):
        load_corpus(path)
    with pytest.raises(
        ValueError, match="label_column must be a column of .*which has avis, note; got stars"
    ):
        load_corpus(path, text_column="avis", label_column="stars")
    with pytest.raises(ValueError, match="is a .txt: it must be read without columns"):
        load_corpus(write(tmp_path / "a.txt", "un\ndeux\ntrois"), text_column="avis")
    with pytest.raises(ValueError, match="may be told of texts of one's own, got the corpus world"):
        load_corpus("world", text_column="avis")


BROKEN = [
    '{"text": "un", "label": 1}',
    '{"text": "deux"}',
    '{"label": 0}',
    "",
    '{"text": "trois", "label": ',
    '{"text": ["quatre"], "label": 0}',
    '["cinq", 0]',
    '{"text": "six", "label": null}',
    '{"text": " ", "label": 1}',
    *(f'{{"text": "bon {i}", "label": {i % 2}}}' for i in range(12)),
]


def test_rows_that_lack_something_are_counted_and_the_first_is_named(tmp_path):
    path = write(tmp_path / "a.jsonl", "\n".join(BROKEN))
    with pytest.raises(ValueError) as refused:
        load_corpus(path)
    message = str(refused.value)
    assert message.startswith(
        f"{path}, line 2: must have a label in the column label, got none; 7 of 20 rows"
    )
    assert "must have a label in the column label (2 rows, from line 2)" in message
    assert "must have a text in the column text (3 rows, from line 3)" in message
    assert "must be a JSON object (2 rows, from line 5)" in message
    with pytest.warns(CorpusWarning, match="7 of 20 rows cannot be used.*passed over, 13 rows are left"):
        corpus = load_corpus(path, skip_bad_rows=True)
    assert sum(map(len, corpus.splits.values())) == 13


def test_rows_with_too_few_or_too_many_cells_are_counted(tmp_path):
    lines = ["text,label", "un", "deux,1,x", *(f"bon {i},{i % 2}" for i in range(12))]
    path = write(tmp_path / "a.csv", "\n".join(lines))
    with pytest.raises(ValueError, match="line 2: must have 2 cells, as the first line, got 1; 2 of 14 rows"):
        load_corpus(path)
    with pytest.warns(CorpusWarning, match="12 rows are left"):
        assert len(all_rows(load_corpus(path, skip_bad_rows=True))) == 12


def test_labels_of_another_kind_are_refused_and_too_many_words_are_no_labels(tmp_path):
    lines = ["text,label", *(f"texte {i},{i % 2}" for i in range(9)), "faux,positif", "faux,négatif"]
    with pytest.raises(
        ValueError, match="line 11: the label must be a number, as most are, got 'positif'; 2 of"
    ):
        load_corpus(write(tmp_path / "a.csv", "\n".join(lines)))
    words = ["text,label", *(f"texte {i},mot {i}" for i in range(101))]
    with pytest.raises(ValueError, match="at most 100 different labels, got 101, such as 'mot 0', 'mot 1'"):
        load_corpus(write(tmp_path / "b.csv", "\n".join(words)))


def test_numbers_are_named_by_value_where_they_are_no_integers(tmp_path):
    lines = ["text,label", *(f"texte {i},{(10, 9.5, 0.5, -1)[i % 4]}" for i in range(40))]
    assert load_corpus(write(tmp_path / "a.csv", "\n".join(lines))).label_names == ("-1", "0.5", "9.5", "10")


def test_known_labels_are_numbered_in_their_order_and_others_refused(tmp_path):
    path = write(tmp_path / "a.tsv", "\n".join(f"{label}\t{text}" for text, label in ROWS))
    corpus = load_corpus(path, label_names=["raté", "bon"])
    assert all_rows(corpus) == set(ROWS) and corpus.label_names == ("raté", "bon")
    with pytest.raises(
        ValueError, match="line 1: the label must be one of bon, moyen, got 'raté'; 20 of 40 rows"
    ):
        load_corpus(path, label_names=["bon", "moyen"])
    with pytest.raises(ValueError, match="label_names must be different"):
        load_corpus(path, label_names=["bon", "bon"])


def test_a_folder_keeps_the_splits_that_it_has_and_deals_out_the_rest(tmp_path):
    write(tmp_path / "train.csv", "text,label\n" + "\n".join(",".join(row) for row in ROWS))
    write(tmp_path / "test.jsonl", '{"text": "fin", "label": "bon"}\n{"text": "adieu", "label": "raté"}')
    corpus = load_corpus(tmp_path)
    assert {name: len(split) for name, split in corpus.splits.items()} == {"train": 36, "valid": 4, "test": 2}
    assert corpus.test.labels == (0, 1)
    write(tmp_path / "dev.tsv", "bon\tun\nraté\tdeux\n")
    with pytest.raises(ValueError, match="dev.tsv, line 1|text_column"):
        load_corpus(tmp_path, text_column="text")
    write(tmp_path / "validation.txt", "un")
    with pytest.raises(ValueError, match="must hold one file for valid, got validation.txt and dev.tsv"):
        load_corpus(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="must hold train.txt, train.tsv, train.csv or train.jsonl"):
        load_corpus(tmp_path / "empty")


@pytest.mark.parametrize(("label", "rule"), [("moyen", "one of bon, raté"), ("1", "one of bon, raté")])
def test_a_label_of_test_that_train_does_not_know_is_refused(tmp_path, label, rule):
    write(tmp_path / "train.csv", "text,label\n" + "\n".join(",".join(row) for row in ROWS))
    write(tmp_path / "test.csv", f"text,label\nun,bon\ndeux,{label}\n")
    with pytest.raises(ValueError, match=f"test.csv, line 3: the label must be {rule}, got '{label}'"):
        load_corpus(tmp_path)


def test_an_integer_of_test_that_train_does_not_know_is_refused(tmp_path):
    write(tmp_path / "train.tsv", "\n".join(f"{i % 2}\ttexte {i}" for i in range(20)))
    write(tmp_path / "test.tsv", "0\tun\n2\tdeux\n")
    with pytest.raises(
        ValueError, match="test.tsv, line 2: the label must be one that occurs in train, got '2'"
    ):
        load_corpus(tmp_path)


def test_mixed_encodings_are_told_from_another_one(tmp_path):
    utf8, latin = "c'était\n".encode(), "déjà vu\n".encode("latin-1")
    with pytest.raises(ValueError) as mixed:
        load_corpus(write(tmp_path / "a.txt", utf8 * 3 + latin + utf8 + latin))
    assert "line 4: must be UTF-8 text, got the byte 0xe9 as byte 2 of the line; 2 of 6 rows" in str(
        mixed.value
    )
    assert "4 other lines with accents are UTF-8: the file mixes encodings" in str(mixed.value)
    with pytest.raises(ValueError, match="no line with accents is UTF-8: save the file as UTF-8"):
        load_corpus(write(tmp_path / "b.txt", b"un\ndeux\n" + latin))
    with pytest.raises(ValueError, match="got the mark of UTF-16"):
        load_corpus(write(tmp_path / "c.txt", "un\ndeux\ntrois".encode("utf-16")))


@pytest.mark.parametrize("bad", [b"d\xe9j\xe0", b"nul \0 part"])
@pytest.mark.parametrize(
    ("name", "head", "row"),
    [("a.txt", b"", b"%b"), ("a.tsv", b"", b"0\t%b"), ("a.csv", b"text,label\n", b'"%b\n",1')],
)
def test_a_line_that_is_no_text_spoils_its_row_and_no_other(tmp_path, name, head, row, bad):
    good = [row % f"texte {i}".encode() for i in range(30)]
    content = head + b"\n".join([*good[:20], row % bad, *good[20:]])
    path = write(tmp_path / name, content)
    number = content[: content.index(bad)].count(b"\n") + 1
    with pytest.raises(ValueError, match=f"{name}, line {number}: must be (UTF-8 )?text, got"):
        load_corpus(path)
    with pytest.warns(CorpusWarning, match="passed over"):
        corpus = load_corpus(path, skip_bad_rows=True)
    assert sum(map(len, corpus.splits.values())) == 30


def test_one_enormous_line_is_divided_at_blanks_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LONGEST_LINE", 100)
    words = " ".join(f"mot{i}" for i in range(200))
    with pytest.warns(
        CorpusWarning, match=f"line 2: holds {len(words) + 1:,} bytes and is divided at blanks in"
    ):
        lines = read_lines(write(tmp_path / "a.txt", f"court\n{words}\nfin"), divide=True)
    assert [number for number, _ in lines] == [1] + [2] * (len(lines) - 2) + [3]
    assert " ".join(line for _, line in lines) == f"court {words} fin"
    assert max(len(line) for _, line in lines) <= 100
    with pytest.raises(
        ValueError, match="line 1: must hold a blank in every 100 bytes, got none after byte 0"
    ):
        read_lines(write(tmp_path / "b.txt", "x" * 300 + "\nfin"), divide=True)
    with pytest.raises(ValueError, match=f"line 2: must hold at most 100 bytes, got {len(words) + 1:,}$"):
        read_lines(tmp_path / "a.txt")


def test_a_line_of_exactly_the_longest_length_is_kept_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LONGEST_LINE", 10)
    for content in ("0123456789\nabc", "0123456789"):
        assert read_lines(write(tmp_path / "a.txt", content))[0] == (1, "0123456789")


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_an_enormous_line_never_fills_the_memory(tmp_path, name):
    head = "text,label\nun,0\n" if name == "a.csv" else ""
    path = write(tmp_path / name, head + "x" * 30_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="must hold at most 1,000,000 bytes, got 30,000,000"):
            load_corpus(path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_the_limit_of_the_csv_module_is_put_back(tmp_path):
    import csv

    before = csv.field_size_limit()
    long = "mot " * 60_000  # beyond the module's own limit
    rows = "\n".join(f"texte {i},{i % 2}" for i in range(9))
    corpus = load_corpus(write(tmp_path / "a.csv", f"text,label\n{long},1\n{rows}"))
    assert max(map(len, (text for text, _ in all_rows(corpus)))) == len(long) - 1
    assert csv.field_size_limit() == before and before < reading.LONGEST_CELL


def test_texts_of_test_that_stand_in_train_are_counted_named_and_can_be_dropped(tmp_path):
    write(tmp_path / "train.tsv", "\n".join(f"{i % 2}\ttexte {i}" for i in range(20)))
    write(tmp_path / "valid.tsv", "0\ttexte 4\n1\tun\n0\tdeux\n")
    write(tmp_path / "test.tsv", "1\ttexte 7\n0\tdeux\n1\ttexte 3\n")
    with pytest.warns(CorpusWarning) as told:
        corpus = load_corpus(tmp_path)
    messages = [str(warning.message) for warning in told]
    assert any("2 of 3 texts of test stand in train too" in message for message in messages)
    assert any(
        "the first is text 1 of test and text 8 of train: 'texte 7'" in message for message in messages
    )
    assert any("1 of 3 texts of valid stand in train" in message for message in messages)
    assert any("1 of 3 texts of test stand in valid" in message for message in messages)
    assert corpus.repeated() == {"valid": 1, "test": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clean = load_corpus(tmp_path, drop_repeats=True)
    assert clean.test == corpus.test
    assert clean.valid.texts == ("texte 4", "un") and len(clean.train) == 17
    assert clean.repeated() == {"valid": 0, "test": 0}


def test_a_class_without_texts_and_texts_under_two_labels_are_told(tmp_path):
    rows = [f"{2 * (i % 2)}\ttexte {i}" for i in range(20)] + ["2\ttexte 0"]
    with pytest.warns(CorpusWarning) as told:
        load_corpus(write(tmp_path / "a.tsv", "\n".join(rows)))
    messages = [str(warning.message) for warning in told]
    assert any("1 of 3 classes have no text in train" in message and ": 1" in message for message in messages)
    assert any(
        "1 texts stand under different labels; the first, under 0 and 2: 'texte 0'" in m for m in messages
    )
    assert len(messages) == 2
