"""Where docstrings are read: the standard library and the scientific packages that are installed."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import inspect
import os
import platform
import re
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
