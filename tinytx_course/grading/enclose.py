"""Close a new mount namespace before a program runs in it: it holds only what Python needs to run.

Everything else is out of reach: homes, other copies, sockets, named pipes, devices. What is there is
read-only, but for an empty folder in memory. The program has no capability and cannot get one back; where the
namespaces were made by root, it belongs to nobody.

Run as root of new mount, network and process namespaces: ``enclose.py SETTINGS COMMAND ...``, settings in
JSON (see `close_all_but`). Only the standard library is used.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import sys

_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_REMOUNT, _BIND, _WITH_ALL_BELOW = 32, 4096, 16384
_DEATH_SIGNAL, _DROP_CAPABILITY, _NO_NEW_RIGHTS = 1, 24, 38  # of prctl
# Programs and libraries of the system, and what these read; Python's own folders come with the settings.
_SYSTEM = """
/usr /bin /sbin /lib /lib32 /lib64 /nix /gnu /etc/alternatives /etc/fonts /etc/ld.so.cache /etc/localtime
/sys/devices/system/cpu /dev/null /dev/zero /dev/full /dev/random /dev/urandom
"""
# A namespace may not drop these from mounts it inherited, so they are named again.
_KEPT = {"nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1024, "nodiratime": 2048, "relatime": 1 << 21}
_LIBC = ctypes.CDLL(None, use_errno=True)


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    names = (os.fsencode(source), os.fsencode(target), kind.encode())
    if _LIBC.mount(*names, ctypes.c_ulong(flags), options.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def close_all_but(folder: str, mebibytes: int, paths: list[str], user: int) -> None:
    """Leave nothing but the system's programs, some paths and an empty folder in memory.

    Parameters
    ----------
    folder : str
        Empty, and so is what takes its place.
    mebibytes : int
        What the new one may hold.
    paths : list of str
        What is to be found where it is, read-only.
    user : int
        To whom the folder is to belong. Where this is not 0, who starts it, others' processes have to be
        invisible; else it is enough that they lie outside of the own user namespace.
    """
    _mount("tmpfs", folder, "tmpfs", _NO_SUID | _NO_DEVICES, "size=4m,mode=0755")
    for path in [*_SYSTEM.split(), *paths]:
        if os.path.exists(path):
            _show(path, folder + path)
    os.makedirs(folder + "/proc")
    try:
        _mount("proc", f"{folder}/proc", "proc", _NO_SUID | _NO_DEVICES | _NO_PROGRAMS)
    except OSError:
        if user:
            raise
        _mount("/proc", f"{folder}/proc", "", _BIND | _WITH_ALL_BELOW)
    os.makedirs(folder + folder)
    _close(folder)
    own = f"size={mebibytes}m,mode=0700,uid={user},gid={user}"
    _mount("tmpfs", folder + folder, "tmpfs", _NO_SUID | _NO_DEVICES, own)
    os.chroot(folder)
    os.chdir(folder)


def _show(path: str, place: str) -> None:
    if os.path.lexists(place):  # as part of another path
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.isdir(path):
        os.mkdir(place)
    else:
        open(place, "x").close()
    _mount(path, place, "", _BIND | _WITH_ALL_BELOW)


def _close(folder: str) -> None:
    """Make every mount below a folder read-only."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        rows = [line.split() for line in table]
    for row in rows:
        target = re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), row[4])
        if os.path.commonpath([folder, target]) != folder:
            continue
        flags = {_KEPT.get(option, 0) for option in row[5].split(",")} | {_REMOUNT, _BIND, _READ_ONLY}
        if not target.startswith(f"{folder}/dev/"):
            flags.add(_NO_DEVICES)
        try:
            _mount("none", target, "", sum(flags))
        except OSError:
            if os.access(target, os.W_OK):
                raise


def drop_rights(user: int) -> None:
    """Become a user without rights for good, root's least of all."""
    for capability in range(64):
        _LIBC.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)  # refused for those that there are not
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    _LIBC.prctl(_NO_NEW_RIGHTS, 1, 0, 0, 0)
    _LIBC.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)  # another user is a reason to forget it


if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    close_all_but(**settings)
    drop_rights(settings["user"])
    os.execvp(sys.argv[2], sys.argv[2:])
