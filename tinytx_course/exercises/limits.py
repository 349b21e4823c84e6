"""A time limit on a call, in notebooks, scripts and threads: nothing is left running that can be ended."""

from __future__ import annotations

import ctypes
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any


class TimeUp(SystemExit):
    """Raised within a call that takes too long; no `except Exception` holds it."""


class TimeUpAtEveryLine(TimeUp):
    """Raised again at every line that follows, for a call that catches whatever is raised."""

    def __init__(self) -> None:
        super().__init__()
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == __file__:  # whoever raises this
            frame = frame.f_back
        while frame is not None and frame.f_code.co_filename != __file__:  # the call that is to end
            frame.f_trace = _raise_again
            frame = frame.f_back
        sys.settrace(_raise_again)


def _raise_again(frame: Any, event: str, argument: Any) -> Any:
    if frame.f_code.co_filename == __file__:
        return None
    if event == "line":
        raise TimeUpAtEveryLine
    return _raise_again


Result = tuple[Any, BaseException | None]  # the value, or what was raised

_PATIENCE = 5  # how many times its seconds of the processor a call may take on the clock
_AGAIN = 0.05  # seconds between rings: one that comes just before a sleep begins does not end it
_POLITE = 20  # times that a call is asked to end, with all its `finally`, before it is made to
_GRACE_SECONDS = 3.0  # for a thread to end after it was stopped
_jitter = random.Random(0)  # of its own: the learner's random state is left alone


def _pause() -> float:
    return 10 ** _jitter.uniform(-5, -2.3)  # from microseconds to milliseconds


def call_within(seconds: float, function: Callable[..., Any], *args: Any, **keywords: Any) -> Result:
    """Call a function and return its value or what it raised; never raises itself.

    The seconds are those of the processor, so that a busy machine ends no honest call; on the clock it may
    take five times as long. On the main thread a timer signal ends the call, also one that sleeps; handler
    and timer of before are put back. Elsewhere, and where there are no such signals, the call runs in a
    thread of its own, which is asked to stop, and abandoned if it sleeps in C for ever.
    """
    traced_by = sys.gettrace()
    if _signals_at_hand():
        return _with_alarm(seconds, function, args, keywords, traced_by)
    return _in_thread(seconds, function, args, keywords)


def _signals_at_hand() -> bool:
    on_main = threading.current_thread() is threading.main_thread()
    # A handler that was set outside Python cannot be put back.
    return on_main and hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is not None


def _with_alarm(
    seconds: float, function: Callable[..., Any], args: Any, keywords: Any, traced_by: Any
) -> Result:
    armed, rung = True, 0

    def ring(signum: int, frame: Any) -> None:
        nonlocal rung
        if not armed:
            return
        if rung:
            sys.settrace(None)  # else what follows would be interrupted too
        used, passed = time.thread_time() - used_before, time.monotonic() - started
        if used < seconds and passed < _PATIENCE * seconds:
            signal.setitimer(signal.ITIMER_REAL, max(seconds - used, 0.01), _AGAIN)
            return
        signal.setitimer(signal.ITIMER_REAL, _pause(), _AGAIN)  # should this one be caught
        if frame is not None and frame.f_code.co_filename != __file__:
            rung += 1
            raise TimeUp if rung <= _POLITE else TimeUpAtEveryLine

    handler_before = signal.getsignal(signal.SIGALRM)
    left_before, interval_before = signal.setitimer(signal.ITIMER_REAL, 0)
    started, used_before = time.monotonic(), time.thread_time()
    signal.signal(signal.SIGALRM, ring)
    value, error = None, None
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
        value = function(*args, **keywords)
        armed = False
    except BaseException as raised:  # noqa: B036  (a learner may raise anything)
        armed = False
        error = raised
    if rung:
        sys.settrace(traced_by)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, handler_before)
    if left_before:
        rest = max(left_before - (time.monotonic() - started), 1e-3)
        signal.setitimer(signal.ITIMER_REAL, rest, interval_before)
    return value, error


def _wait(done: threading.Event, thread: threading.Thread, seconds: float) -> None:
    """Wait until a thread is done, has used its seconds of the processor, or taken too long on the clock."""
    started = time.monotonic()
    left = seconds
    while left > 0 and not done.wait(max(left, 0.01)) and time.monotonic() - started < _PATIENCE * seconds:
        try:
            left = seconds - time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0))
        except (AttributeError, OSError):  # no such clock on this system, or the thread has just ended
            left = _PATIENCE * seconds - (time.monotonic() - started)


def _in_thread(seconds: float, function: Callable[..., Any], args: Any, keywords: Any) -> Result:
    box: list[Result] = []
    done = threading.Event()

    def work() -> None:
        try:
            box.append((function(*args, **keywords), None))
        except BaseException as raised:  # noqa: B036
            sys.settrace(None)
            box.append((None, raised))
        finally:
            done.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    interrupt: BaseException | None = None
    try:
        _wait(done, thread, seconds)
    except KeyboardInterrupt as raised:
        interrupt = raised
    if done.is_set() and box:
        return box[0]
    give_up, asked = time.monotonic() + _GRACE_SECONDS, 0
    while not done.is_set() and time.monotonic() < give_up:
        asked += 1
        kind = ctypes.py_object(TimeUp if asked <= _POLITE else TimeUpAtEveryLine)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), kind)
        done.wait(_pause())
    return None, interrupt or TimeUp()
