"""Files of one's own: read as they are meant, or refused with the row, the cause and what to do."""

import csv
import gzip
import json
import sys
import time
import unicodedata
import warnings

import pandas
import pytest

from tinytx_run import letters, tables
from tinytx_run.corpora import CorpusWarning, load_corpus

TEXTS = [f"texte {i}" for i in range(12)]
ROWS = [(text, i % 2) for i, text in enumerate(TEXTS)]
WORDS = [(text, ("raté", "bon")[label]) for text, label in ROWS]
COLUMNS = {"text_column": "avis", "label_column": "note"}
HEAD = ("text", "label")
UTF8 = "must be UTF-8 text .*"


def table(rows, head=HEAD, sign=",", end="\n"):
    return end.join(sign.join(map(str, row)) for row in ([head] if head else []) + list(rows))


def tsv(rows, end="\n"):
    """A label, a tab and a text a line."""
    return table([row[::-1] for row in rows], head=(), sign="\t", end=end)


def jsonl(rows):
    return "\n".join(json.dumps({"text": text, "label": label}) for text, label in rows)


@pytest.fixture
def load(tmp_path):
    """Write a file, if a content is given, and read it as a corpus."""

    def load(name, content=None, **options):
        path = tmp_path / name
        if content is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_corpus(path, **options)

    return load


@pytest.fixture
def read(load):
    """Its texts with their labels, by name where they have names, of all splits and in order."""

    def read(*file, **options):
        corpus, rows = load(*file, **options), []
        for split in corpus.splits.values():
            labels = split.labels or (None,) * len(split)
            names = [corpus.label_names[label] if corpus.label_names else label for label in labels]
            rows += zip(split.texts, names, strict=True)
        return sorted(rows, key=lambda row: [*map(str, row)])

    return read


def same(found, rows):
    return found == sorted(rows, key=lambda row: [*map(str, row)])


# --- lines


def test_lines_are_read_as_meant(read):
    unlabelled = [(text, None) for text in TEXTS]
    assert same(read("a.txt", "\r".join(TEXTS) + "\n"), unlabelled)
    # The last three: old Macs, mixed ends, and files that were joined.
    for end in ("\n", "\r\n", "\n\n \n", "\r", "\r\r\n", "\n\ufeff"):
        assert same(read("a.txt", "\ufeff" + end.join(TEXTS)), unlabelled)
        assert same(read("a.TSV", "\ufeff" + tsv(ROWS, end)), ROWS)
    odd = [("un\tdeux", 1), ("  trois  \u2028 quatre", 0)]
    assert same(read("a.tsv", tsv([*odd, *ROWS])), [*odd, *ROWS])
    assert same(read("a.tsv", tsv(WORDS), label_names=["bon", "raté"]), WORDS)
    assert same(read("a.txt", "\n\u200b\n".join(TEXTS)), unlabelled), "what cannot be seen is blank"


@pytest.mark.parametrize("suffix", ["txt", "tsv", "csv", "jsonl", "parquet"])
def test_missing_empty_and_utf16_files_are_named(load, suffix):
    foreign = ("un\ndeux".encode("utf-16"), "text,label".encode("utf-16-le"), b"PK\3\4", b"\x1f\x8b")
    foreign += (b"{\\rtf1\nun\ndeux\ntrois", b"<!DOCTYPE html>\n<p>\nun\ndeux")
    foreign += tuple(
        b"\xef\xbb\xbf\n" + mark for mark in (*foreign[-2:], b"<HTML>", b"<!-- a --><html>", b"<TEI>")
    )
    for content in (None, b"", b"\n\n \n", b"\xef\xbb\xbf", *foreign):
        with pytest.raises(ValueError, match=f"a.{suffix}"):
            load(f"a.{suffix}", content)


