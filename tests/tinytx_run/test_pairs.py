"""Parallel corpora: splits that share no sentence, plain typography, errors that name the line."""

import random
import unicodedata

import pytest

from tinytx_run.corpora import CorpusWarning
from tinytx_run.pairs import list_pair_corpora, load_pairs


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_no_sentence_of_the_world_is_in_two_splits():
    splits = load_pairs("world").splits
    for side in ("sources", "targets"):
        seen = [set(getattr(pairs, side)) for pairs in splits.values()]
        assert not seen[0] & seen[1] and not seen[0] & seen[2] and not seen[1] & seen[2]
    assert len(splits["train"]) > 20_000 and len(splits["valid"]) > 900 < len(splits["test"])


def test_pairs_of_a_file_that_share_a_side_stay_together(tmp_path):
    # Chains: source i has two targets, target 3 i is shared by two sources.
    rows = [f"a {i // 2}\tb {(i + 1) // 2 if i % 6 else i}" for i in range(300)]
    corpus = load_pairs(write(tmp_path / "mine.tsv", rows))
    assert corpus.name == "mine.tsv"
    everything = [pair for s in corpus.splits.values() for pair in zip(s.sources, s.targets, strict=True)]
    assert sorted(everything) == sorted(tuple(row.split("\t")) for row in rows)
    for side in ("sources", "targets"):
        train, valid, test = (set(getattr(pairs, side)) for pairs in corpus.splits.values())
        assert not train & valid and not train & test and not valid & test


def test_pairs_that_share_a_sentence_are_held_out_only_where_they_are_few(tmp_path):
    rows = [f"a {i}\tb {i}" for i in range(37)] + [f"source {i}\tOui" for i in range(900)]
    rows += [f"a {i}\tb {i}" for i in range(37, 99)]
    sizes = [len(pairs) for pairs in load_pairs(write(tmp_path / "mine.tsv", rows)).splits.values()]
    assert sizes[0] > 900 and min(sizes) >= 1 and sum(sizes) == 999
    small = load_pairs(write(tmp_path / "three.tsv", [*rows[37:137], "x\ty", "z\tw"])).splits
    assert [len(pairs) for pairs in small.values()] == [100, 1, 1]


