"""Names that become file names."""

from pathlib import PurePath, PureWindowsPath


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