@pytest.mark.parametrize(
    ("bad", "got"), [(b"d\xe9j\xe0", "byte 0xe9 as character"), (b"nul \0", "byte 0x00 as")]
)
@pytest.mark.parametrize(
    ("name", "head", "row"),
    [
        ("a.txt", b"", b"%b"),
        ("a.tsv", b"", b"0\t%b"),
        ("a.csv", b"text\n", b'"%b"'),
        ("a.jsonl", b"", b'{"text": "%b"}'),
    ],
)
def test_what_is_no_text_spoils_its_row_and_no_other(load, name, head, row, bad, got):
    good = [row % text.encode() for text in TEXTS]
    content = head + b"\n".join([*good[:7], row % bad, *good[7:]])
    number = content[: content.index(bad)].count(b"\n") + 1
    with pytest.raises(ValueError, match=f"{name}, (line|row) {number}: {UTF8}{got}"):
        load(name, content)
    with pytest.warns(CorpusWarning, match="12 rows are left"):
        assert sum(map(len, load(name, content, skip_bad_rows=True).splits.values())) == 12


def test_enormous_files_and_texts_are_named(load, monkeypatch, tmp_path):
    monkeypatch.setattr(letters, "MAX_CHARS", 100)
    with pytest.raises(ValueError, match="line 2: .*at most 100.*got 120"):
        load("a.txt", "un\n" + "x" * 120)
    with pytest.raises(ValueError, match="line 2: .*lone surrogate as character 4; 2 of 3 rows"):
        load("a.jsonl", jsonl([("un", 1), ("un \ud800", 1), ("mot " * 30, 1)]))
    for module in (letters, tables):
        monkeypatch.setattr(module, "MAX_BYTES", 1_000)
    with pytest.raises(ValueError, match="a.txt must have at most 1,000 bytes, got 1,200: .*head -c"):
        load("a.txt", "un\n" * 400)
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(gzip.compress(b"un\n" * 400))
    with pytest.raises(ValueError, match="a.txt.gz must have at most 1,000 bytes, got more"):
        tables.read_lines(packed)
    pandas.DataFrame({"text": pandas.Categorical(["mot"] * 2_000)}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="a.parquet must be .*more than 1,000 bytes when it is unpacked"):
        load("a.parquet")


# --- tables


@pytest.mark.parametrize(
    ("name", "sign"), [("a.csv", ","), ("a.csv", ";"), ("a.csv", "\t"), ("a.csv", "|"), ("a.tsv", "\t")]
)
def test_a_table_is_read_by_the_names_of_its_columns(read, name, sign):
    rows = [(text, 7, label) for text, label in WORDS]
    content = table(rows, head=("avis", "nr", "note"), sign=sign, end="\r\n")
    assert same(read(name, "\ufeff" + content, **COLUMNS), WORDS)


def test_json_lines_and_parquet_are_read_with_and_without_labels(read, tmp_path):
    truths = jsonl((text, bool(label)) for text, label in ROWS).replace("\n", "\n\n")
    assert same(read("a.jsonl", truths), ROWS)
    bare = "\n".join(json.dumps({"text": text}) for text in TEXTS)
    assert same(read("b.jsonl", bare), [(text, None) for text in TEXTS])
    for labels in (["bon", "raté"] * 6, [1, 0] * 6, [1.0, 0.0] * 6, [True, False] * 6):
        pandas.DataFrame({"text": TEXTS, "label": labels}).to_parquet(tmp_path / "a.parquet")
        names = labels if isinstance(labels[0], str) else map(int, labels)
        assert same(read("a.parquet"), zip(TEXTS, names, strict=True))
    for kind, labels in {"Int64": [2**53 + 1, 2**53, None] * 4, "float32": [0.1, 0.2, None] * 4}.items():
        frame = pandas.DataFrame({"text": TEXTS, "label": pandas.array(labels, dtype=kind)})
        frame.to_parquet(tmp_path / "a.parquet")
        names = [(text, str(label)) for text, label in zip(TEXTS, labels, strict=True) if label]
        assert same(read("a.parquet", skip_bad_rows=True), names)
    with pytest.raises(ValueError, match="b.parquet must be a whole .parquet file"):
        read("b.parquet", b"PAR1")


