"""Freed memory stays with the process, measured by the pages it asks for again, until it is trimmed."""

import json
import subprocess
import sys

import pytest

PROBE = """
import json, resource, torch
from tinytx.training.optim import keep_memory
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


GAPS = """
import json, torch
from tinytx.training.optim import keep_memory, trim_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
if keep_memory():
    blocks = [torch.ones(250_000) for _ in range(400)]  # 1 MB each
    del blocks[::2]  # gaps that no larger block fits
    before = resident()
    trimmed = trim_memory()
    print(json.dumps([trimmed, before - resident(), sum(block.sum().item() for block in blocks)]))
else:
    print(json.dumps(None))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only the C library of Linux is told")
def test_gaps_between_what_is_in_use_are_given_back():
    done = subprocess.run([sys.executable, "-c", GAPS], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    if found is None:
        pytest.skip("this C library cannot be told")
    trimmed, given_back, total = found
    assert trimmed and given_back > 100e6
    assert total == 200 * 250_000  # what is in use is untouched
