"""Corpora by name, folders and datasets: splits that share no text, errors that name the row."""

import gzip
import json
import random
import sys
import unicodedata

import datasets
import numpy
import pytest

from tinytx_run.corpora import Corpus, CorpusWarning, Split, label_subset, list_corpora, load_corpus
from tinytx_run.evaluate import exact_nats
from tinytx_run.recipes import corpus_kind
from tinytx_run.splits import split_groups, split_texts

ROWS = [(f"texte {i}", "bon" if i % 2 else "raté") for i in range(40)]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def all_rows(corpus):
    names = corpus.label_names
    return {
        (text, names[label] if names else label)
        for split in corpus.splits.values()
        for text, label in zip(split.texts, split.labels, strict=True)
    }


def sizes(corpus):
    return {name: len(split) for name, split in corpus.splits.items()}


# --- splits


def test_classes_are_counted_over_all_splits_unless_they_have_names():
    splits = [Split(("a",), (label,)) for label in (0, 1, 2)]
    assert [Corpus("x", *order).n_classes for order in (splits, splits[::-1])] == [3, 3]
    assert Corpus("x", *splits, label_names=("no", "so-so", "yes", "never met")).n_classes == 4
    with pytest.raises(ValueError, match="below 2, the number of names in x, got 2"):
        Corpus("x", *splits, label_names=("no", "yes"))


def test_labels_that_are_none_are_refused():
    numbers = Split(numpy.array(["un", "deux"]), numpy.array([1.0, 0.0]))
    assert numbers == Split(("un", "deux"), (1, 0)) and type(numbers.labels[0]) is int
    with pytest.raises(TypeError, match="texts must be str, got nan"):
        Split(("un", float("nan")))
    for label in (-100, 0.9, None, float("nan")):
        with pytest.raises(ValueError, match=f"labels must be integers from 0 up, got {label}"):
            Split(("un", "deux"), (0, label))
    with pytest.raises(ValueError, match="all splits must have labels, as train has, got none in valid"):
        _ = Corpus("mine", Split(("un",), (0,)), Split(("deux",))).n_classes


def test_each_line_of_a_txt_is_a_document_in_one_split(tmp_path):
    lines = [f"ligne {i}" for i in range(200)]
    corpus = load_corpus(write(tmp_path / "prose.txt", "\n\n".join(lines) + "\n"))
    assert corpus.name == "prose.txt" and corpus.n_classes is None
    assert sizes(corpus) == {"train": 177, "valid": 10, "test": 13}
    assert sorted(text for split in corpus.splits.values() for text in split.texts) == sorted(lines)
    order = [lines.index(text) for text in corpus.train.texts]
    assert order == sorted(order) and load_corpus(str(tmp_path / "prose.txt")) == corpus


def test_a_tsv_is_split_in_about_equal_shares_of_each_label_and_a_rare_one_is_train(tmp_path):
    rows = [f"{i % 10 == 0:d}\ttexte {i}" for i in range(300)] + ["2\trare"]
    with pytest.warns(CorpusWarning, match="1 classes have no text in (valid|test), such as 2"):
        corpus = load_corpus(write(tmp_path / "reviews.tsv", "\n".join(rows)))
    counts = [[split.labels.count(label) for label in range(3)] for split in corpus.splits.values()]
    assert counts == [[212, 24, 1], [31, 3, 0], [27, 3, 0]]
    assert {f"{label}\t{text}" for text, label in all_rows(corpus)} == set(rows) and corpus.n_classes == 3


def split_of(corpus):
    return {text: name for name, split in corpus.splits.items() for text in split.texts}