def test_cells_may_hold_quotes_line_ends_delimiters_and_long_texts(read):
    long = "mot " * 60_000  # beyond the csv module's own limit
    odd = [('"Il dit ""non"",\r\npuis\n\n  oui"', 0), (long, 1)]
    expected = [('Il dit "non", puis oui', 0), (long.strip(), 1), *ROWS]
    assert same(read("a.csv", table([*odd, *ROWS])), expected)
    for end in ("\r", "\n"):
        spaced = "\n".join(["text, label", *(f'"{text}, x", "{label}"' for text, label in ROWS)])
        assert same(read("a.csv", spaced), [(f"{text}, x", label) for text, label in ROWS])
        wide = table([(*row, "") for row in ROWS], head=(*HEAD, "x" * 200_000), sign=";", end=end)
        assert same(read("a.csv", wide), ROWS)


def test_many_spaces_in_a_cell_take_no_time_and_ends_of_lines_become_one_space(read):
    cells = [("a" + " " * 200_000 + "b", 1), ("a \t\r\n \n b  c", 0), *ROWS]
    begin = time.process_time()
    assert same(read("a.jsonl", jsonl(cells)), [cells[0], ("a b  c", 0), *ROWS])
    assert time.process_time() - begin < 20  # two minutes, where each space is tried with all after it


def refused(name, content, message, **options):
    return pytest.param(name, content, message, options, id=message)


@pytest.mark.parametrize(
    ("name", "content", "message", "options"),
    [
        refused("a.tsv", "1\tbon\n0 mauvais", "line 2: .*no tab"),
        refused("a.tsv", "1\tbon\nmauvais\n0\t ", "line 2: .*no tab; 2 of 3 rows"),
        refused("a.tsv", "1\tbon\n0\t \u200b", "line 2: .*no text"),
        *(
            refused("a.tsv", f"1\tbon\n\n{label}\tnon", f"line 3: the label .*'{label}'")
            for label in ("-1", "", "1_0", "\u0661", "0.5")
        ),
        refused("a.tsv", "bon\tun", "from 0 up, or one of the words that label_names gives"),
        refused("a.csv", table([*ROWS, ('"jamais', 1), *ROWS]), "row 14: .*quote never closed"),
        refused("a.csv", '"text,label\nun,1', "row 1: .*quote never closed"),
        refused("a.csv", table([("un", 1), ('"a "b" c"', 1), ('"d"', 0)]), "row 3: .*quote never closed"),
        refused("a.csv", table([(i, f"mot {i}") for i in range(101)]), "at most 100 .*101.*'mot 0'"),
        refused("a.csv", "avis;note\nbon;1", "text_column .*a.csv, which has avis, note; got text"),
        refused("a.csv", b"text,label\nun,Rat\xe9", "row 2: must be UTF-8 text .*got the byte 0xe9"),
        refused("a.csv", b"te\xffxt;note\nbon;1", r"which has te\\udcffxt, note; got text"),
        refused("a.csv", "avis;n\nx;1", "label_column .*has avis, n; got note", **COLUMNS),
        refused("a.csv", "avis;note\nx;", "row 2: must have a label in the column note, got ''", **COLUMNS),
        refused("a.csv", "<body>", "text_column .*a.csv, which has <body>; got text"),
        refused("a.txt", "un\ndeux", "a.txt", **COLUMNS),
        refused("a.csv", table(ROWS), "must be two columns, got label twice", text_column="label"),
        refused("a.csv", table([*ROWS, HEAD, *ROWS]), "row 14: .* the names of the columns again"),
        refused("a.csv", table([*ROWS, ("TEXT ", "Label")]), "row 14: must hold .* the columns again"),
        refused("a.jsonl", '{"text": "un", "text": "deux"}', "line 1: .*each name once"),
        refused("a.jsonl", '[{"text": "un"}, {"text": "deux"}]', "line 1: .*one object a line"),
        refused("a.jsonl", jsonl([("un", [1]), *ROWS]), "line 1: must have a label .* got .1."),
        *(
            refused("a.csv", table([*ROWS, row]), f"row 14: .*{missing[-3:]}.*; skip_bad_rows leaves")
            for missing in ["NULL", "-nan", "inf", "N/A", "#NV", "#N/D", "#Н/Д", "#VALEUR!", "1.#IND"]
            for row in (("un", missing), (missing, 1))
        ),
        *(
            refused("a.jsonl", jsonl([("un", 1), (blank, 0), *ROWS]), "line 2: must have a text")
            for blank in ("\u200b", "\u2060\u00ad", "\u2800", "\u3164", "\ufe0f", "\u034f \u00a0")
        ),
        refused("a.csv", "text,label,text\nun,0,deux", "one column must be named text, got 2"),
        refused("a.csv", table([("un",), ("deux", 1, "x"), (), *ROWS]), "row 2: .*2 cells.*got 1; 2 of 14"),
        refused("a.jsonl", jsonl([("un", 1), ("deux", float("nan"))]), "line 2: must have a label"),
        refused("a.jsonl", jsonl([("un", 1), (0, 1)]), "line 2: must have a text in the column text, got 0"),
        refused("a.csv", table([*ROWS, ("un", "NaN")]), "row 14: .* label in the column label, got 'NaN'"),
    ],
)
def test_what_cannot_be_read_is_named(load, name, content, message, options):
    with pytest.raises(ValueError, match=f"{name}.*{message}|{message}"):
        load(name, content, **options)


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
    *jsonl(ROWS).split("\n"),
]


