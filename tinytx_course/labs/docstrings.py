"""The corpora `docstrings`, to learn the language from, and `docstrings-packages`, to tell packages apart."""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import hashlib
import importlib.metadata
import importlib.util
import inspect
import itertools
import json
import math
import platform
import re
import sysconfig
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tinytx.text.corpora import Corpus, CorpusWarning, Split
from tinytx.text.download import data_folder
from tinytx.text.tokenizer import plain
from tinytx.training.files import write_file

MIN_WORDS, MIN_WORDS_OF_A_DOCUMENT = 4, 8  # the former of a paragraph
LONGEST_TITLE = 40  # characters
MIN_PLAIN_WORDS = 0.75  # share of the words of a paragraph that must be words, not code
MIN_FUNCTION_WORDS = 0.15  # share of them that must be among the following
_words = re.compile(r"\S+").findall
FUNCTION_WORDS = frozenset(
    _words(
        "a about after all also an and any are as at be been before between both but by can cannot do does "
        "each for from given has have if in into is it its may more must no not of on one only or other out "
        "over same should so some such than that the their them then there these they this to two under used "
        "use using was we were what when where whether which while will with within without would you your"
    )
)

# Sections, fields and directives that hold lists, code or what every function repeats.
SECTIONS = re.compile(
    r"(other |keyword |optional |input |output |key)?"
    r"(parameters?|params?|arguments?|args|inputs?|outputs?|attributes?)"
    r"|returns?|yields?|receives?|raises?|exceptions?|warns?|examples?|usage|see also|references?|methods|"
    r"properties|shapes?|signature|authors?|copyright|licen[cs]e|routine listings?|functions?|classes",
    re.IGNORECASE,
)
PROSE_HEADERS = re.compile(r"notes?|warnings?|tips?|important|description|details|remarks?", re.IGNORECASE)
PROSE_DIRECTIVES = frozenset(("note", "warning", "tip", "important", "caution", "attention", "hint"))
_UNDERLINE = re.compile(r"([-=~^*#\"'])\1{2,}")
_HEADER = re.compile(r"([A-Z][A-Za-z ]{2,30}?)\s*:{1,2}")
_HEADER_AND_TEXT = re.compile(
    r"(Args?|Arguments?|Parameters?|Returns?|Yields?|Raises|Examples?|Usage) ?:(?!:).*[^:]"
)
_DIRECTIVE = re.compile(r"\.\. ?([\w-]+) ?::\s*(.*)")
_FIELD = re.compile(r"[:@]\w+[^:]*:(?![\w`:])|@\w+")  # :param x: ..., but not :func:`...`
_BULLET = re.compile(r"(?:[-*+\u2022]|\(?\w{1,2}[.)])\s+(?=\S)")
_RULED = re.compile(r"(?m)^[ |+=\-_~*]{4,}$|   |[|+]$")  # tables, pictures, columns

