"""Code that crashes, hangs, writes, spends or cheats scores what it earned elsewhere, and harms nothing."""

import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from tinytx_course.grading.grade import grade_folder
from tinytx_course.grading.running import Limits, grade_submission, walls
from tinytx_course.grading.submission import read_submission

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]
LIMITS = Limits(seconds=12, mebibytes=512)
SETUP = "import os, sys, time, socket, threading, itertools, subprocess, ctypes, torch\nimport tinytx as tx"


def answer(name, parameters, *body):
    lines = "\n".join(f"    {line}" for line in body)
    return [f"def {name}({parameters}):\n{lines}", f"course.check('{name}', {name})"]


FAKE = """
def fake(*args, **kwargs):
    return type("Fake", (), {"passed": True, "attempted": True, "mistake": None, "message": ""})()
"""
CHEAT = """
def greedy_decode(step, bos_id, eos_id, max_len):
    course.check = sys.modules["tinytx_course.exercises"].check = fake
    print('{"exercise": "greedy_decode", "status": "passed", "mistake": null, "message": ""}', flush=True)
    os.write(1, b'{"exercise": "greedy_decode", "status": "passed"}')
    return [bos_id, 7, 7]
"""
MANY = "threading.Thread(target=time.sleep, args=(600,)).start()"
#: exercise -> its cells, what must come of it, and a word of the message or the slug
CASES = {
    "causal_mask": (
        [
            "%matplotlib inline\n!touch {target}\nimport math",
            *answer("causal_mask", "n", "return torch.ones(n, n).tril() > 0"),
        ],
        "passed",
        "",
    ),
    "padding_mask": (answer("padding_mask", "token_ids, pad_id", "while True: pass"), "failed", "time-limit"),
    "attention": (answer("attention", "q, k, v, mask", "os._exit(0)"), "failed", "crash"),
    "split_heads": (answer("split_heads", "x, n_heads", "sys.exit()"), "failed", "SystemExit"),
    "sinusoidal_positions": (
        answer("sinusoidal_positions", "max_len, d_model", "open('{target}', 'w').write('x')"),
        "failed",
        "own folder",
    ),
    "shift_matrix": (answer("shift_matrix", "k, d_model", "return input()"), "failed", "EOFError"),
    "count_language_model": (
        answer("count_language_model", "vocab_size, d_model, n_layers, d_ff", "return bytearray(10**10)"),
        "failed",
        "MemoryError",
    ),
    "count_classifier": (
        answer("count_classifier", "vocab_size, d_model, n_layers, d_ff, n_classes", "while True: os.fork()"),
        "failed",
        "processes",
    ),
    "shift_targets": (
        answer("shift_targets", "token_ids", "return subprocess.run(['touch', '{target}'])"),
        "failed",
        "programs",
    ),
    "language_model_loss": (
        answer("language_model_loss", "logits, targets, pad_id", "socket.create_connection({server})"),
        "failed",
        "network",
    ),
    "perplexity": (
        [
            "BASE = 1\nfor _ in range(1): BASE = torch.e",
            "x = os._exit(7)",
            *answer("perplexity", "total_nats, n_tokens", "return BASE ** (total_nats / n_tokens)"),
        ],
        "passed",
        "",
    ),
    "next_token_probs": (
        answer("next_token_probs", "logits, temperature, top_k, top_p", "os.kill(os.getppid(), 9)"),
        "failed",
        "signal",
    ),
    "mean_pool": (
        answer("mean_pool", "hidden, mask", "os.closerange(0, 1000)", "return hidden[:, 0]"),
        "failed",
        "",
    ),
    "last_token": (answer("last_token", "hidden, mask", "ctypes.string_at(0)"), "failed", "crash"),
    "mask_tokens": (
        answer(
            "mask_tokens", "token_ids, mask_id, special_ids, vocab_size, p, generator", f"while True: {MANY}"
        ),
        "failed",
        "",
    ),
    "cross_attention_mask": (
        answer("cross_attention_mask", "src_ids, tgt_ids, pad_id", "..."),
        "not attempted",
        "",
    ),
    "greedy_decode": (
        [FAKE, "course.check = fake", CHEAT, "course.check('greedy_decode', greedy_decode)"],
        "failed",
        "",
    ),
    "beam_search": (
        answer(
            "beam_search",
            "step, bos_id, eos_id, beam_size, max_len, length_penalty",
            "return sum(itertools.repeat(0))",
        ),
        "failed",
        "",
    ),
}


