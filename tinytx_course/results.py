"""Measured results as JSON, with machine, date and commit: experiments write them, lessons read them.

Here is also how files that come with the package are read, and what follows a name that is not known.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import difflib
import json
import subprocess
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any

#: Where files of the course lie: the checkout, then what a wheel brings (setup.py puts it there).
ROOTS = (Path(__file__).resolve().parents[1], Path(__file__).resolve().parent / "data")
#: Where lessons look for results.
FOLDERS = tuple(root / "results" for root in ROOTS)

LOCK_SECONDS = 60.0  # a write takes far less


@cache
def text_of(name: str) -> str:
    """Return a text that comes with this package, such as ``kit/kit.css``."""
    return Path(__file__).parent.joinpath(name).read_text(encoding="utf-8")


@cache
def tables_of(name: str) -> dict[str, Any]:
    """Return what a TOML file of this package holds, such as ``terms.toml``; all callers share it."""
    return tomllib.loads(text_of(name))


def check_plain_name(name: str) -> str:
    """Return the name if it can be a file in any folder on any system.

    Raises
    ------
    ValueError
        If it is empty or holds a folder.
    """
    if name in ("", ".", "..") or PurePath(name).name != name or PureWindowsPath(name).name != name:
        raise ValueError(f"name must be a plain file name without folders, got {name!r}")
    return name


def nearest(word: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return a suggestion to append to an error, or nothing where no name resembles the word so far.

    Examples
    --------
    >>> nearest("causal_msk", ["causal_mask", "padding_mask"])
    "; did you mean 'causal_mask'?"
    """
    found = difflib.get_close_matches(str(word), list(known), n=1, cutoff=cutoff)
    return f"; did you mean {found[0]!r}?" if found else ""


def _commit(checkout: Path = Path(__file__).parent) -> str:
    """Return the commit of a checkout, ``-dirty`` when edited since, or ``unknown`` without git."""
    # Of a measurement before: no edit, or the next one would be called dirty.
    written = (":(top,exclude)results", ":(top,exclude)*.md")
    edits = ("status", "--porcelain", "--untracked-files=no", "--", ":/", *written)
    try:
        commit, edited = (
            subprocess.run(
                ("git", *words), cwd=checkout, capture_output=True, text=True, timeout=20
            ).stdout.strip()
            for words in (("rev-parse", "--short", "HEAD"), edits)
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return f"{commit}-dirty" if commit and edited else commit or "unknown"


def provenance() -> dict:
    """Return where and when something is measured: machine, date (UTC) and commit."""
    from tinytx_course.machine import this_machine

    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"machine": this_machine().to_dict(), "date": today, "commit": _commit()}