@pytest.mark.parametrize("suffix", ["txt", "tsv"])
def test_a_file_may_grow_shrink_and_be_shuffled(tmp_path, suffix):
    rows = [f"{i % 2}\ttexte {i}" if suffix == "tsv" else f"texte {i}" for i in range(200)]
    whole, name = split_of(load_corpus(write(tmp_path / f"a.{suffix}", "\n".join(rows)))), f"b.{suffix}"
    for n in (60, 199, 200):
        some = random.Random(n).sample(rows, n)
        part = split_of(load_corpus(write(tmp_path / name, "\n".join(some))))
        assert len(part) == n and part.items() <= whole.items()


@pytest.mark.filterwarnings("ignore:.*no text")
def test_of_few_texts_none_that_was_learned_is_held_out_when_more_are_added():
    texts = [f"texte {i}" for i in range(30)]
    for seed in range(20):
        order, learned = random.Random(seed).sample(texts, 30), set()
        for n in range(4, 31):
            splits = split_texts("a.txt", Split(tuple(order[:n])), share=0.05)
            assert all(map(len, splits.values())) and sum(map(len, splits.values())) == n
            assert not learned & {*splits["valid"].texts, *splits["test"].texts}
            learned = {*splits["train"].texts}


@pytest.mark.parametrize("other", ["{} ", " {}", "{}.", "{} !", "{}\u00a0...", "{}\u200b", "{}\u2026 \u00bb"])
def test_texts_that_are_nearly_equal_are_in_one_split(tmp_path, other):
    texts = [f"l'\u00e9t\u00e9  {i}" for i in range(100)]
    like = [other.format(text).upper().replace("  ", " ") for text in texts]
    decomposed = [unicodedata.normalize("NFD", text) for text in like]
    corpus = load_corpus(write(tmp_path / "a.txt", "\n".join([*texts, *decomposed])))
    assert sum(sizes(corpus).values()) == 200 and {*split_of(corpus)} == {*texts, *like}
    assert all(split_of(corpus)[a] == split_of(corpus)[b] for a, b in zip(texts, like, strict=True))


@pytest.mark.parametrize("names", [("a", "a"), (1, 0), ("null", "b")])
def test_names_of_classes_are_different_words(names):
    split = Split(("un", "deux"), (0, 1))
    with pytest.raises(ValueError, match=r"label_names must be different words.* got "):
        Corpus("x", split, split, label_names=names)


def test_equal_texts_are_in_one_split_whatever_their_labels(tmp_path):
    lines = [f"ligne {i % 40}" for i in range(400)]
    labelled = [f"{i % 2}\tligne {i % 40 // 3}" for i in range(400)]
    write(tmp_path / "a.txt", "\n".join(lines))
    write(tmp_path / "a.tsv", "\n".join(labelled))
    with pytest.warns(CorpusWarning, match="13 texts have different labels, such as 'ligne"):
        corpus = load_corpus(tmp_path / "a.tsv")
    for one in (corpus, load_corpus(tmp_path / "a.txt")):
        texts = [set(split.texts) for split in one.splits.values()]
        assert sum(map(len, texts)) == len(set.union(*texts)) and sum(sizes(one).values()) == 400


def test_three_different_texts_are_enough_and_two_are_not(tmp_path):
    assert [*sizes(load_corpus(write(tmp_path / "three.txt", "un\ndeux\ntrois\n"))).values()] == [1, 1, 1]
    with pytest.raises(ValueError, match="two.txt must hold at least 3 different texts to be split, got 2"):
        load_corpus(write(tmp_path / "two.txt", "un\ndeux\nun\nun\n"))
    with pytest.raises(ValueError, match="four.tsv .* 3 different texts of one label .*4 of 2 .* 'a', 'b'"):
        load_corpus(write(tmp_path / "four.tsv", "0\ta\n0\tb\n1\tc\n1\td\n"))
    with pytest.raises(ValueError, match="1 labels, 2 texts"):
        Split(("a", "b"), (1,))


