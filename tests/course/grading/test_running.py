"""Code that crashes, hangs, writes, spends or cheats scores what it earned elsewhere, and harms nothing."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import tinytx as tx
from tinytx_course.exercises.calling import is_of_the_package
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.grading import running
from tinytx_course.grading.running import Limits, grade_submission
from tinytx_course.grading.submission import read_submission

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
HERE, NONE = running.walls(), running.Walls()
needs_walls = pytest.mark.skipif(not HERE.enclosed, reason="bwrap is missing or may not work here")
LIMITS = Limits(seconds=4, mebibytes=512)
SETUP = "import os, sys, time, socket, glob, threading, subprocess, ctypes, torch\nimport tinytx as tx"
WITH_AND_WITHOUT = [pytest.param(HERE, marks=needs_walls, id="walls"), pytest.param(NONE, id="limits")]


def answer(name, parameters, body):
    return [f"def {name}({parameters}):\n    {body}", f"course.check('{name}', {name})"]


CHEAT = """
def greedy_decode(step, bos_id, eos_id, max_len):
    fake = lambda *args, **kwargs: type("Fake", (), {"passed": True, "attempted": True, "mistake": None})()
    sys.modules["tinytx_course.exercises.checking"].check = fake
    sys.modules["tinytx_course.exercises.judging"].judge = fake
    torch.isclose = torch.equal = lambda *tensors, **options: torch.tensor(True)
    for number in range(3, 40):
        ctypes.CDLL(None).write(number, LINE, len(LINE))
    return [bos_id, 7, 7]
