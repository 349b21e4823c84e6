"""Lossless tokenization with sentencepiece, whose subwords are called pieces.

sentencepiece writes a space as U+2581 in its pieces. As it is set up here, decoding an encoded text gives the
same text, no piece crosses a space, and raw text never gives a special id.
"""

from __future__ import annotations

import io
import os
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from tinytx.settings import check_whole, require

SPECIAL_PIECES = ("<pad>", "<unk>", "<bos>", "<eos>", "<mask>", "<cls>", "<sep>")
SPACE_MARK = "\u2581"

# sentencepiece reserves these characters: the space mark, the mark of forced boundaries, tabs, the end of a C
# string, line ends, which it trims, and the separator of units. Control characters replace them; those in a
# text itself are escaped.
_ESCAPE, _CONTROLS = "\x1b", "\x01\x02\x03\x04\x05\x06\x07"
_ORIGINALS = dict(zip(_CONTROLS, SPACE_MARK + "\u2585\t\x00\n\r\x1f", strict=True))
_OUTWARD = {ord(char): inner for inner, char in _ORIGINALS.items()}
_OUTWARD |= {ord(inner): _ESCAPE + inner for inner in (*_CONTROLS, _ESCAPE)}
_RESERVED = re.compile("[" + "".join(map(chr, _OUTWARD)) + "\ud800-\udfff]")  # and lone surrogates
_ESCAPED = re.compile(f"{_ESCAPE}(.)|([{_CONTROLS}])", re.DOTALL)


def several(texts: Iterable[str], name: str = "texts") -> list[str]:
    """A list of texts; TypeError for one text, which would be read letter by letter, and for what is none."""
    if isinstance(texts, str):
        raise TypeError(f"{name} must be a sequence of str, got one str")
    texts = list(texts)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{name} must be str, got {text!r}")
    return texts