def test_a_label_subset_is_balanced_and_drawn_by_its_seed():
    split = Split(tuple(f"texte {i}" for i in range(90)), tuple(int(i % 9 == 0) for i in range(90)))
    subset = label_subset(split, 16, seed=3)
    assert sorted(subset.labels) == [0] * 8 + [1] * 8
    labels = dict(zip(split.texts, split.labels, strict=True))
    assert [labels[text] for text in subset.texts] == [*subset.labels]
    assert subset == label_subset(split, 16, seed=3) != label_subset(split, 16, seed=4)
    with pytest.raises(ValueError, match="from 1 to 90.* 91"):
        label_subset(split, 91, seed=0)


# --- folders


def test_a_folder_has_its_own_splits_and_the_others_come_out_of_train(tmp_path):
    write(tmp_path / "train.csv", "text,label\n" + "\n".join(",".join(row) for row in ROWS))
    write(tmp_path / "test.jsonl", '{"text": "fin", "label": "bon"}\n{"text": "adieu", "label": "raté"}')
    corpus = load_corpus(tmp_path)
    assert sizes(corpus) == {"train": 37, "valid": 3, "test": 2} and corpus.test.labels == (0, 1)
    write(tmp_path / "test.jsonl", '{"text": "fin", "label": "bon"}\n{"text": "adieu", "label": "moyen"}')
    with pytest.raises(ValueError, match="test.jsonl, line 2: .*bon, raté, got 'moyen'"):
        load_corpus(tmp_path)
    write(tmp_path / "dev.tsv", "bon\tun\n")
    write(tmp_path / "validation.txt", "un")
    with pytest.raises(ValueError, match="validation.txt and dev.tsv"):
        load_corpus(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty must hold .*train.txt"):
        load_corpus(tmp_path / "empty")


def test_repeats_between_splits_and_classes_without_texts_are_named(tmp_path):
    write(tmp_path / "train.tsv", "\n".join(f"{2 * (i % 2)}\ttexte {i}" for i in range(20)))
    write(tmp_path / "valid.tsv", "0\ttexte 4\n2\tun\n0\tdeux\n")
    write(tmp_path / "test.tsv", "2\ttexte 7\n0\tDeux !\n2\ttexte 3\n")
    with pytest.warns(CorpusWarning) as warned:
        load_corpus(tmp_path)
    messages = "\n".join(str(warning.message) for warning in warned)
    for said in (
        "2 of 3 texts of test are in train too, word for word",
        "text 1 of test, text 8 of train: 'texte 7'",
        "1 of 3 texts of valid are in train",
        "1 of 3 texts of test are in valid too, but for case",
        "1 classes have no text in train, such as 1",
    ):
        assert said in messages


def test_a_folder_with_tables_is_read_whatever_else_it_holds_and_is_never_the_world(tmp_path):
    rows = [f"{i % 2}\tle livre {i}" for i in range(40)]
    write(tmp_path / "world" / "train.tsv", "\n".join(rows))
    write(tmp_path / "world" / "dataset_infos.json", "{}")
    corpus = load_corpus(tmp_path / "world")
    assert corpus.name == "world/" and sum(sizes(corpus).values()) == 40
    assert corpus_kind(corpus) == "reviews" and exact_nats(corpus, corpus.train.texts) is None


def test_a_split_that_is_packed_and_a_folder_with_the_name_of_a_corpus_are_named(tmp_path, monkeypatch):
    rows = "\n".join(f"{i % 2}\tle livre {i}" for i in range(40))
    write(tmp_path / "novels" / "train.tsv", rows)
    write(tmp_path / "novels" / "test.tsv.gz", rows)
    with pytest.warns(CorpusWarning, match="novels: test.tsv.gz are no split: not read"):
        assert load_corpus(tmp_path / "novels").name == "novels/"
    monkeypatch.chdir(tmp_path)
    with pytest.warns(CorpusWarning, match="novels is the corpus of that name: .* write ./novels"):
        assert "Verne" in load_corpus("novels").label_names


# --- corpora by name


def test_the_splits_of_the_world_and_its_further_sets_are_drawn_once_and_apart():
    world = load_corpus("world")
    assert [*sizes(world).values()] == [30_000, 2_000, 2_000] and load_corpus("world") is world
    for split in world.splits.values():
        assert 0.45 < sum(split.labels) / len(split) < 0.55
        assert not any(text != text.strip() or "  " in text for text in split.texts)
    parts = (world.train.texts, world.valid.texts, world.test.texts, world.draw(1), world.draw(2))
    drawn = [set(texts[:2000]) for texts in parts]
    assert all(len(a & b) < 200 for i, a in enumerate(drawn) for b in drawn[:i])  # short reviews repeat


@pytest.mark.parametrize("name", ["wrold", "prose.pdf", ""])
def test_an_unknown_name_is_answered_with_the_known_ones(name):
    with pytest.raises(ValueError, match=f"world, novels, cls-books, .*'{name}'"):
        load_corpus(name)


CLS_BOOKS = {
    "train.review.txt": "un beau livre\nun livre raté\nun livre\n",
    "train.label": "1\n0\n1\n",
    "valid.review.txt": "un beau film\nun roman\n",
    "valid.label": "1\n0\n",
}


@pytest.mark.filterwarnings("ignore:.*no text in test")
def test_cls_books_takes_a_test_split(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYTX_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="cls-books: `tinytx data get cls-books`"):
        load_corpus("cls-books")
    files = {**CLS_BOOKS, "test.label": "1\n", "test.review.txt": "J'ai aimé.\n"}
    for name, content in files.items():
        write(tmp_path / "cls-books" / name, content)
    corpus = load_corpus("cls-books")
    assert corpus.test == Split(("J'ai aimé.",), (1,)) and corpus.class_names == ("negative", "positive")
    assert {info.name for info in list_corpora() if info.available} == {"world", "novels", "cls-books"}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("1\n\n0\n1\n", "line 2: .*train.review.txt"),
        ("1\n0\n1\n1\n", "review.txt, line 4: "),
        ("1\nbien\n1\n", "line 2: .*'bien'"),
        (None, "must exist"),
    ],
)
def test_cls_books_names_the_line_of_a_bad_label(tmp_path, labels, message):
    for name, content in {**CLS_BOOKS, "train.label": labels}.items():
        if content is not None:
            write(tmp_path / "cls-books" / name, content)
    with pytest.raises(ValueError, match=rf"train\.label.*{message}|{message}.*train\.label"):
        load_corpus("cls-books", tmp_path)


