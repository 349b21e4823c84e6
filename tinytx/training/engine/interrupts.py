"""Ctrl-C as a wish: training stops at the end of a step, and nothing is cut in half."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


class TrainingInterrupted(KeyboardInterrupt):
    """Training was stopped by hand, after saving where there was a folder to save into.

    Attributes
    ----------
    happened : str
        What was done and kept; the whole message also says how to go on from Python.
    """

    def __init__(self, happened: str, call: str | None = None) -> None:
        super().__init__(happened if call is None else f"{happened}; to go on: {call}")
        self.happened = happened


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