def check_unicode(text: str) -> None:
    """Raise a ValueError for a text with a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text must be valid Unicode, got a lone surrogate at {error.start}") from error


def escape(text: str) -> str:
    """Replace the characters that sentencepiece reserves; no two texts become equal."""
    if not _RESERVED.search(text):
        return text
    check_unicode(text)
    return text.translate(_OUTWARD)


def unescape(text: str) -> str:
    """Undo `escape`."""
    return _ESCAPED.sub(lambda match: match[1] or _ORIGINALS[match[2]], text)


_INVISIBLE = "\u00ad\u200b\u2060\ufeff"
_PLAIN = str.maketrans("\u00a0\u2007\u2009\u202f\u2019\u02bc", "    ''", _INVISIBLE)


def plain(text: str) -> str:
    """Normalise the spaces and apostrophes of French texts, and drop invisible characters.

    French texts put one of four different spaces, or none, before an exclamation mark.

    Examples
    --------
    >>> plain("L\u2019eau\u202f!")
    "L'eau !"
    """
    return text.translate(_PLAIN).strip()


_CONTRACTIONS = {"can't": "cannot", "won't": "will not", "n't": " not"}  # replaced in this order
_CONTRACTIONS |= {"'m": " am", "'re": " are", "'s": " is", "'ll": " will", "'ve": " have", "'d": " would"}


def canonical(text: str) -> str:
    """A sentence without case, final punctuation and English contractions, to compare sentences by.

    Examples
    --------
    >>> canonical("I didn't mean to hurt you.") == canonical("I did not mean to hurt you")
    True
    """
    words = " ".join(plain(text).lower().split())
    for short, long in _CONTRACTIONS.items():
        words = words.replace(short, long)
    return words.rstrip(" .!?\u2026")


MOST_UNKNOWN = 0.02  # share of the tokens of texts above which it is said
N_LOOKED_AT = 1_000  # texts


class UnknownTokensWarning(UserWarning):
    """A tokenizer does not know many characters of some texts."""


def warn_of_unknown(tokenizer: Tokenizer, texts: Sequence[str], what: str) -> bool:
    """Warn where more than 2 % of the tokens of texts, or of a sample of many, are unknown; give whether."""
    rows = tokenizer.encode_batch(texts[:: max(1, len(texts) // N_LOOKED_AT)])
    share = sum(row.count(tokenizer.unk_id) for row in rows) / max(1, sum(map(len, rows)))
    if share > MOST_UNKNOWN:
        got = f"{100 * share:.1f} % of the tokens of {what} are unknown to the tokenizer"
        words = f"{got}, which learned from other texts: the model cannot tell them apart"
        warnings.warn(words, UnknownTokensWarning, stacklevel=3)
    return share > MOST_UNKNOWN


MODEL_TYPES = ("unigram", "bpe")
UNKNOWN_SURFACE = "\u2047"
# Longer words, with which training a unigram model takes hours or fails, are cut, and so many parts train.
_LONG_WORD, MOST_PARTS = re.compile("[^ ]{1000}"), 500
_SPELT = re.compile(f"(?<=<)(?=(?:{'|'.join(piece[1:-1] for piece in SPECIAL_PIECES)})>)")
FIXED_SETTINGS: dict[str, Any] = {  # of sentencepiece
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "character_coverage": 1.0,
    "max_sentence_length": 2**30,  # in bytes; longer lines would be dropped silently
    "hard_vocab_limit": False,  # too large a size then gives the largest possible
    "num_threads": 1,
    "minloglevel": 2,
    "control_symbols": list(SPECIAL_PIECES[4:]),
    **{f"{name}_id": index for index, name in enumerate(("pad", "unk", "bos", "eos"))},
    **{f"{name}_piece": f"<{name}>" for name in ("pad", "unk", "bos", "eos")},
}


class Tokenizer:
    """Encode text with a sentencepiece model, and decode it.

    Made by `Tokenizer.train`, `Tokenizer.load` or `Tokenizer.from_bytes`.

    A ValueError refuses bytes that are no serialised sentencepiece model, or one whose first pieces are not
    `SPECIAL_PIECES`.

    Notes
    -----
    With U+2581 written as ``_``, the text ``"le chat"`` is ``_le_chat``: the mark of a space belongs to the
    word after it, and the first word gets one too. So a word has the same pieces at every position, and
    ``encode("a b") == encode("a") + encode("b")``.

    References
    ----------
    Kudo and Richardson, "SentencePiece", arXiv 1808.06226, section 3.2 (lossless tokenization).
    Kudo, "Subword Regularization", arXiv 1804.10959, section 3.2 (the unigram model).

    Examples
    --------
    >>> tokenizer = Tokenizer.train(["le chat", "la table"] * 9, vocab_size=18)
    >>> tokenizer.decode(tokenizer.encode("la  cale"))
    'la  cale'
    >>> tokenizer.encode("la table") == tokenizer.encode("la") + tokenizer.encode("table")
    True
    """

    pad_id: int = 0
    unk_id: int = 1
    bos_id: int = 2
    eos_id: int = 3
    mask_id: int = 4
    cls_id: int = 5
    sep_id: int = 6
    source_frame: tuple[tuple[int, ...], tuple[int, ...]] = ((), (eos_id,))  # around what an encoder reads
    target_prefix: tuple[int, ...] = ()  # between bos and a translation
    forced_ids: tuple[int, ...] = ()  # that every translation begins with

    def __init__(self, model: bytes) -> None:
        self._model = bytes(model)
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(self._model)
        except RuntimeError as error:
            raise ValueError(f"model must be a sentencepiece model, got {len(model)} other bytes") from error
        size = self._processor.get_piece_size()
        first = tuple(self._processor.id_to_piece(i) for i in range(min(size, len(SPECIAL_PIECES))))
        require(first == SPECIAL_PIECES, f"model must begin with the pieces {SPECIAL_PIECES}", first)
        self._surfaces = [self._surface(token_id) for token_id in range(size)]

    def _surface(self, token_id: int) -> bytes:
        """The bytes that one piece adds to the text."""
        piece: str = self._processor.id_to_piece(token_id)
        if self._processor.is_control(token_id):
            return b""
        if self._processor.is_unknown(token_id):
            return UNKNOWN_SURFACE.encode()
        if self._processor.is_byte(token_id):
            return bytes([int(piece[3:-1], 16)])  # "<0xE9>"
        return piece.replace(SPACE_MARK, " ").encode()

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        vocab_size: int,
        model_type: str = "unigram",
        byte_fallback: bool = False,
        split_by_script: bool = True,
        max_chars: int = 10_000_000,
    ) -> Tokenizer:
        """Learn a vocabulary from texts; equal texts and settings give equal bytes.

        Parameters
        ----------
        texts : iterable of str
            Every character that occurs in them becomes a piece, so it is never unknown.
        vocab_size : int
            Number of pieces, the special ones included. A ValueError says which are possible: the characters
            need room, and the texts must fill them.
        model_type : {"unigram", "bpe"}
            "unigram" starts from many pieces, the `vocab_size` commonest words among them, and drops the
            least useful; "bpe" merges frequent neighbours.
        byte_fallback : bool
            Add 256 pieces for single bytes, so no text has an unknown piece.
        split_by_script : bool
            Whether a piece ends between letters and punctuation; if not, "l'" or "mot." can be one piece.
        max_chars : int
            Of longer training texts every second is taken, or every third, and so on.
        """
        known = f"model_type must be one of {', '.join(MODEL_TYPES)}"
        require(model_type in MODEL_TYPES, known, repr(model_type))
        check_whole("max_chars", max_chars, 1)
        inner = [escape(text) for text in several(texts) if text]
        letters = _check_room(inner, vocab_size, byte_fallback)
        inner = inner[:: -(-sum(map(len, inner)) // max_chars)]
        parts = [part for text in inner for part in _LONG_WORD.findall(text)]
        inner = [_LONG_WORD.sub("", text) for text in inner] + parts[:: -(-len(parts) // MOST_PARTS) or 1]
        if model_type == "unigram":
            # Candidates are substrings that continue in two ways: where a space follows "est" each time, it
            # would be none. So the commonest words are added, each once on its own.
            words = Counter(word for text in inner for word in text.split(" ") if word)
            inner += [word for word, _ in words.most_common(vocab_size)]
        else:
            # Each letter has to occur outside a special piece that is spelt out: where one does not, BPE of
            # sentencepiece before 0.2.3 ends the process.
            inner = [part for text in inner for part in _SPELT.split(text)]
            inner += sorted(letters.difference(*inner))
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(inner),
                model_writer=model,
                vocab_size=vocab_size,
                model_type=model_type,
                byte_fallback=byte_fallback,
                split_by_unicode_script=split_by_script,
                required_chars="".join(sorted(letters)),
                **FIXED_SETTINGS,
            )
        except RuntimeError as error:
            raise ValueError(f"sentencepiece cannot learn from these texts: {error}") from error
        tokenizer = cls(model.getvalue())
        rule = f"vocab_size must be at most {tokenizer.vocab_size}, the most that these texts can fill"
        require(tokenizer.vocab_size == vocab_size, rule, vocab_size)
        return tokenizer

    @property
    def vocab_size(self) -> int:
        """Number of pieces, the special ones included."""
        return len(self._surfaces)

    def __repr__(self) -> str:
        return f"Tokenizer(vocab_size={self.vocab_size})"

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes]]:
        return Tokenizer, (self._model,)

    def encode(self, text: str) -> list[int]:
        """Ids of a text; the only special id is that of unknown characters.

        ``decode(encode(text)) == text`` if every character is known. A word with unknown ones is read in that
        form of Unicode, composed or decomposed, in which fewest are unknown.
        """
        inner = escape(text)
        token_ids: list[int] = self._processor.encode(inner)
        if self.unk_id in token_ids:
            words = map(self._known_form, inner.split(" "))
            token_ids = self._processor.encode(" ".join(words))
        return token_ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of several texts."""
        return [self.encode(text) for text in several(texts)]

    def _known_form(self, word: str) -> str:
        """The form of an escaped word, as it is, composed or decomposed, with the fewest unknown tokens."""
        forms = dict.fromkeys([word, *(unicodedata.normalize(form, word) for form in ("NFC", "NFD"))])
        return min(forms, key=lambda form: self._processor.encode(form).count(self.unk_id))

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of several translations: `encode_batch`, as both languages share one vocabulary."""
        return self.encode_batch(texts)

    def decode(self, token_ids: Iterable[int]) -> str:
        """Text of ids below `vocab_size`; special pieces add nothing, an unknown one adds U+2047."""
        surfaces = []
        for token_id in token_ids:
            self._check_id(token_id)
            surfaces.append(self._surfaces[token_id])
        text = b"".join(surfaces).decode("utf-8", errors="replace")
        return unescape(text.removeprefix(" "))

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text, one for each id of ``encode(text)``, with U+2581 for a space."""
        return [self.piece(token_id) for token_id in self.encode(text)]

    def piece(self, token_id: int) -> str:
        """One piece, with U+2581 for a space."""
        self._check_id(token_id)
        return unescape(self._processor.id_to_piece(token_id))

    def word_pieces(self, word: str) -> tuple[int, ...]:
        """Ids of one word, not empty and without a space.

        ``encode(" ".join(words))`` is the concatenation of these over `words`.
        """
        require(word and " " not in word, "word must be non-empty and hold no space", repr(word))
        return tuple(self.encode(word))

    def _check_id(self, token_id: int) -> None:
        if not 0 <= token_id < self.vocab_size:
            raise ValueError(f"token_id must be from 0 to {self.vocab_size - 1}, got {token_id}")

    def to_bytes(self) -> bytes:
        """The model as bytes, for `from_bytes`."""
        return self._model

    @classmethod
    def from_bytes(cls, model: bytes) -> Tokenizer:
        """The tokenizer that `to_bytes` wrote."""
        return cls(model)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file."""
        Path(path).write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Read a model that `save` wrote; a ValueError names a file that is missing or of another kind."""
        source = Path(path)
        require(source.is_file(), "tokenizer file must exist", source)
        try:
            return cls.from_bytes(source.read_bytes())
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error


def _check_room(inner: list[str], vocab_size: int, byte_fallback: bool) -> set[str]:
    """The characters of some escaped texts, after a check that the vocabulary has room for them."""
    letters = set[str]().union(*inner) - {" "}
    require(letters, "texts must hold at least one character that is no space", "none")
    n_special = len(SPECIAL_PIECES) + 256 * byte_fallback
    smallest = n_special + 1 + len(letters)
    needed = f"{len(letters)} characters, the space and {n_special} special pieces"
    rule = f"vocab_size must be at least {smallest} for these texts ({needed})"
    require(vocab_size >= smallest, rule, vocab_size)
    return letters