def test_cls_books_at_hand_has_the_published_sizes_and_its_repeats_are_told(shared_data, tmp_path):
    with pytest.warns(CorpusWarning, match="13 of 400 texts of valid are in train"):
        corpus = load_corpus("cls-books", shared_data)
    assert sizes(corpus) == {"train": 1600, "valid": 400}
    assert all(2 * sum(split.labels) == len(split) for split in corpus.splits.values())


def test_novels_are_read_a_paragraph_a_text(tmp_path):
    write(tmp_path / "eltec-fra" / "corpus.train.txt", "Un.\nDeux.\n\nTrois.\n")
    write(tmp_path / "eltec-fra" / "corpus.valid.txt", "Quatre.\n")
    corpus = load_corpus("eltec-fra", tmp_path)
    assert (corpus.train.texts, corpus.valid.texts) == (("Un.", "Deux.", "Trois."), ("Quatre.",))
    assert corpus.n_classes is None


def test_shakespeare_is_read_a_speech_a_text_and_split_by_characters(shared_data):
    corpus = load_corpus("tinyshakespeare", shared_data)
    content = (shared_data / "tinyshakespeare" / "input.txt").read_text(encoding="utf-8")
    border = content.index("\n\n", int(0.9 * len(content)))
    speeches = [" ".join(speech.split()) for speech in content[border:].strip().split("\n\n")]
    assert corpus.valid.texts == tuple(speeches)
    letters = "".join("".join(split.texts) for split in corpus.splits.values()).replace(" ", "")
    assert letters == "".join(content.split())


