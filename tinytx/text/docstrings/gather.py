"""Prose from the docstrings that are on this machine, each paragraph once, and kept for the next time."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tinytx.text.corpus import CorpusWarning
from tinytx.text.docstrings import prose, sources
from tinytx.text.docstrings.prose import paragraphs
from tinytx.text.docstrings.sources import Source, docstrings
from tinytx.text.downloads.folder import data_folder

FOLDER = "docstrings"  # in the data folder
MIN_WORDS = 8  # of a document


@dataclass(frozen=True)
class Document:
    """The prose of one docstring, on one line.

    Parameters
    ----------
    package, module : str
        Where it stands, as `sources.docstrings` names them.
    text : str
    """

    package: str
    module: str
    text: str


@dataclass(frozen=True)
class PackageCount:
    """What was read in a package and what is left of it.

    Parameters
    ----------
    package, version : str
    n_docstrings : int
        As they stand in the source.
    n_documents : int
        With prose that was not met before.
    n_words : int
        Of these documents, between blanks.
    n_distinct : int
        Different words among them: runs of letters, in lower case.
    """

    package: str
    version: str
    n_docstrings: int
    n_documents: int
    n_words: int
    n_distinct: int


@dataclass(frozen=True)
class Gathered:
    """All documents of this machine, with the count that says which ones they are."""

    documents: tuple[Document, ...]
    counts: tuple[PackageCount, ...]

    def card(self) -> str:
        """What was read, a line a package: with the same lines comes the same text.

        The words at the end are for whoever wants to know whether two machines read the same.
        """
        digest = hashlib.sha256()
        for document in self.documents:
            digest.update(f"{document.package}\t{document.module}\t{document.text}\n".encode())
        lines = [
            f"{count.package} {count.version}: {count.n_docstrings:,} docstrings, {count.n_documents:,} "
            f"documents, {count.n_words:,} words, {count.n_distinct:,} different ones"
            for count in self.counts
        ]
        return "\n".join([*lines, f"sha256 of the text: {digest.hexdigest()}"])


def gather(packages: Iterable[Source]) -> Gathered:
    """Read the prose of packages; what was said before, but for names and signs, is left out.

    Parameters
    ----------
    packages : iterable of Source

    Returns
    -------
    Gathered
        No paragraph stands twice, whatever the packages; the order is that of packages, modules and source.
    """
    seen: set[str] = set()
    whole: set[str] = set()  # the same text may be made of other paragraphs
    documents: list[Document] = []
    counts = []
    with _no_collection():
        for source in packages:
            n_docstrings, first = 0, len(documents)
            for module, found in docstrings(source):
                n_docstrings += len(found)
                for docstring in found:
                    text = " ".join(_new(paragraphs(docstring), seen))
                    if text.count(" ") >= MIN_WORDS - 1 and text not in whole:
                        whole.add(text)
                        documents.append(Document(source.name, module, text))
            texts = [document.text for document in documents[first:]]
            words = {word.lower() for text in texts for word in re.findall(r"[^\W\d_]+", text)}
            n_words = sum(len(text.split()) for text in texts)
            counts.append(
                PackageCount(source.name, source.version, n_docstrings, len(texts), n_words, len(words))
            )
    return Gathered(tuple(documents), tuple(counts))


def _new(found: Iterable[str], seen: set[str]) -> Iterator[str]:
    for paragraph in found:
        key = " ".join(re.findall(r"[a-z]+", paragraph.lower()))
        if key not in seen:
            seen.add(key)
            yield paragraph


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    # A syntax tree is thousands of objects that die together: looking for cycles among them, of which there
    # are none, takes most of the time.
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def gathered(packages: Iterable[Source], folder: Path | None = None) -> Gathered:
    """`gather`, kept on disk for the next time.

    Parameters
    ----------
    packages : iterable of Source
    folder : Path, optional
        For the file; by default ``docstrings`` in `data_folder`.

    Returns
    -------
    Gathered

    Warns
    -----
    CorpusWarning
        If what was gathered could not be kept, on a full disk say. Nothing is left of it there, and nothing
        is missing from what is returned.
    """
    packages = tuple(packages)
    file = (data_folder() / FOLDER if folder is None else folder) / f"{_key(packages)}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # absent, or not what was written
        return _read(file)
    fresh = gather(packages)
    try:
        _write(file, fresh)
    except OSError as error:
        warnings.warn(
            f"docstrings: what was gathered could not be kept in {file} ({error}); "
            "it is complete, but gathering takes its time again on the next call",
            CorpusWarning,
            stacklevel=2,
        )
    return fresh


def _key(packages: tuple[Source, ...]) -> str:
    """Changes with the packages, their versions and places, and the rules by which they are read."""
    digest = hashlib.sha256()
    for source in packages:
        digest.update(f"{source.name} {source.version} {source.folder}\n".encode())
    for file in (prose.__file__, sources.__file__, __file__):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:16]


def _read(file: Path) -> Gathered:
    content = json.loads(file.read_bytes())
    return Gathered(
        tuple(Document(*row) for row in content["documents"]),
        tuple(PackageCount(**row) for row in content["counts"]),
    )


def _write(file: Path, found: Gathered) -> None:
    """Write the file in one step or not at all."""
    content = {
        "counts": [asdict(count) for count in found.counts],
        "documents": [[document.package, document.module, document.text] for document in found.documents],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with aside.open("wb") as stream:
            stream.write(json.dumps(content, ensure_ascii=False).encode())
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, file)
    finally:
        aside.unlink(missing_ok=True)
