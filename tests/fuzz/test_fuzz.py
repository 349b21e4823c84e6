"""A sample of what `make fuzz` runs in full."""

import os
import random

import pytest

from tests.fuzz.commands import command_line
from tests.fuzz.material import damaged
from tinytx_run.cli import build_parser


def test_lines_name_every_command_and_repeat_themselves():
    lines = [command_line(build_parser(), random.Random(seed)) for seed in range(200)]
    assert lines == [command_line(build_parser(), random.Random(seed)) for seed in range(200)]
    commands = {line[0] for line in lines}
    assert commands == {"pretrain", "finetune", "evaluate", "generate", "translate", "count", "data"}


def test_damage_changes_nearly_every_file():
    data = bytes(range(256))
    found = [damaged(data, random.Random(seed)) for seed in range(200)]
    assert sum(one != data for one in found) > 180 and len(set(found)) > 150


@pytest.mark.proof
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_no_line_and_no_damaged_file_ends_in_a_traceback(tmp_path):
    from tests.fuzz.__main__ import BAD, Rounds

    rounds = Rounds(tmp_path, seed=1)
    for found, n in ((rounds.commands(60), 60), (rounds.files(60), 60)):
        assert found.total() == n and not any(found[kind] for kind in BAD), found
        assert found["done"] >= 5 and found["refused"] >= 20