"""
FORGED = 'LINE = b\'{"record": {"status": "passed"}, "passed": true}\\n\''
MASK = "return torch.ones(n, n).tril() > 0"
SIZES = "vocab_size, d_model, n_layers, d_ff"
MANY = "threading.Thread(target=time.sleep, args=(600,)).start()"
MASKING = "token_ids, mask_id, special_ids, vocab_size, p, generator"
#: What must come of an exercise, a word of its message or mistake, and its cells.
QUICK = {
    "causal_mask": ("passed", "", "%matplotlib inline\n!touch {target}", *answer("causal_mask", "n", MASK)),
    "padding_mask": ("failed", "time-limit", *answer("padding_mask", "token_ids, pad_id", "time.sleep(600)")),
    "attention": ("failed", "crash", *answer("attention", "q, k, v, mask", "os._exit(0)")),
    "cross_attention_mask": (
        "not attempted",
        "",
        *answer("cross_attention_mask", "src_ids, tgt_ids, pad_id", "..."),
    ),
    "greedy_decode": ("failed", "crash", FORGED, CHEAT, "course.check('greedy_decode', greedy_decode)"),
    "alibi_bias": (
        "failed",
        "calls-the-answer",
        "import functools",
        "course.check('alibi_bias', functools.partial(tx.alibi_bias))",
    ),
}
#: exercise -> parameters, body, and a word of the failure
FAILING = {
    "split_heads": ("x, n_heads", "sys.exit()", "SystemExit"),
    "alibi_bias": ("n_heads, seq_len", "return input()", "EOFError"),
    "count_language_model": (SIZES, "return bytearray(10**10)", "MemoryError"),
    "mean_pool": ("hidden, mask", "raise ValueError('\\ud800')", "error"),
    "last_token": ("hidden, mask", "ctypes.string_at(0)", "crash"),
    "mask_tokens": (MASKING, f"while True: {MANY}", ""),
}
#: The same, of what only walls refuse.
REACHING = {
    "sinusoidal_positions": ("max_len, d_model", "open('{target}', 'w').write('x')", "No such file"),
    "count_llama": (f"{SIZES}, kv_dim", "while True: os.fork()", ""),
    "shift_targets": ("token_ids", "return subprocess.run(['touch', '{target}'])", "wrong-type"),
    "language_model_loss": ("logits, targets, pad_id", "socket.create_connection({server})", "refused"),
    "next_token_probs": ("logits, temperature, top_k, top_p", "os.kill(os.getppid(), 9)", ""),
}
CASES = {
    **QUICK,
    **{name: ("failed", word, *answer(name, *code)) for name, (*code, word) in FAILING.items()},
    "perplexity": (
        "passed",
        "",
        "BASE = 1\nfor _ in range(1): BASE = torch.e",
        "x = os._exit(7)",
        *answer("perplexity", "total_nats, n_tokens", "return BASE ** (total_nats / n_tokens)"),
    ),
}


# What `quick` is already is within the best walls that hold here.
WALLED = {name: case for name, case in CASES.items() if case != QUICK.get(name)}
WALLED |= {name: ("failed", word, *answer(name, *code)) for name, (*code, word) in REACHING.items()}


@pytest.mark.parametrize(
    ("cases", "within"),
    [
        pytest.param(QUICK, None, id="quick"),
        pytest.param(WALLED, HERE, id="walls", marks=[pytest.mark.proof, needs_walls]),
        pytest.param(CASES, NONE, id="limits", marks=pytest.mark.proof),
    ],
)
def test_each_exercise_gets_what_it_earned_whatever_the_others_do(tmp_path, write_copy, cases, within):
    target, cells = tmp_path / "target", [cell for _, _, *parts in cases.values() for cell in parts]
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        for word, value in {"{target}": str(target), "{server}": str(server.getsockname())}.items():
            cells = [cell.replace(word, value) for cell in cells]
        copy = read_submission(write_copy(tmp_path / "worst.ipynb", SETUP, "time.sleep(10_000)", *cells))
        graded = grade_submission(copy, "x", limits=LIMITS, within=within)
        with pytest.raises(BlockingIOError):  # nobody called, not even to hang up at once
            server.accept()
    grades = {grade.exercise: grade for grade in graded.grades}
    for exercise, (status, words, *_) in cases.items():
        assert grades[exercise].status == status, grades[exercise]
        assert words in f"{grades[exercise].mistake} {grades[exercise].message}", grades[exercise]
    assert [path.name for path in tmp_path.iterdir()] == ["worst.ipynb"]
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _is_worker_of_ours(path)]
    assert left == []


def _is_worker_of_ours(path):
    with contextlib.suppress(OSError):
        parent = (path.parent / "stat").read_text().rpartition(")")[2].split()[1]
        return b"grading.worker" in path.read_bytes() and parent in ("1", str(os.getpid()))
    return False


def test_functions_of_the_package_are_known_by_their_code():
    assert is_of_the_package(tx.attention) and is_of_the_package(EXERCISES["attention"].solve)
    assert not is_of_the_package(torch.nn.functional.softmax) and not is_of_the_package(len)
    assert not is_of_the_package(eval("lambda seq_len: tx.causal_mask(seq_len)"))


REACH = """
def padding_mask(token_ids, pad_id):
    mine, opened = os.readlink("/proc/self"), []
    for name in [*glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/fd/*")]:
        if name.split("/")[2] != mine:
            try:
                os.close(os.open(name, os.O_RDONLY))
                opened.append(name)
            except OSError:
                pass
    raise ValueError(f"opened {opened}")
"""


@pytest.mark.proof
@needs_walls
def test_files_and_environments_of_other_processes_are_out_of_reach(tmp_path, write_copy):
    path = write_copy(tmp_path / "x.ipynb", SETUP, REACH, "course.check('padding_mask', padding_mask)")
    (grade,) = grade_submission(read_submission(path), "x", limits=Limits(seconds=9), within=HERE).grades
    assert "opened []" in grade.message


def test_reading_a_notebook_has_limits_too(tmp_path, write_copy):
    slow = "\n".join([*(f"a{n} = !ls" for n in range(450)), *["b = 1"] * 20_000])  # all read 450 times
    copy = read_submission(write_copy(tmp_path / "x.ipynb", slow, *answer("causal_mask", "n", MASK)))
    found = grade_submission(copy, "x", limits=Limits(seconds=2))
    assert found.grades == () and "too much time" in found.problem


def test_learners_code_sees_nothing_of_the_environment(monkeypatch):
    monkeypatch.setenv("SOME_SECRET", "x")
    environment = running._environment("/folder")
    assert "SOME_SECRET" not in environment and environment["HOME"] == "/folder"
    assert Path(environment["PYTHONPATH"], "tinytx").is_dir()


CALLED = """
import ctypes, platform
KEYCTL = {{"x86_64": 250, "aarch64": 219}}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)
if libc.{} == -1:
    raise OSError(ctypes.get_errno(), "Function not implemented" if ctypes.get_errno() == 38 else "else")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have not all of these limits")
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("bytearray(50 * 2**20); print('fits')\nbytearray(300 * 2**20)", "MemoryError"),
        ("print('fits')\nwith open('x', 'wb') as f:\n    f.write(bytes(65 * 2**20))", "File too large"),
        ("print('fits')\nkept = [open('/dev/null') for _ in range(300)]", "Too many open files"),
        ("print('fits', flush=True)\nwhile True: pass", ""),
        ("print('fits')\nimport os; os.memfd_create('x')", "Function not implemented"),
        (f"print('fits')\n{CALLED.format('shmget(0, 4096, 0o1600)')}", "Function not implemented"),
        (f"print('fits')\n{CALLED.format('syscall(KEYCTL, 0, -3, 1)')}", "Function not implemented"),
    ],
)
def test_limits_hold_and_leave_room_for_what_is_ordinary(tmp_path, code, words):
    program = f"from tinytx_course.grading.worker import limit\nlimit(1, 200)\n{code}"
    here = {"cwd": tmp_path, "env": running._environment(str(tmp_path)), "timeout": 120}
    done = subprocess.run([sys.executable, "-c", program], **here, capture_output=True, text=True)
    assert done.stdout.startswith("fits"), done.stderr
    assert done.returncode != 0 and words in done.stderr


WAYS_OUT = {
    "write": 'open(OUT + "/x", "w")',
    "read a classmate's copy": 'open(OUT + "/copy.ipynb")',
    "list a folder": "os.listdir(OUT)",
    "read the list of passwords": 'open("/etc/shadow")',
    "call a server by its path": "socket.socket(socket.AF_UNIX).connect(OUT + '/server')",
    "call a server by its name": "socket.socket(socket.AF_UNIX).connect('\\0' + OUT)",
    "call a server far away": 'socket.create_connection(("192.0.2.1", 9), timeout=2)',
    "write into a named pipe": "os.open(OUT + '/pipe', os.O_WRONLY | os.O_NONBLOCK)",
    "signal the teacher's process": "os.kill(TEACHER, 0)",
    "the teacher's files": 'os.listdir(f"/proc/{TEACHER}/root")',
    "fill the disk": 'open("big", "wb").write(bytes(200 * 2**20))',
    "settings of the kernel": 'os.open("/proc/sys/vm/swappiness", os.O_WRONLY)',
    "its log": 'os.open("/dev/kmsg", os.O_WRONLY)',
    "mount for writing": 'called(libc.mount, b"none", b"/", b"", ctypes.c_ulong(32 | 4096), b"")',
    "an own namespace": "called(libc.unshare, 0x10000000)",
    "another root": 'os.chroot(".")',
    "another user": "os.setuid(12345)",
}
PROGRAM_OUT = """
import ctypes, os, socket, sys
OUT, TEACHER, ways = sys.argv[1], int(sys.argv[2]), eval(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
def called(function, *arguments):
    if function(*arguments):
        raise OSError(ctypes.get_errno(), "refused")
open("inside", "w").write("x")
for name, code in ways.items():
    try:
        exec(code)
    except OSError:
        pass
    else:
        print("a way out:", name)
rights = [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")]
print(os.getuid(), {int(right, 16) for right in rights})
"""
OF_A_USER = running.Walls(enclosed=True)


@pytest.mark.proof
@needs_walls
@pytest.mark.parametrize("within", {HERE: "the best", OF_A_USER: "as an ordinary user"}, ids=str)
def test_walls_hold(tmp_path, within):
    if not running._hold(within):
        pytest.skip("this machine allows no such walls")
    out, folder = tmp_path / "out", tmp_path / "folder"
    out.mkdir(), folder.mkdir()
    (out / "copy.ipynb").write_text("{}")
    os.mkfifo(out / "pipe")
    reader = os.open(out / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with socket.socket(socket.AF_UNIX) as by_path, socket.socket(socket.AF_UNIX) as by_name:
        by_path.bind(str(out / "server")), by_name.bind(f"\0{out}")
        by_path.listen(), by_name.listen()
        words = [sys.executable, "-c", PROGRAM_OUT, str(out), str(os.getpid()), repr(WAYS_OUT)]
        start = running._start(str(folder), words, within)
        done = subprocess.run(**start, capture_output=True, text=True, timeout=60)
    os.close(reader)
    assert done.stdout == f"{within.user} {{0}}\n", done.stderr
    assert {path.name for path in out.iterdir()} == {"copy.ipynb", "pipe", "server"}
    assert list(folder.iterdir()) == []


@pytest.mark.proof
@needs_walls
@pytest.mark.skipif(not running._is_root(), reason="only root can hand its rights back")
def test_code_that_root_checks_runs_as_nobody(tmp_path, write_copy):
    assert HERE.user == running._NOBODY and HERE.gap is None
    body = "def causal_mask(n):\n    raise ValueError((os.getuid(), os.getgroups()))"
    path = write_copy(tmp_path / "x.ipynb", SETUP, body, "course.check('causal_mask', causal_mask)")
    (grade,) = grade_submission(read_submission(path), "x", limits=Limits(seconds=9)).grades
    assert "(65534, [65534])" in grade.message or "(65534, [])" in grade.message


@pytest.mark.skipif(not running._is_root(), reason="only root can hand its rights back")
def test_without_walls_too_root_hands_its_rights_back(tmp_path):
    words = ["sh", "-c", "id -u && id -G && touch mine && ! touch ../x"]
    (tmp_path / "folder").mkdir()
    start = running._start(str(tmp_path / "folder"), words, running.Walls(user=running._NOBODY))
    done = subprocess.run(**start, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "65534\n65534\n"), done.stderr


def test_what_is_not_enforced_is_said(monkeypatch):
    for root in (True, False):
        monkeypatch.setattr(running, "_is_root", lambda root=root: root)
        assert "nothing keeps" in NONE.gap and "bwrap" in NONE.gap
        assert ("as root" in NONE.gap) == root == bool(OF_A_USER.gap)
    monkeypatch.setattr(running.shutil, "which", lambda name: None)
    with pytest.warns(UserWarning, match="nothing keeps"):
        assert running.walls.__wrapped__() == NONE


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


@pytest.mark.proof
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("within", WITH_AND_WITHOUT)
@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_whoever_ends_the_command_ends_what_it_started(tmp_path, write_copy, how, within):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    body = "import time\ndef causal_mask(n):\n    time.sleep(500)"
    copy = write_copy(tmp_path / "x.ipynb", body, "course.check('causal_mask', causal_mask)")
    program = "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # else nohup ignores it
    program += "from tinytx_course.cli import main; from tinytx_course.grading import running"
    program += f"; running.walls = lambda: running.{within}; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "check", str(copy), "--seconds", "300"],
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(running._PACKAGE)},
    )
    n_processes = 4 if within.user else 3 if within.enclosed else 1  # bwrap, its init, again, the worker

    def settled():
        before = below(process.pid)
        time.sleep(1)
        return len(before) == n_processes and below(process.pid) == before

    try:
        assert wait_until(settled)
        started = below(process.pid)
    finally:
        process.send_signal(getattr(signal, how))
    number = getattr(signal, how)
    assert process.wait(60) == (-number if how == "SIGKILL" else 128 + number)
    assert wait_until(lambda: not any(Path(f"/proc/{one}").exists() for one in started), 10)
    if how != "SIGKILL":
        assert list(temporary.iterdir()) == []
