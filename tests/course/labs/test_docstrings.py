"""Corpora of docstrings: what is prose, what is read and never run, the cache, balanced labels."""

import re
from collections import Counter, defaultdict

import pytest

from tinytx.text.corpora import CorpusWarning
from tinytx_course.labs import docstrings
from tinytx_course.labs.docstrings import (
    GIVEAWAYS,
    Document,
    Source,
    docstrings_corpus,
    gather,
    gathered,
    installed,
    is_prose,
    label_packages,
    packages_corpus,
    paragraphs,
    without_giveaways,
)

NUMPY_STYLE = """Return the mean of the values.

Empty bins count as zero,
and so do bins of nothing.

Parameters
----------
values : array
    The values that the mean is taken of.

    These may be of any type at all.

Notes
-----
The sum is stored in double precision.

.. note::

    It is not the median of them.

.. math::

    m = \\sum_i x_i / n is what the function returns

See Also
--------
median : The value in the middle of all of them.
"""
GOOGLE_STYLE = """Send the words over the wire.

Args:
    words: the words that are to be sent to the other side.

        They may be many of them or a few.
    wire (Wire): what they are sent over.

Returns:
    True if they all arrive on the other side.

Note:
    The wire is left open at the end.

Raises: WireError if the wire is cut.

The other side has to listen.
"""
SPHINX_STYLE = """Walk over all of the nodes.

:param graph: the graph of which the nodes are a part,
    and the edges too, if there are any.
:returns: a list of the nodes in the order of the walk.

.. deprecated:: 1.2
   Use the other walk, which is faster than this one.

A :class:`Walk` is not what is returned.
"""


@pytest.mark.parametrize(
    ("docstring", "prose"),
    [
        (
            NUMPY_STYLE,
            "Return the mean of the values.|Empty bins count as zero, and so do bins of nothing.|"
            "The sum is stored in double precision.|It is not the median of them.",
        ),
        (
            GOOGLE_STYLE,
            "Send the words over the wire.|The wire is left open at the end.|The other side has to listen.",
        ),
        (SPHINX_STYLE, "Walk over all of the nodes.|A Walk is not what is returned."),
        (
            "It can be used so::\n\n    the = code.of(an, example)\n\nAnd like this\n>>> the + code\n"
            "and what it prints of it\n\nAnd that is all of it.",
            "It can be used so:|And that is all of it.",
        ),
        (
            "There are two of them:\n\n- the first of them is\n  the one that counts\n- the second is as good"
            "\n\n=====  =====\nthe a  and b\n=====  =====\nis of   the x\n=====  =====\n\n"
            "| the a | of b |\n| in c  | is d |",
            "There are two of them:|the first of them is the one that counts|the second is as good",
        ),
    ],
)
def test_parameters_results_formulas_code_and_tables_are_left_out_in_every_style(docstring, prose):
    assert paragraphs(docstring) == prose.split("|")


@pytest.mark.parametrize(
    ("markup", "plain"),
    [
        ("Use :func:`~numpy.linalg.norm` for that.", "Use norm for that."),
        ("Use :ref:`the guide <guide>` for that.", "Use the guide for that."),
        ("Use `the guide <there>`_ for that.", "Use the guide for that."),
        ("Use ``axis`` and `out` for that.", "Use axis and out for that."),
        ("It is *very* fast, and **not** slow.", "It is very fast, and not slow."),
        ("It is as shown in [1]_ and [2]_.", "It is as shown in and."),
        ("Return the :math:`n` largest of them.", "Return the n largest of them."),
        ("See https://example.org/x_y for more of it.", "See for more of it."),
        ("It is the user\u2019s\u00a0own.", "It is the user's own."),
        ("The method __init__ is called first of all.", "The method __init__ is called first of all."),
        ("Two * three is less than two ** four.", "Two * three is less than two ** four."),
    ],
)
def test_markup_goes_and_the_words_stay(markup, plain):
    assert paragraphs(markup) == [plain]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Too few words.",
        "f(x, y=1), g(x, y=2), h(x)",
        "pressure temperature density viscosity",
        "x in the set {1, 2} of a",
        "values : the array of the values",
        ">>> it is the best of them",
        "ab12 cd34 of ef56 gh78",
    ],
)
def test_what_is_no_english_sentence_is_no_prose(text):
    assert not is_prose(text)
    assert paragraphs(text) == []


MODULE = '''"""The module says what it is good for, in a few words."""
raise SystemExit("this must never be run")

class Bell:
    """A bell that rings as often as it is asked to do so."""

    def ring(self):
        """Ring the bell, and wait until the sound of it is gone."""
        def inner():
            """What is inside of a function is for no one to read at all."""

    async def later(self):
        """Ring the bell at some later time, when it is of more use."""

add_docstr(ring, r"""
ring(times) -> Bell

Ring the bell so and so many times, one after the other.
""")
chime = lib._add_docstr(lib.chime, ("""
    Chime as the bells of the {town} do, in the early morning.
    """).format(town="village"))
'''


