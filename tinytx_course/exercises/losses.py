"""Exercises on next-token prediction: targets, loss, perplexity."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from tinytx.training.objectives import language_model_loss
from tinytx_course.exercises.comparing import integers, number, pair
from tinytx_course.exercises.exercise import Exercise, Mistake, family, generator, normal
from tinytx_course.exercises.observation import Call

_TEACHER, _TEMPTING = (
    "Why: the text is its own teacher",
    "The tempting wrong way: the answer is the token itself",
)
_NATS, _POSITIONS, _TOO_MANY = (
    "By hand: nats and perplexity",
    "All positions at once",
    "Break it: a softmax too many",
)
Slips = frozenset[str]


def _ids(rng: torch.Generator, *shape: int) -> Tensor:
    return (
        torch.randperm(math.prod(shape) + 3, generator=rng, device="cpu")[: math.prod(shape)].view(shape) + 2
    )


def _shift_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 4)
    for shape in ((1, 2), (1, 3), (2, 3), (3, 3), (2, 5), (3, 7)):
        yield Call((_ids(rng, *shape),))


def _last_column(token_ids: Tensor, fill: int) -> Tensor:
    return torch.full_like(token_ids[:, :1], fill)


_ROLLED = (
    "The row is rolled round, so the last target is the first token of the row: nothing stands "
    "after the last "
    "token, so inputs and targets are one shorter, (B, T - 1)."
)
_BATCH = "The shift runs over the rows of the batch: shift along the sequence, `[:, 1:]`."
SHIFT_TARGETS = Exercise(
    name="shift_targets",
    signature="shift_targets(token_ids)",
    lesson=8,
    section=_TEACHER,
    rule="(inputs, targets), each (B, T - 1): the target at t is the token that follows the input at t.",
    read=pair(integers, integers, "inputs, targets"),
    solve=lambda ids: (ids[:, :-1], ids[:, 1:]),
    calls=_shift_calls,
    mistakes=(
        Mistake(
            "exchanged",
            "Inputs and targets are exchanged: this predicts the token before. Inputs are `[:, :-1]`.",
            lambda ids: (ids[:, 1:], ids[:, :-1]),
        ),
        Mistake(
            "not-shifted",
            "The targets are the inputs themselves: the model has nothing to do but copy.",
            (
                lambda ids: (ids, ids),
                lambda ids: (ids[:, :-1], ids[:, :-1]),
                lambda ids: (ids[:, 1:], ids[:, 1:]),
            ),
            _TEMPTING,
        ),
        Mistake("rolled", _ROLLED, lambda ids: (ids, ids.roll(-1, 1))),
        Mistake("rolled-backwards", _ROLLED, lambda ids: (ids, ids.roll(1, 1))),
        Mistake("rolled-over-rows", _ROLLED, lambda ids: (ids, ids.roll(-1))),
        Mistake(
            "shifted-by-two",
            "The targets lie two tokens ahead: one is asked.",
            lambda ids: (ids[:, :-2], ids[:, 2:]),
        ),
        Mistake(
            "inputs-not-cut",
            "The inputs keep the last token, which has no target: `[:, :-1]`.",
            lambda ids: (ids, ids[:, 1:]),
        ),
        Mistake(
            "targets-not-cut",
            "The targets keep the first token, which follows nothing: `[:, 1:]`.",
            lambda ids: (ids[:, :-1], ids),
        ),
        Mistake("batch-shifted", _BATCH, lambda ids: (ids[:-1], ids[1:])),
        Mistake(
            "only-last-target",
            "Only the last token is a target: every position predicts its next one.",
            (lambda ids: (ids[:, :-1], ids[:, -1]), lambda ids: (ids[:, :-1], ids[:, -1:])),
        ),
        Mistake(
            "one-too-short",
            "One pair too few: the last token is a target too.",
            lambda ids: (ids[:, :-2], ids[:, 1:-1]),
        ),
        *(
            Mistake(
                "filled-up",
                "The targets are filled up to T with an invented token: cut both to T - 1 instead.",
                lambda ids, fill=fill: (ids, torch.cat((ids[:, 1:], _last_column(ids, fill)), 1)),
            )
            for fill in (0, -100, -1, 1)
        ),
        *(
            Mistake(
                "filled-in-front",
                "The inputs begin with an invented token: the tokens given are all there is; cut "
                "both to T - 1.",
                lambda ids, fill=fill: (torch.cat((_last_column(ids, fill), ids[:, :-1]), 1), ids),
            )
            for fill in (0, 1)
        ),
    ),
)


def _loss(logits: Tensor, targets: Tensor, pad_id: int, *, slips: Slips = frozenset()) -> Tensor:
    """Loss with slips; without any it is that of the package."""
    logits = logits.double()
    if "shifted-again" in slips:
        logits, targets = logits[:, :-1], targets[:, 1:]
    if "view-for-transpose" in slips:
        logits = logits.reshape(len(logits), logits.shape[2], -1).transpose(1, 2)
    if "softmax-twice" in slips:
        logits = logits.softmax(-1)
    if "padding-out-of-softmax" in slips:
        logits = logits.index_fill(-1, torch.tensor([pad_id], device="cpu"), -1e9)
    log_probs = logits.log_softmax(1 if "softmax-over-positions" in slips else -1)
    if "log-softmax-forgotten" in slips:
        log_probs = logits
    if "log-forgotten" in slips:
        log_probs = logits.softmax(-1)
    picked = log_probs.gather(-1, targets[..., None])[..., 0]  # (B, T)
    real = targets != (0 if "pad-id-0-assumed" in slips else pad_id)
    if "only-padding" in slips:
        real = ~real
    if "padding-counted" in slips:
        real = torch.ones_like(real)
    surprise = picked.exp() if "probability-for-log" in slips else -picked
    surprise = surprise * real
    if "sign-forgotten" in slips:
        surprise = -surprise
    mean = surprise.sum() / _divisor(real, slips)
    if "mean-of-means" in slips:
        mean = (surprise.sum(1) / real.sum(1)).mean()
    if "log-of-mean-probability" in slips:
        mean = -((picked.exp() * real).sum() / real.sum()).log()
    mean = mean / math.log(2) if "bits" in slips else mean / math.log(10) if "base-10" in slips else mean
    return mean.exp() if "perplexity-returned" in slips else mean


def _divisor(real: Tensor, slips: Slips) -> Tensor | int:
    if "not-divided" in slips:
        return 1
    if "divided-by-all" in slips:
        return real.numel()
    if "divided-by-rows" in slips:
        return len(real)
    return real.sum()


_LOSS_SLIPS = {
    "padding-counted": (
        "The padding is counted too: the mean runs over real tokens only, those with `targets != pad_id`.",
        _POSITIONS,
    ),
    "divided-by-all": (
        "Padding is left out of the sum, but the sum is divided by the number of all places: "
        "divide by the number "
        "of real ones.",
        _POSITIONS,
    ),
    "not-divided": ("This is the sum: divide it by the number of real tokens.", _NATS),
    "divided-by-rows": (
        "The sum is divided by the number of rows: divide it by the number of real tokens.",
        _NATS,
    ),
    "mean-of-means": (
        "The mean is taken in each row first, then over rows, so tokens of short rows weigh more: "
        "take one mean over "
        "all real tokens.",
        _POSITIONS,
    ),
    "softmax-twice": (
        "Two softmaxes: cross-entropy expects logits and applies log-softmax itself, so feed it "
        "no probabilities.",
        _TOO_MANY,
    ),
    "bits": ("This is in bits: nats are asked, the natural logarithm.", _NATS),
    "base-10": ("This uses the logarithm to base 10: nats are asked, the natural logarithm.", _NATS),
    "perplexity-returned": ("This is the perplexity, exp of the loss: return the loss itself.", _NATS),
    "sign-forgotten": ("The sign is reversed: a loss is minus the log-probability.", _NATS),
    "probability-for-log": ("This averages probabilities: average minus their logarithms.", _NATS),
    "log-softmax-forgotten": (
        "Raw logits are taken for log-probabilities: `nll_loss` expects log_softmax, "
        "`cross_entropy` applies it itself.",
        _POSITIONS,
    ),
    "log-forgotten": ("Probabilities are taken for log-probabilities: the logarithm is missing.", _NATS),
    "log-of-mean-probability": (
        "The mean is taken before the logarithm: take the logarithm at each token, then the mean.",
        _NATS,
    ),
    "softmax-over-positions": (
        "The softmax runs over positions: it belongs over the vocabulary, `dim=-1`.",
        _POSITIONS,
    ),
    "view-for-transpose": (
        "`view` or `reshape` to (B, V, T) scrambles the numbers: exchange axes with `transpose(1, "
        "2)`, or flatten to "
        "(B · T, V).",
        _POSITIONS,
    ),
    "pad-id-0-assumed": ("Padding is taken to have id 0: it is `pad_id` that tells.", _POSITIONS),
    "only-padding": ("This is the loss at the padding: the mask is the wrong way round.", _POSITIONS),
    "shifted-again": (
        "Logits and targets are shifted against each other once more: the targets are shifted already.",
        _TEACHER,
    ),
    "padding-out-of-softmax": (
        "The pad id is taken out of the vocabulary: only places whose target is padding are left out.",
        _POSITIONS,
    ),
}
_LOSS_APART = (
    ["padding-counted", "divided-by-all", "only-padding", "pad-id-0-assumed"],
    ["divided-by-all", "not-divided", "divided-by-rows", "mean-of-means", "log-of-mean-probability"],
    ["bits", "base-10"],
    ["softmax-twice", "log-softmax-forgotten", "log-forgotten", "softmax-over-positions"],
    ["probability-for-log", "log-of-mean-probability", "sign-forgotten"],
)


def _loss_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 5)
    for lengths, width, vocab_size, pad_id in (
        ((1,), 2, 2, 1),
        ((2, 1), 2, 3, 2),
        ((3, 1), 3, 5, 4),
        ((4, 2, 3), 5, 7, 2),
        ((5, 1, 2), 5, 6, 0),
    ):
        real = torch.tensor([i for i in range(vocab_size) if i != pad_id], device="cpu")
        draw = torch.randint(len(real), (len(lengths), width), generator=rng, device="cpu")
        targets = real[draw]
        targets[0, 0] = real[0]
        for row, length in enumerate(lengths):
            targets[row, length:] = pad_id
        yield Call((2 * normal(rng, len(lengths), width, vocab_size), targets, pad_id))


LANGUAGE_MODEL_LOSS = Exercise(
    name="language_model_loss",
    signature="language_model_loss(logits, targets, pad_id)",
    lesson=8,
    section=_POSITIONS,
    rule="one number: the mean, over all real targets, of minus the natural log of their probability (nats).",
    read=number,
    solve=language_model_loss,
    calls=_loss_calls,
    mistakes=family(_loss, _LOSS_SLIPS, _LOSS_APART, ("padding-counted", "softmax-twice", "bits")),
)


def _perplexity_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 6)
    a, b = (0.5 + torch.rand(2, generator=rng, dtype=torch.float64, device="cpu")).tolist()
    for nats, n_tokens in ((1.5, 1), (3.0, 2), (round(3 * a, 2), 3), (round(7 * b, 2), 5), (11.25, 4)):
        yield Call((nats, n_tokens))


PERPLEXITY = Exercise(
    name="perplexity",
    signature="perplexity(total_nats, n_tokens)",
    lesson=8,
    section=_NATS,
    rule="one number: e to the power of the mean nats a token, exp(total_nats / n_tokens).",
    read=number,
    solve=lambda nats, n: math.exp(nats / n),
    calls=_perplexity_calls,
    mistakes=(
        Mistake(
            "not-divided",
            "The total was not divided by the number of tokens.",
            lambda nats, n: math.exp(nats),
        ),
        Mistake(
            "base-2",
            "Nats go with e: this is 2 to that power, which goes with bits.",
            lambda nats, n: 2 ** (nats / n),
        ),
        Mistake(
            "negative-exponent",
            "This is exp of minus the mean, a probability: the total is already the sum of minus "
            "log-probabilities.",
            lambda nats, n: math.exp(-nats / n),
        ),
        Mistake(
            "exp-forgotten", "This is the mean nats a token: exp of it is missing.", lambda nats, n: nats / n
        ),
        Mistake(
            "divided-after-exp",
            "The division comes after the exp: take the mean first, then exp.",
            lambda nats, n: math.exp(nats) / n,
        ),
        Mistake(
            "exchanged", "The division is upside down: nats per token.", lambda nats, n: math.exp(n / nats)
        ),
        Mistake("log-for-exp", "This takes the logarithm: take exp.", lambda nats, n: math.log(nats / n)),
        Mistake("base-10", "Nats go with e, not with 10.", lambda nats, n: 10 ** (nats / n)),
        Mistake(
            "root-of-total",
            "This is the n-th root of the total: exp(total / n).",
            lambda nats, n: nats ** (1 / n),
        ),
        Mistake(
            "whole-division",
            "`//` throws the fraction away: divide with `/`.",
            lambda nats, n: math.exp(nats // n),
        ),
        Mistake(
            "one-token-too-many", "The total is divided by n + 1.", lambda nats, n: math.exp(nats / (n + 1))
        ),
        Mistake(
            "multiplied",
            "The total is multiplied by the number of tokens: divide.",
            lambda nats, n: math.exp(nats * n),
        ),
        Mistake(
            "bits-mixed-up",
            "The mean is turned into bits, then put to e: nats go with e as they are.",
            lambda nats, n: math.exp(nats / n / math.log(2)),
        ),
        Mistake(
            "one-subtracted",
            "One is taken away: `expm1` is exp minus 1.",
            lambda nats, n: math.expm1(nats / n),
        ),
        *(
            Mistake(
                "rounded",
                "The result is rounded: return it as it is.",
                lambda nats, n, digits=digits: round(math.exp(nats / n), digits),
            )
            for digits in (0, 1, 2)
        ),
        Mistake(
            "rounded",
            "The result is cut to a whole number: return it as it is.",
            lambda nats, n: int(math.exp(nats / n)),
        ),
    ),
)
EXERCISES = (SHIFT_TARGETS, LANGUAGE_MODEL_LOSS, PERPLEXITY)
