"""Files of text before they are tables: encodings, letters that show nothing, spellings of a label."""

from __future__ import annotations

import gzip
import re
import unicodedata
import warnings
import zlib
from pathlib import Path

MAX_BYTES = 256 * 2**20  # of a file
MAX_CHARS = 1_000_000  # of a text
INTEGER = re.compile("[0-9]{1,9}")
NUMBER = re.compile(r"[+-]?(?=[.,]?[0-9])[0-9]{0,15}([.,][0-9]*)?(e[+-]?[0-9]{1,2})?", re.I)
# Soft hyphen, zero-width space, joiner, byte order mark, marks of direction, and forms of a sign.
INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufe0e\ufe0f\ufeff]"
)
# How pandas, databases, and spreadsheets in many languages write that a value is missing, or an error.
MISSING = re.compile(
    r"(?i:[+-]?(nan|inf)|nat|\(?null\)?|<na>|\\n|n/a|[+-]?1\.#(qnan|ind)|#(\w/\w( n/a)?|na|nv|yok))"
    r"|#[¿¡]?[A-ZÀ-ÖØ-ÞČĎĚĞİŇŐŘŚŞŠŤŮŰŽΑ-ΩА-ЯЁІЇ/_0-9]+[!?]"  # in capitals; #Bravo! is a text
)
PERHAPS_MISSING = ("none", "na", "nil", "-", "--", "?", ".")  # names of classes, too
SPACES = ("Zs", "Zl", "Zp", "Mn", "Me")  # and marks, which show nothing without a letter
BLANK = "\u115f\u1160\u2800\u3164\uffa0"  # letters and signs that show nothing
# UTF-8 read as Latin-1 or its kin, as in Ã© for é, â€™ for an apostrophe, Ð´Ð° or РґР° for да, √© and ├® (old
# Macs, DOS); lost letters; cp1252 read as Latin-1, as in U+0092 for an apostrophe; codes, as of a terminal.
_NEXT = (
    "\u0080-\u00bf"
    + b"\x80\x82\x83\x84\x86\x87\x88\x89\x8a\x8b\x8c\x8e\x91\x98\x99\x9a\x9b\x9c\x9e".decode("cp1252")
)
GARBLED = re.compile(
    f"[\u00c2-\u00c5][{_NEXT}]|\u00e2[\u0080\u20ac].|([\u00ce-\u00d1][{_NEXT}\u2026]){{2}}"
    "|(\u0420[\u00a0-\u00bf\u0402-\u040f\u0452-\u045f\u0491]){2}|\u221a[©®™´†¢ß§âÄ]|\u251c[®⌐¿á]|\ufffd"
    "|(?P<c1>[\x80-\x84\x86-\x9f])|(?P<code>[\x01-\x08\x0e-\x19\x1b-\x1f\x7f])"
)
NO_TEXT = {b"\xff\xfe": "the mark of UTF-16", b"\xfe\xff": "the mark of UTF-16", b"%pdf-": "a PDF"}
NO_TEXT |= {  # in small letters
    b"pk\x03\x04": "an archive or a workbook",
    b"\xd0\xcf\x11\xe0": "a workbook",
    b"\x1f\x8b": "an archive",
    b"{\\rtf": "a document",
    **dict.fromkeys((b"<!doctype", b"<html", b"<?xml", b"<!--", b"<tei"), "a page or XML"),
}


class CorpusWarning(UserWarning):
    """Something about the texts that a reader of figures should know."""


def warn(message: str) -> None:
    """Give a `CorpusWarning`, at a line some calls above this one."""
    warnings.warn(message, CorpusWarning, stacklevel=5)


def plain(name: object, invisible: re.Pattern[str] = INVISIBLE) -> str:
    """A name with composed letters (NFC), nothing invisible, and single spaces."""
    return unicodedata.normalize("NFC", " ".join(invisible.sub("", str(name)).split()))


def canonical_label(value: object) -> str | None:
    """A label as labels are compared, a number in one spelling; None if there is none.

    Examples
    --------
    >>> [canonical_label(value) for value in ("1", "1.0", "4,50", "1e0", "ne\u0301gatif", True, " ", "NULL")]
    ['1', '1', '4.5', '1', 'négatif', '1', None, None]
    """
    if not isinstance(value, str | int | float):
        return None
    label = plain(int(value) if isinstance(value, bool) else value).replace("\u2212", "-")  # a minus sign
    if NUMBER.fullmatch(label):
        return repr(float(label.replace(",", ".")) + 0.0).removesuffix(".0")  # -0 is 0
    return None if not label or MISSING.fullmatch(label) else label


def is_blank(text: str) -> bool:
    """Whether a text has no character that can be seen."""
    return all(unicodedata.category(sign) in ("Cc", "Cf", *SPACES) or sign in BLANK for sign in text)


def read_text(path: Path, own: bool = True) -> str:
    """The text of a file, in which a byte that is not UTF-8 is a lone surrogate, for `text_fault` to find.

    In a file of one's own, letters that are not what was meant are named.
    """
    if not path.is_file():
        raise ValueError(f"corpus file must exist, got {path}")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)  # and no more, however much it unpacks to
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} must be a whole gzip file, got a damaged one: {error}") from error
    if len(content) > MAX_BYTES:
        got = "more when it is unpacked" if path.suffix == ".gz" else f"{path.stat().st_size:,}"
        remedy = "write a part of it into a file of its own, such as by `head -c 200M FILE > PART`"
        raise ValueError(f"{path} must have at most {MAX_BYTES:,} bytes, got {got}: {remedy}")
    begin = content[:1_000].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    kind = next((kind for mark, kind in NO_TEXT.items() if begin.startswith(mark)), None)
    if kind or b"\0" in content[:4]:
        got = kind or "UTF-16 or other numbers"
        raise ValueError(f"{path} must be UTF-8 text, got {got}: unpack or export it, and save it as UTF-8")
    # Files that were joined have a mark in the middle, too.
    text = re.sub("^\ufeff+", "", content.decode("utf-8", "surrogateescape"), flags=re.MULTILINE)
    if own and (found := GARBLED.search(text)):
        where = f"{path}, line {text.count(chr(10), 0, found.start()) + 1}"
        read = "cp1252" if found["c1"] else "UTF-8"
        cause = f"{read} seems to have been read as Latin-1 or the like and saved again"
        if found["code"]:
            cause = "a code that is no text: is it output of a terminal, or in ISO-2022-JP?"
        elif found[0] == "\ufffd":
            cause = "letters seem to have been lost when it was saved in another encoding"
        warn(f"{where} has {found[0]!r}: {cause}")
    return text


def text_fault(text: str) -> tuple[str, str] | None:
    """The rule that a text breaks, and what it has instead."""
    if len(text) > MAX_CHARS:
        return f"must have at most {MAX_CHARS:,} characters", f"{len(text):,}"
    if bad := re.search("[\0\ud800-\udfff]", text):
        code = ord(bad[0])
        rule, got = "must be UTF-8 text (save the file as UTF-8)", f"the byte 0x{code & 0xFF:02x}"
        if code and not 0xDC80 <= code <= 0xDCFF:
            rule, got = "must be text of whole characters", "a lone surrogate"
        return rule, f"{got} as character {bad.start() + 1}"
    return None
