"""Diagrams of attention: its masks, its heads, and the paths of information."""

from __future__ import annotations

import math

import torch

from tinytx.masks import causal_mask, padding_mask
from tinytx_course.plots.diagrams.svg import Box, Drawn, Panel


def _mask_panel(title: str, allowed: torch.Tensor, queries: list[str], keys: list[str]) -> Panel:
    """Draw a mask, a row for each query and a column for each key."""
    side, top = 46.0, 84.0
    left = 72 + side * (5 - len(keys)) / 2  # all panels have room for five keys, and so one scale
    panel = Panel(72 + side * 5 + 6, top + side * len(queries) + 6)
    panel.title(title)
    panel.text(left + side * len(keys) / 2, 44, "keys", size="small", kind="k", bold=True)
    panel.text(left - 8, 66, "queries", size="small", kind="q", bold=True, anchor="end")
    for j, word in enumerate(keys):
        panel.text(left + (j + 0.5) * side, top - 18, word, size="small")
    for i, word in enumerate(queries):
        panel.text(left - 8, top + (i + 0.5) * side, word, size="small", anchor="end")
    kinds = [["weights" if seen else "blocked" for seen in row] for row in allowed.tolist()]
    panel.cells(left, top, kinds, side)
    return panel


def three_masks() -> Drawn:
    """Draw the masks of a translator, computed by the functions of the package."""
    source, target = ["le", "film", "est", "beau", "<pad>"], ["<bos>", "the", "film", "is"]
    real = padding_mask(torch.tensor([[5, 6, 7, 8, 0]]), pad_id=0)  # (B, S) with B = 1
    panels = (
        _mask_panel("Encoder self-attention", real.expand(len(source), -1), source, source),
        _mask_panel("Decoder self-attention", causal_mask(len(target)), target, target),
        _mask_panel("Cross-attention", real.expand(len(target), -1), target, source),
    )
    return panels, {}


def _heads(panel: Panel, x: float, kinds: tuple[str, ...], seq_len: int, head_dim: int) -> list[Box]:
    """Draw one matrix of T rows and K columns for each head, below each other."""
    side = 18.0
    return [
        panel.cells(x, 78 + i * (seq_len * side + 22), [[kind] * head_dim] * seq_len, side)
        for i, kind in enumerate(kinds)
    ]


def split_into_heads() -> Drawn:
    """Draw how D numbers a token become H heads of K, and how they come back."""
    seq_len, n_heads, head_dim, side = 4, 3, 2, 18.0
    panel = Panel(700, 78 + n_heads * (seq_len * side + 22) - 10)
    before, after = ("q", "q2", "q3"), ("v", "v2", "v3")
    middle = 78 + (n_heads * (seq_len * side + 22) - 22) / 2
    top = middle - seq_len * side / 2
    for x, words, shape in (
        (74, "q", "(B, T, D)"), (262, "split", "(B, H, T, K)"),
        (442, "attention", "(B, H, T, K)"), (628, "merge", "(B, T, D)"),
    ):  # fmt: skip
        panel.text(x, 16, words, size="title", bold=True)
        panel.text(x, 42, shape, size="code", kind="soft")
    whole = panel.cells(20, top, [[kind for kind in before for _ in range(head_dim)]] * seq_len, side)
    heads = _heads(panel, 244, before, seq_len, head_dim)
    mixed = _heads(panel, 424, after, seq_len, head_dim)
    merged = panel.cells(574, top, [[kind for kind in after for _ in range(head_dim)]] * seq_len, side)
    panel.text(74, top - 14, f"D = {n_heads * head_dim} numbers", size="small", kind="soft")
    panel.text(74, top + seq_len * side + 16, f"T = {seq_len} tokens", size="small", kind="soft")
    for i, (head, result) in enumerate(zip(heads, mixed, strict=True)):
        y = head.at(0, 0.5)[1]
        start, end = whole.at(1, (i + 1) / (n_heads + 1)), merged.at(0, (i + 1) / (n_heads + 1))
        panel.arrow(start, (start[0] + 46, start[1]), (head.x - 46, y), (head.x - 4, y), kind="q")
        panel.arrow((head.x + head.width + 6, y), (result.x - 6, y), kind="weights", width=2.2)
        panel.text((head.x + head.width + result.x) / 2, y - 14, f"head {i}", size="small")
        right = result.x + result.width
        panel.arrow((right + 4, y), (right + 34, y), (end[0] - 40, end[1]), (end[0] - 2, end[1]), kind="v")
    sizes = {"seq_len": seq_len, "n_heads": n_heads, "head_dim": head_dim}
    return (panel,), {**sizes, "d_model": n_heads * head_dim}


