"""What is known beforehand of each corpus."""

from __future__ import annotations

import re

import pytest

from tinytx.text.corpora import list_corpora
from tinytx.text.download import dataset, datasets, file_name, rule
from tinytx.text.pairs import list_pair_corpora

RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?$", re.IGNORECASE)


@pytest.fixture(params=datasets())
def known(request):
    return dataset(request.param)


def test_every_corpus_that_can_be_got_can_be_read_by_its_name():
    readable = {info.name for info in (*list_corpora(), *list_pair_corpora())}
    assert set(datasets()) <= readable


def test_addresses_are_of_one_commit_and_every_file_has_a_checksum(known):
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", known.repository)
    assert re.fullmatch(r"[0-9a-f]{40}", known.commit)
    for path, sha256 in known.files.items():
        assert re.fullmatch(r"[0-9a-f]{64}", sha256)
        assert known.url(path) == (
            f"https://raw.githubusercontent.com/{known.repository}/{known.commit}/{path}"
        )
    assert known.licence and known.citation and rule(known)


def test_names_of_files_are_different_and_allowed_on_windows(known):
    upstream = [file_name(path) for path in known.files]
    for names in (upstream, list(known.n_lines)):
        assert len({name.lower() for name in names}) == len(names)
        for name in (known.name, *names):
            assert re.fullmatch(r"[\w.-]+[\w-]", name) and not RESERVED.match(name)


def test_splits_of_which_a_file_lacks_are_absent():
    known = dataset("multi30k-en-fr")
    here = dict.fromkeys(["train.en", "train.fr", "val.en", "test_2016_flickr.en", "test_2016_flickr.fr"])
    assert known.absent(here)[:2] == ("val", "test_2017_flickr")
    assert known.absent(known.n_lines) == ()


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="name must be one of cls-books, eltec-fra.*, got 'wikipedia'"):
        dataset("wikipedia")


def test_checksums_are_those_that_were_written_down(shared_data, known):
    notes = (shared_data / "README.md").read_text(encoding="utf-8")
    notes += (shared_data / "eltec-fra" / "plain1.sha256").read_text(encoding="utf-8")
    assert known.commit in notes and known.repository in notes
    for path, sha256 in known.files.items():
        (line,) = [line for line in notes.splitlines() if sha256 in line]
        assert line.endswith(file_name(path))
