"""Freed memory stays with the process: measured by the pages it has to ask for again."""

import json
import subprocess
import sys

import pytest

PROBE = """
import json, resource, torch
from tinytx.training.allocator import keep_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(10_000_000)  # 40 MB, more than glibc keeps by default
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
before = faults()
taken = keep_memory()
faults()
print(json.dumps([taken, before, faults()]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only the C library of Linux is told")
def test_memory_that_is_kept_need_not_be_asked_for_again():
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    taken, before, after = json.loads(done.stdout)
    if not taken:
        pytest.skip("this C library cannot be told")
    assert after < before / 100
