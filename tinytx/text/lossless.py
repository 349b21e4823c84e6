"""What sentencepiece needs so that no text is lost or read as a special piece."""

from __future__ import annotations

import io
import re
from typing import Any

import sentencepiece

SPECIAL_PIECES = ("<pad>", "<unk>", "<bos>", "<eos>", "<mask>", "<cls>", "<sep>")
SPACE_MARK = "\u2581"

# sentencepiece keeps these characters for itself: the space mark, the marks for unknown characters and for
# forced boundaries, the end of a C string, and the ends of lines, which it trims. They travel under the names
# of control characters that text has no use for; where text does hold one of those, an escape goes before it.
_ESCAPE = "\x1b"
_STAND_INS = {SPACE_MARK: "\x01", "\u2585": "\x02", "\t": "\x03", "\x00": "\x04", "\n": "\x05", "\r": "\x06"}
_OUTWARD = {ord(char): inner for char, inner in _STAND_INS.items()} | {
    ord(inner): _ESCAPE + inner for inner in (*_STAND_INS.values(), _ESCAPE)
}
_RESERVED = re.compile("[" + "".join(map(chr, _OUTWARD)) + "]")
_ESCAPED = re.compile(f"{_ESCAPE}(.)|([\x01-\x06])", re.DOTALL)
_STOOD_FOR = {inner: char for char, inner in _STAND_INS.items()}


def escape(text: str) -> str:
    """Put text into the form that sentencepiece reads; no two texts get the same form."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text must be valid Unicode, got a lone surrogate at {error.start}") from error
    return text.translate(_OUTWARD) if _RESERVED.search(text) else text


def unescape(text: str) -> str:
    """Undo `escape`."""
    return _ESCAPED.sub(lambda match: match[1] or _STOOD_FOR[match[2]], text)


def train_model(texts: list[str], **settings: Any) -> bytes:
    """Train on escaped texts and return the serialised model; with fewer pieces than asked if need be."""
    out = io.BytesIO()
    fixed: dict[str, Any] = {
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "character_coverage": 1.0,
        "max_sentence_length": 2**30,  # in bytes; longer lines would be left out without a word
        "hard_vocab_limit": False,  # so that asking too much tells how much there is
        "num_threads": 1,
        "minloglevel": 2,
        "control_symbols": list(SPECIAL_PIECES[4:]),
    }
    for index, name in enumerate(("pad", "unk", "bos", "eos")):
        fixed |= {f"{name}_id": index, f"{name}_piece": SPECIAL_PIECES[index]}
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_writer=out, **fixed, **settings
        )
    except RuntimeError as error:
        raise ValueError(f"sentencepiece cannot learn from these texts: {error}") from error
    return out.getvalue()
