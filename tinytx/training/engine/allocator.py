"""Memory that a training step frees is kept for the next one, but not all of it for ever."""

from __future__ import annotations

import ctypes
import functools
import os
import sys

# Parameters of mallopt, see its manual page.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 2**30  # bytes: blocks up to this size, and free memory up to it, stay with the process
TRIM_EVERY = 50  # steps

# oneDNN, which multiplies matrices in torch, makes a kernel for each shape and keeps the latest 1,024.
# Batches by length have hundreds of shapes, and a kernel takes up to a megabyte. It reads this when it first
# multiplies.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")


def keep_memory() -> bool:
    """Let the process keep what it frees, up to a gigabyte, until it is told to `trim_memory`.

    Returns
    -------
    bool
        Whether the C library took the wish: only glibc, the usual one of Linux, does.

    Notes
    -----
    By default glibc gives large blocks back to the system at once, and the top of the heap whenever much of
    it is free. Each training step then begins with memory that the system has to find and clear anew, page
    by page: of the processor time of a step on a virtual machine this was 8 % with our loss, and 33 % where
    all logits were kept (8,000 pieces, 2,048 positions). Numbers do not change.
    """
    libc = _glibc()
    if libc is None:
        return False
    return all(libc.mallopt(parameter, _KEPT) == 1 for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD))


def trim_memory() -> bool:
    """Give back to the system what is free, also between what is in use; True where something was.

    Blocks of ever new sizes leave gaps in the heap that no later block fits: within some hundred steps of
    batches by length they add up to gigabytes.
    """
    libc = _glibc()
    return libc is not None and libc.malloc_trim(0) == 1


@functools.cache
def _glibc() -> ctypes.CDLL | None:
    if sys.platform != "linux":
        return None
    try:
        libc = ctypes.CDLL(None)
        return libc if libc.mallopt and libc.malloc_trim else None
    except (OSError, AttributeError):  # another C library
        return None