def test_rows_that_lack_something_are_counted_or_skipped(load):
    content = "\n".join(BROKEN)
    with pytest.raises(ValueError, match="line 2: must have a label .*, got None; 7 of 20 rows"):
        load("a.jsonl", content)
    with pytest.warns(CorpusWarning, match="7 of 20 rows.*13 rows are left"):
        load("a.jsonl", content, skip_bad_rows=True)
    with pytest.warns(CorpusWarning, match="row 2: .* got 1; 3 of 15 rows .*12 rows are left"):
        cells = table([("un",), ("deux", 1, "x"), (), *ROWS[:9], ("", 1), *ROWS[9:]])
        load("a.csv", cells, skip_bad_rows=True)
    with pytest.raises(ValueError, match="row 4: must have a text .* got ''"):
        load("a.csv", table([*ROWS[:2], ("", 1), *ROWS]))


def test_a_package_that_is_missing_is_named(load, monkeypatch):
    for package, name in (("pandas", "a.csv"), ("pyarrow", "a.parquet")):
        monkeypatch.setitem(sys.modules, package, None)  # as Python marks what cannot be imported
        with pytest.raises(ValueError, match=f"{name} needs the package {package}, .*pip install"):
            load(name, table(ROWS))
        monkeypatch.undo()


# --- labels


def test_a_hashtag_is_a_text_and_labels_that_all_mean_missing_are_named(load):
    corpus = load("a.csv", table((f"#Bravo! {i}" if i else "#Bravo!", i % 2) for i in range(40)))
    assert "#Bravo!" in {text for split in corpus.splits.values() for text in split.texts}
    with pytest.warns(CorpusWarning, match="all labels, such as 'N/A', are taken for missing"):
        assert load("a.csv", table((text, "N/A") for text in TEXTS)).train.labels is None
    with pytest.warns(CorpusWarning, match="texts have different labels"):
        load("a.csv", table((text, i) for text in TEXTS for i, text in enumerate((text, text.upper()))))


def test_a_file_of_another_encoding_is_not_said_to_look_like_rows(tmp_path, recwarn):
    (tmp_path / "a.txt").write_bytes("\n".join(f"été {i}" for i in range(40)).encode("cp1252"))
    with pytest.raises(ValueError, match="must be UTF-8 text"):
        load_corpus(tmp_path / "a.txt")
    assert not [one for one in recwarn if "look like" in str(one.message)]


