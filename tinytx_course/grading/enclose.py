"""Close a new namespace before a program runs in it: all but one folder read-only, that folder in memory.

Of devices there are only those that hold nothing, such as ``/dev/null``.

Run as root of a new user, mount, network and process namespace: ``enclose.py FOLDER MEBIBYTES COMMAND ...``.
The command then gets a user namespace of its own below this one, out of which it can open nothing again. Only
the standard library is used.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys

_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND, _WITH_ALL_BELOW = 1, 2, 4, 32, 4096, 16384
_DEVICES = ("null", "zero", "full", "random", "urandom")
# A namespace may not drop these from mounts it inherited, so they are named again.
_KEPT = {"nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1024, "nodiratime": 2048, "relatime": 1 << 21}


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    names = (source.encode(), target.encode(), kind.encode())
    done = libc.mount(*names, ctypes.c_ulong(flags), options.encode())
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def close_all_but(folder: str, mebibytes: int) -> None:
    """Make every mount read-only, and put an empty file system in memory on the folder."""
    _close_devices(folder)
    # Setting up the inner namespace writes there; all else in /proc steers the whole machine.
    myself = os.path.realpath("/proc/self")
    _mount(myself, myself, "", _BIND)
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        rows = [line.split() for line in table]
    for row in rows:
        target = re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), row[4])
        if target == myself:
            continue
        flags = {_KEPT.get(option, 0) for option in row[5].split(",")} | {_REMOUNT, _BIND, _READ_ONLY}
        if not target.startswith("/dev/"):
            flags.add(_NO_DEVICES)
        try:
            _mount("none", target, "", sum(flags))
        except OSError:
            if os.access(target, os.W_OK):
                raise
    _mount("tmpfs", folder, "tmpfs", _NO_SUID | _NO_DEVICES, f"size={mebibytes}m,mode=0700")


def _close_devices(folder: str) -> None:
    """Put a folder with harmless devices only in the place of /dev; it is made at `folder`."""
    _mount("tmpfs", folder, "tmpfs", _NO_SUID, "size=1m,mode=0755")
    for name in _DEVICES:
        with open(f"{folder}/{name}", "x"):
            _mount(f"/dev/{name}", f"{folder}/{name}", "", _BIND)
    _mount(folder, "/dev", "", _BIND | _WITH_ALL_BELOW)


if __name__ == "__main__":
    close_all_but(sys.argv[1], int(sys.argv[2]))
    os.chdir(sys.argv[1])
    inner = ["unshare", "--user", "--map-root-user", "--mount", *sys.argv[3:]]
    os.execvp(inner[0], inner)
