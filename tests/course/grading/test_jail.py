"""Limits, guard and walls, each by itself."""

import contextlib
import os
import signal
import subprocess
import sys
import time
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
                lambda: open("big", "wb").write(bytes(200 * 2**20)),
                lambda: os.open("/proc/sys/vm/swappiness", os.O_WRONLY),
                lambda: os.open("/dev/kmsg", os.O_WRONLY)):
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
        "Read-only file system" if os.geteuid() == 0 else "Permission denied",
        "No such file or directory",
    ], done.stderr
    assert list(out.iterdir()) == [] and list(folder.iterdir()) == []


def test_learners_code_sees_nothing_of_the_environment(monkeypatch):
    monkeypatch.setenv("SOME_SECRET", "x")
    environment = running._environment("/folder")
    assert "SOME_SECRET" not in environment and environment["HOME"] == "/folder"
    assert Path(environment["PYTHONPATH"], "tinytx").is_dir()


def below(process):
    """Numbers of the processes that one started, and of those that they started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return set(found[1:])


def wait_until(condition, seconds=100):
    for _ in range(10 * seconds):
        if condition():
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("enclosed", [True, False], ids=["namespace", "guard"])
@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_whoever_ends_the_command_ends_what_it_started(tmp_path, write_copy, how, enclosed):
    if enclosed and not running.walls():
        pytest.skip("this machine allows no namespaces: the guard stands alone")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    body = "import time\ndef causal_mask(n):\n    time.sleep(500)"
    copy = write_copy(tmp_path / "x.ipynb", body, "course.check('causal_mask', causal_mask)")
    program = "import sys; from tinytx_course.cli import main; from tinytx_course.grading import running"
    program += f"; running.walls = lambda: {enclosed}; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "check", str(copy), "--seconds", "300"],
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(running._PACKAGE)},
    )
    n_processes = 3 if enclosed else 2  # unshare, the worker, its child
    try:
        assert wait_until(lambda: len(below(process.pid)) == n_processes)
        time.sleep(1)  # the child that reads the notebook gives way to the one that runs it
        assert wait_until(lambda: len(below(process.pid)) == n_processes)
        started = below(process.pid)
    finally:
        process.send_signal(getattr(signal, how))
    number = getattr(signal, how)
    assert process.wait(60) == (-number if how == "SIGKILL" else 128 + number)
    assert wait_until(lambda: not any(Path(f"/proc/{one}").exists() for one in started), 10)
    if how != "SIGKILL":
        assert list(temporary.iterdir()) == []
