"""Diagrams of what enters a model or an experiment, and of where parameters are; numbers are computed."""

from __future__ import annotations

from collections import Counter

import torch

from tinytx.config import PRESETS
from tinytx.counting import ParameterTable, parameter_table
from tinytx_course.plots.diagrams.svg import Drawn, Panel


def text_to_vectors() -> Drawn:
    """Draw a text becoming tokens, ids, and rows of the embedding matrix."""
    words = ["the", "film", "is", "good"]
    vocabulary = sorted({*words, "a", "bad", "book", "very"})
    ids = [vocabulary.index(word) for word in words]
    panel, side = Panel(390, 436), 22.0
    columns = [105 + 80.0 * i for i in range(len(words))]
    for y, name in ((18, "text"), (74, "tokens"), (136, "ids")):
        panel.text(4, y, name, size="small", kind="soft", anchor="start")
    panel.text(225, 18, " ".join(words), bold=True)
    for x, word, number in zip(columns, words, ids, strict=True):
        token = panel.box(x - 35, 58, 70, 32, word)
        entry = panel.box(x - 22, 120, 44, 32, str(number), kind="none")
        panel.arrow((x, 32), token.top)
        panel.arrow(token.bottom, entry.top)
    drawn = torch.randn(len(vocabulary), 5, generator=torch.Generator().manual_seed(0))
    rows, top = drawn.clamp(-1.5, 1.5).tolist(), 218.0  # as an embedding is before training
    table = panel.shades(82, top, rows, side)
    panel.text(table.top[0], 184, "embedding matrix", size="small", bold=True)
    panel.text(table.top[0], 203, "(V, D)", size="code", kind="soft")
    for i, word in enumerate(vocabulary):
        chosen = i in ids
        panel.text(74, top + (i + 0.5) * side, f"{i} {word}", size="small", anchor="end",
                   kind="ink" if chosen else "soft", bold=chosen)  # fmt: skip
    result = panel.shades(272, top + 2 * side, [rows[number] for number in ids], side)
    panel.text(result.top[0], 228, "vectors", size="small", bold=True)
    panel.text(result.top[0], 247, "(T, D)", size="code", kind="soft")
    for i, number in enumerate(ids):
        start = (table.x + table.width + 3, top + (number + 0.5) * side)
        end = (result.x - 3, result.y + (i + 0.5) * side)
        panel.arrow(start, end, kind="stream", width=2.2)
    panel.text(195, 424, "One id picks one row.", size="small")
    named = {"text": " ".join(words), "ids": ", ".join(map(str, ids))}
    return (panel,), {**named, "n_tokens": len(words), "vocab_size": len(vocabulary)}


#: Colour of each kind of parameters, and its name.
PARTS = {
    "embeddings": ("stream", "embeddings"),
    "attention": ("weights", "attention"),
    "feed_forward": ("plain", "feed-forward"),
    "norms": ("ink", "norms"),
    "head": ("head", "output layer"),
}


def _areas(panel: Panel, table: ParameterTable, y: float, width: float, height: float) -> None:
    """Draw a rectangle for each part of each layer whose area is its share of all parameters."""
    x = 0.0
    for part, count in table.parts.items():
        rows = [row for row in table.rows if row.part == part]
        n_layers = max((row.times for row in rows), default=1)
        wide = width * count / table.total / n_layers
        kinds: Counter[str] = Counter()
        for row in rows:
            kinds[row.kind] += row.total
        for _ in range(n_layers):
            down = y
            for kind, inside in kinds.items():
                high = height * inside / count
                panel.parts.append(
                    f'<rect class="f-{PARTS[kind][0]}" x="{x:.2f}" y="{down:.2f}" width="{wide:.2f}" '
                    f'height="{high:.2f}" stroke-width="0.7" data-kind="{kind}"/>'
                )
                down += high
            x += wide


def parameters() -> Drawn:
    """Draw the parameters of the lab's language model as areas in proportion to their numbers."""
    config = PRESETS["seed-lab"]
    table = parameter_table(config)
    kinds = table.kinds
    panel = Panel(390, 312 + 28 * len(kinds))
    panel.title(f"{table.total:,} parameters")
    _areas(panel, table, 56, 390, 220)
    before = 390 * table.parts["embeddings"] / table.total
    wide = 390 * table.parts["blocks"] / table.total
    for n in range(config.n_layers):
        x = before + wide * (n + 0.5) / config.n_layers
        panel.text(x, 42, f"block {n + 1}", size="small", kind="soft")
    for i, (kind, count) in enumerate(kinds.items()):
        y = 304 + 28 * i
        color, name = PARTS[kind]
        panel.cells(8, y - 9, [[color]], 18)
        panel.text(36, y, name, anchor="start")
        panel.text(290, y, f"{count:,}", anchor="end")
        panel.text(382, y, f"{100 * count / table.total:.1f} %", anchor="end", kind="soft")
    shares = ", ".join(
        f"{PARTS[kind][1]} {count:,} ({100 * count / table.total:.1f} %)" for kind, count in kinds.items()
    )
    sizes = {name: getattr(config, name) for name in ("d_model", "d_ff", "n_layers", "vocab_size")}
    return (panel,), {**sizes, "total": table.total, "shares": shares}


def dose_and_response() -> Drawn:
    """Draw one body that is pretrained and stopped after each dose, and folds that divide no film."""
    body, folds = Panel(300, 356), Panel(320, 356)
    body.title("Read, without labels")
    texts = body.box(40, 40, 220, 46, "unlabelled reviews", "of other films", kind="none", size="small")
    trained = body.box(40, 122, 220, 36, "next-token prediction", kind="stream", size="small")
    body.arrow(texts.bottom, trained.top)
    doses = ("0", "0.3", "1", "3", "10", "30")
    body.line((32, 214), (268, 214), kind="stream", width=2.6)
    body.arrow(trained.bottom, (150, 210), kind="stream", width=2.6)
    for i, dose in enumerate(doses):
        x = 32 + 47.2 * i
        body.dot(x, 214, kind="stream", radius=7, filled=bool(i))
        body.text(x, 240, dose, size="small")
    body.text(150, 264, "million tokens: the dose", size="small")
    body.text(150, 318, "One body, saved after each dose;", size="small", kind="soft")
    body.text(150, 338, "0 is new weights.", size="small", kind="soft")

    folds.title("Learn and be tested")
    folds.text(160, 52, "labelled reviews, six folds of whole films", size="small")
    boxes = [folds.box(10 + 51 * i, 68, 45, 40, "test" if i == 5 else "", kind="head" if i == 5 else "plain",
                       size="small") for i in range(6)]  # fmt: skip
    labels = folds.box(60, 152, 150, 36, "200 labels", kind="weights", size="small")
    folds.arrow(boxes[2].bottom, (labels.top[0], labels.y), kind="weights")
    ways = folds.box(60, 224, 150, 46, "bag, frozen body,", "or fine-tuning", kind="stream", size="small")
    folds.arrow(labels.bottom, ways.top, kind="weights")
    score = folds.box(238, 224, 76, 46, "accuracy", kind="none", size="small")
    folds.arrow(ways.right, score.left)
    folds.arrow(boxes[5].bottom, (boxes[5].bottom[0], score.y))
    folds.text(160, 318, "The same labels and the same tests for all;", size="small", kind="soft")
    folds.text(160, 338, "each fold is the test in turn.", size="small", kind="soft")
    return (body, folds), {"doses": ", ".join(doses)}
