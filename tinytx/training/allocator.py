"""Memory that a training step frees is kept for the next one, where the C library would hand it back."""

from __future__ import annotations

import ctypes
import sys

# Parameters of mallopt, see its manual page.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 2**30  # bytes: blocks up to this size, and free memory up to it, stay with the process


def keep_memory() -> bool:
    """Let the process keep what it frees, up to a gigabyte.

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
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return all(mallopt(parameter, _KEPT) == 1 for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD))
