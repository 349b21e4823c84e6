"""Tokenizers of `transformers` behind the interface of ours, for published models."""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
import unicodedata
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tinytx.settings import require
from tinytx.tokenizer import SPACE_MARK, Tokenizer, check_unicode, several
from tinytx_run.conversion import unzip
from tinytx_run.files import library
from tinytx_run.hf.folders import CONFIG_FILE, read

MARKS_FILE = "marks.json"
_OF_TOKENIZER = re.compile(r"(tokenizer|vocab|merges|special_tokens).*|.*\.(model|spm)")  # names of its files
MIN_KNOWN = 0.9  # of the ids of a model, the share for which its tokenizer must have a token


class PretrainedTokenizer(Tokenizer):
    """Split text into the tokens that a published model was trained on.

    Parameters
    ----------
    inner : transformers.PreTrainedTokenizerBase
    n_ids : int
        Vocabulary size of the model; some models have a few more ids than their tokenizer.
    start_id, forced_id : int, optional
        What a decoder reads first, and the first id of every translation, where the model asks for one.

    Notes
    -----
    A special token that is missing is replaced by the nearest one: GPT-2 has only an end token, which also
    begins its texts. Padding must be a token that no text contains; if none is reserved, it is the byte 0xFF,
    which never occurs in UTF-8, or else an id of the model that has no token.

    Tokens that were added to a tokenizer, but not to its model, such as ``[PAD]``, are not used.

    Decomposed letters are composed first, as in the texts that such models learned from.

    Unlike ours, such a tokenizer may lose information: BERT's lowers case and drops accents. Marian's
    normalises quotes and dashes if the package `sacremoses` is installed.
    """

    def __init__(
        self, inner: Any, *, n_ids: int, start_id: int | None = None, forced_id: int | None = None
    ) -> None:
        self._inner, self._n_ids, self._start_id = inner, n_ids, start_id
        self.forced_ids = () if forced_id is None else (forced_id,)
        n_known = len(inner) - sum(number >= n_ids for number in inner.added_tokens_decoder)
        rule = f"a tokenizer must have a token for each of the {n_ids} ids of its model"
        cause = "files of the tokenizer are missing, or belong to another model"
        require(MIN_KNOWN * n_ids <= n_known <= n_ids, rule, f"{n_known}: {cause}")
        from transformers.convert_slow_tokenizer import bytes_to_unicode

        backend = getattr(inner, "backend_tokenizer", None)
        decoder = "" if backend is None else json.dumps(json.loads(backend.to_str())["decoder"])
        # Byte-level tokenizers write each byte as a letter that prints.
        bytes_of = {letter: byte for byte, letter in bytes_to_unicode().items()}
        self._letters = bytes_of if "ByteLevel" in decoder else {}
        end = _first(inner.eos_token_id, inner.sep_token_id)
        require(end is not None, "a tokenizer must have an end token", "one that has none")
        self.eos_id: int = end
        begin = _first(inner.bos_token_id, inner.cls_token_id, end)
        self.bos_id: int = _first(start_id, begin)
        self.cls_id: int = _first(inner.cls_token_id, begin)
        self.sep_id: int = _first(inner.sep_token_id, end)
        self.unk_id: int = _first(inner.unk_token_id, end)
        self.mask_id: int = _first(inner.mask_token_id, end)
        self.pad_id: int = self._padding(begin)
        marks = {self.pad_id, self.bos_id, self.eos_id, self.cls_id, self.sep_id, self.mask_id}
        self._silent = marks - {inner.unk_token_id}
        self._bytes: bytes | None = None
        self.source_frame = self._frame("text")
        language = getattr(inner, "tgt_lang", None)  # the next call makes it the one that is read, if none
        prefix = self._frame("text_target")[0] if start_id is not None else ()
        if prefix and prefix[0] not in (inner.bos_token_id, inner.cls_token_id) and not self.forced_ids:
            if language is None:
                rule = "must name the one to write (tgt_lang), or its model (forced_bos_token_id)"
                raise ValueError(f"a tokenizer of several languages {rule}, got neither")
            self.forced_ids = prefix
        self.target_prefix = self.forced_ids or prefix

    def _padding(self, begin: int) -> int:
        given, vocabulary = self._inner.pad_token_id, self._inner.get_vocab()
        if given is not None and given not in (self.eos_id, begin, self.unk_id) and given < self._n_ids:
            return given
        never = next((letter for letter, byte in self._letters.items() if byte == 0xFF), "<0xFF>")
        unused: int = vocabulary.get(never, max(i for i in vocabulary.values() if i < self._n_ids) + 1)
        rule, got = "a tokenizer must have a padding token that no text holds", self._inner.pad_token
        require(unused < self._n_ids, rule, got or "none")
        return unused

    def _frame(self, side: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The special tokens that the model expects before and after a text."""
        bare, framed = (
            self._inner(**{side: "a"}, add_special_tokens=special)["input_ids"] for special in (False, True)
        )
        start = next((i for i in range(len(framed)) if framed[i : i + len(bare)] == bare), 0)
        return tuple(framed[:start]), tuple(framed[start + len(bare) :])

    @property
    def vocab_size(self) -> int:
        """Number of ids of the model."""
        return self._n_ids

    def __repr__(self) -> str:
        return f"PretrainedTokenizer({type(self._inner).__name__}, vocab_size={self.vocab_size})"

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return PretrainedTokenizer.from_bytes, (self.to_bytes(),)

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without special tokens; what looks like one is text, or unknown."""
        return self._encode([text], "text")[0]

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of several translations, for models with a vocabulary for each language."""
        return self._encode(texts, "text_target" if self._start_id is not None else "text")

    def _encode(self, texts: Sequence[str], side: str) -> list[list[int]]:
        texts = several(texts)
        for text in texts:
            check_unicode(text)
        if not texts:
            return []
        composed = [min(text, unicodedata.normalize("NFC", text), key=len) for text in texts]
        asked = {side: composed, "add_special_tokens": False, "split_special_tokens": True}
        found = self._inner(**asked, verbose=False)["input_ids"]
        n, silent = self._n_ids, self._silent
        return [[self.unk_id if one in silent or one >= n else one for one in ids] for ids in found]

    def decode(self, token_ids: Iterable[int]) -> str:
        """Text of some ids; special tokens add nothing."""
        ids = [int(token_id) for token_id in token_ids]
        for token_id in ids:
            self._check_id(token_id)
        shown = [token_id for token_id in ids if token_id not in self._silent]
        return self._inner.decode(shown, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def piece(self, token_id: int) -> str:
        """One token as a reader sees it, with U+2581 for a space."""
        self._check_id(token_id)
        piece = self._inner.convert_ids_to_tokens(token_id) or ""
        if piece and all(letter in self._letters for letter in piece):
            raw = bytes(self._letters[letter] for letter in piece)
            piece = raw.decode(errors="replace").replace(" ", SPACE_MARK)
        return piece

    def to_bytes(self) -> bytes:
        """All files of the tokenizer as one zip archive, for `from_bytes`; equal ones give equal bytes."""
        if self._bytes is None:
            with tempfile.TemporaryDirectory() as folder:
                self._inner.save_pretrained(folder)
                files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
            marks = {"n_ids": self._n_ids, "start_id": self._start_id, "forced_ids": self.forced_ids}
            files[MARKS_FILE], out = json.dumps(marks).encode(), io.BytesIO()
            with zipfile.ZipFile(out, "w") as archive:
                for name in sorted(files):
                    entry = zipfile.ZipInfo(name)  # dated 1980, so that equal files give equal bytes
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(entry, files[name])
            self._bytes = out.getvalue()
        return self._bytes

    @classmethod
    def from_bytes(cls, model: bytes) -> PretrainedTokenizer:
        """The tokenizer that `to_bytes` wrote; a ValueError if it did not, or without `transformers`."""
        transformers = library("transformers", "this model's tokenizer")
        try:
            with tempfile.TemporaryDirectory() as folder:
                for name, content in unzip(model).items():
                    (Path(folder) / name).write_bytes(content)
                marks = json.loads((Path(folder) / MARKS_FILE).read_text())
                settings = {name: marks[name] for name in ("n_ids", "start_id")}
                settings["forced_id"] = _first(*marks.get("forced_ids", ()))
                with warnings.catch_warnings():  # some recommend packages
                    warnings.simplefilter("ignore")
                    how = {"local_files_only": True, "trust_remote_code": False}
                    inner = transformers.AutoTokenizer.from_pretrained(folder, **how)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"model must be an archive of a tokenizer, got another: {error}") from error
        return cls(inner, **settings)

    def save_inner(self, folder: Path) -> None:
        """Write the files that ``AutoTokenizer.from_pretrained`` reads."""
        self._inner.save_pretrained(folder)


def published_tokenizer(source: str | os.PathLike[str]) -> PretrainedTokenizer | None:
    """The tokenizer in a folder of `transformers`, or of a published model, by its name.

    None for a folder with no file of a tokenizer.
    """
    if os.path.isdir(source) and not any(_OF_TOKENIZER.fullmatch(name) for name in os.listdir(source)):
        return None
    config, inner = read(source, "AutoConfig"), read(source, "AutoTokenizer")
    start = forced = None
    if config.is_encoder_decoder:
        try:
            writing = read(source, "GenerationConfig")
        except ValueError:  # an older one, which has these settings among the others
            writing = read(source, "GenerationConfig", config_file_name=CONFIG_FILE)
        start = _first(writing.decoder_start_token_id, config.decoder_start_token_id)
        forced = writing.forced_bos_token_id
    try:
        return PretrainedTokenizer(inner, n_ids=config.vocab_size, start_id=start, forced_id=forced)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error


def _first(*ids: int | None) -> Any:
    return next((one for one in ids if one is not None), None)
