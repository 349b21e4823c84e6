"""Limits on a process that runs learners' code, and a guard against its accidents.

The limits on time, memory, files and threads are the system's. The guard is an audit hook of Python: it
refuses the network, other programs and writes outside one folder to ordinary Python code. **It is no
protection against hostile code**, which can use C. Only the namespaces of Linux (:mod:`enclose`) are.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

# Loaded at once: between fork and exec it may not be.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PARENT_DEATH_SIGNAL = 1  # of prctl
_MEBIBYTE = 2**20
LARGEST_FILE = 64 * _MEBIBYTE
MOST_OPEN_FILES = 256
MOST_THREADS = 512


def end_with_parent() -> None:
    """Have Linux kill this process when the thread that started it ends, for whatever reason."""
    if _LIBC is not None:
        _LIBC.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def limit(seconds: int, mebibytes: int) -> None:
    """Limit this process for good; a limit that the system does not have is left out.

    Parameters
    ----------
    seconds : int
        Of processor time from now.
    mebibytes : int
        Of memory beyond what is mapped now.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    spent = resource.getrusage(resource.RUSAGE_SELF)
    wanted = {
        "RLIMIT_CPU": int(spent.ru_utime + spent.ru_stime) + seconds + 1,
        "RLIMIT_FSIZE": LARGEST_FILE,
        "RLIMIT_NOFILE": MOST_OPEN_FILES,
        "RLIMIT_NPROC": MOST_THREADS,
        "RLIMIT_CORE": 0,
    }
    mapped = _mapped_bytes()
    if mapped is not None:
        wanted["RLIMIT_AS"] = mapped + mebibytes * _MEBIBYTE
    for name, value in wanted.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        _, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        try:
            resource.setrlimit(kind, (value, value))
        except (ValueError, OSError):
            continue  # not every system has every limit


def _mapped_bytes() -> int | None:
    """Return the address space of this process; torch maps far more than it uses."""
    try:
        with open("/proc/self/statm", encoding="ascii") as numbers:
            return int(numbers.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


class Refused(PermissionError):
    """Learners' code tried what checking does not allow."""


_PROGRAMS = (
    "os.system",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "subprocess.Popen",
)
_NETWORK = ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo")


def guard(folder: str) -> None:
    """Refuse from now on what reaches out of this process and the folder, as far as Python reports it."""
    allowed, mine = os.path.realpath(folder), os.getpid()

    def inside(path: Any, base: Any = None) -> None:
        if isinstance(path, int) or path in (os.devnull, os.devnull.encode()):
            return
        text = os.fsdecode(path)
        if isinstance(base, int) and base >= 0:
            text = os.path.join(os.readlink(f"/proc/self/fd/{base}"), text)
        if os.path.commonpath([allowed, os.path.realpath(text)]) != allowed:
            raise Refused(f"code that is checked may write in its own folder only, got {text!r}")

    def opened(path: Any, mode: Any, flags: int) -> None:
        writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        if flags & writes or (isinstance(mode, str) and set(mode) & set("wax+")):
            inside(path)

    def both(one: Any, other: Any, one_base: int, other_base: int) -> None:
        inside(one, one_base)
        inside(other, other_base)

    def signalled(process: int, *_: Any) -> None:
        if process != mine:
            raise Refused("code that is checked may not signal other processes")

    def refused(what: str) -> Callable[..., None]:
        def refuse(*_: Any) -> None:
            raise Refused(f"code that is checked may not {what}")

        return refuse

    rules: dict[str, Callable[..., None]] = {
        "open": opened,
        **dict.fromkeys(("os.remove", "os.rmdir"), inside),
        **dict.fromkeys(("os.mkdir", "os.chmod"), lambda path, _mode, base: inside(path, base)),
        **dict.fromkeys(("os.rename", "os.link"), both),
        "os.symlink": lambda _source, path, base: inside(path, base),
        "os.truncate": lambda path, _length: inside(path),
        "sqlite3.connect": lambda path, *_: inside(path) if path != ":memory:" else None,
        **dict.fromkeys(("os.kill", "os.killpg"), signalled),
        **dict.fromkeys(_PROGRAMS, refused("start programs or processes")),
        **dict.fromkeys(_NETWORK, refused("use the network")),
    }

    def hook(event: str, arguments: tuple) -> None:
        rule = rules.get(event)
        if rule is not None:
            rule(*arguments)

    sys.addaudithook(hook)
