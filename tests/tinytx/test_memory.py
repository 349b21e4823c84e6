"""Memory: a training step reuses what the one before it freed, and the gaps are given back in the end."""

import json
import subprocess
import sys

import pytest

from tinytx.memory import _glibc

needs_glibc = pytest.mark.skipif(_glibc() is None, reason="only glibc lets a process choose")


def probed(code):
    """What a fresh process finds, as its settings stay for as long as it lives."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@needs_glibc
def test_training_steps_do_not_ask_the_system_for_the_same_memory_again():
    before, after = probed("""
import json, resource, torch
from tinytx.config import TransformerConfig
from tinytx.transformer import LanguageModel
from tinytx.loop import TrainingStep
from tinytx.objectives import CausalObjective
from tinytx.settings import TrainingSettings
def page_faults():
    start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(10_000_000)  # 40 MB, more than glibc retains by itself
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - start
page_faults()
before = page_faults()
config = TransformerConfig(vocab_size=11, max_len=7, d_model=6, n_heads=2, n_layers=1, d_ff=5)
objective = CausalObjective([[5, 6]], bos_id=1, eos_id=2, pad_id=0, max_len=7)
TrainingStep(LanguageModel(config), objective, TrainingSettings(n_steps=1, lr=1e-3))
page_faults()
print(json.dumps([before, page_faults()]))
""")
    assert after < before / 100


@needs_glibc
def test_gaps_between_blocks_in_use_are_given_back():
    between, due, total = probed("""
import json, torch
from tinytx.memory import TRIM_EVERY, retain_memory, trim_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
def given_back(step):
    before = resident()
    trim_memory(step)
    return before - resident()
retain_memory()
blocks = [torch.ones(250_000) for _ in range(400)]  # 1 MB each
del blocks[::2]  # gaps that no larger block fits
found = [given_back(TRIM_EVERY + 1), given_back(2 * TRIM_EVERY)]
print(json.dumps([*found, sum(block.sum().item() for block in blocks)]))
""")
    assert abs(between) < 10e6 and due > 100e6
    assert total == 200 * 250_000  # what is in use is untouched