def test_label_names_are_found_in_order_or_given(load, read):
    numbers = table((text, (10, 9.5, 0.5, -1)[i % 4]) for i, text in enumerate(TEXTS))
    assert load("a.csv", numbers).label_names == ("-1", "0.5", "9.5", "10")
    for names in (("01", "02", "2A"), ("1E1", "1E2", "1A3"), ("1.000", "2.000", "500"), ("01", "02", "03")):
        content = table((text, names[i % 3]) for i, text in enumerate(TEXTS))
        assert load("a.csv", content).label_names == names, "a label keeps its spelling"
    corpus = load("a.tsv", tsv(WORDS), label_names=["raté", "bon"])
    assert corpus.label_names == ("raté", "bon") and corpus.train.labels.count(0) == 4
    with pytest.raises(ValueError, match="line 1: .*bon, moyen, got 'raté'; 6 of 12 rows"):
        load("a.tsv", label_names=["bon", "moyen"])
    with pytest.raises(ValueError, match="'bon', 'bon'"):
        load("a.tsv", label_names=["bon", "bon"])
    with pytest.raises(ValueError, match="must be different words, .* missing, got 'bon', 'raté', ''"):
        load("a.tsv", label_names=["bon", "raté", ""])
    with pytest.raises(TypeError, match="label_names must be .* 'bon,raté'"):
        load("a.tsv", label_names="bon,raté")


# --- found in files of others


def test_labels_that_are_the_same_number_or_letters_are_one_class(read):
    numbers = [(text, (label, float(label))[i % 3 == 0]) for i, (text, label) in enumerate(ROWS)]
    for name, write in (("a.csv", table), ("a.tsv", tsv), ("a.jsonl", jsonl)):
        assert same(read(name, write(numbers)), ROWS)
    for form in ("NFC", "NFD"):
        accents = [(text, unicodedata.normalize(form, label)) for text, label in WORDS[1:]]
        accents.append(WORDS[0])
        assert same(read("a.csv", table(accents)), WORDS)
    hidden = [(text, label + "\u200b" * (i % 3)) for i, (text, label) in enumerate(WORDS)]
    assert same(read("a.csv", table(hidden, head=("te\u00adxt", "label\ufeff"))), WORDS)


def three_classes(one, other):
    return table([(text, (one, other, "2,5")[i % 3]) for i, text in enumerate(TEXTS)], sign=";")


