"""Bringing a corpus here: from the network, or from a folder that somebody has filled elsewhere."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinytx.text.downloads.builders import build, rule
from tinytx.text.downloads.fetch import NO_SPACE, PAUSE, FetchError, fetch, no_space
from tinytx.text.downloads.folder import CARD, State, data_folder, inspect, make_card, write_folder
from tinytx.text.downloads.given import Given, read_given
from tinytx.text.downloads.lock import locked
from tinytx.text.downloads.registry import HOST, Dataset

WORKSHOP = ".downloads"  # in the data folder: upstream files until the corpus is made of them


@dataclass(frozen=True)
class Got:
    """What `get` did: whether it wrote anything, and what lies in the folder of the corpus now."""

    dataset: Dataset
    changed: bool
    state: State

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "name": self.dataset.name,
            "folder": str(self.state.folder),
            "changed": self.changed,
            "files": dict(self.state.files),
            "absent": list(self.state.absent),
            "licence": self.dataset.licence,
            "citation": self.dataset.citation,
        }


def get(
    dataset: Dataset,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    source: str | os.PathLike[str] | None = None,
    host: str = HOST,
    report: Callable[[str], None] = print,
    pause: float = PAUSE,
) -> Got:
    """Bring a corpus into the data folder, unless it is there.

    Parameters
    ----------
    dataset : Dataset
    data_dir : path, optional
        See `data_folder`.
    source : path, optional
        A folder to take the files from, as `read_given` says; nothing is downloaded then.
    host : str
        GitHub, or the address of a mirror of its paths.
    report : callable
        Told what happens, a line at a time.
    pause : float
        Seconds before the second attempt at a file.

    Returns
    -------
    Got

    Raises
    ------
    FetchError
        If files cannot be had, are not the known ones, or find no space on the disk. Where a transfer broke
        off, what has come stays, apart from the corpora, and the next call goes on from there.
    ValueError
        If `source` does not hold the corpus, or a folder is in the way that `get` did not write.
    """
    folder = data_folder(data_dir) / dataset.name
    state = inspect(folder, dataset)
    if state.whole:
        report(f"{folder} is there already: nothing to do")
        return Got(dataset, False, state)
    given = None if source is None else read_given(dataset, source)
    workshop = folder.parent / WORKSHOP
    cache = workshop / dataset.name
    try:
        with locked(workshop / f"{dataset.name}.lock", report=report):
            try:
                changed = _bring(dataset, folder, given, cache, host, report, pause)
            except OSError as error:
                if error.errno in NO_SPACE:
                    shutil.rmtree(cache, ignore_errors=True)
                raise
            finally:
                with contextlib.suppress(OSError):  # it is not empty, or was never made
                    cache.rmdir()
    except OSError as error:
        if error.errno in NO_SPACE:
            raise FetchError(no_space(folder)) from error
        raise
    return Got(dataset, changed, inspect(folder, dataset))


def _bring(
    dataset: Dataset,
    folder: Path,
    given: Given | None,
    cache: Path,
    host: str,
    report: Callable[[str], None],
    pause: float,
) -> bool:
    state = inspect(folder, dataset)  # again: another process may have brought it meanwhile
    if state.whole:
        report(f"{folder} is there by now: nothing to do")
        return False
    _refuse_what_is_not_ours(state)
    for fault in state.faults:
        report(f"mending: {fault}")
    if given is None:
        upstream = fetch(dataset, cache, host=host, pause=pause)
        report("making the files of the corpus")
        given = Given(build(dataset, upstream), f"downloaded from {host}", rule(dataset))
    card = make_card(dataset, given.files, origin=given.origin, rule=given.rule)
    if state.files and not state.faults and card["files"] == state.files:
        report(f"{folder} is there already, with as much as the folder given has: nothing to do")
        return False
    lost = [name for name in state.files if name not in given.files]
    if lost:
        raise ValueError(
            f"{folder} holds {', '.join(lost)}, which the folder given does not: nothing was changed"
        )
    write_folder(folder, given.files, card, aside=cache / "made")
    shutil.rmtree(cache, ignore_errors=True)
    return True


def _refuse_what_is_not_ours(state: State) -> None:
    names = {file.name for file in state.folder.iterdir()} if state.folder.exists() else set()
    ours = {CARD, *state.card["files"]} if state.card is not None else set()
    if names - ours:
        got = "; ".join([*state.faults, *(f"without {split}" for split in state.absent)])
        raise ValueError(
            f"{state.folder} must be absent, or hold only what `tinytx data get` wrote; it has other files, "
            f"such as {min(names - ours)} ({got}). Move it away, or name another folder with --data-dir"
        )
