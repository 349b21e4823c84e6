"""What finds its way: the contents of a page, and the search index of all pages."""

from __future__ import annotations

import html
import itertools
import json
import re
from pathlib import Path

from tinytx_course.lessons import LESSONS
from tinytx_course.terms import terms

_HEADING = re.compile(
    r'<h([1-4])(?: data-number="\d+")? id="([^"]+)">(.*?)(?:<a class="anchor-link"|</h\1>)', re.S
)
_BOLD = re.compile(r"<strong>((?:<a [^>]*>)?[^<]{3,40})")
_CAPTION = re.compile(
    r'id="(figure-\d+)".*?<figcaption><a class="number"[^>]*>([^<]+)</a>\s*(.*?)</figcaption>', re.S
)
# Code, tables of names, and what is below each exercise or lesson, say nothing of a section.
_CODE = re.compile(
    r"<pre.*?</pre>|<table.*?</table>|<p class=\"(?:todo|take)\">.*?</p>|<(script|style|svg|math)\b.*?</\1>",
    re.S,
)
# Words and short names worth a place in the index.
_LONG = re.compile(r"[^\W\d_]{4,}|\b[A-Z][A-Za-z]?[A-Z]+\b")
#: Headings that say little without their lesson.
_IN_EACH = {"Summary", "Set-up", "Questions", "Exercises", "What this does not show", "Take-home", "Limits"}
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "that this with from have what which when where then than they them their there these those "
        "will would each does into over more most much many such some only also other another both "
        "same about between because while after before here very just like were been being",
    )
)
#: What people type for a section that says it in other words: lesson and heading.
ASKED = {
    (0, "Your machine"): "install installation setup requirements gpu cuda",
    (0, "Your own copy"): "install jupyter notebook download colab binder",
    (0, "How the course works"): "keyboard shortcuts keys how to use",
    (2, "Further: attention without the scale"): "why divide by the square root sqrt of d scaling saturated",
    (3, "03 · Positions"): "positional encoding embedding",
    (3, "By hand: clocks"): "positional encoding sine cosine formula",
    (5, "Step 2: a way past, the residual connection"): "vanishing gradients backpropagation skip connection",
    (7, "Assemble"): "chatgpt gpt from scratch nanogpt",
    (8, "Further: let it write"): "hallucination made up",
    (8, "The training loop in under 20 lines"): "backpropagation optimizer backward gradient descent",
}
_PREDICTION = re.compile(r"(predict|result of) \d")
_SPACE = re.compile(r"<mspace[^>]*>")
_TAG = re.compile(r"<[^>]+>")


def _words(markup: str) -> str:
    """Return HTML as one line of text."""
    return html.unescape(" ".join(_TAG.sub("", _SPACE.sub(" ", markup)).split()))


def headings(body: str) -> list[tuple[int, str, str]]:
    """Return (level, anchor, markup) of the headings of a page, in order."""
    return [(int(level), anchor, markup.strip()) for level, anchor, markup in _HEADING.findall(body)]


def numbered(body: str) -> str:
    """Return a page whose chapters have their numbers, as in the contents; what is *Further* has none."""
    number = itertools.count(1)
    return re.sub(r'<h2 id=(?!"Further)', lambda _: f'<h2 data-number="{next(number)}" id=', body)


def contents(body: str) -> str:
    """Return the chapters of a page as list items, each with a list of its parts.

    Examples
    --------
    >>> contents('<h2 id="a">A</h2><h3 id="b">B</h3>')
    '<li><a href="#a">A</a><ol><li><a href="#b">B</a></li></ol></li>'
    """
    chapters: list[tuple[str, list[str]]] = []
    for level, anchor, markup in headings(body):
        kept = markup if "<math" in markup else html.escape(_words(markup))
        link = f'<a href="#{anchor}">{kept}</a>'
        if level == 2:
            chapters.append((link, []))
        elif level == 3 and chapters:
            chapters[-1][1].append(f"<li>{link}</li>")
    lists = ((link, f"<ol>{''.join(parts)}</ol>" if parts else "") for link, parts in chapters)
    return "".join(f"<li>{link}{parts}</li>" for link, parts in lists)


def search_index(folder: Path) -> str:
    """Return a script that calls ``tinytxSearch`` with [title, address, kind, more, text, asked] of all.

    These are the headings and figures of the lessons that have a page in the folder, the terms, the exercises
    that need no Python, and the names of the reference.
    """
    entries: list[list[str]] = []
    for lesson in LESSONS:
        file = folder / f"{lesson.name}.html"
        if file.is_file():
            entries += _of_lesson(f"{lesson.number:02d} {lesson.title}", file)
    for term in terms().values():
        also = f" Also: {term.others}." if term.others else ""
        entries.append([term.name, f"glossary.html#{term.anchor}", "glossary", term.sentence + also])
    exercises, reference = (folder / f"{name}.html" for name in ("exercises", "reference"))
    for level, at, name in headings(exercises.read_text(encoding="utf-8")):
        if level == 3:
            entries.append([_words(name), f"exercises.html#{at}", "exercise", ""])
    body = reference.read_text(encoding="utf-8")
    first = re.findall(r'<h3 id="([^"]+)">.*?<p class="first">(.*?)</p>', body, re.S)
    entries += [[name, f"reference.html#{name}", "reference", _words(line)] for name, line in first]
    return f"tinytxSearch({json.dumps(entries, ensure_ascii=False, separators=(',', ':'))});\n"


def _of_lesson(title: str, file: Path) -> list[list[str]]:
    """Return the entries of one page; bold words, which a section explains, belong to its heading."""
    page = file.read_text(encoding="utf-8")
    body = page[page.index("<main") : page.index("</main>")]
    found = []
    marks = list(_HEADING.finditer(body))
    for match, following in itertools.zip_longest(marks, marks[1:]):
        end = following.start() if following else len(body)
        words_in_bold = (_words(words).lower() for words in _BOLD.findall(body[match.start() : end]))
        bold = [words for words in dict.fromkeys(words_in_bold) if not _PREDICTION.match(words)]
        name = title if match[1] == "1" else _words(match[3])
        if name in _IN_EACH:
            name = f"{name} of lesson {title}"
        kind = "lesson" if match[1] == "1" else title
        below = body[body.index(f"</h{match[1]}>", match.start()) + len("</h1>") : end]
        words = dict.fromkeys(map(str.lower, _LONG.findall(_words(_CODE.sub("", below)))))
        text = " ".join(word for word in words if word not in _COMMON)
        text += " square root" * ("<msqrt" in below)  # of a formula, as people ask for it
        asked = ASKED.get((int(title[:2]), _words(match[3])))
        more = ", ".join(bold[:12])
        found.append([name, f"{file.name}#{match[2]}", kind, more, text, *([asked] if asked else [])])
    for anchor, number, caption in _CAPTION.findall(body):
        found.append([_words(caption), f"{file.name}#{anchor}", f"{number}, {title}", ""])
    return found
