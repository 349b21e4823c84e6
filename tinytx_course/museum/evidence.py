"""What a colleague shows of a patient: a curve against the exact bound, a map, samples, a small table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

import tinytx_course.plots as plots
from tinytx_course.museum.patients import Patient, small_world
from tinyworld.reviews import write_out

N_SAMPLES, MAX_WORDS, MAP_WORDS = 3, 24, 12
Evidence = dict[str, Any]  # plain values, as JSON can hold them


def collect(patient: Patient) -> Evidence:
    """Everything that a colleague shows.

    Returns
    -------
    dict
        ``steps``, ``held_out`` and ``train`` (mean of the batches since the step before) in nats a
        prediction; ``bound``; ``map`` in percent, a text a row, with its ``words``; ``samples``; ``table``.
    """
    steps = [step for step, _ in patient.history.held_out]
    losses = patient.history.loss
    windows = [losses[:1], *(losses[a:b] for a, b in zip(steps, steps[1:], strict=False))]
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(patient.seed)
        return {
            "task": patient.task,
            "steps": steps,
            "held_out": [round(loss, 4) for _, loss in patient.history.held_out],
            "train": [round(float(np.mean(window)), 4) for window in windows],
            "bound": round(patient.bound, 4),
            **_map(patient),
            "samples": SAMPLES[patient.task](patient),
            "table": _table(patient),
        }


def _map(patient: Patient) -> Evidence:
    """Attention weights of the first layer on one row, the mean of its heads."""
    rows = patient.held_out
    row = next((row for row in rows if len(patient.words(row)) >= MAP_WORDS), rows[0])
    weights = patient.attention_map(row).mean(dim=0)[:MAP_WORDS, :MAP_WORDS]
    words = [small_world().words[number] for number in patient.words(row)[:MAP_WORDS]]
    percents = [" ".join(f"{100 * weight:.0f}" for weight in row) for row in weights.tolist()]
    return {"map": percents, "words": words[: len(weights)]}


def _table(patient: Patient) -> dict[str, float]:
    history = patient.history
    table = {
        "steps": float(patient.n_steps),
        "first loss (nats)": history.loss[0],
        "training loss, end": float(np.mean(history.loss[-10:])),
        "held-out loss, end": history.held_out[-1][1],
        BOUND_NAMES[patient.task]: patient.bound,
    }
    if patient.task == "classifier":
        answers = patient.log_probs(patient.held_out).argmax(dim=-1).tolist()
        labels = [label for _, label in patient.held_out]
        world = small_world()
        right = [world.french.label_posterior(world.decode(ids)) for ids, _ in patient.held_out]
        best = [0.5 if abs(p - 0.5) < 1e-6 else (p > 0.5) == y for p, y in zip(right, labels, strict=True)]
        table["right, held out"] = float(np.mean([a == y for a, y in zip(answers, labels, strict=True)]))
        table["best that anyone can reach"] = float(np.mean(best))
    return {name: round(value, 3) for name, value in table.items()}


@torch.no_grad()
def _write(patient: Patient, sources: Sequence[list[int]] | None, *, greedy: bool) -> list[str]:
    """Let the model write some texts at once, word by word."""
    program, model = patient.program, patient.model
    model.eval()
    token_ids = torch.full((N_SAMPLES, 1), program.BOS)
    before = () if sources is None else (program.pad_batch(sources, program.PAD),)
    for _ in range(MAX_WORDS):
        chances = model(*before, token_ids)[:, -1].softmax(dim=-1)  # (B, V)
        chosen = chances.argmax(dim=-1, keepdim=True) if greedy else torch.multinomial(chances, 1)
        token_ids = torch.cat([token_ids, chosen], dim=1)
    return [_until_end(row, program.EOS) for row in token_ids[:, 1:].tolist()]


def _until_end(row: list[int], end: int) -> str:
    """A text up to the mark of its end; other marks are shown, as a model may write them."""
    words = [small_world().words[number] for number in (row[: row.index(end)] if end in row else row)]
    return (write_out(words) or "(nothing)") + ("" if end in row else " ...")


def _answers(patient: Patient) -> list[str]:
    rows = patient.held_out[:N_SAMPLES]
    chances = patient.log_probs(rows)[:, 1].exp().tolist()
    return [
        f"{write_out(small_world().decode(ids))} [praises: {chance:.2f}, label {label}]"
        for (ids, label), chance in zip(rows, chances, strict=True)
    ]


def _translations(patient: Patient) -> list[str]:
    sources = [src for src, _ in patient.held_out[:N_SAMPLES]]
    written = _write(patient, sources, greedy=True)
    return [
        f"{write_out(small_world().decode(src), 'en')} -> {text}"
        for src, text in zip(sources, written, strict=True)
    ]


SAMPLES = {
    "language model": lambda patient: _write(patient, None, greedy=False),
    "classifier": _answers,
    "translator": _translations,
}
BOUND_NAMES = {
    "language model": "entropy bound",
    "classifier": "exact bound",
    "translator": "bound without source",
}


def curve_panel(evidence: Mapping[str, Any], ax: Any, *, title: str, names: bool = True) -> None:
    """Draw training and held-out loss against the exact bound into axes."""
    train, held_out = ("training", "held out") if names else ("", "")
    steps = evidence["steps"]
    whole = len(steps) - (steps[-1] - steps[-2] < steps[1] - steps[0])  # the mean of a few batches jumps
    lines = [
        plots.Curve(train, steps[:whole], evidence["train"][:whole]),
        plots.Curve(held_out, steps, evidence["held_out"]),
    ]
    bound = {BOUND_NAMES[evidence["task"]] if names else "": evidence["bound"]}
    plots.curves(
        lines, xlabel="training step", ylabel="loss (nats)", references=bound, title=title, ax=ax,
        y_range=(0, min(max(evidence["held_out"] + evidence["train"]), 9) * 1.05),
    )  # fmt: skip


def draw(evidence: Mapping[str, Any], title: str) -> Any:
    """Draw the curve and the map of one patient; return the figure."""
    fig, (left, right) = plots.figure(1, 2, width=9.2, height=3.8)
    curve_panel(evidence, left, title=title)
    map_panel(evidence, right)
    return fig


def room(evidences: Mapping[int, Mapping[str, Any]]) -> Any:
    """Draw curve and map of several patients, one below the other; return the figure."""
    fig, axes = plots.figure(2, len(evidences), width=2.75 * len(evidences), height=5.4)
    for (upper, lower), (number, evidence) in zip(axes.T, evidences.items(), strict=True):
        curve_panel(evidence, upper, title=f"patient {number}", names=False)
        map_panel(evidence, lower, small=True)
        for ax in (upper, lower):
            if ax not in axes[:, 0]:
                ax.set_ylabel("")
    return fig


def map_panel(evidence: Mapping[str, Any], ax: Any, *, small: bool = False) -> None:
    """Draw the attention map into axes; a small one has no words."""
    words = ["" if small else word for word in evidence["words"]]
    percents = [[float(number) for number in row.split()] for row in evidence["map"]]
    plots.heatmap(
        torch.tensor(percents) / 100, low=0, high=1, row_labels=words, col_labels=words, ax=ax,
        xlabel="key", ylabel="query", title="" if small else "attention, mean of heads",
    )  # fmt: skip


def as_text(evidence: Mapping[str, Any]) -> str:
    """The small table in lines of three numbers, then the samples, equal ones once."""
    cells = [f"{name} {value:g}" for name, value in evidence["table"].items()]
    lines = [" · ".join(cells[i : i + 3]) for i in range(0, len(cells), 3)]
    return "\n".join([*lines, *(f"  > {sample}" for sample in dict.fromkeys(evidence["samples"]))])
