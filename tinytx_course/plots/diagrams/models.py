"""Diagrams of models, from top to bottom as data flows, of the block they repeat, and of looking inside."""

from __future__ import annotations

from tinytx_course.plots.diagrams.svg import Box, Drawn, Panel


def where_attention_sits() -> Drawn:
    """Draw a small model over four positions: attention is wide, everything else is one box a position."""
    panel, words = Panel(400, 556), ("the", "film", "is", "very")
    columns = [53.0 + 98 * i for i in range(len(words))]

    def row(y: float, label: str, kind: str = "plain") -> None:
        for x in columns:
            panel.box(x - 45, y, 90, 34, label, kind=kind, size="small")

    def down(start: float, end: float, kind: str = "stream") -> None:
        for x in columns:
            panel.arrow((x, start), (x, end), kind=kind)

    for x, word in zip(columns, words, strict=True):
        panel.text(x, 12, word, bold=True)
    down(24, 46, "soft")
    row(46, "embedding")
    down(80, 108)
    panel.frame(2, 108, 396, 308)
    panel.text(200, 128, "block, n_layers times", size="small", kind="soft")
    panel.box(8, 144, 384, 124, kind="weights")
    panel.text(200, 164, "attention", size="title", bold=True)
    for i, x in enumerate(columns):
        for j, left in enumerate(columns[: i + 1]):
            panel.line((left, 190), (x, 236), kind="weights", width=2.4 if i == j else 1.4)
        for y in (190, 236):
            panel.dot(x, y, kind="weights")
    panel.text(200, 255, "positions exchange information", size="small")
    down(268, 300)
    row(300, "feed-forward")
    panel.text(200, 354, "the same network at each position,", size="small", kind="soft")
    panel.text(200, 372, "each position on its own", size="small", kind="soft")
    panel.text(200, 398, "left out: residual stream and norms (lesson 05)", size="small", kind="soft")
    down(416, 444)
    row(444, "output layer", "head")
    down(478, 506, "soft")
    panel.text(200, 520, "probabilities of the next token,", size="small")
    panel.text(200, 539, "at each position", size="small")
    return (panel,), {}


def _sublayer(panel: Panel, y: float, part: str, norm: str, *, pre: bool, under: str | None = None) -> float:
    """Draw one sublayer next to the stream at x = 70, from height y on; return where it ends."""
    stream, middle, wide = 70.0, 232.0, 156.0
    kind = "weights" if part == "attention" else "plain"
    panel.dot(stream, y + 10, kind="stream")
    turn, down = y + 10, y + 34
    if pre:
        normed = panel.box(middle - wide / 2, down, wide, 34, norm)
        panel.arrow((stream, turn), (middle, turn), normed.top, kind="stream")
        box = panel.box(middle - wide / 2, down + 56, wide, 46, part, kind=kind, under=under)
        panel.arrow(normed.bottom, box.top)
    else:
        box = panel.box(middle - wide / 2, down, wide, 46, part, kind=kind, under=under)
        panel.arrow((stream, turn), (middle, turn), box.top, kind="stream")
    add = box.bottom[1] + 30
    plus = panel.plus(stream, add)
    panel.arrow(box.bottom, (middle, add), plus.right)
    panel.arrow((stream, y), plus.top, kind="stream", width=4)
    if pre:
        return add + 12
    normed = panel.box(stream - 56, add + 34, 112, 34, norm)
    panel.arrow(plus.bottom, normed.top, kind="stream", width=4)
    return normed.bottom[1]


def _block(
    pre: bool,
    name: str,
    norms: tuple[str, str] = ("attn_norm", "ff_norm"),
    under: tuple[str | None, str | None] = (None, None),
    positions: str = "",
) -> Panel:
    panel = Panel(330, 520)
    formula = "x + f(norm(x))" if pre else "norm(x + f(x))"
    panel.title(name)
    panel.text(165, 36, formula, size="code", kind="soft")
    panel.text(70, 66, "x", bold=True, kind="stream")
    panel.text(98, 66, f"(B, T, D){positions}", size="code", kind="soft", anchor="start")
    middle = _sublayer(panel, 78, "attention", norms[0], pre=pre, under=under[0])
    end = _sublayer(panel, middle, "feed-forward", norms[1], pre=pre, under=under[1])
    panel.arrow((70, end), (70, end + 40), kind="stream", width=4)
    panel.text(70, end + 54, "x", bold=True, kind="stream")
    panel.text(98, end + 54, "(B, T, D), to the next block", size="code", kind="soft", anchor="start")
    panel.height = end + 68
    return panel


def block() -> Drawn:
    """Draw pre-norm and post-norm next to each other, the residual stream as one thick line."""
    return (_block(True, "Pre-norm"), _block(False, "Post-norm")), {}


def old_and_new_block() -> Drawn:
    """Draw the block of the paper and a block of today, each sublayer with what it is made of."""
    old = _block(False, "2017", ("LayerNorm",) * 2, ("H heads", "ReLU"), positions=" + sinusoids")
    new = _block(True, "Today", ("RMSNorm",) * 2, ("rotary, grouped", "SwiGLU"))
    return (old, new), {}