ALIKE = [*(("bon", other) for other in ("Bon", "bon.", "b\u200don", "\uff42on"))]
ALIKE += [("50%", "50 %"), ("1", "True"), ("FALSE", "0")]
ONE = [("1", "+1"), ("0.5", ",50"), ("-1", "\u22121"), ("12345678901", "12345678901.0")]
ONE += [("1", "1e+00"), ("0", "-0"), ("bon", "bon\u200f"), ("\u263a", "\u263a\ufe0f")]
QUOTED = table((text, f"'{label}'") for text, label in WORDS)
SWALLOWED = [('"un', 1), *ROWS[:3], ('deux"', 1), *ROWS[3:]]
SUBTITLES = "1\n00:00:01,000 --> 00:00:02,000\nOui\n\n2\n00:00:03,000 --> 00:00:04,000\nNon"
READ_AS = {"latin-1": "été", "cp1252": "c\u2019est", "cp1251": "\u0434\u0430", "mac_roman": "été"}
READ_AS |= {"cp437": "été", "cp850": "été"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *(("a.csv", three_classes(*two), "classes differ in .*, such as .*: they are diff") for two in ALIKE),
        *(("a.csv", three_classes(*two), "labels .* and .* are taken for one class") for two in ONE),
        ("a.csv", table(ROWS, ("text", "Label")), "which has text, Label; got label: .* without labels"),
        *(
            ("a.csv", table([*WORDS, *((f"un {i}", other) for i in range(4))]), "taken for a class: if it")
            for other in ("None", "-", "?", "-1")
        ),
        ("a.tsv", tsv((text, 202401015 * label) for text, label in ROWS), "202,401,014 classes .* 1, 2, 3"),
        ("a.csv", QUOTED, "all classes .*, such as 'bon': they are part of them"),
        ("a.csv", table((text, f'"=""{label}"""') for text, label in ROWS), 'all classes .* ="0": they are'),
        ("a.txt", "\n".join(f"\u201c{text}\u201d" for text in TEXTS), "all texts .*: they are part of them"),
        *(
            ("a.txt", f"un\ndeux\n{word}\n".encode().decode(how), "line 3 has .*: UTF-8 seems to .*Latin-1")
            for how, word in [*READ_AS.items(), ("latin-1", "É"), ("cp1252", "schön")]
        ),
        ("a.csv", table([("l\x92homme", 1), *ROWS]), "line 2 has .*x92': cp1252 seems to have been read as"),
        ("a.txt", "\x1b[31mun\x1b[0m\ndeux\ntrois", "line 1 has .*x1b': a code that is no text"),
        ("a.txt", "日本\n本\n月".encode("iso2022_jp"), "line 1 has .*x1b': a code that is no"),
        ("a.txt", "un\nd\ufffdj\ufffd\ntrois", "line 2 has .*: letters seem to have been lost"),
        ("a.txt", jsonl(ROWS), "its lines look like those of a .jsonl"),
        *(("a.txt", f"[{more}{jsonl(ROWS)}]", "look like those of .* another JSON") for more in " \n"),
        *(("a.txt", table(ROWS, head), "its lines look like rows of a .csv") for head in (HEAD, ())),
        ("a.txt", tsv(ROWS), "its lines look like rows of a .tsv"),
        ("a.txt", "\n".join(f"__label__{label} {text}" for text, label in ROWS), "look like those of fastT"),
        ("a.txt", SUBTITLES, "its lines look like those of .*subtitles"),
        *(
            ("a.csv", table(rows), "row 2: a quoted cell holds lines that look like rows")
            for rows in (SWALLOWED, [('"un,1\ndeux,0"', 1), *ROWS], [('"un', 1), ('deux"', 1), *ROWS])
        ),
        ("a.tsv", tsv((f"17\t{text}", label) for text, label in ROWS), "has 3 columns: all after"),
    ],
)
def test_what_may_not_be_meant_is_named(load, name, content, message):
    with pytest.warns(CorpusWarning, match=f"{name}.*{message}"):
        load(name, content)


def test_texts_that_only_begin_like_a_table_are_not_named(load):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load("b.txt", "text\nun livre, un text, rien\n{il dit}\n\ttrois\n")
        load("b.csv", table([('"Oui,\nmais, donc\n3,5 fois"', 1), *ROWS]))


def test_a_table_of_excel_in_french_is_read(read):
    expected = notes = [(text, ("4,5", "3,0")[label]) for text, label in ROWS]
    resaved = ('"sep=;"\r\n', "sep=;;\r\n", "Sep = ;\r\n")
    for before in ("", "sep=;\r\n", "\ufeffsep=;\r\n", "\r\n", "sep=;\r\n\r\n", *resaved):
        head = ('"avis\r\ndu lecteur"', "note")
        content = before + table(notes, head=head, sign=";", end="\r\n")
        assert same(read("a.csv", content, text_column="avis du lecteur", label_column="note"), expected)
    with pytest.raises(ValueError, match=f"row 3: {UTF8}save the file as UTF-8"):
        read("a.csv", ("sep=;\r\ntext;label\r\n" + table([("raté", 0)], head=(), sign=";")).encode("cp1252"))