def test_pairs_may_be_added_and_shuffled_without_a_learned_one_being_held_out(tmp_path):
    rows = [f"a {i // 2}\tb {i}" for i in range(200)]
    random.Random(0).shuffle(rows)
    learned, met = set(), set()
    for n in (20, 100, 199, 200):
        splits = load_pairs(write(tmp_path / "mine.tsv", rows[:n][::-1])).splits
        held_out = {*splits["valid"].targets, *splits["test"].targets}
        assert not held_out & learned
        learned, met = {*splits["train"].targets}, met | held_out
    assert len(held_out) > 10 and len(met) < 30
    like = [row.upper().replace("\t", " \t") + " !" for row in rows]
    both = load_pairs(write(tmp_path / "mine.tsv", [*rows, *like])).splits
    assert [len(both[name]) for name in both] == [2 * len(splits[name]) for name in both]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["one\tun", "two deux"], "line 2: must be a source, a tab and a target, got no tab"),
        (["one\tun", "", "two\t "], "line 3: must be a source, a tab and a target, got an empty side"),
        (["one\tun", "one\tune"], "at least 3 groups of pairs .* got fewer among 2 pairs"),
        (["one\tun", "two\t\u200b"], "line 2: must be .* got an empty side"),  # nothing that can be seen
        ([f"1.{i}\tein\tone" for i in range(9)], "column 1 must hold sentences, got numbers such as 1.8"),
        ([f"0.{i}1234567890123\tein\tone" for i in range(9)], "column 1 must hold sentences"),
        ([f"{i}.\t#N/A" for i in range(9)], "line 1: .* got '#N/A'"),
        ([f"eng\tone {i}\tfra" for i in range(30)], "column 1 .* got 1 different ones in 30"),
        ([f"user-{i}\tthis is one {i}\tun" for i in "abcdefghi"], "column 1 .* got names such as user-i"),
        ([f"{i}0 %\tein {i}\tone" for i in range(9)], "column 1 must hold sentences"),
        ([f"n\u00b0{i}\tein {i}\tone" for i in range(9)], "column 1 .* got numbers such as n\u00b08"),
        ([f"ein {i}\teng-{i}" for i in range(9)], "column 2 must hold sentences, got numbers such as eng-8"),
        (["id\ten", *(f"mot {i}\t{i}" for i in range(9))], "column 2 .* got numbers such as 8"),
    ],
)
def test_bad_lines_are_named(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        load_pairs(write(tmp_path / "mine.tsv", rows))


def test_further_columns_and_a_header_are_not_read_and_named(tmp_path):
    rows = [f"word {i}\tmot {i}\tCC-BY" for i in range(9)]
    with pytest.warns(CorpusWarning, match="further columns of 9 lines, such as 'CC-BY', are not read"):
        assert load_pairs(write(tmp_path / "mine.tsv", rows)).train.targets[0].startswith("mot")
    of_others = ("ru\ten", "Ingl\u00e9s\tFranc\u00e9s", "eng_Latn\tfra_Latn", "texte source\ttexte cible")
    of_others += ("sent_en\tsent_fr", "col1\tcol2", "Icelandic\tIrish")
    for header in ("en\tfr", "English\tFrench", "text_en\ttext_fr", "en-GB\tFR 1", *of_others):
        with pytest.warns(CorpusWarning, match="the first line names columns, .*: it is no pair"):
            pairs = load_pairs(write(tmp_path / "mine.tsv", [header, *(row[:-6] for row in rows)]))
        assert sum(map(len, pairs.splits.values())) == 9


def test_accents_are_composed_and_sources_that_are_their_own_translation_are_named(tmp_path):
    rows = [unicodedata.normalize("NFD", f"word {i}\t\u00e9t\u00e9 {i}") for i in range(9)]
    assert load_pairs(write(tmp_path / "mine.tsv", rows)).train.targets[0].startswith("\u00e9t\u00e9")
    rows = [f"word {i}\tword {i + (i == 3)}" for i in range(9)]
    with pytest.warns(CorpusWarning, match="mine.tsv: 8 of 9 sources are their own translation"):
        load_pairs(write(tmp_path / "mine.tsv", rows))


def test_quotes_that_pandas_wrote_are_read_as_meant(tmp_path):
    rows = [f'"He said ""{i}"""\t"Il dit ""{i}"""' for i in range(9)]
    assert load_pairs(write(tmp_path / "mine.tsv", rows)).test.sources[0].startswith('He said "')
    rows[0] = '"Lone\tSeule'
    assert load_pairs(write(tmp_path / "mine.tsv", rows)).test.sources[0].startswith('"He said ""')


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYTX_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="tatoeba-en-fr: `tinytx data get tatoeba-en-fr` brings it there"):
        load_pairs("tatoeba-en-fr")
    with pytest.raises(ValueError, match="data_dir must hold the folder multi30k-en-fr with its files"):
        load_pairs("multi30k-en-fr", tmp_path)
    with pytest.raises(ValueError, match="one of world, tatoeba-en-fr, multi30k-en-fr or the path of a .tsv"):
        load_pairs("wmt14")
    (tmp_path / "multi30k-en-fr").mkdir()
    assert not any(info.available for info in list_pair_corpora(tmp_path)[1:]), "the folder is empty"
    write(tmp_path / "multi30k-en-fr" / "val.en", ["one"])
    with pytest.raises(ValueError, match="train.en"):
        load_pairs("multi30k-en-fr", tmp_path)
    assert [info.available for info in list_pair_corpora(tmp_path)] == [True, False, True]


def test_captions_are_read_line_by_line_and_a_line_without_translation_is_named(tmp_path):
    folder = tmp_path / "multi30k-en-fr"
    for stem in ("train", "val", "test_2016_flickr"):
        write(folder / f"{stem}.en", [f"{stem} one", f"{stem} two"])
        write(folder / f"{stem}.fr", [f"{stem} un", f"{stem} deux"])
    corpus = load_pairs("multi30k-en-fr", tmp_path)
    assert corpus.test.sources == ("test_2016_flickr one", "test_2016_flickr two")
    assert corpus.valid.targets == ("val un", "val deux")
    write(folder / "val.fr", ["val un", ""])
    with pytest.raises(ValueError, match="val.fr, line 2: .*val.en"):
        load_pairs("multi30k-en-fr", tmp_path)


def test_the_sentences_of_the_lab_are_not_learned(tmp_path):
    rows = [f"number {i}.\tnumero {i}." for i in range(5)]
    held = [
        "I'm a student.\tJe suis étudiant.",
        "I didn't mean to hurt you!\tJe ne voulais pas te blesser.",
        "I am a pupil.\tje suis étudiant !",
    ]
    write(tmp_path / "tatoeba-en-fr" / "pairs.train.tsv", [*rows, *held])
    write(tmp_path / "tatoeba-en-fr" / "pairs.valid.tsv", ["red\trouge"])
    corpus = load_pairs("tatoeba-en-fr", tmp_path)
    assert len(corpus.train) == 5 and corpus.test is None
