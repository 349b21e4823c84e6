"""Exercises on training: a step, padding, the batch at the ridge; pooling, what is frozen, a probe."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx_course.exercises.comparing import count, floats, number, trained
from tinytx_course.exercises.exercise import Exercise, generator, normal
from tinytx_course.exercises.observation import Call
from tinytx_run.training import seeded


class _Body(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pos_embed = nn.Parameter(torch.zeros(3, 2, device="cpu"))
        self.token_embed = nn.Embedding(5, 2, device="cpu")
        self.split_heads = nn.Linear(2, 2, device="cpu")
        self.final_norm = nn.LayerNorm(2, device="cpu")


class _Toy(nn.Module):
    """The smallest model with a body and a head; never called."""

    def __init__(self) -> None:
        super().__init__()
        self.body = _Body()
        self.head = nn.Linear(2, 3, device="cpu")


class _Deep(_Toy):
    """One whose head has three parameters, of which a name holds the word body."""

    def __init__(self) -> None:
        super().__init__()
        first, last = nn.Linear(2, 3, device="cpu"), nn.Linear(3, 3, bias=False, device="cpu")
        self.head = nn.ModuleDict({"embody": first, "last": last})  # type: ignore[assignment]


def _whole() -> nn.Module:
    config = TransformerConfig(vocab_size=7, d_model=4, n_heads=2, n_layers=1, d_ff=6)
    return seeded(lambda: Classifier(config, n_classes=3), 0)


def _freeze_calls(seed: int) -> Iterator[Call]:
    for make in (lambda: seeded(_Toy, 0), lambda: seeded(_Deep, 0), _whole):
        for before in ("all", "none", "all but the token embedding"):
            model = make()
            model.requires_grad_(before != "none")
            if before.startswith("all but"):
                model.body.token_embed.requires_grad_(False)  # type: ignore[union-attr,operator]
            parts = "model.body and model.head"
            yield Call((model,), f"The model consists of {parts}. Trained before the call: {before}.")


def _padded_calls(seed: int) -> Iterator[Call]:
    rng = random.Random(seed)
    for lengths, batch_size in (
        ([3], 1),
        ([2, 5], 2),
        ([2, 5, 3, 4], 2),
        ([2, 5, 3, 4, 9], 2),
        ([4, 2, 7, 1, 1, 3, 8, 5], 3),
        ([6, 2], 7),
        ([rng.randint(1, 90) for _ in range(23)], 5),
        ([], 3),
    ):
        yield Call((lengths, batch_size))


def _pooling_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 7)
    for width, lengths, d_model in (
        (2, (1,), 1),
        (3, (3,), 2),
        (3, (2, 3), 2),
        (4, (3, 1, 4), 3),
        (5, (2, 3, 4), 2),
        (7, (5, 2), 5),
    ):
        mask = torch.arange(width, device="cpu") < torch.tensor(lengths, device="cpu")[:, None]
        hidden = _far_apart(rng, len(lengths), width, d_model)
        if width == 4:
            hidden[0, 0, 1] = 0  # of a real token: it counts as any other
        yield Call((hidden, mask))


def _mean_calls(seed: int) -> Iterator[Call]:
    yield from _pooling_calls(seed)
    mask = torch.tensor([[False, True, True], [True, False, True]], device="cpu")  # not only at the end
    yield Call((_far_apart(generator(seed, 8), 2, 3, 2), mask))


def _far_apart(rng: torch.Generator, *shape: int) -> Tensor:
    # Rounded, so that a reader can follow; never 0 or equal by accident.
    return (normal(rng, *shape) * 4).round() / 2 + normal(rng, *shape).round(decimals=1) / 4 + 0.05


def _least_squares(x: Tensor, y: Tensor) -> Callable[[Tensor], Tensor]:
    """A linear probe: least squares on one-hot labels, slightly regularised."""

    def extended(rows: Tensor) -> Tensor:
        return F.pad(rows.double(), (0, 1), value=1.0)

    known = extended(x)
    wanted = F.one_hot(y, 3).double()
    inner = known.T @ known + 0.1 * torch.eye(known.shape[1], dtype=known.dtype, device=x.device)
    weights = torch.linalg.solve(inner, known.T @ wanted)  # (D + 1, C)
    return lambda x: (extended(x) @ weights).argmax(dim=1)


def _probe_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 45)
    for n, n_types, d_model in ((8, 3, 2), (12, 3, 2), (30, 5, 4), (40, 7, 5), (60, 11, 5), (75, 7, 3)):
        words = 2 * torch.randint(n_types, (n,), generator=rng, device="cpu")  # not every id is one of a word
        draws = torch.randint(3, (n,), generator=rng, device="cpu")
        is_train = torch.randperm(n, generator=rng, device="cpu") < 0.6 * n
        hidden = normal(rng, 2 * n_types, d_model)[words] + 0.6 * normal(rng, n, d_model)
        labels = (hidden @ normal(rng, d_model, 3)).argmax(dim=1)
        yield Call(
            (_least_squares, hidden.round(decimals=1), labels, words, is_train, draws),
            "fit is least squares on one-hot labels.",
        )


def _ridge_calls(seed: int) -> Iterator[Call]:
    yield Call((6, 6, 1, 2))
    yield Call((6, 6, 1, 2.2))
    yield Call((12, 12, 1, 4))  # met exactly, at 3
    yield from map(Call, ((5, 7, 2, 1), (4, 9, 1, 5), (16, 24, 2, 3), (48, 35 + seed, 4, 4)))
    yield from map(Call, ((64, 257, 1, 41), (4_096, 14_336, 2, 295), (48, 81, 2, 29.5)))  # the last: 1,391


EXERCISES = (
    Exercise(name="freeze", read=trained, calls=_freeze_calls),
    Exercise(name="mean_pool", read=floats, calls=_mean_calls),
    Exercise(name="last_token", read=floats, calls=_pooling_calls),
    Exercise(name="selectivity", read=number, calls=_probe_calls),
    Exercise(name="padded_cost", read=count, calls=_padded_calls),
    Exercise(name="batch_at_ridge", read=count, calls=_ridge_calls),
)
