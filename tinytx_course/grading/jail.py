"""What learners' code may not do: use up the machine, write outside one folder, start programs, go online.

Limits and guard act within one process of Python and hold against accidents and mischief, not against an
expert's attack on the interpreter. Where Linux allows namespaces, :mod:`enclose` adds walls of the
kernel's.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any

# Loaded at once: between fork and exec it may not be.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PARENT_DEATH_SIGNAL, _DUMPABLE, _NO_NEW_PRIVILEGES = 1, 4, 38  # of prctl
_CAPABILITIES_3 = 0x20080522  # version of capset's arguments
_MEBIBYTE = 2**20
LARGEST_FILE = 64 * _MEBIBYTE
MOST_OPEN_FILES = 256
MOST_THREADS = 512


def end_with_parent() -> None:
    """Have Linux kill this process when the thread that started it ends, however that comes about."""
    if _LIBC is not None:
        _LIBC.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def keep_out_of_reach() -> None:
    """Close on Linux what /proc shows of this process, open files above all, to those without privileges."""
    if _LIBC is not None:
        _LIBC.prctl(_DUMPABLE, 0, 0, 0, 0)


def drop_privileges() -> None:
    """Give up on Linux every capability, those of root in a namespace too, for good."""
    if _LIBC is not None:
        _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _LIBC.capset(struct.pack("Ii", _CAPABILITIES_3, 0), bytes(24))


def limit(seconds: int, mebibytes: int) -> None:
    """Limit this process for good; where the system has no such limits, or some of them, they are left out.

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


def guard(folder: str) -> None:
    """Refuse from now on what reaches out of this process and the folder; it cannot be taken back.

    Parameters
    ----------
    folder : str
        Where files may be written.
    """
    allowed = os.path.realpath(folder)
    mine = os.getpid()

    def inside(path: Any, base: int = -1) -> None:
        if isinstance(path, int) or path in (os.devnull, os.devnull.encode()):
            return
        text = os.fsdecode(path)
        if base not in (-1, None) and not os.path.isabs(text):
            text = os.path.join(os.readlink(f"/proc/self/fd/{base}"), text)
        real = os.path.realpath(text)
        if real != allowed and not real.startswith(allowed + os.sep):
            raise Refused(f"code that is checked may write in its own folder only, got {text!r}")

    def opened(path: Any, mode: Any, flags: int) -> None:
        writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        if flags & writes or (isinstance(mode, str) and set(mode) & set("wax+")):
            inside(path)

    def two(one: Any, other: Any, one_base: int = -1, other_base: int = -1) -> None:
        inside(one, one_base)
        inside(other, other_base)

    def nothing(what: str) -> Callable[..., None]:
        def refuse(*_: Any) -> None:
            raise Refused(f"code that is checked may not {what}")

        return refuse

    def signalled(process: int, *_: Any) -> None:
        if process != mine:
            raise Refused("code that is checked may not signal other processes")

    rules: Mapping[str, Callable[..., None]] = {
        "open": opened,
        **dict.fromkeys(("os.remove", "os.rmdir"), inside),
        "os.mkdir": lambda path, _mode, base: inside(path, base),
        **dict.fromkeys(("os.rename", "os.link"), two),
        "os.symlink": lambda _source, path, base: inside(path, base),
        **dict.fromkeys(
            ("os.truncate", "os.chflags", "os.setxattr", "os.removexattr"), lambda path, *_: inside(path)
        ),
        "os.chmod": lambda path, _mode, base: inside(path, base),
        "os.chown": lambda path, _user, _group, base: inside(path, base),
        "os.utime": lambda path, _times, _ns, base: inside(path, base),
        "sqlite3.connect": lambda path, *_: inside(path) if path != ":memory:" else None,
        **dict.fromkeys(("os.kill", "os.killpg"), signalled),
        **dict.fromkeys(
            ("os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile")
            + ("subprocess.Popen", "pty.spawn", "_winapi.CreateProcess"),
            nothing("start programs or processes"),
        ),
        **dict.fromkeys(
            ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo")
            + ("socket.gethostbyname", "socket.gethostbyaddr", "urllib.Request"),
            nothing("use the network"),
        ),
    }

    def hook(event: str, arguments: tuple) -> None:
        rule = rules.get(event)
        if rule is not None:
            rule(*arguments)

    sys.addaudithook(hook)
    _guard_torch(inside)


def _guard_torch(inside: Callable[[Any], None]) -> None:
    """Let torch ask before it writes a file: it does so in C++, where the interpreter hears nothing of it."""
    import torch

    writer = torch._C.PyTorchFileWriter

    def checked(target: Any, *rest: Any, **options: Any) -> Any:
        if isinstance(target, (str, bytes, os.PathLike)):
            inside(target)
        return writer(target, *rest, **options)

    torch._C.PyTorchFileWriter = checked  # type: ignore[misc, assignment]
