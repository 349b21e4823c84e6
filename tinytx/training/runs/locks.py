"""One process a folder: a lock that ends with its process, however that ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where folders cannot be locked
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for this process; nothing is written, so nothing stale can stay behind.

    Raises
    ------
    ValueError
        While another process, or another thread of this one, holds it.

    Notes
    -----
    Some network drives know no locks, and Windows none of folders: there it is up to you.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        _lock(handle, folder)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ValueError(
            f"one process at a time trains in a folder, got {folder}, where another is at work"
        ) from error
    except OSError:
        return  # a file system without locks
