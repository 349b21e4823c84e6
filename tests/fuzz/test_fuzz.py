"""Generated command lines: no traceback, no hang."""

import os
import random
import shutil
from collections import Counter

import pytest

from tests.fuzz.commands import command_line, leaves
from tests.fuzz.material import write_material
from tinytx_run.cli import build_parser
from tinytx_run.cli import main as tinytx

N_LINES = 500
STDIN = (b"", b"le chat\n", b"\xff\xfe\n", b"un\0livre\n", b"a" * 5000, b"\r\n\r\n")


@pytest.mark.proof
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_no_generated_line_ends_in_a_traceback(tmp_path, monkeypatch):
    from tests.fuzz.children import run_child

    monkeypatch.setenv("TINYTX_BUDGET", "smoke")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # nothing is there, and nothing is tried again
    monkeypatch.setattr("tinytx_run.download.RETRIES", 0)
    material, copy, out = (tmp_path / name for name in ("material", "copy", "out"))
    material.mkdir()
    write_material(material)
    rng, parser, found, commands, bad = random.Random(1), build_parser(), Counter(), set(), []
    for _ in range(N_LINES):
        for folder in (copy, out):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(material, copy)
        out.mkdir()
        line, stdin = command_line(parser, rng), rng.choice(STDIN)
        words = [word.replace("{m}", str(copy)).replace("{out}", str(out)) for word in line]
        outcome = run_child(tinytx, words, tmp_path / "child", stdin)
        found[outcome.kind] += 1
        commands.add(words[0])
        if outcome.kind not in ("done", "refused"):
            bad.append((outcome.kind, [word[:80] for word in words], outcome.said[-900:]))
    assert bad == []
    assert found["done"] >= 50 and found["refused"] >= 200, found
    assert commands == {path[0] for path, _ in leaves(parser)}