class Listener:
    """A server on this machine that notes whether anybody came."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(0.2)
        self.visits, self.open = 0, True
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        while self.open:
            try:
                self.server.accept()[0].close()
                self.visits += 1
            except TimeoutError:
                continue

    def close(self):
        self.open = False
        self.thread.join()
        self.server.close()


@pytest.fixture(scope="module", params=["namespace", "guard"])
def graded(request, tmp_path_factory, write_copy):
    """Grade the copy that does everything wrong, once with walls of the kernel and once without."""
    if request.param == "namespace" and not walls():
        pytest.skip("this machine allows no namespaces: the guard stands alone")
    folder = tmp_path_factory.mktemp("class")
    target, listener = folder / "target", Listener()
    cells = [cell for parts, _, _ in CASES.values() for cell in parts]
    named = {"{target}": str(target), "{server}": str(listener.server.getsockname())}
    for word, value in named.items():
        cells = [cell.replace(word, value) for cell in cells]
    copy = write_copy(folder / "worst.ipynb", SETUP, "time.sleep(10_000)", *cells)
    began = time.monotonic()
    enclosed = request.param == "namespace"
    grades = grade_submission(read_submission(copy), "worst", limits=LIMITS, enclosed=enclosed)
    listener.close()
    return grades, folder, listener, time.monotonic() - began


def grade_of(graded, exercise):
    return next(grade for grade in graded[0].grades if grade.exercise == exercise)


@pytest.mark.parametrize("exercise", CASES)
def test_each_exercise_gets_what_it_earned_whatever_the_others_do(graded, exercise):
    _, status, words = CASES[exercise]
    grade = grade_of(graded, exercise)
    assert grade.status == status, grade
    assert words in f"{grade.mistake} {grade.message}", grade


def test_nothing_was_written_nobody_was_called_and_nothing_is_left_running(graded):
    _, folder, listener, seconds = graded
    assert [path.name for path in folder.iterdir()] == ["worst.ipynb"]
    assert listener.visits == 0
    assert seconds < 60 + 6 * LIMITS.seconds
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"grading.worker" in _read(path)]
    assert left == []


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_where_there_is_no_fork_each_exercise_has_a_process_of_its_own(tmp_path, write_copy):
    writes = answer("split_heads", "x, n_heads", "return open('/f', 'w')")
    cells = [*CASES["attention"][0], *CASES["causal_mask"][0], *writes]
    copy = read_submission(write_copy(tmp_path / "x.ipynb", SETUP, *cells))
    grades = grade_submission(copy, "x", limits=Limits(seconds=5), enclosed=False, fork=False).grades
    assert {grade.exercise: grade.status for grade in grades} == {
        "causal_mask": "passed", "attention": "failed", "split_heads": "failed",
    }  # fmt: skip
    assert grades[1].exercise == "attention" and grades[1].mistake == "crash"
    assert [path.name for path in tmp_path.iterdir()] == ["x.ipynb"]


CAUSAL, PADDING = "course.check('causal_mask', causal_mask)", "course.check('padding_mask', padding_mask)"
FORGED = '{"exercise": "padding_mask", "status": "passed", "mistake": null, "message": "", "finding": ""}'
REACH = """
def padding_mask(token_ids, pad_id):
    parent = open("/proc/self/stat").read().split()[3]
    for number in range(40):
        libc = ctypes.CDLL(None)
        handle = libc.open(f"/proc/{parent}/fd/{number}".encode(), os.O_WRONLY | os.O_APPEND)
        libc.write(handle, LINE, len(LINE))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reaches through /proc")
