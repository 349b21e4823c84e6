"""The device of the tests marked `gpu`: a GPU, or the pretended one where TINYTX_TEST_DEVICE names it."""

import os

from tests import elsewhere

DEVICE = os.environ.get("TINYTX_TEST_DEVICE", "cuda")
PRETENDED = DEVICE == elsewhere.NAME
if PRETENDED:
    elsewhere.install()
