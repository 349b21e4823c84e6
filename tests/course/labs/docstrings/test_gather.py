"""Docstrings read without being run, each paragraph once, kept on disk and read again."""

import sys
import sysconfig
from pathlib import Path

import pytest

from tinytx.text.reading import CorpusWarning
from tinytx_course.labs.docstrings import Source, docstrings, gather, gathered, installed

MODULE = '''"""The module says what it is good for, in a few words."""
raise SystemExit("this must never be run")

class Bell:
    """A bell that rings as often as it is told to do so."""

    def ring(self):
        """Ring the bell, and wait until the sound of it is gone."""
        def inner():
            """What is inside of a function is for nobody to read at all."""

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
        "a.py": '"""The same\n\nA bell that rings as often as it is told to do so! It is not read twice."""',
        "b.py": '"""A bell that rings, as often as it is told to do so."""',
        "tests/c.py": '"""Tests are for those who write them, and not for those who read."""',
        "_private/d.py": '"""What is private is for nobody to read, and so it is not here."""',
        "test_e.py": '"""Tests are for those who write them, and not for those who read."""',
        "old.py": '"""This one was written for another Python."""\nprint "and it is of no use"',
        "code.py": '"""There is hardly a word in this, and so it is not worth while."""' + "\nx = 1" * 200,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    return Source("bells", "1.0", folder)


def test_docstrings_are_read_in_order_and_nothing_is_run(source):
    assert [module for module, _ in docstrings(source)] == ["a", "b", "sub/bell"]
    found = dict(docstrings(source))["sub/bell"]
    assert [text.split(",")[0] for text in found] == [
        "The module says what it is good for",
        "A bell that rings as often as it is told to do so.",
        "Ring the bell",
        "Ring the bell at some later time",
        "ring(times) -> Bell\n\nRing the bell so and so many times",
        "Chime as the bells of the {town} do",
    ]


def test_what_is_said_twice_is_kept_once_whatever_its_signs(source):
    found = gather([source, Source("copy", "1.0", source.folder)])
    texts = [document.text for document in found.documents]
    assert texts[0].startswith("A bell that rings as often as it is told to do so! It is not read twice.")
    assert len(texts) == len(set(texts)) == 6
    assert "A bell that rings, as often as it is told to do so." in texts[1]
    assert [(count.package, count.n_documents) for count in found.counts] == [("bells", 6), ("copy", 0)]


def test_counts_are_those_of_the_documents(source):
    found = gather([source])
    (count,) = found.counts
    words = " ".join(document.text for document in found.documents).split()
    assert (count.n_documents, count.n_words) == (len(found.documents), len(words))
    assert count.n_docstrings == 8
    assert "bells 1.0: 8 docstrings" in found.card()


def test_what_was_kept_is_read_again_and_a_new_version_is_not(source, tmp_path):
    first = gathered([source], tmp_path / "kept")
    (source.folder / "sub" / "bell.py").unlink()
    assert gathered([source], tmp_path / "kept") == first
    newer = gathered([Source("bells", "1.1", source.folder)], tmp_path / "kept")
    assert len(newer.documents) < len(first.documents)
    assert newer.card() != first.card()


@pytest.mark.parametrize("harm", [b"", b"{", b"[]", b'{"documents": [[1]], "counts": []}'])
def test_a_file_that_is_not_what_was_written_is_written_anew(source, tmp_path, harm):
    first = gathered([source], tmp_path / "kept")
    (file,) = (tmp_path / "kept").iterdir()
    good = file.read_bytes()
    file.write_bytes(harm)
    assert gathered([source], tmp_path / "kept") == first
    assert file.read_bytes() == good


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_where_nothing_more_can_be_written_all_is_returned_and_nothing_is_left(source, tmp_path):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # bytes; a write beyond fails as on a full disk
    try:
        with pytest.warns(CorpusWarning, match="could not be kept in .*it is complete"):
            found = gathered([source], tmp_path / "kept")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert found == gather([source]) and found.documents
    assert not list((tmp_path / "kept").iterdir())


def test_a_folder_that_may_not_be_written_is_told(source, tmp_path):
    (tmp_path / "file").write_text("a file where a folder should be")
    with pytest.warns(CorpusWarning, match="could not be kept in .*file"):
        assert gathered([source], tmp_path / "file").documents


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


def test_the_standard_library_gives_english(tmp_path):
    folder = Path(sysconfig.get_path("stdlib")) / "email"
    found = gather([Source("email", "-", folder)])
    text = " ".join(document.text for document in found.documents)
    assert len(found.documents) > 100
    for sign in (">>>", "``", "::", "\n", "  ", "\\"):
        assert sign not in text
    words = text.lower().split()
    assert 0.04 < words.count("the") / len(words) < 0.12
