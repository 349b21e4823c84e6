"""The tests that a learner may order: each gives one number, by which some faults are found and others not.

Shape letters: B rows, T tokens, V words, H heads, S keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import torch

from tinytx_course.museum.patients import RECIPES, Patient

N_ROWS = 8  # of a small batch
N_OVERFIT, OVERFIT_STEPS = 4, 100
_NEXT_WORD = ("language model", "translator")


@dataclass(frozen=True)
class OrderedTest:
    """One test."""

    name: str
    question: str
    measure: Callable[[Patient], float]  # gives the number for a patient
    finds: Callable[[float], bool]  # whether a number is a finding
    says: str  # the number as a sentence, with ``{}`` for it
    price: int = 1  # 1 reads the model as it is; 2 needs new rows or notes of the training; 3 trains again
    tasks: tuple[str, ...] = tuple(RECIPES)  # to which it applies


def leak(patient: Patient) -> float:
    """Largest change of a log-probability before a word that is exchanged."""
    rows = [row for row in patient.held_out if len(patient.words(row)) > 8][:N_ROWS]
    changed = [_exchange(patient, row, at=5) for row in rows]
    before = slice(None), slice(0, 5)
    return _largest(patient.log_probs(rows)[before] - patient.log_probs(changed)[before])


def attention_sums(patient: Patient) -> float:
    """Largest distance of a row of attention weights from the sum 1."""
    return max(_largest(patient.attention_map(row).sum(dim=-1) - 1) for row in patient.held_out[:N_ROWS])


def attention_ahead(patient: Patient) -> float:
    """Share of the attention weights that lies on words not yet written."""
    maps = [patient.attention_map(row) for row in patient.held_out[:N_ROWS]]
    ahead = [weights.triu(1).sum() / weights.sum() for weights in maps]
    return float(torch.stack(ahead).mean())


def attention_at_start(patient: Patient) -> float:
    """Mean of the largest weight of each query before training, over queries with 5 keys or more."""
    model = patient.new_model()
    maps = [patient.attention_map(row, model) for row in patient.held_out[: 4 * N_ROWS]]
    largest = [weights[:, 4:].amax(dim=-1).flatten() for weights in maps]
    return float(torch.cat(largest).mean())


def overfit(patient: Patient) -> float:
    """Loss on 4 rows after training on nothing else."""
    rows = patient.train_rows[:N_OVERFIT]
    _, history = patient.train(rows, min(OVERFIT_STEPS, 4 * patient.n_steps))
    return sum(history.loss[-5:]) / 5


def permute(patient: Patient) -> float:
    """Largest change of the last answer when the words that it follows from are put in reverse order."""
    rows = [row for row in patient.held_out if len(_read(patient, row)) > 6][:N_ROWS]
    last = 0 if patient.task == "classifier" else (0, -1)
    return max(
        _largest(patient.log_probs([row])[last] - patient.log_probs([_reverse(patient, row)])[last])
        for row in rows
    )


def singles(patient: Patient) -> float:
    """Largest difference between the answers to rows alone and to the same rows in a padded batch."""
    rows = sorted(patient.held_out[: 2 * N_ROWS], key=lambda row: len(_read(patient, row)))
    together = patient.log_probs(rows)
    apart = [patient.log_probs([row])[0] for row in rows]
    if patient.task == "classifier":
        return _largest(together - torch.stack(apart))
    return max(_largest(both[: len(one)] - one) for both, one in zip(together, apart, strict=True))


def gradients(patient: Patient) -> float:
    """Smallest norm of the gradient of a part at the first step."""
    return min(patient.history.gradients[0].values())


def gradient_growth(patient: Patient) -> float:
    """Norm of the gradient in the last steps over that in the first."""
    norms = [math.hypot(*parts.values()) for parts in patient.history.gradients]
    n = min(10, len(norms))
    return sum(norms[-n:]) / sum(norms[:n])


def first_loss(patient: Patient) -> float:
    """Loss before training, minus that of a uniform guess."""
    n_answers = 2 if patient.task == "classifier" else patient.new_model().head.out_features
    return patient.history.held_out[0][1] - math.log(n_answers)


def twice(patient: Patient) -> float:
    """Difference between two evaluations on the same rows."""
    first, second = (patient.program.evaluate(patient.model, patient.held_out) for _ in range(2))
    return abs(first - second)


def fresh_text(patient: Patient) -> float:
    """Loss on rows drawn anew minus the loss on those held out, in standard errors of the difference."""
    losses = [_losses(patient, rows) for rows in (patient.fresh, patient.held_out)]
    error = math.sqrt(sum(float(each.var()) / len(each) for each in losses))
    return float(losses[0].mean() - losses[1].mean()) / error


def copying(patient: Patient) -> float:
    """Share of positions at which the most probable next word is the word just read."""
    inputs = patient.inputs(patient.held_out)[-1]
    real = inputs > 2
    same = patient.log_probs(patient.held_out).argmax(dim=-1) == inputs
    return float(same[real].float().mean())


def swap_sources(patient: Patient) -> float:
    """Rise of the loss when each row gets the source of the one before."""
    rows = patient.held_out
    swapped = [(rows[i - 1][0], rows[i][1]) for i in range(len(rows))]
    return float(_losses(patient, swapped).mean() - _losses(patient, rows).mean())


def weights(patient: Patient) -> float:
    """Size of the scales and shifts of the norms after training, over that before."""
    before, after = (
        torch.cat([p.detach().flatten() for name, p in model.named_parameters() if "norm.weight" in name])
        for model in (patient.new_model(), patient.model)
    )
    return float(after.norm()) / float(before.norm())


def _losses(patient: Patient, rows: list) -> torch.Tensor:
    """Loss of each row as the program evaluates it."""
    if patient.task == "translator":  # in one batch: a program may mix its rows
        logs, targets = patient.log_probs(rows), patient.program.pad_batch([r[1][1:] for r in rows], 0)
        nats = -logs.gather(-1, targets[:, :, None]).squeeze(-1) * (targets != 0)
        return nats.sum(dim=1) / (targets != 0).sum(dim=1)
    return torch.tensor([patient.program.evaluate(patient.model, [row]) for row in rows])


def _read(patient: Patient, row: list) -> list[int]:
    """The words whose order is tested: the source of a translator."""
    return row[0] if patient.task in ("translator", "classifier") else row[:-1]


def _exchange(patient: Patient, row: list, at: int) -> list:
    """The row with the words from a position on replaced by the second word of the language."""
    ids = patient.words(row)
    new = [*ids[:at], *(4 if i != 4 else 5 for i in ids[at:])]
    return (row[0], new) if patient.task == "translator" else new  # type: ignore[return-value]


def _reverse(patient: Patient, row: list) -> list:
    """The row with the words between the first and the last that are read in reverse order."""
    ids = _read(patient, row)
    mirrored = [ids[0], *ids[-2:0:-1], ids[-1]]
    if patient.task == "language model":
        return [*mirrored, row[-1]]
    return (mirrored, row[1])  # type: ignore[return-value]


def _largest(values: torch.Tensor) -> float:
    return float(values.abs().max())


_LIST = (
    OrderedTest(
        "leak", "Does a word change what is predicted before it?", leak, lambda x: x > 1e-3,
        "log-probabilities before the exchanged words move by up to {:.4f}", 1, _NEXT_WORD,
    ),
    OrderedTest(
        "attention_ahead", "How much attention goes to words not yet written?", attention_ahead,
        lambda x: x > 1e-3, "{:.1%} of the attention weights lie on words not yet written", 1, _NEXT_WORD,
    ),
    OrderedTest(
        "attention_sums", "Do the attention weights of each query sum to 1?", attention_sums,
        lambda x: x > 1e-3, "sums of attention weights differ from 1 by up to {:.3f}",
    ),
    OrderedTest(
        "attention_at_start", "How sharp is attention before training?", attention_at_start,
        lambda x: x > 0.48, "before training, the largest weight of a query is {:.2f} on average",
    ),
    OrderedTest(
        "permute", "Does the order of the words matter?", permute, lambda x: x < 1e-4,
        "with the words in reverse order the log-probabilities move by up to {:.4f}",
    ),
    OrderedTest(
        "singles", "Do rows alone and rows in a batch get the same answers?", singles, lambda x: x > 1e-3,
        "alone and in a batch, the log-probabilities differ by up to {:.4f}",
    ),
    OrderedTest(
        "copying", "Is the next word predicted to be the word just read?", copying, lambda x: x > 0.9,
        "at {:.0%} of the positions the predicted word is the word just read", 1, _NEXT_WORD,
    ),
    OrderedTest(
        "swap_sources", "Does the source matter?", swap_sources, lambda x: x < 0.5,
        "with the source of another row the loss rises by {:.2f} nats", 1, ("translator",),
    ),
    OrderedTest(
        "first_loss", "Is the first loss that of a uniform guess?", first_loss, lambda x: abs(x) > 0.5,
        "the first loss is {:+.2f} nats from that of a uniform guess",
    ),
    OrderedTest(
        "twice", "Do two evaluations give the same loss?", twice, lambda x: x > 1e-6,
        "two evaluations on the same rows differ by {:.4f} nats",
    ),
    OrderedTest(
        "weights", "Are the scales of the norms still there?", weights, lambda x: x < 0.5,
        "the scales of the norms have {:.2f} times their size before training",
    ),
    OrderedTest(
        "gradients", "Does each part get a gradient?", gradients, lambda x: x < 1e-6,
        "the smallest gradient of a part at the first step has norm {:.4f}", 2,
    ),
    OrderedTest(
        "gradient_growth", "Do the gradients grow in training?", gradient_growth, lambda x: x > 5,
        "the gradients of the last steps are {:.1f} times those of the first", 2,
    ),
    OrderedTest(
        "fresh_text", "Is fresh text as easy as the text held out?", fresh_text, lambda x: x > 4,
        "the loss on fresh text is {:+.1f} standard errors from that on the text held out", 2,
    ),
    OrderedTest(
        "overfit", "Can it learn one small batch by heart?", overfit, lambda x: x > 0.25,
        "after training on 4 rows alone, the loss on them is {:.3f} nats", 3,
    ),
)  # fmt: skip
TESTS: MappingProxyType[str, OrderedTest] = MappingProxyType({test.name: test for test in _LIST})


def examine(patient: Patient, test: OrderedTest) -> float:
    """The number of a test, with the random state as it was."""
    if patient.task not in test.tasks:
        raise ValueError(f"{test.name} must be asked of {' or '.join(test.tasks)}, got a {patient.task}")
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(patient.seed)
        return test.measure(patient)