def _seen(title: str, words: list[str], answers: dict[int, str], marked: int, allowed: torch.Tensor) -> Panel:
    """Draw inputs above, outputs below, a line for each pair that the mask allows."""
    panel, step = Panel(350, 236), 68.0
    columns = [39 + step * i for i in range(len(words))]
    panel.title(title)
    inputs = [
        panel.box(x - 31, 38, 62, 34, word, kind="weights" if allowed[marked, i] else "none", size="small")
        for i, (x, word) in enumerate(zip(columns, words, strict=True))
    ]
    for i, x in enumerate(columns):
        outputs = panel.dot(x, 166, kind="weights" if i == marked else "line", radius=6)
        for j, above in enumerate(inputs):
            if allowed[i, j] and i != marked:
                panel.line(above.bottom, (x, outputs.y), kind="line", width=1, opacity=0.55)
    for above in (box for j, box in enumerate(inputs) if allowed[marked, j]):
        panel.line(above.bottom, (columns[marked], 160), kind="weights", width=2.6)
    for i, word in answers.items():
        panel.arrow((columns[i], 174), (columns[i], 198), kind="weights" if i == marked else "line")
        panel.text(columns[i], 212, word, size="small", bold=i == marked)
    return panel


def who_sees_what() -> Drawn:
    """Draw what one prediction may depend on, under a causal mask and in a masked language model."""
    words, marked = ["le", "film", "est", "très", "beau"], 2
    following = dict(enumerate([*words[1:], "<eos>"]))
    hidden = [word if i != marked else "[MASK]" for i, word in enumerate(words)]
    everything = torch.ones(len(words), len(words), dtype=torch.bool)
    panels = (
        _seen("Causal", words, following, marked, causal_mask(len(words))),
        _seen("Masked", hidden, {marked: words[marked]}, marked, everything),
    )
    named = {"text": " ".join(words), "seen": ", ".join(words[: marked + 1])}
    return panels, {**named, "answer": following[marked], "hidden": words[marked]}


def _nodes(title: str, note: str, n_rows: int, seq_len: int) -> tuple[Panel, list[list[tuple[float, float]]]]:
    panel = Panel(300, 272)
    panel.title(title)
    panel.text(150, 256, note, size="small")
    gap = 176 / (n_rows - 1)
    return panel, [[(24 + 36 * i, 48 + gap * row) for i in range(seq_len)] for row in range(n_rows)]


def _connect(panel: Panel, nodes, edges: set, path: list[tuple[int, int]]) -> None:
    """Draw pale edges, then the path as arrows that end at the rim of each node, then the nodes."""
    for (r, i), (s, j) in sorted(edges):
        panel.line(nodes[r][i], nodes[s][j], kind="line", width=1, opacity=0.6)
    for (r, i), (s, j) in zip(path, path[1:], strict=False):
        (x, y), (u, w) = nodes[r][i], nodes[s][j]
        share = 1 - 8 / math.dist((x, y), (u, w))
        panel.arrow((x, y), (x + share * (u - x), y + share * (w - y)), kind="weights", width=2.6)
    for r, row in enumerate(nodes):
        for i, (x, y) in enumerate(row):
            marked = (r, i) in path
            panel.dot(x, y, kind="weights" if marked else "none", radius=7, filled=marked)


def paths_of_information() -> Drawn:
    """Draw the shortest path from the first input to the last output in three kinds of layers."""
    seq_len, kernel = 8, 3
    last, reach = seq_len - 1, kernel - 1
    n_layers = math.ceil(last / reach)

    rnn, nodes = _nodes("Recurrent layer", f"{last} steps: T − 1", 2, seq_len)
    edges = {((0, i), (1, i)) for i in range(seq_len)} | {((1, i), (1, i + 1)) for i in range(last)}
    _connect(rnn, nodes, edges, [(0, 0), *((1, i) for i in range(seq_len))])

    conv, nodes = _nodes("Convolution", f"{n_layers} layers of kernel width {kernel}", n_layers + 1, seq_len)
    edges = {
        ((r, i), (r + 1, j))
        for r in range(n_layers)
        for i in range(seq_len)
        for j in range(i, min(last, i + reach) + 1)
    }
    _connect(conv, nodes, edges, [(r, min(last, r * reach)) for r in range(n_layers + 1)])

    attention, nodes = _nodes("Attention", "1 layer, whatever T is", 2, seq_len)
    edges = {((0, i), (1, j)) for j in range(seq_len) for i in range(j + 1)}
    _connect(attention, nodes, edges, [(0, 0), (1, last)])
    sizes = {"seq_len": seq_len, "kernel": kernel, "last": last, "reach": reach, "n_layers": n_layers}
    return (rnn, conv, attention), {**sizes}