def test_a_tsv_that_pandas_wrote_is_read_and_lone_quotes_are_text(read, tmp_path):
    said = [('Il dit "non"', 0), ('"Oui"', 1), *ROWS]
    for cells in (said, [*said, ("un\tdeux\nouï", 1)], [*ROWS, ("un\nb 3", 1)]):
        pandas.DataFrame(cells, columns=HEAD).to_csv(tmp_path / "a.tsv", sep="\t", index=False)
        expected = [(text.replace("\n", " "), label) for text, label in cells]
        assert same(read("a.tsv", text_column="text"), expected)
    for cells in (said, [*said, ('un\tdeux "trois"', 1)], [*ROWS, ("un\nb 3", 1)]):
        frame = pandas.DataFrame([row[::-1] for row in cells])
        frame.to_csv(tmp_path / "b.tsv", sep="\t", index=False, header=False)
        assert same(read("b.tsv"), [(text.replace("\n", " "), label) for text, label in cells])
    frame = pandas.DataFrame(ROWS, columns=HEAD)  # numbers without quotes, as R writes a table
    frame.to_csv(tmp_path / "a.tsv", sep="\t", index=False, quoting=csv.QUOTE_NONNUMERIC)
    assert same(read("a.tsv", text_column="text"), ROWS)
    lone = [('"Oui', 0), ('"Non"', 1), ('Non"', 1), ('"Quoi ?""Rien."', 0), *ROWS]
    assert same(read("a.tsv", table(lone, sign="\t"), text_column="text"), lone)
    assert same(read("a.tsv", tsv(lone)), lone)
    with pytest.raises(ValueError, match="line 2: "):  # lacks its tab
        read("a.tsv", '1\t"Oui\n0 non\n1\tSi"\n' + tsv(ROWS))


@pytest.mark.parametrize("test", ["text\nun\ndeux", "text,label\nun,\ndeux,"])
def test_a_file_without_labels_next_to_labelled_ones_is_left_out(load, tmp_path, test):
    (tmp_path / "test.csv").write_text(test)
    (tmp_path / "train.csv").write_text(table(ROWS))
    with pytest.warns(CorpusWarning, match="test.csv has no labels: left out"):
        assert [*map(len, load(".", label_column="label").splits.values())] == [8, 2, 2]


def test_lines_of_a_tsv_without_labels_next_to_labelled_ones_are_left_out(load, tmp_path):
    (tmp_path / "train.tsv").write_text(tsv(ROWS))
    (tmp_path / "Test.TSV").write_text("un\ndeux")
    (tmp_path / "more.csv").write_text(table(ROWS))
    with pytest.warns(CorpusWarning) as warned:
        assert len(load(".").splits) == 3
    said = " ".join(str(warning.message) for warning in warned)
    assert "Test.TSV has no labels: left out" in said and "more.csv are no split: not read" in said


@pytest.mark.parametrize(("name", "write"), [("a.csv", table), ("a.tsv", tsv), ("a.jsonl", jsonl)])
def test_accents_of_ones_own_files_are_composed(read, load, name, write):
    rows = [(f"\u00e9t\u00e9 {i}", i % 2) for i in range(12)]
    assert same(read(name, unicodedata.normalize("NFD", write(rows))), rows)
    texts = [text for text, _ in rows]
    splits = load("a.txt", unicodedata.normalize("NFD", "\n".join(texts))).splits.values()
    assert {text for split in splits for text in split.texts} == {*texts}


def test_a_tsv_whose_first_line_names_columns_is_a_table(read, tmp_path):
    for head in (True, False):
        pandas.DataFrame(WORDS, columns=HEAD).to_csv(tmp_path / "a.tsv", sep="\t", index=head)
        assert same(read("a.tsv"), WORDS)
        assert {label for _, label in read("a.tsv", labels=False)} == {None}


def test_texts_are_read_without_labels_that_are_missing_or_too_many_or_the_texts(load, read):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for content in (table([(text, f"{text} !") for text in TEXTS] * 10), table([("un", ""), *ROWS])):
            assert load("a.csv", content, labels=False).train.labels is None
        file = "a.csv", table(ROWS, ("label", "number"))
        assert same(read(*file, text_column="label", labels=False), [(text, None) for text in TEXTS])
    with pytest.warns(CorpusWarning, match="the first column, such as 'raté', is taken for labels: not read"):
        assert load("a.tsv", tsv(WORDS), labels=False).n_classes is None


def test_what_is_tested_with_labels_is_not_learned_without_them(load):
    rows = [(f"texte {i}", i % 2) for i in range(300)]
    test = load("a.csv", table(rows)).test.texts
    assert len(test) > 20 and not {*test} & {*load("a.csv", labels=False).train.texts}
