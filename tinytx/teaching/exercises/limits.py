"""A time limit on a call, in notebooks, scripts and threads: nothing is left running that can be ended."""

from __future__ import annotations

import ctypes
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any


class TimeUp(SystemExit):
    """Raised within a call that takes too long; no `except Exception` holds it."""


Result = tuple[Any, BaseException | None]  # the value, or what was raised

_GRACE_SECONDS = 1.0
_jitter = random.Random(0)  # of its own: the learner's random state is left alone


def _pause() -> float:
    # From microseconds to milliseconds: a call that catches everything is hit between two attempts some time.
    return 10 ** _jitter.uniform(-5, -2.3)


def call_within(seconds: float, function: Callable[..., Any], *args: Any, **keywords: Any) -> Result:
    """Call a function and return its value or what it raised; never raises itself.

    On the main thread a timer signal ends the call, also one that sleeps; handler and timer of before are put
    back. Elsewhere, and where there are no such signals, the call runs in a thread of its own, which is told
    to stop, and given up if it sleeps in C for ever.
    """
    if _signals_at_hand():
        return _with_alarm(seconds, function, args, keywords)
    return _in_thread(seconds, function, args, keywords)


def _signals_at_hand() -> bool:
    on_main = threading.current_thread() is threading.main_thread()
    # A handler that was set outside Python cannot be put back.
    return on_main and hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is not None


def _with_alarm(seconds: float, function: Callable[..., Any], args: Any, keywords: Any) -> Result:
    armed = True

    def ring(signum: int, frame: Any) -> None:
        if not armed:
            return
        signal.setitimer(signal.ITIMER_REAL, _pause())  # and again, should this one be caught
        if frame is not None and frame.f_code.co_filename != __file__:
            raise TimeUp

    handler_before = signal.getsignal(signal.SIGALRM)
    left_before, interval_before = signal.setitimer(signal.ITIMER_REAL, 0)
    started = time.monotonic()
    signal.signal(signal.SIGALRM, ring)
    value, error = None, None
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        value = function(*args, **keywords)
        armed = False
    except BaseException as raised:  # noqa: B036  (a learner may raise anything)
        armed = False
        error = raised
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, handler_before)
    if left_before:
        rest = max(left_before - (time.monotonic() - started), 1e-3)
        signal.setitimer(signal.ITIMER_REAL, rest, interval_before)
    return value, error


def _in_thread(seconds: float, function: Callable[..., Any], args: Any, keywords: Any) -> Result:
    box: list[Result] = []
    done = threading.Event()

    def work() -> None:
        try:
            box.append((function(*args, **keywords), None))
        except BaseException as raised:  # noqa: B036
            box.append((None, raised))
        finally:
            done.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    interrupt: BaseException | None = None
    try:
        done.wait(seconds)
    except KeyboardInterrupt as raised:
        interrupt = raised
    if done.is_set() and box:
        return box[0]
    give_up = time.monotonic() + _GRACE_SECONDS
    while not done.is_set() and time.monotonic() < give_up:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident or 0), ctypes.py_object(TimeUp)
        )
        done.wait(_pause())
    return None, interrupt or TimeUp()