@pytest.fixture
def source(tmp_path):
    """A package with a module, and files that are not to be read."""
    folder = tmp_path / "bells"
    for path, content in {
        "sub/bell.py": MODULE,
        "a.py": '"""The same\n\nA bell that rings as often as it is asked to do so! It is not read twice."""',
        "b.py": '"""A bell that rings, as often as it is asked to do so."""',
        "tests/c.py": '"""Tests are for those who write them, and not for those who read."""',
        "_private/d.py": '"""What is private is for no one to read, and so it is not here."""',
        "test_e.py": '"""Tests are for those who write them, and not for those who read."""',
        "old.py": '"""This one was written for another Python."""\nprint "and it is of no use"',
        "code.py": '"""There is hardly a word in this, and so it is not worth while."""' + "\nx = 1" * 200,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    return Source("bells", "1.0", folder)


def test_docstrings_are_read_in_order_and_nothing_is_run(source):
    assert [module for module, _ in docstrings.docstrings(source)] == ["a", "b", "sub/bell"]
    found = dict(docstrings.docstrings(source))["sub/bell"]
    assert [text.split(",")[0] for text in found] == [
        "The module says what it is good for",
        "A bell that rings as often as it is asked to do so.",
        "Ring the bell",
        "Ring the bell at some later time",
        "ring(times) -> Bell\n\nRing the bell so and so many times",
        "Chime as the bells of the {town} do",
    ]


def test_what_is_repeated_is_read_once_whatever_its_signs(source):
    found = gather([source, Source("copy", "1.0", source.folder)])
    texts = [document.text for document in found.documents]
    assert texts[0].startswith("A bell that rings as often as it is asked to do so! It is not read twice.")
    assert len(texts) == len(set(texts)) == 6
    assert "A bell that rings, as often as it is asked to do so." in texts[1]
    n_words = len(" ".join(texts).split())
    assert [(count.package, count.n_words) for count in found.counts] == [("bells", n_words), ("copy", 0)]


def test_the_cache_is_read_again_and_another_version_is_not(source, tmp_path):
    first = gathered([source], tmp_path / "cache")
    (source.folder / "sub" / "bell.py").unlink()
    assert gathered([source], tmp_path / "cache") == first
    newer = gathered([Source("bells", "1.1", source.folder)], tmp_path / "cache")
    assert len(newer.documents) < len(first.documents)


@pytest.mark.parametrize("harm", [b"{", b"[]", b'{"documents": [[1]], "counts": []}'])
def test_a_damaged_cache_is_written_anew(source, tmp_path, harm):
    first = gathered([source], tmp_path / "cache")
    (file,) = (tmp_path / "cache").iterdir()
    good = file.read_bytes()
    file.write_bytes(harm)
    assert gathered([source], tmp_path / "cache") == first and file.read_bytes() == good


def test_without_a_cache_everything_is_returned_with_a_warning(source, tmp_path):
    (tmp_path / "file").write_text("a file where a folder should be")
    with pytest.warns(CorpusWarning, match="file"):
        assert gathered([source], tmp_path / "file") == gather([source])


def test_packages_are_found_without_being_imported(tmp_path, monkeypatch):
    (tmp_path / "nltk").mkdir()
    (tmp_path / "nltk" / "__init__.py").write_text("raise SystemExit('this must never be run')")
    (tmp_path / "nltk-7.5.dist-info").mkdir()
    (tmp_path / "nltk-7.5.dist-info" / "METADATA").write_text("Name: nltk\nVersion: 7.5\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = installed()
    assert found[-1] == Source("nltk", "7.5", tmp_path / "nltk")
    assert [source.name for source in found][:2] == ["python", "numpy"]
    assert {"torch", "matplotlib"} <= {source.name for source in found}


def made(**sizes):
    """Some documents of each package, in modules of 1 to 7."""
    modules = [f"module{i}" for i in range(200) for _ in range(1 + 3 * i % 7)]
    return [
        Document(package, module, f"Return the {package}th part of the number {i} that is given to it.")
        for package, n in sizes.items()
        for i, module in enumerate(modules[:n])
    ]


def test_classes_are_equally_large_in_every_split_and_small_packages_are_none():
    corpus = label_packages(made(two=300, few=50, one=400), min_documents=300)
    assert corpus.label_names == ("two", "one") and corpus.n_classes == 2
    for split in corpus.splits.values():
        counts = Counter(split.labels)
        assert counts[0] == counts[1]
        for text, label in zip(split.texts, split.labels, strict=True):
            assert f"the {corpus.label_names[label]}th part" in text
    sizes = {name: len(split) for name, split in corpus.splits.items()}
    assert 50 <= sizes["test"] <= 60 and 50 <= sizes["valid"] <= 60 and sizes["train"] >= 470
    with pytest.raises(ValueError, match="2 packages of 300 documents or more, got 1"):
        label_packages(made(one=400, few=50), min_documents=300)


def test_a_module_is_in_one_split_whatever_other_packages_there_are():
    places = [dict(docstrings._placed(found)) for found in (made(one=400), made(other=500, one=400))]
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


@pytest.mark.proof
def test_the_text_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYTX_DATA", str(tmp_path))
    for function in (docstrings._gathered, docstrings_corpus, packages_corpus):
        function.cache_clear()
    prose, packages = docstrings_corpus(), packages_corpus()
    texts = [text for split in prose.splits.values() for text in split.texts]
    assert len(texts) == len(set(texts)) and len(" ".join(texts).split()) > 300_000
    shares = {name: len(split) / len(texts) for name, split in prose.splits.items()}
    assert shares["test"] == pytest.approx(0.1, abs=0.01) == pytest.approx(shares["valid"], abs=0.01)
    held_out = set(re.findall(r"\w+", " ".join(packages.test.texts).lower()))
    assert packages.label_names[:2] == ("python", "numpy") and not held_out & (GIVEAWAYS - {"scikit-learn"})
    learned = set(prose.train.texts)  # texts of the one's test are new to a model of the other's train
    assert not learned & set(packages.test.texts)
