"""The device of the tests marked `gpu`: a GPU, or the pretended one where TINYTX_TEST_DEVICE names it."""

import contextlib
import os

import torch

from tests import elsewhere

DEVICE = os.environ.get("TINYTX_TEST_DEVICE", "cuda")
PRETENDED = DEVICE == elsewhere.NAME
if PRETENDED:
    elsewhere.install()


@contextlib.contextmanager
def no_wait():
    """Raise a RuntimeError where Python waits for a number of the device."""

    def watch(on):
        if PRETENDED:
            elsewhere.Elsewhere.may_wait = not on
        else:
            torch.cuda.set_sync_debug_mode("error" if on else "default")

    watch(True)
    try:
        yield
    finally:
        watch(False)
