"""A time limit on a call, in notebooks, scripts and threads."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Callable
from typing import Any


class TimeUp(SystemExit):
    """Raised within a call that takes too long; no `except Exception` holds it."""


Result = tuple[Any, BaseException | None]  # the value, or what was raised

_PATIENCE = 5  # how many times its seconds of the processor a call may take on the clock
_AGAIN = 0.05  # seconds between rings: one that comes just before a sleep begins does not end it
_GRACE_SECONDS = 1.0  # for a thread to end after it was stopped


def call_within(seconds: float, function: Callable[..., Any], *args: Any, **keywords: Any) -> Result:
    """Call a function and return its value or what it raised; never raises itself.

    The seconds are those of the processor, so that a busy machine ends no honest call; on the clock it may
    take five times as long. On the main thread an alarm ends the call, also one that sleeps; handler and
    timer of before are put back. Elsewhere, and where there are no such signals, the call runs in a thread of
    its own for as long on the clock, then is asked to stop. A call that catches whatever is raised is left to
    the reader, who interrupts it or restarts the kernel.
    """
    on_main = threading.current_thread() is threading.main_thread()
    # A handler that was set outside Python cannot be put back.
    if on_main and hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is not None:
        return _with_alarm(seconds, function, args, keywords)
    return _in_thread(seconds, function, args, keywords)


def _with_alarm(seconds: float, function: Callable[..., Any], args: Any, keywords: Any) -> Result:
    started, used_before = time.monotonic(), time.thread_time()

    def ring(signum: int, frame: Any) -> None:
        used, passed = time.thread_time() - used_before, time.monotonic() - started
        late = used >= seconds or passed >= _PATIENCE * seconds
        if late and frame is not None and frame.f_code.co_filename != __file__:
            raise TimeUp

    left_before, interval_before = signal.setitimer(signal.ITIMER_REAL, 0)
    handler_before = signal.signal(signal.SIGALRM, ring)
    value, error = None, None
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
        value = function(*args, **keywords)
    except BaseException as raised:  # noqa: B036  (a learner may raise anything)
        error = raised
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, handler_before)
    if left_before:
        rest = max(left_before - (time.monotonic() - started), 1e-3)
        signal.setitimer(signal.ITIMER_REAL, rest, interval_before)
    return value, error


def _in_thread(seconds: float, function: Callable[..., Any], args: Any, keywords: Any) -> Result:
    box: list[Result] = []

    def work() -> None:
        try:
            box.append((function(*args, **keywords), None))
        except BaseException as raised:  # noqa: B036
            box.append((None, raised))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    stop: type[BaseException] = TimeUp
    try:
        thread.join(_PATIENCE * seconds)
    except KeyboardInterrupt:
        stop = KeyboardInterrupt
    if thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(stop))
        thread.join(_GRACE_SECONDS)
    return box[0] if box else (None, stop())
