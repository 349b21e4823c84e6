"""One at a time: a lock between processes that the system lets go when its holder dies."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

WAIT = 0.1  # seconds between two tries


@contextlib.contextmanager
def locked(file: Path, *, report: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock that all agree on by the name of a file, which is gone again once nobody holds it.

    Parameters
    ----------
    file : Path
        Its folder is made, and removed if nothing else is in it at the end.
    report : callable
        Told once when another process holds the lock.
    """
    handle = _wait(file, report)
    try:
        yield
    finally:
        if sys.platform == "win32":  # where an open file cannot be removed
            os.close(handle)
            with contextlib.suppress(OSError):  # the next holder has it open
                file.unlink()
        else:  # first the name, then the lock: the other way round the name might be the next holder's
            file.unlink(missing_ok=True)
            os.close(handle)
        with contextlib.suppress(OSError):  # not empty
            file.parent.rmdir()


def _wait(file: Path, report: Callable[[str], None]) -> int:
    told = False
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(file, os.O_RDWR | os.O_CREAT)
        except FileNotFoundError:  # the folder was removed in between
            continue
        if _take(handle):
            if _is_still(handle, file):
                return handle
        elif not told:
            report("another process is at it: waiting")
            told = True
        os.close(handle)
        time.sleep(WAIT)


def _take(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _is_still(handle: int, file: Path) -> bool:
    # The holder before may have removed the file after it was opened here.
    try:
        return os.path.samestat(os.fstat(handle), file.stat())
    except FileNotFoundError:
        return False