def ids_to_logits() -> Drawn:
    """Draw the whole language model with the shape after each step."""
    panel, x, wide = Panel(390, 600), 140.0, 180.0

    def step(y: float, *lines: str, kind: str = "plain", height: float = 36, shape: str = "") -> Box:
        box = panel.box(x - wide / 2, y, wide, height, *lines, kind=kind)
        panel.text(x + wide / 2 + 26, y + height / 2, shape, size="code", kind="soft", anchor="start")
        return box

    ids = step(8, "token_ids", kind="none", shape="(B, T)")
    embed = step(72, "token_embed", shape="(B, T, D)")
    plus = panel.plus(x, 146)
    panel.arrow(ids.bottom, embed.top)
    panel.arrow(embed.bottom, plus.top, kind="stream", width=3)
    panel.arrow(panel.box(266, 129, 112, 34, "positions").left, plus.right)
    panel.frame(32, 182, 216, 186)
    blocks = [step(y, f"block {n}", kind="stream") for y, n in ((198, "1"), (254, "2"), (318, "n_layers"))]
    panel.chain([plus, *blocks[:2]], width=3)
    for y in (297.0, 304.0, 311.0):
        panel.dot(x, y, kind="stream", radius=2)
    panel.text(264, 262, "attention,", size="small", anchor="start")
    panel.text(264, 280, "feed-forward", size="small", anchor="start")
    panel.text(264, 308, "(B, T, D)", size="code", kind="soft", anchor="start")
    norm = step(398, "final_norm", shape="(B, T, D)")
    head = step(464, "lm_head", kind="head", shape="(B, T, V)")
    panel.chain([blocks[2], norm, head], width=3)
    logits = step(540, "logits", kind="none", height=46, shape="(B, T, V)")
    panel.arrow(head.bottom, logits.top)
    return (panel,), {}


def swap_the_head() -> Drawn:
    """Draw pretraining and fine-tuning next to each other: one backbone, two heads."""
    panel, wide = Panel(400, 414), 152.0
    left, right = 80.0, 320.0

    def column(x: float, title: str, head: str, shape: str, loss: str, *, pooled: bool) -> tuple[Box, Box]:
        panel.title(title, x)
        ids = panel.box(x - wide / 2, 36, wide, 34, "token_ids", kind="none")
        body = panel.box(x - wide / 2, 100, wide, 112, "backbone", kind="stream", under="(B, T, D)")
        panel.arrow(ids.bottom, body.top)
        before = body
        if pooled:
            before = panel.box(x - wide / 2, 240, wide, 34, "pooling", dashed=True)
            panel.arrow(body.bottom, before.top, kind="stream", width=3)
        top = panel.box(x - wide / 2, 302, wide, 46, head, kind="head", under=shape)
        panel.arrow(before.bottom, top.top, kind="stream", width=3)
        panel.arrow(top.bottom, (x, 386))
        panel.text(x, 402, loss, size="small")
        return body, top

    first, _ = column(left, "Pretraining", "lm_head", "(B, T, V)", "next-token loss", pooled=False)
    second, _ = column(right, "Fine-tuning", "class_head", "(B, C)", "loss of the labels", pooled=True)
    panel.arrow(first.right, second.left, kind="stream", width=3)
    panel.text(222, 325, "new", size="small", kind="head", bold=True)
    panel.text(200, 138, "copy", size="small")
    panel.text(200, 174, "weights", size="small")
    return (panel,), {}


def low_rank_update() -> Drawn:
    """Draw a frozen matrix and, parallel to it, two small ones through which the update passes."""
    panel, middle = Panel(400, 380), 200.0
    panel.text(middle, 14, "x, width D_{in}")
    panel.dot(middle, 44, kind="stream")
    panel.line((middle, 26), (middle, 44), kind="stream", width=3)
    frozen = panel.box(24, 82, 140, 186, "W, frozen", dashed=True, under="(D_out, D_in)")
    panel.arrow((middle, 44), (frozen.top[0], 44), frozen.top, kind="stream", width=3)
    a = panel.box(248, 82, 128, 40, "A")
    panel.arrow((middle, 44), (a.top[0], 44), a.top, kind="stream", width=3)
    panel.text(312, 172, "R numbers", size="small", kind="soft")
    b = panel.box(248, 222, 128, 46, "B")
    panel.arrow(a.bottom, (312, 160), width=1.8)
    panel.arrow((312, 184), b.top, width=1.8)
    panel.text(238, 102, "random", size="small", anchor="end", kind="soft")
    panel.text(238, 245, "zeros", size="small", anchor="end", kind="soft")
    plus = panel.plus(middle, 322)
    panel.arrow(frozen.bottom, (frozen.bottom[0], 322), plus.left, kind="stream", width=3)
    panel.arrow(b.bottom, (b.bottom[0], 322), plus.right, kind="stream", width=3)
    panel.text(302, 296, "× alpha / R", size="small", anchor="end")
    panel.arrow(plus.bottom, (middle, 356), kind="stream", width=3)
    panel.text(middle, 368, "W x + (alpha / R) B A x", size="small")
    return (panel,), {}