@pytest.mark.filterwarnings("ignore:.*different labels")
def test_all_reader_reviews_are_read(shared_data):
    corpus, folder = load_corpus("reader-reviews-fr", shared_data), shared_data / "reader-reviews-fr"
    rows = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.open(encoding="utf-8")]
    labels = [row["label"] for row in rows if row["reader_review"].strip()]
    for label in range(3):
        n = sum(split.labels.count(label) for split in corpus.splits.values())
        assert n == labels.count(label - 1) > 0
    texts = [set(split.texts) for split in corpus.splits.values()]
    assert sum(map(len, texts)) == len(set.union(*texts))


def test_novels_are_at_hand_and_no_novel_is_in_two_splits():
    corpus = load_corpus("novels")
    assert corpus.label_names == ("Flaubert", "Gautier", "Gréville", "Malot", "Sand", "Verne")
    assert not set(corpus.train.groups) & set(corpus.valid.groups) and corpus.test is None
    for split in corpus.splits.values():
        authors = dict(zip(split.groups, split.labels, strict=True))
        assert set(authors.values()) == set(range(6)), "each author has a novel in each split"
        assert [authors[novel] for novel in split.groups] == list(split.labels)
    texts = [*corpus.train.texts, *corpus.valid.texts]
    assert 500_000 < sum(len(text.encode()) for text in texts) < 1_000_000 and len(set(texts)) == len(texts)


def films(n_films, label=1):
    """JSON lines of three reviews of each film."""
    rows = [(film, i) for film in range(n_films) for i in range(3)]
    texts = [
        {"text": f"review {i} of film {film}", "movie": f"tt{film}", "label": label * film % 2}
        for film, i in rows
    ]
    return "".join(json.dumps(row) + "\n" for row in texts)


def write_films(folder, **files):
    for name, lines in files.items():
        write(folder / "imdb" / f"{name}.jsonl.gz", gzip.compress(lines.encode()))


def test_film_reviews_are_split_by_film_and_read_once(tmp_path):
    again = '{"text": "review 0 of film 0", "movie": "tt7", "label": 1}'
    write_films(tmp_path, train=films(20) + again, unlabelled=films(30, label=0))
    corpus, unlabelled = (load_corpus(name, tmp_path) for name in ("imdb", "imdb-unlabelled"))
    assert len(corpus.train) + len(corpus.valid) == 60 and len(corpus.valid) == 9
    pairs = zip(corpus.train.texts, corpus.train.groups, strict=True)
    assert all(text.endswith(f"film {film[2:]}") for text, film in pairs)
    assert unlabelled.train.labels is None and len(set(unlabelled.valid.groups)) == 2
    for one in (corpus, unlabelled):
        assert not set(one.train.groups) & set(one.valid.groups)
        assert one.train.take([4, 0]).groups == (one.train.groups[4], one.train.groups[0])


def test_a_film_stays_where_it_is_when_others_come_and_nearly_equal_reviews_stay_together():
    films = [f"tt{i}" for i in range(60)]
    of = {}
    for some in (films, films[::-1], films[7:50]):
        texts = tuple(f"about {film}" for film in some)
        for name, split in split_groups(Split(texts, groups=tuple(some)), share=0.1).items():
            assert all(of.setdefault(film, name) == name for film in split.groups)
    assert 0 < [*of.values()].count("valid") < 15
    held_out = next(film for film in films if of[film] == "valid")
    again = Split(tuple("The same. " if film in (held_out, "tt0") else film for film in films), groups=films)
    assert of["tt0"] == "train" and held_out in split_groups(again, share=0.1)["train"].groups


