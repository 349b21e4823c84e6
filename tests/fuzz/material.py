"""Small models and texts, whole; and ways to damage a file."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pooch  # noqa: F401  (as torch and pandas: so that no child has to)
import torch

from tests.tinytx_run.conftest import sentences
from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_run.checkpoint import save
from tinytx_run.cli import main

FLIPS = (1, 2, 5)


def write_material(folder: Path) -> None:
    """Write texts as four kinds of files, a language model, a classifier and a started run."""
    texts = sentences(120, 1)
    rows = [(int("chat" in text), text) for text in texts]
    (folder / "prose.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    (folder / "reviews.tsv").write_text("".join(f"{y}\t{x}\n" for y, x in rows), encoding="utf-8")
    (folder / "reviews.csv").write_text(
        "text,label\n" + "".join(f'"{x}",{y}\n' for y, x in rows), encoding="utf-8"
    )
    lines = (json.dumps({"text": x, "label": y}, ensure_ascii=False) + "\n" for y, x in rows)
    (folder / "reviews.jsonl").write_text("".join(lines), encoding="utf-8")
    tokenizer = Tokenizer.train(texts, vocab_size=30)
    config = TransformerConfig(vocab_size=30, d_model=8, n_heads=2, n_layers=1, d_ff=12, max_len=24)
    torch.manual_seed(1)
    save(LanguageModel(config), folder / "lm", tokenizer)
    save(Classifier(config, n_classes=2), folder / "classifier", tokenizer, ("0", "1"))
    begun = ["pretrain", "--corpus", str(folder / "prose.txt"), "--budget", "smoke", "--steps", "3"]
    read = ["evaluate", str(folder / "classifier"), "--corpus", str(folder / "reviews.csv")]
    if main([*begun, "--out", str(folder / "run"), "--json"]) or main(read):
        raise RuntimeError("the material must train")


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Bytes changed in one of seven ways."""
    at = rng.randrange(len(data) + 1)
    way = rng.randrange(7)
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + rng.randbytes(rng.choice(FLIPS)) + data[at:]
    if way == 2:
        return data[:at] + data[at + rng.choice(FLIPS) :]
    if way == 3:
        return data[:at] + rng.choice((b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b'"', b"{", b"NaN", b"-1"))
    if way == 4:
        return data + data[at:]
    if way == 5:
        return rng.randbytes(rng.choice((0, 1, 8, 300)))
    found = bytearray(data)
    for _ in range(rng.choice(FLIPS)):
        if found:
            found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)
