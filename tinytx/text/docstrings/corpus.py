"""The corpora `docstrings`, to learn the language from, and `docstrings-packages`, to tell packages apart."""

from __future__ import annotations

import functools
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from tinytx.text.corpus import Corpus, CorpusInfo, Split
from tinytx.text.docstrings.gather import MIN_WORDS, Document, Gathered, gathered
from tinytx.text.docstrings.sources import DISTRIBUTIONS, STANDARD_LIBRARY, installed

HELD_OUT = 0.10  # of the documents of a package, for valid and for test each
MIN_DOCUMENTS = 1_000  # of a package that is a class
SPLITS = ("train", "valid", "test")

DOCSTRINGS = CorpusInfo(
    name="docstrings",
    description="English prose from the docstrings of Python and the scientific packages on this machine",
    labelled=False,
    licence="that of each package: BSD, MIT, PSF and the like; read where it lies, not redistributed",
    source="this machine's Python",
    available=True,
)
PACKAGES = CorpusInfo(
    name="docstrings-packages",
    description="the same, without the names of packages; label = the package that a text comes from",
    labelled=True,
    licence=DOCSTRINGS.licence,
    source=DOCSTRINGS.source,
    available=True,
)

# What packages are called besides their names, and others that only some of them speak of.
_NICKNAMES = (
    *("np", "plt", "mpl", "pd", "nx", "sp", "sns", "sk", "scikit", "scikits", "cpython", "stdlib", "pytorch"),
    *("aten", "caffe2", "pylab", "pyplot", "matlab", "numarray", "numeric", "cython", "numba", "jax", "cupy"),
    *("dask", "pyarrow", "tensorflow", "keras", "onnx", "jupyter"),
)
GIVEAWAYS = frozenset(
    (*_NICKNAMES, STANDARD_LIBRARY, *map(str.lower, DISTRIBUTIONS), *DISTRIBUTIONS.values())
)
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z\"'(])")
# linalg.norm, io/common.py or setup.py, but neither e.g. nor 0.5
_PATH = re.compile(r"[A-Za-z_]\w\.[A-Za-z_]\w|\w/\w+\.\w|\w\.pyx?\b")


@functools.cache
def _gathered() -> Gathered:
    return gathered(installed())


@functools.cache
def docstrings_corpus() -> Corpus:
    """All documents of this machine; a module's stand in one split.

    Raises
    ------
    ValueError
        If no source of Python is on this machine.
    """
    found = _gathered()
    texts: dict[str, list[str]] = {name: [] for name in SPLITS}
    for document, name in _placed(found.documents):
        texts[name].append(document.text)
    if not all(texts.values()):
        raise ValueError(
            f"the source of Python must be on this machine, got {len(found.documents)} docstrings"
        )
    splits = {name: Split(tuple(texts[name])) for name in SPLITS}
    return Corpus.from_splits(
        DOCSTRINGS.name, splits, licence=DOCSTRINGS.licence, source=DOCSTRINGS.source, card=found.card()
    )


@functools.cache
def packages_corpus() -> Corpus:
    """Documents of the larger packages, equally many of each, with the package as label.

    Sentences that name a package or a path are left out. Documents stand in the split in which
    `docstrings_corpus` has them: to a model pretrained on its train split, test texts of this one are new.

    Raises
    ------
    ValueError
        If fewer than two packages are large enough.
    """
    found = _gathered()
    return label_packages(found, [count.package for count in found.counts])


def label_packages(found: Gathered, packages: Iterable[str], *, min_documents: int = MIN_DOCUMENTS) -> Corpus:
    """`packages_corpus` of the packages among some that have enough documents left."""
    texts: dict[str, dict[str, list[str]]] = defaultdict(lambda: {name: [] for name in SPLITS})
    seen: set[str] = set()
    for document, name in _placed(found.documents):
        text = without_giveaways(document.text)
        if text.count(" ") >= MIN_WORDS - 1 and text not in seen:
            seen.add(text)
            texts[document.package][name].append(text)
    names = tuple(p for p in packages if sum(map(len, texts[p].values())) >= min_documents)
    if len(names) < 2:
        raise ValueError(
            f"{PACKAGES.name} must have at least 2 packages of {min_documents:,} documents, got {len(names)}"
        )
    splits = {name: _balanced([texts[package][name] for package in names]) for name in SPLITS}
    return Corpus.from_splits(
        PACKAGES.name,
        splits,
        licence=PACKAGES.licence,
        source=PACKAGES.source,
        label_names=names,
        card=found.card(),
    )


def _balanced(texts: Sequence[Sequence[str]]) -> Split:
    """Equally many texts of each class, drawn and mixed by their hashes."""
    n_each = min(map(len, texts))
    rows = [
        (text, label) for label, of_class in enumerate(texts) for text in sorted(of_class, key=_hash)[:n_each]
    ]
    rows.sort(key=lambda row: _hash(row[0]))
    return Split(tuple(text for text, _ in rows), tuple(label for _, label in rows))


def _placed(documents: Iterable[Document]) -> Iterable[tuple[Document, str]]:
    """Each document with its split.

    The modules of a package are taken in the order of their hashes and fill test, then valid, each up to its
    share of the documents; a module too large for the room that is left goes on. What a package gives to a
    split thus depends on no other package.
    """
    modules: dict[str, dict[str, list[Document]]] = defaultdict(lambda: defaultdict(list))
    for document in documents:
        modules[document.package][document.module].append(document)
    for package, of_package in modules.items():
        room = int(HELD_OUT * sum(map(len, of_package.values())))
        for module, split in _splits(
            package, {m: len(found) for m, found in of_package.items()}, room
        ).items():
            for document in of_package[module]:
                yield document, split


def _splits(package: str, sizes: Mapping[str, int], room: int) -> dict[str, str]:
    rooms = {"test": room, "valid": room}
    split_of = dict.fromkeys(sizes, "train")  # in the order of the source
    for module in sorted(sizes, key=lambda module: _hash(f"{package}/{module}")):
        for split in rooms:
            if sizes[module] <= rooms[split]:
                rooms[split] -= sizes[module]
                split_of[module] = split
                break
    return split_of


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def without_giveaways(text: str) -> str:
    """A text without the sentences that name a package or a path in one.

    Notes
    -----
    Names of things stay, such as "dataframe" or "estimator": they are what the texts are about.

    Examples
    --------
    >>> without_giveaways("Return the mean. Unlike numpy.mean it keeps the type. See NumPy. It is fast.")
    'Return the mean. It is fast.'
    """
    if not _gives_away(text):
        return text
    return " ".join(sentence for sentence in _SENTENCE_END.split(text) if not _gives_away(sentence))


def _gives_away(sentence: str) -> bool:
    words = re.findall(r"[a-z][a-z0-9]*", sentence.lower())
    return not GIVEAWAYS.isdisjoint(words) or _PATH.search(sentence) is not None
