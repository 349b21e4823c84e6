"""What tests of interrupted runs share: an end in the middle of a step, and all bytes that a run leaves."""

import contextlib
import os
import signal

from torch.optim.optimizer import register_optimizer_step_post_hook


class Killed(BaseException):
    """Ends training as abruptly as a test can without ending the test."""


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


@contextlib.contextmanager
def in_step(wanted, act):
    """Call ``act`` within a step of training: when the weights are new and nothing is recorded."""
    n_steps = 0

    def count(*_):
        nonlocal n_steps
        n_steps += 1
        if n_steps == wanted:
            act()

    handle = register_optimizer_step_post_hook(count)
    try:
        yield
    finally:
        handle.remove()


def folder_bytes(folder):
    """The bytes of every file below a folder, hidden ones too, by its path there."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
