"""The diagram of three ways to look inside a model: a probe, an ablation, a patch."""

from __future__ import annotations

from tinytx_course.plots.diagrams.svg import Box, Drawn, Panel

STEPS = ("embedding", "block 0", "block 1", "output layer")


def _run(panel: Panel, x: float, word: str) -> list[Box]:
    """Draw a model that reads, from top to bottom; return its steps."""
    panel.text(x + 52, 48, word, size="small", bold=True)
    kinds = ["stream"] * (len(STEPS) - 1) + ["head"]
    rows = [(68 + 62 * i, step, {"kind": kinds[i]}) for i, step in enumerate(STEPS)]
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
