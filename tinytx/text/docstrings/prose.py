"""The prose of a docstring: what is left without examples, tables of parameters and markup."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from tinytx.text.plain import plain

MIN_WORDS = 4  # of a paragraph
LONGEST_TITLE = 40  # characters
MIN_PLAIN_WORDS = 0.75  # share of the words of a paragraph that must be words, not code
MIN_FUNCTION_WORDS = 0.15  # share of them that must be among the following
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about after all also an and any are as at be been before between both but by can cannot do does "
        "each for from given has have if in into is it its may more must no not of on one only or other out "
        "over same should so some such than that the their them then there these they this to two under used "
        "use using was we were what when where whether which while will with within without would you your",
    )
)

# Sections, fields and directives that hold lists, code or what is said of every function alike.
SECTIONS = re.compile(
    r"(other |keyword |optional |input |output |key)?"
    r"(parameters?|params?|arguments?|args|inputs?|outputs?|attributes?)"
    r"|returns?|yields?|receives?|raises?|exceptions?|warns?|examples?|usage|see also|references?|methods|"
    r"properties|shapes?|signature|authors?|copyright|licen[cs]e|routine listings?|functions?|classes",
    re.IGNORECASE,
)
PROSE_HEADERS = re.compile(r"notes?|warnings?|tips?|important|description|details|remarks?", re.IGNORECASE)
PROSE_DIRECTIVES = frozenset(("note", "warning", "tip", "important", "caution", "attention", "hint"))
_RULES = tuple("-=~^*#\"'")
_UNDERLINE = re.compile(r"([-=~^*#\"'])\1{2,}")
_HEADER = re.compile(r"([A-Z][A-Za-z ]{2,30}?)\s*:{1,2}")
_SAID_AT_ONCE = re.compile(
    r"(Args?|Arguments?|Parameters?|Returns?|Yields?|Raises|Examples?|Usage) ?:(?!:).+"
)
_DIRECTIVE = re.compile(r"\.\. ?([\w-]+) ?::\s*(.*)")
_FIELD = re.compile(r"[:@]\w+[^:]*:(?![\w`:])|@\w+")  # :param x: ..., but not :func:`...`
_BULLET = re.compile(r"(?:[-*+\u2022]|\(?\w{1,2}[.)])\s+(?=\S)")
_RULED = re.compile(r"(?m)^[ |+=\-_~*]{4,}$|   |[|+]$")  # tables, pictures, columns

# A sign that must be there, a pattern, and what it becomes.
_MARKUP: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (sign, re.compile(pattern), to)
    for sign, pattern, to in (
        ("]_", r"\s*\[[\w+ -]{1,20}\]_", ""),  # [1]_
        (":math:", r":math:`([\w ,()+-]{1,12})`", r"\1"),
        (":`", r":[\w:+-]+:`([^`<]+?)\s*<[^`>]*>`", r"\1"),  # :ref:`words <label>`
        (":`~", r":[\w:+-]+:`~[^`]*?([^`.]+)`", r"\1"),  # :func:`~numpy.mean`
        (":`", r":(?!math)[\w:+-]+:`([^`]+)`", r"\1"),
        ("``", r"``([^`]+)``", r"\1"),
        ("`", r"`([^`<]+?)\s*<[^`>]*>`_{0,2}", r"\1"),  # `words <address>`_
        ("`", r"`([^`]+)`_{0,2}", r"\1"),
        ("*", r"(?<![\w*])\*\*?(?=\S)([^*]+?)(?<=\S)\*\*?(?![\w*])", r"\1"),
        ("_", r"(?<!\w)([A-Za-z]\w*?[A-Za-z0-9])__?(?=[\s.,;:)]|$)", r"\1"),  # word_
        ("://", r"\s*<?\(?https?://[^\s>)]+[>)]?", ""),
        ("::", r"::(?=\s|$)", ":"),
    )
)
_WORD = re.compile(r"[\"'(\[]*(?:[A-Z]?[a-z]+|[A-Z]|[A-Z]{2,6}s?)(?:[-/'][A-Za-z]+)*[\"')\],.;:!?]*")
_FOREIGN = re.compile(r"[\\{}`|]|>>>|\.\. |==|->|<[A-Za-z/]| : ")


def paragraphs(docstring: str) -> list[str]:
    """Take the paragraphs of prose out of a docstring, each on one line and without markup.

    Parameters
    ----------
    docstring : str
        Without the indentation of its code, as `ast.get_docstring` gives it; in any of the usual styles.

    Returns
    -------
    list of str

    Notes
    -----
    Left out are doctests, code, formulas on lines of their own, tables, directives other than notes and
    warnings, and the sections that list parameters, results, errors, examples and references. What remains
    counts as prose if it is mostly words, and enough of them are the small words of English.

    Examples
    --------
    >>> paragraphs('''Return the mean, see :func:`~numpy.median` too.
    ...
    ... Parameters
    ... ----------
    ... a : array
    ...     Where to look for it.
    ...
    ... >>> mean([1, 2])
    ... 1.5
    ... ''')
    ['Return the mean, see median too.']
    """
    found = (_cleaned(block) for block in _blocks(docstring.expandtabs().splitlines()))
    return [paragraph for paragraph in found if is_prose(paragraph)]


def is_prose(text: str) -> bool:
    """Whether a paragraph without markup reads as English rather than as code, a table or a heading.

    Examples
    --------
    >>> is_prose("Return the mean of the values."), is_prose("x = mean(values, axis=0) + 1")
    (True, False)
    """
    words = text.split()
    if len(words) < MIN_WORDS or _FOREIGN.search(text):
        return False
    n_plain = sum(_WORD.fullmatch(word) is not None for word in words)
    n_small = sum(word in FUNCTION_WORDS for word in text.lower().split())
    return n_plain >= MIN_PLAIN_WORDS * len(words) and n_small >= MIN_FUNCTION_WORDS * len(words)


def _cleaned(block: str) -> str:
    if _RULED.search(block):
        return ""
    for sign, pattern, to in _MARKUP:
        if sign in block:
            block = pattern.sub(to, block)
    return plain(" ".join(block.split()))


def _blocks(lines: list[str]) -> Iterator[str]:
    """Runs of lines that may be prose: between blank lines, bullets, and what is left out."""
    block: list[str] = []
    for text in _kept(lines):
        bullet = _BULLET.match(text)
        if block and (bullet or not text):
            yield "\n".join(block)
            block = []
        if text:
            block.append(text[bullet.end() :] if bullet else text)
    if block:
        yield "\n".join(block)


def _kept(lines: list[str]) -> Iterator[str]:
    """The lines that may be prose, with an empty one wherever a paragraph ends."""
    in_section = in_doctest = False  # left out: up to the next title, up to the next blank line
    dropped_below: int | None = None  # lines indented deeper than this are left out
    for line, below in itertools.pairwise([*lines, ""]):
        text = line.strip()
        if not text or _is_underline(text):
            in_doctest = False
            yield ""
        elif in_doctest:
            continue
        elif len(text) <= LONGEST_TITLE and _is_underline(below.strip()):
            in_section, dropped_below = SECTIONS.fullmatch(text.rstrip(":")) is not None, None
            yield ""
        elif not in_section:
            indent = len(line) - len(line.lstrip())
            if dropped_below is not None and indent > dropped_below:
                continue
            in_doctest = text.startswith(">>>")
            text, drops = ("", False) if in_doctest else _said(text)
            dropped_below = indent if drops else None
            yield text


def _is_underline(text: str) -> bool:
    return text[:1] in _RULES and _UNDERLINE.fullmatch(text) is not None


def _said(text: str) -> tuple[str, bool]:
    """What a line says besides its markup, and whether the lines indented below it are left out."""
    if text.startswith(".."):
        directive = _DIRECTIVE.match(text)
        kept = directive is not None and directive[1].lower() in PROSE_DIRECTIVES
        return (directive[2], False) if directive is not None and kept else ("", True)
    if text[0] in ":@":
        return ("", True) if _FIELD.match(text) else (text, False)
    if text[-1] == ":":
        header = _HEADER.fullmatch(text)
        if header and SECTIONS.fullmatch(header[1]):
            return "", True
        return ("" if header and PROSE_HEADERS.fullmatch(header[1]) else text), text.endswith("::")
    return ("", True) if ":" in text and _SAID_AT_ONCE.match(text) else (text, False)