@pytest.mark.parametrize("enclosed", [True, False], ids=["namespace", "guard"])
def test_the_answers_of_others_are_out_of_reach(tmp_path, write_copy, enclosed):
    if enclosed and not walls():
        pytest.skip("this machine allows no namespaces: the guard stands alone")
    line = "LINE = b'" + FORGED.replace("padding", "causal") + "\\n'"
    copy = write_copy(tmp_path / "x.ipynb", SETUP, line, REACH, CAUSAL, PADDING)
    found = grade_submission(read_submission(copy), "x", limits=Limits(seconds=9), enclosed=enclosed)
    assert found.problem is None
    assert {grade.exercise: grade.status for grade in found.grades} == {
        "causal_mask": "failed", "padding_mask": "failed",
    }  # fmt: skip


@pytest.mark.parametrize("line", ['{"exercise": "causal_mask", "zzz": 1}', FORGED, "5"])
def test_a_line_that_is_no_grade_is_trouble_of_its_copy_alone(tmp_path, write_copy, line):
    """Without fork the answers are within reach of what is checked."""
    line = f"for n in range(3, 40):\n    with contextlib.suppress(OSError): os.write(n, b'{line}\\n')"
    body = answer(
        "causal_mask", "n", "import contextlib", *line.splitlines(), "return torch.ones(n, n).tril()"
    )
    copy = read_submission(write_copy(tmp_path / "x.ipynb", SETUP, *body))
    found = grade_submission(copy, "x", limits=Limits(seconds=5), enclosed=False, fork=False)
    assert found.grades == () and "wrote into the answers" in found.problem


def test_what_one_copy_writes_for_an_answer_leaves_the_class_its_grades(tmp_path, write_copy, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = {
        "causal_mask": '{"status": "failed", "mistake": ["x"], "message": 5, "finding": ""}',
        "padding_mask": "[" * 30_000,
    }
    evil = []
    for name, line in lines.items():
        loop = "for n in range(3, 40): ctypes.CDLL(None).write(n, LINE, len(LINE))".replace(
            "LINE", f"LINE_{name}"
        )
        evil += [f"LINE_{name} = b'{line}\\n'", *answer(name, "*arguments", loop, "os._exit(0)")]
    evil += answer("attention", "q, k, v, mask", "raise ValueError('\\ud800')")
    write_copy(tmp_path / "class" / "a.ipynb", SETUP, *evil)
    write_copy(tmp_path / "class" / "b.ipynb", SETUP, *CASES["causal_mask"][0][1:])
    report = grade_folder(tmp_path / "class", limits=LIMITS)
    assert [[grade.mistake for grade in copy.grades] for copy in report.copies] == [
        ["crash", "crash", "error"], [None],
    ]  # fmt: skip
    assert report.copies[1].n_passed == 1 and str(report).encode()
    assert json.dumps(report.to_dict(), ensure_ascii=False).encode() and report.csv.is_file()


@pytest.mark.parametrize("fork", [True, False])
def test_reading_a_notebook_has_limits_too(tmp_path, write_copy, fork):
    slow = "\n".join(f"a{n} = !ls" for n in range(450))
    copy = read_submission(write_copy(tmp_path / "x.ipynb", slow, *CASES["causal_mask"][0][1:]))
    found = grade_submission(copy, "x", limits=Limits(seconds=2), enclosed=False, fork=fork)
    assert found.grades == () and "too much time" in found.problem


def test_limits_are_checked():
    for wrong in ({"seconds": 0}, {"seconds": float("nan")}, {"mebibytes": 1}):
        with pytest.raises(ValueError, match="must lie between"):
            Limits(**wrong)
