"""The toy corpus of `tests/tinytx_run`."""

from tests.tinytx_run.conftest import config, corpus, tokenizer  # noqa: F401
