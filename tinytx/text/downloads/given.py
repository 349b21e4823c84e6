"""A corpus from a folder that somebody has filled elsewhere: upstream files, or the layout itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tinytx.text.downloads.builders import build, rule
from tinytx.text.downloads.folder import count_lines, inspect, wrong_lines
from tinytx.text.downloads.registry import Dataset, file_name


@dataclass(frozen=True)
class Given:
    """Files of the layout, where they come from, and by which rule they were made."""

    files: dict[str, bytes]
    origin: str
    rule: str


def read_given(dataset: Dataset, source: str | os.PathLike[str]) -> Given:
    """Take from a folder what is in it of a corpus.

    Parameters
    ----------
    dataset : Dataset
    source : path
        Holds, directly or in a folder named as the corpus: what `data get` left elsewhere, with its card; or
        upstream files, under their names or their paths, known by their sha256; or files of the layout, known
        by their numbers of lines.

    Returns
    -------
    Given
        Of upstream files and layout together as much of the corpus as they give.

    Raises
    ------
    ValueError
        If there is nothing of the corpus, or a file is not what its name says.
    """
    folder = Path(source)
    if not folder.is_dir():
        raise ValueError(f"the folder to take files from must exist, got {folder}")
    places = [place for place in (folder / dataset.name, folder) if place.is_dir()]
    for place in places:
        state = inspect(place, dataset)
        if state.card is not None and state.card.get("name") == dataset.name:
            if state.faults:
                raise ValueError("; ".join(state.faults))
            files = {name: (place / name).read_bytes() for name in state.files}
            return Given(files, str(state.card["origin"]), str(state.card["rule"]))
    upstream = _upstream(dataset, places)
    files = build(dataset, upstream)
    copied = _layout(dataset, places, skip=set(files))
    if files:
        return Given(files | copied, "upstream files from a folder", rule(dataset))
    if copied:
        origin = "files of this layout from a folder, known by their numbers of lines"
        return Given(copied, origin, "files and splits as that folder had them")
    raise ValueError(_nothing(dataset, folder, upstream))


def _upstream(dataset: Dataset, places: Sequence[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path, sha256 in dataset.files.items():
        candidates = [place / relative for place in places for relative in (path, file_name(path))]
        for file in dict.fromkeys(file for file in candidates if file.is_file()):
            got = hashlib.sha256(file.read_bytes()).hexdigest()
            if got == sha256:
                found[path] = file
                break
            if file.name not in dataset.n_lines:  # else it may be a file of the layout, with other line ends
                raise ValueError(f"{file} must have the sha256 {sha256}, got {got}")
    return found


def _layout(dataset: Dataset, places: Sequence[Path], *, skip: set[str]) -> dict[str, bytes]:
    files = {}
    for name, n_lines in dataset.n_lines.items():
        file = next((place / name for place in places if (place / name).is_file()), None)
        if file is None or name in skip:
            continue
        content = file.read_bytes()
        if n_lines is not None and count_lines(content) != n_lines:
            raise ValueError(wrong_lines(file, n_lines, count_lines(content)))
        files[name] = content
    return files


def _nothing(dataset: Dataset, folder: Path, upstream: dict[str, Path]) -> str:
    missing = [path for path in dataset.files if path not in upstream]
    return (
        f"{folder} must hold upstream files of {dataset.name} (`tinytx data list {dataset.name}` names them) "
        f"or a folder {dataset.name} with {', '.join(dataset.n_lines)}; got {len(upstream)} of "
        f"{len(dataset.files)} upstream files, the first that is missing: {missing[0]}"
    )
