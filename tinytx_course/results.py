"""Measured results as JSON, with machine and date: commands write them, notebooks read them."""

from __future__ import annotations

import copy
import datetime
import json
import subprocess
from pathlib import Path, PurePath, PureWindowsPath

from tinytx_course.machine import this_machine

LOCK_SECONDS = 60.0  # a write takes far less


def check_plain_name(name: str) -> str:
    """Return the name if it can be a file in any folder on any system.

    Raises
    ------
    ValueError
        If it is empty, or leads into or out of a folder.
    """
    if name in ("", ".", "..") or PurePath(name).name != name or PureWindowsPath(name).name != name:
        raise ValueError(f"name must be a plain file name without folders, got {name!r}")
    return name


def _commit() -> str:
    """Return the commit of this checkout, ``-dirty`` when edited since, or ``unknown`` without git."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--exclude=*"],
            cwd=Path(__file__).resolve().parent,
            capture_output=True,
            text=True,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return found.stdout.strip() or "unknown"


def provenance() -> dict:
    """Return where and when something is measured: machine, date (UTC) and commit."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"machine": this_machine().to_dict(), "date": today, "commit": _commit()}


def _seeds(value: object) -> set[int]:
    """Collect every integer kept under ``seed`` or ``seeds`` in a nested record."""
    if isinstance(value, list):
        return set().union(*map(_seeds, value))
    if not isinstance(value, dict):
        return set()
    found: set[int] = set()
    for key, inner in value.items():
        if key == "seed" and isinstance(inner, int):
            found.add(inner)
        elif key == "seeds" and isinstance(inner, list):
            found.update(seed for seed in inner if isinstance(seed, int))
        else:
            found |= _seeds(inner)
    return found


class Results:
    """Records by key in ``folder/name.json``, each on disk as soon as it is put.

    The file also holds a list of ``runs`` (machine, date, commit), which run measured each record, and
    all seeds used, so that a record measured last month is not taken for one of today.

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
        self._content: dict = {"name": name, "runs": [], "seeds": [], "records": {}, "measured_in_run": {}}
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

    @property
    def runs(self) -> list[dict]:
        """Machine, date and commit of each run that measured something, as a copy."""
        return copy.deepcopy(self._content["runs"])

    def get(self, key: str) -> dict | None:
        """Return the record under this key, or None."""
        return copy.deepcopy(self._content["records"].get(key))

    def put(self, key: str, record: dict) -> None:
        """Store a record in the file at once; records that another process has put there since stay.

        Raises
        ------
        TypeError, ValueError
            If JSON cannot hold the record (a tensor, NaN, infinity); the file stays as it was.
        """
        from tinytx.training.files import locked, write_file  # bring torch, which readers do not need

        record = json.loads(json.dumps(record, allow_nan=False))
        self._here = self._here or provenance()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = self.path.with_name(f".{self.path.name}.lock")
        with locked(lock, LOCK_SECONDS, f"{lock} must be free, but another process holds it"):
            if self.path.exists():
                self._content = self._read()
            runs = self._content["runs"]
            if self._here not in runs:
                runs.append(self._here)
            self._content["records"][key] = record
            self._content["measured_in_run"][key] = runs.index(self._here)
            self._content["seeds"] = sorted(_seeds(self._content["records"]))
            text = json.dumps(self._content, indent=1, ensure_ascii=False, allow_nan=False)
            write_file(self.path, (text + "\n").encode())

    def source_line(self) -> str:
        """Return one line that says where, when and from which commits the records that are kept come."""
        commits: dict[str, dict[str, None]] = {}
        for number in sorted(set(self._content["measured_in_run"].values())):
            run = self._content["runs"][number]
            machine = run["machine"]
            threads = f"{machine['threads']} thread{'s' * (machine['threads'] != 1)}"
            where = machine["gpu"] or f"{machine['cpu']}, {threads}"
            place = f"{run['date']}, {where}, PyTorch {machine['torch']}"
            commits.setdefault(place, {})[run["commit"]] = None
        lines = [
            f"{place}, commit{'s' * (len(found) > 1)} {' '.join(found)}" for place, found in commits.items()
        ]
        return "measured " + "; ".join(lines) if lines else "nothing measured yet"


def read_results(name: str, folder: str | Path | None = None) -> Results:
    """Return kept results for a notebook to draw.

    Parameters
    ----------
    name : str
        Such as ``transfer``.
    folder : str or Path, optional
        ``results/`` of this checkout unless told otherwise.

    Raises
    ------
    FileNotFoundError
        If they are not there; the message names the command that makes them.
    """
    where = Path(__file__).resolve().parents[1] / "results" if folder is None else Path(folder)
    if not (where / f"{name}.json").is_file():
        raise FileNotFoundError(
            f"{where.name}/{name}.json must exist before it can be drawn, got no such file: "
            f"`python -m experiments {name}` measures it and writes it"
        )
    return Results(name, where)