# A sign that must be there, a pattern, and what it becomes.
_MARKUP = tuple(
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

    Left out are doctests, code, formulas on lines of their own, tables, directives other than notes and
    warnings, and sections that list parameters, results, errors, examples and references. The docstring, in
    any of the usual styles, has no indentation, as `ast.get_docstring` gives it.

    Examples
    --------
    >>> paragraphs("Return the mean, see :func:`~numpy.median` too.\\n\\n>>> mean([1, 2])\\n1.5\\n")
    ['Return the mean, see median too.']
    """
    lines = _prose_lines(docstring.expandtabs().splitlines())
    blocks = ("\n".join(block) for is_text, block in itertools.groupby(lines, bool) if is_text)
    return [text for text in map(_cleaned, blocks) if is_prose(text)]


def is_prose(text: str) -> bool:
    """Whether a paragraph without markup is mostly words, and enough of them are small words of English.

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
    """A paragraph on one line without markup; nothing of a table."""
    if _RULED.search(block):
        return ""
    for sign, pattern, to in _MARKUP:
        if sign in block:
            block = pattern.sub(to, block)
    return plain(" ".join(block.split()))


def _prose_lines(lines: list[str]) -> Iterator[str]:
    """The lines that may be prose, with an empty one wherever a paragraph ends."""
    in_section = in_doctest = False  # left out: up to the next title, up to the next blank line
    dropped_below = math.inf  # lines indented deeper than this are left out
    for line, below in itertools.pairwise([*lines, ""]):
        text = line.strip()
        if not text or _UNDERLINE.fullmatch(text):
            in_doctest = False
            yield ""
        elif in_doctest:
            continue
        elif len(text) <= LONGEST_TITLE and _UNDERLINE.fullmatch(below.strip()):
            in_section, dropped_below = SECTIONS.fullmatch(text.rstrip(":")) is not None, math.inf
            yield ""
        elif not in_section and (indent := len(line) - len(line.lstrip())) <= dropped_below:
            in_doctest = text.startswith(">>>")
            text, drops = ("", False) if in_doctest else _without_header(text)
            dropped_below = indent if drops else math.inf
            bullet = _BULLET.match(text)
            if bullet:
                yield ""
            yield text[bullet.end() :] if bullet else text


def _without_header(text: str) -> tuple[str, bool]:
    """What a line holds besides directive, field and header; whether lines indented below are left out."""
    if text.startswith(".."):
        directive = _DIRECTIVE.match(text)
        if directive and directive[1].lower() in PROSE_DIRECTIVES:
            return directive[2], False
        return "", True
    header = _HEADER.fullmatch(text)
    is_section = header and SECTIONS.fullmatch(header[1])
    if is_section or _HEADER_AND_TEXT.fullmatch(text) or _FIELD.match(text):
        return "", True
    is_title = header and PROSE_HEADERS.fullmatch(header[1])
    return "" if is_title else text, text.endswith("::") and text[0] not in ":@"


STANDARD_LIBRARY = "python"
# Packages whose docstrings are written to be read, by import name, in the order of the corpus.
IMPORT_NAMES = _words(
    "numpy scipy pandas matplotlib sklearn torch sympy networkx mpmath seaborn PIL IPython statsmodels "
    "skimage xarray astropy h5py nltk"
)
DISTRIBUTIONS = {"sklearn": "scikit-learn", "PIL": "pillow", "skimage": "scikit-image"}  # where names differ
# Folders of tests, of other people's packages, and of what no reader is meant to see.
LEFT_OUT = _words(
    "tests test testing conftest externals vendored site-packages dist-packages idlelib lib2to3 pydoc_data "
    "turtledemo ensurepip encodings"
)
READ_ALL_THE_SAME = "_core"  # of the folders whose names begin with an underscore
MIN_QUOTED = 1 / 6  # share of a file in triple quotes; files of code alone take long and give little
_QUOTED = re.compile(rb'"""(.+?)"""', re.DOTALL)
# Calls that hand a docstring to compiled code.
ADDERS = frozenset(("add_docstr", "add_docstr_all", "_add_docstr", "add_newdoc"))


@dataclass(frozen=True)
class Source:
    """A package to read: its import name, or `STANDARD_LIBRARY`, its version and its folder."""

    name: str
    version: str
    folder: Path


def installed() -> tuple[Source, ...]:
    """The packages that are there to be read, found without importing them.

    Examples
    --------
    >>> [source.name for source in installed()][:2]
    ['python', 'numpy']
    """
    library = Path(sysconfig.get_path("stdlib"))  # may be an archive, which is not read
    found = [Source(STANDARD_LIBRARY, platform.python_version(), library)] if library.is_dir() else []
    for name in IMPORT_NAMES:
        # ValueError: a module that was put together by hand
        with contextlib.suppress(ImportError, ValueError):
            version = importlib.metadata.version(DISTRIBUTIONS.get(name, name))
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.submodule_search_locations:
                found.append(Source(name, version, Path(next(iter(spec.submodule_search_locations)))))
    return tuple(found)


def docstrings(source: Source) -> Iterator[tuple[str, list[str]]]:
    """Read the docstrings of each module of a package, such as ``linalg/_linalg``; nothing is run.

    They are those of the module, its classes, their methods and its functions, and those that it hands to
    compiled code. Files with little in triple quotes are left out, and those that this Python cannot parse.
    """
    for file in _files(source.folder):
        content = file.read_bytes()
        if sum(map(len, _QUOTED.findall(content))) >= MIN_QUOTED * len(content):
            with contextlib.suppress(SyntaxError, ValueError, RecursionError), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about escapes in strings, which are not ours to mend
                if found := list(_of_node(ast.parse(content))):
                    yield file.relative_to(source.folder).with_suffix("").as_posix(), found


def _files(folder: Path) -> Iterator[Path]:
    """The modules below a folder, in the same order on every machine."""
    for path in sorted(folder.iterdir()):
        name = path.name
        if path.is_dir():
            is_hidden = name.startswith("_") and name != READ_ALL_THE_SAME
            if not (path.is_symlink() or is_hidden or name in LEFT_OUT):
                yield from _files(path)
        elif name.endswith(".py") and not name.startswith("test_") and path.is_file():
            yield path


def _of_node(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """The docstring of a module, class or function, then those of what a module or class holds."""
    if own := ast.get_docstring(node):
        yield own
    for part in node.body if isinstance(node, ast.Module | ast.ClassDef) else ():
        if isinstance(part, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _of_node(part)
        elif isinstance(part, ast.Expr | ast.Assign) and isinstance(part.value, ast.Call):
            yield from _handed_over(part.value)


def _handed_over(call: ast.Call) -> Iterator[str]:
    """The docstring among the arguments of ``add_docstr(function, docstring)`` and the like."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ADDERS:
        for part in itertools.chain(*map(ast.walk, call.args)):  # the text may be within (...).format(...)
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and "\n" in part.value:
                yield inspect.cleandoc(part.value)


class Document(NamedTuple):
    """The prose of one docstring, on one line, and where it was found."""

    package: str
    module: str
    text: str


class PackageCount(NamedTuple):
    """How many words, between blanks, the documents of a package have."""

    package: str
    version: str
    n_words: int


@dataclass(frozen=True)
class Gathered:
    """The documents of some packages, and the counts of these."""

    documents: tuple[Document, ...]
    counts: tuple[PackageCount, ...]


def gather(packages: Iterable[Source]) -> Gathered:
    """Read the prose of packages, in their order; no paragraph occurs twice, whatever its signs."""
    seen: set[str] = set()
    whole: set[str] = set()  # the same text may be made of other paragraphs
    documents: list[Document] = []
    counts = []
    # A syntax tree is thousands of objects that die together: looking for cycles among them, of which there
    # are none, takes most of the time.
    gc.disable()
    try:
        for source in packages:
            first = len(documents)
            for module, found in docstrings(source):
                for docstring in found:
                    text = " ".join(_new(paragraphs(docstring), seen))
                    if text.count(" ") >= MIN_WORDS_OF_A_DOCUMENT - 1 and text not in whole:
                        whole.add(text)
                        documents.append(Document(source.name, module, text))
            n_words = sum(len(document.text.split()) for document in documents[first:])
            counts.append(PackageCount(source.name, source.version, n_words))
    finally:
        gc.enable()
    return Gathered(tuple(documents), tuple(counts))


def _new(found: Iterable[str], seen: set[str]) -> Iterator[str]:
    for paragraph in found:
        key = " ".join(re.findall(r"[a-z]+", paragraph.lower()))
        if key not in seen:
            seen.add(key)
            yield paragraph


def gathered(packages: Sequence[Source], folder: Path | None = None) -> Gathered:
    """`gather`, cached on disk: in `folder`, by default ``docstrings`` in `data_folder`.

    Warns
    -----
    CorpusWarning
        If the cache cannot be written, on a full disk say; what is returned is complete.
    """
    digest = hashlib.sha256(Path(__file__).read_bytes())  # the cache changes with the rules in this file
    for source in packages:
        digest.update(f"{source.name} {source.version} {source.folder}\n".encode())
    file = (folder or data_folder() / "docstrings") / f"{digest.hexdigest()[:16]}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # absent, or damaged
        content = json.loads(file.read_bytes())
        documents = tuple(Document(*row) for row in content["documents"])
        return Gathered(documents, tuple(PackageCount(*row) for row in content["counts"]))
    fresh = gather(packages)
    try:
        write_file(file, json.dumps(vars(fresh), ensure_ascii=False).encode())
    except OSError as error:
        message = f"docstrings: the cache {file} must be writable, got {error}"
        warnings.warn(message, CorpusWarning, stacklevel=2)
    return fresh


HELD_OUT = 0.10  # of the documents of a package, for valid and for test each
MIN_DOCUMENTS = 1_000  # of a package that is a class
SPLITS = ("train", "valid", "test")
LICENCE = "that of each package: BSD, MIT, PSF and the like; read where it lies, not redistributed"

# What packages are called besides their names, and others that only some of them speak of.
_NICKNAMES = _words(
    "np plt mpl pd nx sp sns sk scikit scikits cpython stdlib pytorch aten caffe2 pylab pyplot matlab "
    "numarray numeric cython numba jax cupy dask pyarrow tensorflow keras onnx jupyter pillow"
)
GIVEAWAYS = frozenset((*_NICKNAMES, STANDARD_LIBRARY, *map(str.lower, IMPORT_NAMES)))
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z\"'(])")
# linalg.norm, io/common.py or setup.py, but neither e.g. nor 0.5
_PATH = re.compile(r"[A-Za-z_]\w\.[A-Za-z_]\w|\w/\w+\.\w|\w\.pyx?\b")


@functools.cache
def _gathered() -> Gathered:
    return gathered(installed())


@functools.cache
def docstrings_corpus() -> Corpus:
    """All documents of this machine; those of a module are in one split."""
    documents = _gathered().documents
    texts: dict[str, list[str]] = {name: [] for name in SPLITS}
    for document, name in _placed(documents):
        texts[name].append(document.text)
    if not all(texts.values()):
        raise ValueError(f"the source of Python must be on this machine, got {len(documents)} docstrings")
    train, valid, test = (Split(tuple(texts[name])) for name in SPLITS)
    return Corpus("docstrings", train, valid, test, LICENCE, "this machine's Python")


@functools.cache
def packages_corpus() -> Corpus:
    """Documents of the larger packages, equally many of each, with the package as label.

    Sentences that name a package or a path are left out. Documents are in the split in which
    `docstrings_corpus` has them: to a model pretrained on its train split, test texts of this one are new.
    """
    return label_packages(_gathered().documents)


def label_packages(documents: Iterable[Document], min_documents: int = MIN_DOCUMENTS) -> Corpus:
    """`packages_corpus` of those packages that have enough documents left."""
    texts: dict[str, dict[str, list[str]]] = defaultdict(lambda: {name: [] for name in SPLITS})
    seen: set[str] = set()
    for document, name in _placed(documents):
        text = without_giveaways(document.text)
        if text.count(" ") >= MIN_WORDS_OF_A_DOCUMENT - 1 and text not in seen:
            seen.add(text)
            texts[document.package][name].append(text)
    large = {name: found for name, found in texts.items() if sum(map(len, found.values())) >= min_documents}
    if len(large) < 2:
        raise ValueError(
            f"docstrings-packages needs 2 packages of {min_documents:,} documents or more, got {len(large)}"
        )
    train, valid, test = (_balanced([found[name] for found in large.values()]) for name in SPLITS)
    return Corpus("docstrings-packages", train, valid, test, LICENCE, "this machine's Python", tuple(large))


def _balanced(texts: Sequence[Sequence[str]]) -> Split:
    """Equally many texts of each class, drawn and mixed by their hashes."""
    n_each = min(map(len, texts))
    rows = [(text, label) for label, found in enumerate(texts) for text in sorted(found, key=_hash)[:n_each]]
    rows.sort(key=lambda row: _hash(row[0]))
    return Split(tuple(text for text, _ in rows), tuple(label for _, label in rows))


def _placed(documents: Iterable[Document]) -> Iterator[tuple[Document, str]]:
    """Each document with its split, which depends on no other package.

    The modules of a package, in the order of their hashes, fill test, then valid, each up to its share of the
    documents; one too large for the room that is left is tried in the next split.
    """
    packages: dict[str, dict[str, list[Document]]] = defaultdict(lambda: defaultdict(list))
    for document in documents:
        packages[document.package][document.module].append(document)
    for package, modules in packages.items():
        share = int(HELD_OUT * sum(map(len, modules.values())))
        rooms = {"test": share, "valid": share, "train": math.inf}
        split_of = {}
        for _, module in sorted((_hash(f"{package}/{module}"), module) for module in modules):
            n = len(modules[module])
            split_of[module] = next(split for split, room in rooms.items() if n <= room)
            rooms[split_of[module]] -= n
        for module, found in modules.items():
            for document in found:
                yield document, split_of[module]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def without_giveaways(text: str) -> str:
    """A text without the sentences that name a package or a path; "dataframe" or "estimator" may stay.

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