def test_a_line_that_lacks_something_and_a_cut_file_are_named(tmp_path):
    for line in ('{"text": "a", "label": 1}', '{"text": "a", "movie": "x", "label": "1"}', "{", "[1]"):
        write_films(tmp_path, train=films(3) + line)
        with pytest.raises(ValueError, match=r"train.jsonl.gz, line 10: .*text, movie, label, got"):
            load_corpus("imdb", tmp_path)
    path = tmp_path / "imdb" / "train.jsonl.gz"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ValueError, match="whole gzip file"):
        load_corpus("imdb", tmp_path)
    with pytest.raises(ValueError, match="1 groups, 2 texts"):
        Split(("a", "b"), groups=("x",))


# --- the library datasets

COLUMNS = {"text_column": "review", "label_column": "mood"}
TRAIN = ([f"texte {i}" for i in range(30)], [i % 2 for i in range(30)])


@pytest.fixture
def saved(tmp_path):
    """Write a dataset with named classes, as the library saves it."""
    kinds = {"review": datasets.Value("string"), "mood": datasets.ClassLabel(names=["sad", "glad"])}

    def save(**splits):
        parts = {
            name: datasets.Dataset.from_dict(
                {"review": texts, "mood": labels}, features=datasets.Features(kinds)
            )
            for name, (texts, labels) in splits.items()
        }
        datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "saved"))
        return tmp_path / "saved"

    return save


@pytest.mark.parametrize("form", ["{}", "hf:{}"])
def test_a_saved_dataset_gives_its_splits_and_the_names_of_its_classes(saved, form):
    folder = saved(train=TRAIN, validation=(["un", "deux"], [1, 0]), test=(["trois", "quatre"], [0, 1]))
    corpus = load_corpus(form.format(folder), **COLUMNS)
    assert (corpus.name, corpus.label_names, corpus.n_classes) == ("hf:saved", ("sad", "glad"), 2)
    assert corpus.train == Split(tuple(TRAIN[0]), tuple(TRAIN[1]))
    assert corpus.valid == Split(("un", "deux"), (1, 0)) and corpus.test.labels == (0, 1)


def test_labels_without_names_are_integers_and_a_split_without_labels_is_left_out(saved, tmp_path):
    plain = datasets.Dataset.from_dict({"text": TRAIN[0], "label": TRAIN[1]})
    plain.save_to_disk(str(tmp_path / "plain"))
    corpus = load_corpus(tmp_path / "plain")
    assert all_rows(corpus) == set(zip(*TRAIN, strict=True)) and corpus.label_names == ()
    folder = saved(train=TRAIN, test=(["trois", "quatre"], [-1, -1]))
    with pytest.warns(CorpusWarning, match=r"hf:saved \(test\) has no labels: left out"):
        assert [*sizes(load_corpus(folder, **COLUMNS)).values()] == [25, 3, 2]


def test_rows_that_lack_something_and_datasets_that_cannot_be_loaded_are_named(saved, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    folder = saved(train=(["un", None, "deux", "  ", "trois"], [0, 1, 0, 1, None]))
    for name, columns, message in (
        (folder, COLUMNS, r"hf:saved \(train\), row 2: .*column review, got None; 3 of 5 rows"),
        (folder, {}, "which has review, mood; got text"),
        (f"hf:{tmp_path / 'empty'}", {}, "must be a dataset that can be loaded"),
        ("hf:", {}, "must name a dataset"),
    ):
        with pytest.raises(ValueError, match=message):
            load_corpus(name, **columns)
    folder = saved(train=(["un", "deux", "trois"], [0, None, 1]))
    with pytest.raises(ValueError, match=r"row 2: .*label in the column mood, got None"):
        load_corpus(folder, **COLUMNS)
    monkeypatch.setitem(sys.modules, "datasets", None)  # as Python marks what cannot be imported
    with pytest.raises(ValueError, match="hf:imdb .*pip install datasets"):
        load_corpus("hf:imdb")
