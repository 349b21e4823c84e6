"""Generated command lines and damaged files: no traceback, no hang, no silent wrong result."""

import os
import random
import shutil
from collections import Counter

import pytest

from tests.fuzz.commands import command_line, leaves
from tests.fuzz.material import damaged, write_material
from tinytx_run.cli import build_parser
from tinytx_run.cli import main as tinytx

N_LINES, N_FILES = 500, 100
GENERATE = ("generate", "{f}", "--prompt", "chat", "--seed", "1", "--max-new-tokens", "5", "--device", "cpu")
EVALUATE = "evaluate {m}/MODEL --corpus {f} --device cpu"
#: What reads each file. Where a damaged model still answers, its answer must be that of the whole one.
READERS = {
    "lm": GENERATE,
    "run": GENERATE,
    "classifier": ("evaluate", "{f}", "--corpus", "{m}/reviews.tsv", "--device", "cpu"),
    "prose.txt": EVALUATE.replace("MODEL", "lm").split(),
    **{f"reviews.{x}": EVALUATE.replace("MODEL", "classifier").split() for x in ("tsv", "csv", "jsonl")},
}
STDIN = (b"", b"le chat\n", b"\xff\xfe\n", b"un\0livre\n", b"a" * 5000, b"\r\n\r\n")


@pytest.fixture
def tried(tmp_path, monkeypatch):
    """Run words in a child, after something was done to a fresh copy of the material."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    from tests.fuzz.children import run_child

    monkeypatch.setenv("TINYTX_BUDGET", "smoke")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # nothing is there, and nothing is tried again
    monkeypatch.setattr("tinytx_run.download.RETRIES", 0)
    material, copy, out = (tmp_path / name for name in ("material", "copy", "out"))
    material.mkdir()
    write_material(material)

    def run(words, stdin=b"", damage=lambda copy: None):
        for folder in (copy, out):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(material, copy)
        out.mkdir()
        damage(copy)
        words = [word.replace("{m}", str(copy)).replace("{out}", str(out)) for word in words]
        return run_child(tinytx, words, tmp_path / "child", stdin), words

    return run


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_no_generated_line_ends_in_a_traceback(tried):
    rng, parser, found, commands, bad = random.Random(1), build_parser(), Counter(), set(), []
    for _ in range(N_LINES):
        outcome, words = tried(command_line(parser, rng), rng.choice(STDIN))
        found[outcome.kind] += 1
        commands.add(words[0])
        if outcome.kind not in ("done", "refused"):
            bad.append((outcome.kind, [word[:80] for word in words], outcome.said[-900:]))
    assert bad == []
    assert found["done"] >= 50 and found["refused"] >= 200, found
    assert commands == {path[0] for path, _ in leaves(parser)}


@pytest.mark.proof
def test_no_damaged_file_ends_in_a_traceback_or_changes_what_a_model_says(tried):
    rng, found, bad = random.Random(1), Counter(), []
    readers = {name: [word.replace("{f}", f"{{m}}/{name}") for word in READERS[name]] for name in READERS}
    whole = {name: tried(words)[0].printed for name, words in readers.items()}
    for _ in range(N_FILES):
        name = rng.choice(list(readers))
        hurt = []

        def damage(copy, place=name, hurt=hurt):
            files = [copy / place] if (copy / place).is_file() else sorted((copy / place).rglob("*"))
            hurt.append(rng.choice([path for path in files if path.is_file()]))
            hurt[0].write_bytes(damaged(hurt[0].read_bytes(), rng))

        outcome, _ = tried(readers[name], damage=damage)
        found[outcome.kind] += 1
        silent = outcome.kind == "done" and "." not in name and outcome.printed != whole[name]
        if silent or outcome.kind not in ("done", "refused"):
            bad.append((outcome.kind, hurt, outcome.said[-900:] + outcome.printed[-900:]))
    assert bad == []
    assert found["done"] >= 5 and found["refused"] >= 20, found
