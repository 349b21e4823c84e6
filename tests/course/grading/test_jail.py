"""Limits, guard and walls, each by itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinytx_course.grading import running

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")

TRIES = {
    "write": "open(OUT + '/x', 'w')",
    "append": "open(OUT + '/here', 'a')",
    "low-level": "os.open(OUT + '/x', os.O_WRONLY | os.O_CREAT)",
    "by a link": "os.symlink(OUT, 'link'); open('link/x', 'w')",
    "upwards": "open('../x', 'w')",
    "remove": "os.remove(OUT + '/here')",
    "rename away": "os.rename(OUT + '/here', 'mine')",
    "rename to": "open('mine', 'w').close(); os.rename('mine', OUT + '/x')",
    "folder": "os.makedirs(OUT + '/a/b')",
    "tree": "shutil.rmtree(OUT)",
    "truncate": "os.truncate(OUT + '/here', 0)",
    "rights": "os.chmod(OUT + '/here', 0)",
    "hard link": "os.link(OUT + '/here', 'mine')",
    "path": "pathlib.Path(OUT, 'x').write_text('x')",
    "torch": "torch.save(torch.ones(1), OUT + '/x')",
    "numpy": "numpy.save(OUT + '/x', numpy.ones(1))",
    "sqlite": "sqlite3.connect(OUT + '/x')",
    "shell": "os.system('touch ' + OUT + '/x')",
    "program": "subprocess.Popen(['touch', OUT + '/x'])",
    "fork": "os.fork()",
    "exec": "os.execv('/bin/true', ['true'])",
    "kill": "os.kill(os.getppid(), 0)",
    "lookup": "socket.getaddrinfo('localhost', 80)",
    "connect": "socket.create_connection(('127.0.0.1', 9), timeout=1)",
    "datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
}
FREE = """
open('a', 'w').write('x'); os.rename('a', 'b'); os.makedirs('c/d'); shutil.rmtree('c'); os.remove('b')
tempfile.TemporaryFile().close(); tempfile.mkdtemp(); open(os.devnull, 'w').write('x')
open(OUT + '/here').read(); os.kill(os.getpid(), 0); sqlite3.connect(':memory:')
torch.save(torch.ones(2), 'm.pt'); torch.load('m.pt')
"""
PROGRAM = """
import os, pathlib, shutil, socket, sqlite3, subprocess, sys, tempfile
import numpy, torch
from tinytx_course.grading.jail import Refused, guard
OUT, free, tries = sys.argv[1], sys.argv[2], eval(sys.argv[3])
guard('.')
exec(free)
for name, code in tries.items():
    try:
        exec(code)
    except Refused:
        print(name)
"""


def run(folder, program, *arguments, **environment):
    plain = {"PATH": os.environ["PATH"], "PYTHONPATH": str(running._PACKAGE), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=folder,
        env={**plain, "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.slow
def test_the_guard_refuses_every_way_out_and_leaves_the_own_folder_free(tmp_path):
    out, folder = tmp_path / "out", tmp_path / "folder"
    out.mkdir(), folder.mkdir()
    (out / "here").write_text("mine")
    done = run(folder, PROGRAM, out, FREE, repr(TRIES))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == list(TRIES)
    assert [path.name for path in out.iterdir()] == ["here"] and (out / "here").read_text() == "mine"
    assert (out / "here").stat().st_mode & 0o600


LIMITED = "from tinytx_course.grading.jail import limit\nlimit({seconds}, {mebibytes})\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have not all of these limits")
@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("bytearray(50 * 2**20); print('fits')\nbytearray(300 * 2**20)", "MemoryError"),
        ("print('fits')\nwith open('x', 'wb') as f:\n    f.write(bytes(65 * 2**20))", "File too large"),
        ("print('fits')\nkept = [open('/dev/null') for _ in range(300)]", "Too many open files"),
        ("print('fits', flush=True)\nwhile True: pass", ""),
    ],
)
def test_limits_hold_and_leave_room_for_what_is_ordinary(tmp_path, code, told):
    done = run(tmp_path, LIMITED.format(seconds=1, mebibytes=200) + code)
    assert done.stdout.startswith("fits"), done.stderr
    assert done.returncode != 0 and told in done.stderr


@pytest.mark.skipif(not running.walls(), reason="this machine allows no namespaces: the guard stands alone")
def test_walls_of_the_kernel_hold_without_the_guard(tmp_path):
    out, folder = tmp_path / "out", tmp_path / "folder"
    out.mkdir(), folder.mkdir()
    program = """
import ctypes, os, socket, sys
open("inside", "w").write("x")
libc = ctypes.CDLL(None)
libc.mount(b"none", b"/", b"", ctypes.c_ulong(32 | 4096), b"")  # try to get the right to write back
for attempt in (lambda: open(sys.argv[1] + "/x", "w"), lambda: os.kill(int(sys.argv[2]), 0),
                lambda: socket.create_connection(("192.0.2.1", 9), timeout=2),
                lambda: open("big", "wb").write(bytes(200 * 2**20))):
    try:
        attempt()
    except OSError as refused:
        print(refused.strerror)
    else:
        print("a way out")
"""
    words = [sys.executable, "-c", program, str(out), str(os.getpid())]
    command = running._command(str(folder), words, enclosed=True)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [
        "Read-only file system",
        "No such process",
        "Network is unreachable",
        "No space left on device",
    ], done.stderr
    assert list(out.iterdir()) == [] and list(folder.iterdir()) == []


def test_learners_code_sees_nothing_of_the_environment(monkeypatch):
    monkeypatch.setenv("SOME_SECRET", "x")
    environment = running._environment("/folder")
    assert "SOME_SECRET" not in environment and environment["HOME"] == "/folder"
    assert Path(environment["PYTHONPATH"], "tinytx").is_dir()
