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
import os
import platform
import re
import sysconfig
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tinytx.text.corpora import Corpus, CorpusWarning, Split
from tinytx.text.download import data_folder
from tinytx.text.tokenizer import plain

DOCSTRINGS, PACKAGES = "docstrings", "docstrings-packages"
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


STANDARD_LIBRARY = "python"
# Import name to distribution: packages whose docstrings are written to be read, in the order of the corpus.
DISTRIBUTIONS = {
    "numpy": "numpy",
    "scipy": "scipy",
    "pandas": "pandas",
    "matplotlib": "matplotlib",
    "sklearn": "scikit-learn",
    "torch": "torch",
    "sympy": "sympy",
    "networkx": "networkx",
    "mpmath": "mpmath",
    "seaborn": "seaborn",
    "PIL": "pillow",
    "IPython": "ipython",
    "statsmodels": "statsmodels",
    "skimage": "scikit-image",
    "xarray": "xarray",
    "astropy": "astropy",
    "h5py": "h5py",
    "nltk": "nltk",
}
# Folders of tests, of other people's packages, and of what no reader is meant to see.
LEFT_OUT = frozenset(
    (
        *("tests", "test", "testing", "conftest", "externals", "vendored", "site-packages", "dist-packages"),
        *("idlelib", "lib2to3", "pydoc_data", "turtledemo", "ensurepip", "encodings", "__pycache__"),
    )
)
READ_ALL_THE_SAME = frozenset(("_core",))  # of the folders whose names begin with an underscore
MIN_QUOTED = 1 / 6  # share of a file in triple quotes; files of code alone take long and give little
_QUOTED = re.compile(rb'"""(.+?)"""', re.DOTALL)
# Calls that hand a docstring to compiled code.
ADDERS = frozenset(("add_docstr", "add_docstr_all", "_add_docstr", "add_newdoc"))


@dataclass(frozen=True)
class Source:
    """A package to read.

    Parameters
    ----------
    name, version : str
        `STANDARD_LIBRARY`, or the name under which a package is imported.
    folder : Path
    """

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
    for name, distribution in DISTRIBUTIONS.items():
        try:
            spec = importlib.util.find_spec(name)
            version = importlib.metadata.version(distribution)
        except (ImportError, ValueError):  # ValueError: a module that was put together by hand
            continue
        if spec is not None and spec.submodule_search_locations:
            found.append(Source(name, version, Path(next(iter(spec.submodule_search_locations)))))
    return tuple(found)


def docstrings(source: Source) -> Iterator[tuple[str, list[str]]]:
    """Read the docstrings of a package, module by module.

    Parameters
    ----------
    source : Source

    Yields
    ------
    module : str
        Its path below the package, such as ``linalg/_linalg``.
    docstrings : list of str
        Of the module, its classes, their methods and its functions, and those that it hands to compiled code;
        without indentation, in the order of the source.

    Notes
    -----
    Source is parsed, never run. Passed over are files with less than `MIN_QUOTED` of their bytes between
    triple quotes, and those that this Python cannot parse.
    """
    for file in _files(source.folder):
        content = file.read_bytes()
        if sum(map(len, _QUOTED.findall(content))) >= MIN_QUOTED * len(content):
            found = _of_module(content)
            if found:
                yield file.relative_to(source.folder).with_suffix("").as_posix(), found


def _files(folder: Path) -> Iterator[Path]:
    """The modules below a folder, in the same order on every machine."""
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and not _is_left_out(entry.name):
            yield from _files(Path(entry))
        elif entry.is_file() and entry.name.endswith(".py") and not entry.name.startswith("test_"):
            yield Path(entry)


def _is_left_out(folder: str) -> bool:
    return folder in LEFT_OUT or folder.startswith("_") and folder not in READ_ALL_THE_SAME


def _of_module(content: bytes) -> list[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings, which are not ours to mend
            tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError):
        return []
    own = ast.get_docstring(tree)
    return [*([own] if own else []), *_of_body(tree)]


def _of_body(node: ast.Module | ast.ClassDef) -> Iterator[str]:
    for part in node.body:
        if isinstance(part, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            own = ast.get_docstring(part)
            if own:
                yield own
            if isinstance(part, ast.ClassDef):
                yield from _of_body(part)
        elif isinstance(part, ast.Expr | ast.Assign) and isinstance(part.value, ast.Call):
            yield from _handed(part.value)


def _handed(call: ast.Call) -> Iterator[str]:
    """The docstring among the arguments of ``add_docstr(function, docstring)`` and the like."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in ADDERS:
        return
    for argument in call.args:
        for part in ast.walk(argument):  # the text may be within (...).format(...)
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and "\n" in part.value:
                yield inspect.cleandoc(part.value)


MIN_WORDS_OF_A_DOCUMENT = 8  # of a document


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
                    if text.count(" ") >= MIN_WORDS_OF_A_DOCUMENT - 1 and text not in whole:
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
    """`gather`, cached on disk: in `folder`, by default ``docstrings`` in `data_folder`.

    Warns
    -----
    CorpusWarning
        If the cache cannot be written, on a full disk say; what is returned is complete.
    """
    packages = tuple(packages)
    file = (data_folder() / DOCSTRINGS if folder is None else folder) / f"{_key(packages)}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # absent, or damaged
        content = json.loads(file.read_bytes())
        documents = tuple(Document(*row) for row in content["documents"])
        return Gathered(documents, tuple(PackageCount(**row) for row in content["counts"]))
    fresh = gather(packages)
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = [[document.package, document.module, document.text] for document in fresh.documents]
        content = {"counts": [asdict(count) for count in fresh.counts], "documents": rows}
        aside.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        os.replace(aside, file)
    except OSError as error:
        with contextlib.suppress(OSError):
            aside.unlink()
        warnings.warn(
            f"docstrings: the cache {file} must be writable, got {error}", CorpusWarning, stacklevel=2
        )
    return fresh


def _key(packages: tuple[Source, ...]) -> str:
    """Changes with the packages, their versions and folders, and the rules in this file."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for source in packages:
        digest.update(f"{source.name} {source.version} {source.folder}\n".encode())
    return digest.hexdigest()[:16]


HELD_OUT = 0.10  # of the documents of a package, for valid and for test each
MIN_DOCUMENTS = 1_000  # of a package that is a class
SPLITS = ("train", "valid", "test")

LICENCE = "that of each package: BSD, MIT, PSF and the like; read where it lies, not redistributed"
SOURCE = "this machine's Python"

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
    train, valid, test = (Split(tuple(texts[name])) for name in SPLITS)
    return Corpus(DOCSTRINGS, train, valid, test, LICENCE, SOURCE)


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
        if text.count(" ") >= MIN_WORDS_OF_A_DOCUMENT - 1 and text not in seen:
            seen.add(text)
            texts[document.package][name].append(text)
    names = tuple(p for p in packages if sum(map(len, texts[p].values())) >= min_documents)
    if len(names) < 2:
        raise ValueError(
            f"{PACKAGES} must have at least 2 packages of {min_documents:,} documents, got {len(names)}"
        )
    splits = {name: _balanced([texts[package][name] for package in names]) for name in SPLITS}
    return Corpus(PACKAGES, **splits, licence=LICENCE, source=SOURCE, label_names=names)


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