def encoder_decoder() -> Drawn:
    """Draw the two halves of a translator, with keys and values of the memory going to cross-attention."""
    panel, wide = Panel(400, 640), 152.0
    left, right = 84.0, 316.0

    panel.title("Encoder", left)
    panel.title("Decoder", right)
    src, *steps, memory = panel.column(left, wide, [
        (34, "src_ids", {"kind": "none", "under": "(B, S)", "height": 48}),
        (112, "embed, positions"),
        (190, "self-attention", {"kind": "weights", "under": "padding mask", "height": 48}),
        (268, "feed-forward"),
        (348, "memory", {"kind": "stream", "under": "(B, S, D)", "height": 48}),
    ])  # fmt: skip
    panel.arrow(src.bottom, steps[0].top)
    panel.chain([*steps, memory])
    panel.frame(left - 84, 174, 168, 146)
    panel.text(left + 8, 161, "n_layers ×", size="small", kind="soft", anchor="start")
    tgt, tgt_embed, attention, cross, ff, head = panel.column(right, wide, [
        (34, "tgt_ids", {"kind": "none", "under": "(B, T)", "height": 48}),
        (112, "embed, positions"),
        (190, "self-attention", {"kind": "weights", "under": "causal mask", "height": 48}),
        (348, "cross-attention", {"kind": "weights", "under": "(B, T, D)", "height": 48}),
        (442, "feed-forward"),
        (524, "lm_head", {"kind": "head"}),
    ])  # fmt: skip
    panel.arrow(tgt.bottom, tgt_embed.top)
    panel.chain([tgt_embed, attention])
    panel.chain([attention, cross], "q", 2.6)
    panel.text(right + 12, 292, "queries", size="small", kind="q", anchor="start")
    panel.chain([cross, ff, head])
    panel.frame(right - 84, 174, 168, 320)
    panel.text(right + 8, 161, "n_layers ×", size="small", kind="soft", anchor="start")
    for share, kind, words, above in ((0.28, "k", "keys", -12), (0.72, "v", "values", 13)):
        panel.arrow(memory.at(1, share), cross.at(0, share), kind=kind, width=2.6)
        panel.text(196, memory.at(1, share)[1] + above, words, size="small", kind=kind)
    panel.arrow(head.bottom, (right, 594))
    panel.text(right, 608, "logits", bold=True)
    panel.text(right, 627, "(B, T, V)", size="code", kind="soft")
    return (panel,), {}


STEPS = {"embedding": "stream", "block 0": "stream", "block 1": "stream", "output layer": "head"}


def _run(panel: Panel, x: float, word: str) -> list[Box]:
    """Draw a model that reads, from top to bottom; return its steps."""
    panel.text(x + 52, 48, word, size="small", bold=True)
    rows = [(68 + 62 * i, step, {"kind": kind}) for i, (step, kind) in enumerate(STEPS.items())]
    boxes = panel.column(x + 52, 104, rows, height=34, size="small")
    panel.chain(boxes, width=2.6)
    return boxes


def probe_ablate_patch() -> Drawn:
    """Draw what is measured, and what is changed, by each of the three."""
    probe, ablate, patch = Panel(260, 344), Panel(250, 344), Panel(290, 344)
    for panel, title in ((probe, "Probe"), (ablate, "Ablate"), (patch, "Patch")):
        panel.title(title)

    steps = _run(probe, 8, "a review")
    reader = probe.box(160, steps[1].y, 92, 34, "probe", kind="weights", size="small")
    truth = probe.box(160, steps[2].y, 92, 34, "exact", kind="plain", size="small")
    probe.arrow(steps[1].right, reader.left, kind="weights", width=2.4)
    probe.line(reader.bottom, truth.top, kind="soft")
    probe.text(206, truth.y + 50, "nats between", size="small", kind="soft")
    probe.text(130, 326, "Is it there?", size="small")

    steps = _run(ablate, 8, "a review")
    middle = steps[1].right[1]
    heads = ablate.cells(142, middle - 11, [["v", "blocked", "v2", "v3"]], 22)
    ablate.line(steps[1].right, heads.left, kind="v")
    ablate.text(heads.top[0], middle - 28, "heads", size="small", kind="soft")
    ablate.text(heads.top[0], middle + 30, "one is zero", size="small", kind="soft")
    ablate.text(125, 326, "Is it needed?", size="small")

    first, second = _run(patch, 8, "... beau"), _run(patch, 178, "... laid")
    patch.arrow(first[1].right, second[1].left, kind="weights", width=2.8)
    patch.text(145, 326, "Does it carry the difference?", size="small")
    return (probe, ablate, patch), {"steps": ", ".join(STEPS)}
