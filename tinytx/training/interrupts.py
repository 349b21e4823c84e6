"""Ctrl-C as a wish: training stops at the end of a step, and nothing is cut in half."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def stop_on_ctrl_c(*, patient: bool = False) -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a flag; the second one stops at once, unless ``patient``.

    One of several processes has to be patient: it may be told twice, by the terminal and by torchrun.
    """
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag  # only the main thread may handle signals
        return

    def handle(number: int, frame: object) -> None:
        if flag.is_set() and not patient:
            raise KeyboardInterrupt
        flag.set()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, before)
