"""The machine report: facts that can be looked up elsewhere, nothing that identifies anybody."""

import dataclasses
import getpass
import json
import platform
from pathlib import Path

import torch

from tinytx_course.machine import shortcomings, this_machine


def test_the_report_says_what_python_and_torch_say():
    here = this_machine()
    assert here.python == platform.python_version()
    assert torch.__version__.startswith(here.torch)
    assert here.threads == torch.get_num_threads()
    assert (here.gpu is not None) == (torch.cuda.is_available() or torch.backends.mps.is_available())


def test_no_host_user_or_folder_is_in_it():
    text = json.dumps(this_machine().to_dict())
    for secret in (platform.node(), str(Path.home()), str(Path(__file__).parent)):
        assert not secret or secret not in text
    assert getpass.getuser() not in this_machine().to_dict().values()


def test_bf16_agrees_with_torch_where_torch_can_tell():
    told = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    if told is not None and platform.machine() == "x86_64" and told():
        assert this_machine().bf16


def test_what_is_wrong_is_said_with_the_remedy():
    good = dataclasses.replace(this_machine(), cores=2, threads=2, memory_gib=8.0)
    assert shortcomings(good) == []
    (memory,) = shortcomings(dataclasses.replace(good, memory_gib=1.5))
    assert "4 GiB" in memory and "1.5" in memory
    (threads,) = shortcomings(dataclasses.replace(good, threads=8))
    assert "OMP_NUM_THREADS=2" in threads
    assert shortcomings(dataclasses.replace(good, memory_gib=None)) == []


def test_the_report_reads_well_without_a_gpu_and_with_unknown_memory():
    text = str(dataclasses.replace(this_machine(), gpu=None, memory_gib=None, cores=1, threads=2))
    assert "none is needed" in text and "unknown" in text
    assert "1 core\n" in text and "2 threads" in text
