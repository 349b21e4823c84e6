"""The booklet: all lessons in one page that leads nowhere else, answers behind them, one PDF."""

import re
import subprocess

import pytest

from tests.environments import published
from tinytx_course.building.notebooks import Run
from tinytx_course.lessons import LESSONS
from tinytx_course.machine import find_chromium
from tinytx_course.site.booklet import booklet_page, write_booklet

NUMBERS = (2, 6)


@pytest.fixture(scope="module")
def runs():
    """Two published lessons, which name each other."""
    lessons = (LESSONS[number] for number in NUMBERS)
    return [Run(lesson=one, notebook=published(one)) for one in lessons]


def test_every_link_leads_to_a_place_in_it_or_to_a_paper_and_answers_come_last(runs, root):
    shown = booklet_page(runs, root / "figures")
    body = shown[shown.index("<main") :]
    places = set(re.findall(r' id="([^"]+)"', body))
    links = re.findall(r'<a [^>]*?href="([^"]+)"', body)
    inside = [link[1:] for link in links if link.startswith("#")]
    assert len(inside) > 100 and set(inside) <= places
    assert {link for link in links if not link.startswith(("#", "https://"))} == set()
    assert [f'<section id="{n:02d}">' in body for n in NUMBERS] == [True, True]
    assert "<details><summary>Solution" not in body and "data-tx-explorer" not in body
    pictures = re.findall(r'<img class="tx-picture" src="([^"]+)"', body)
    assert pictures == ["stills/02-mask.png", "stills/06-count.png"] and "It responds" not in body
    end = body.index('<section id="answers"')
    assert body.index("<b>Solution</b>") > end and "Right." not in body[:end]
    assert (
        len(re.findall(r'class="see"', body[:end])) == len(re.findall(r'<div id="answer-', body[end:])) > 20
    )


def test_without_a_chromium_that_ends_and_prints_one_sentence_says_what_is_missing(
    runs, tmp_path, monkeypatch
):
    def hang(command, timeout, **_):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.delenv("TINYTX_CHROMIUM", raising=False)
    with monkeypatch.context() as without:
        without.setenv("PATH", str(tmp_path))
        with pytest.raises(OSError, match="printed by Chromium, got none of chromium, .*TINYTX_CHROMIUM"):
            write_booklet(runs, tmp_path / "course.pdf")
    monkeypatch.setenv("TINYTX_CHROMIUM", "false")
    with pytest.raises(OSError, match="false must print the booklet, got status 1"):
        write_booklet([], tmp_path / "course.pdf")
    monkeypatch.setattr("subprocess.run", hang)
    with pytest.raises(OSError, match="false must print the booklet within 900 seconds"):
        write_booklet([], tmp_path / "course.pdf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.browser
@pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: `make test-browser` installs it")
def test_a_pdf_is_printed_and_nothing_is_left_next_to_it(runs, tmp_path):
    path = write_booklet(runs[1:], tmp_path / "course.pdf")
    content = path.read_bytes()
    assert content.startswith(b"%PDF") and content.count(b"/Type /Page\n") > 10
    assert list(tmp_path.iterdir()) == [path]