class Results:
    """Records by key in ``folder/name.json``; each is on disk as soon as it is put.

    The file also holds the ``runs`` (machine, date, commit) that measured what is there, and the one of each
    record.

    Parameters
    ----------
    name : str
        Name of the file, without ending.
    folder : str or Path
        Made when the first record is put.

    Raises
    ------
    ValueError
        If the name is no plain file name, or the file is no results file.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> Results("demo", folder).put("seed 0", {"seed": 0, "accuracy": 0.5})
    >>> Results("demo", folder).get("seed 0")["accuracy"]
    0.5
    """

    def __init__(self, name: str, folder: str | Path = "results"):
        self.name = check_plain_name(name)
        self.path = Path(folder) / f"{name}.json"
        self._content: dict = {"name": name, "runs": [], "records": {}, "measured_in_run": {}}
        if self.path.exists():
            self._content = self._read()
        self._here: dict | None = None

    def _read(self) -> dict:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except ValueError as problem:
            raise ValueError(f"{self.path} must be JSON written by tinytx, got: {problem}") from problem
        if not isinstance(content, dict) or not {"runs", "records", "measured_in_run"} <= content.keys():
            raise ValueError(f"{self.path} must hold runs, records and measured_in_run, got another layout")
        return content

    @property
    def data(self) -> dict:
        """All records by key, as a copy."""
        return copy.deepcopy(self._content["records"])

    def get(self, key: str) -> dict | None:
        """Return the record under this key, or None."""
        return copy.deepcopy(self._content["records"].get(key))

    def check_place(self) -> None:
        """Refuse a folder that cannot be written to, before anything is measured.

        Raises
        ------
        ValueError
            If it is a file, or writing is forbidden.
        """
        from tinytx_run.files import is_writable  # brings numpy, which readers do not need

        folder = self.path.parent
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        if not is_writable(folder):
            raise ValueError(f"results must go into a folder that can be written to, got {folder}")

    def put(self, key: str, record: dict) -> None:
        """Store a record in the file at once; records that another process has put there since stay.

        Raises
        ------
        TypeError, ValueError
            If JSON cannot hold the record (a tensor, NaN, infinity); the file stays as it was.
        """
        from tinytx_run.files import locked, write_file  # bring numpy, which readers do not need

        record = json.loads(json.dumps(record, allow_nan=False))
        self._here = self._here or provenance()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = self.path.with_name(f".{self.path.name}.lock")
        with locked(lock, LOCK_SECONDS, f"{lock} must be free, but another process holds it"):
            if self.path.exists():
                self._content = self._read()
            before = self._content["runs"]
            measured = {one: before[run] for one, run in self._content["measured_in_run"].items()}
            measured[key] = self._here
            runs = [run for run in before if run in measured.values() and run != self._here] + [self._here]
            self._content["runs"] = runs
            self._content["records"][key] = record
            self._content["measured_in_run"] = {one: runs.index(run) for one, run in measured.items()}
            text = json.dumps(self._content, indent=1, ensure_ascii=False, allow_nan=False)
            write_file(self.path, (text + "\n").encode())

    def source_line(self) -> str:
        """Return one line: where, when and at which commits the stored records were measured."""
        commits: dict[str, dict[str, None]] = {}
        for run in self._content["runs"]:
            machine = run["machine"]
            threads = f"{machine['threads']} thread{'s' * (machine['threads'] != 1)}"
            hardware = machine["gpu"] or f"{machine['cpu']}, {threads}"
            place = f"{run['date']}, {hardware}, PyTorch {machine['torch']}"
            commits.setdefault(place, {})[run["commit"]] = None
        lines = [
            f"{place}, commit{'s' * (len(names) > 1)} {' '.join(names)}" for place, names in commits.items()
        ]
        return "measured " + "; ".join(lines) if lines else "nothing measured yet"


def with_table(page: str, name: str, table: str) -> str:
    """Return a page in Markdown with this table in place of the one between its marks.

    Raises
    ------
    ValueError
        If the page lacks ``<!-- NAME -->`` or ``<!-- end of NAME -->``.
    """
    begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"a page must hold <!-- {name} --> and <!-- end of {name} -->, got one without")
    return f"{before}{begin}\n{table}\n{end}{after}"


def read_results(name: str, folder: str | Path | None = None) -> Results:
    """Return stored results for a notebook to draw.

    Parameters
    ----------
    name : str
        Such as ``transfer``.
    folder : str or Path, optional
        Where to look; by default ``results/`` of the checkout, else the results installed with the course.

    Raises
    ------
    FileNotFoundError
        If they are not there; the message names the command that measures them.
    """
    for place in FOLDERS if folder is None else (Path(folder),):
        if (place / f"{name}.json").is_file():
            return Results(name, place)
    program, _, argument = name.partition("-")
    if program == "bench":
        command = f"python -m benchmarks {argument}"
    elif argument and program == "translation":
        command = f"python -m experiments {program} --corpus {argument}"
    else:
        command = f"python -m experiments {name}"
    raise FileNotFoundError(
        f"results/{name}.json must exist before it can be drawn, got no such file: "
        f"`{command}` measures it and writes it"
    )
