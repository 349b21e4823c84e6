"""Exercises on training: one step of it, and which parameters take part."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.config import TransformerConfig
from tinytx.transformer import Classifier
from tinytx_course.exercises.comparing import floats, number, pair, trained
from tinytx_course.exercises.exercise import Exercise, generator, mistakes, normal
from tinytx_course.exercises.observation import Call
from tinytx_run.training import seeded

Slips = frozenset[str]


def _loss(logits: Tensor, inputs: Tensor, targets: Tensor, slips: Slips) -> Tensor:
    """Loss of a batch with slips; without any the mean cross-entropy."""
    targets = inputs if "inputs-for-targets" in slips else targets
    if "shifted-again" in slips:
        logits, targets = logits[:, :-1], targets[:, 1:]
    if "last-position-only" in slips:
        logits, targets = logits[:, -1:], targets[:, -1:]
    if "softmax-twice" in slips:
        logits = logits.softmax(-1)
    if "view-for-transpose" in slips:
        logits = logits.reshape(len(logits), logits.shape[2], -1).transpose(1, 2)
    reduction = "sum" if "sum-for-mean" in slips else "mean"
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction=reduction)


def _clip(gradient: Tensor, max_norm: float, slips: Slips) -> None:
    """Clip a gradient in place."""
    if "clip-by-value" in slips:
        gradient.clamp_(-max_norm, max_norm)
    elif "always-scaled" in slips:
        gradient.mul_(max_norm / gradient.norm())
    elif not slips & {"clip-missing", "clip-loss"}:
        gradient.mul_((max_norm / gradient.norm()).clamp(max=1))


def _step(
    model: nn.Embedding,
    optimizer: torch.optim.Optimizer,
    inputs: Tensor,
    targets: Tensor,
    max_norm: float,
    *,
    slips: Slips = frozenset(),
) -> tuple[Tensor, Tensor]:
    """One training step with slips."""
    if "stale-gradient-used" in slips:
        loss = _loss(model(inputs), inputs, targets, slips)
        optimizer.step()
        return loss, model.weight
    if "zero-grad-forgotten" not in slips:
        optimizer.zero_grad()
    loss = _loss(model(inputs), inputs, targets, slips)
    learned = loss.clamp(max=max_norm) if "clip-loss" in slips else loss
    (-learned if "gradient-ascent" in slips else learned).backward()
    assert model.weight.grad is not None
    _clip(model.weight.grad, max_norm, slips)
    if "optimizer-ignored" in slips:
        model.weight.data -= model.weight.grad
    elif "step-missing" not in slips:
        for _ in range(1 + ("two-steps" in slips)):
            optimizer.step()
    loss = _loss(model(inputs), inputs, targets, slips) if "loss-after-step" in slips else loss
    return loss.exp() if "perplexity-returned" in slips else loss, model.weight


def _step_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 31)
    for (b, t, v), max_norm, stale, adam in (
        ((1, 1, 2), 10.0, False, False),
        ((1, 2, 3), 10.0, True, False),
        ((2, 2, 3), 0.1, False, False),
        ((2, 3, 5), 0.1, True, False),
        ((3, 2, 5), 0.2, True, True),
        ((3, 5, 7), 10.0, True, False),
    ):
        model = nn.Embedding(v, v, _weight=normal(rng, v, v).round(decimals=1))
        if stale:
            model.weight.grad = normal(rng, v, v).round(decimals=1)
        kind = torch.optim.AdamW if adam else torch.optim.SGD
        optimizer = kind(model.parameters(), lr=0.5)
        inputs = torch.randint(v, (b, t), generator=rng, device="cpu")
        further = 1 + torch.randint(v - 1, (b, t), generator=rng, device="cpu")
        targets = (inputs + further) % v  # never the input
        yield Call(
            (model, optimizer, inputs, targets, max_norm),
            f"model is nn.Embedding({v}, {v}), optimizer is {kind.__name__} with learning rate 0.5; "
            + ("model.weight.grad holds an older gradient." if stale else "there is no gradient yet."),
        )


TRAINING_STEP = Exercise(
    name="training_step",
    read=pair(number, floats, "loss, weight"),
    solve=_step,
    calls=_step_calls,
    mistakes=mistakes(
        "training_step",
        with_slips=_step,
        exclusive=(["clip-missing", "clip-by-value", "always-scaled", "clip-loss"],),
        together=("zero-grad-forgotten", "clip-missing"),
    ),
)


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


def _whole() -> nn.Module:
    config = TransformerConfig(vocab_size=7, d_model=4, n_heads=2, n_layers=1, d_ff=6)
    return seeded(lambda: Classifier(config, n_classes=3), 0)


def _freeze_calls(seed: int) -> Iterator[Call]:
    for make in (_Toy, _whole):
        for before in ("all", "none", "all but the token embedding"):
            model = make()
            model.requires_grad_(before != "none")
            if before.startswith("all but"):
                model.body.token_embed.requires_grad_(False)  # type: ignore[union-attr,operator]
            parts = "model.body and model.head"
            yield Call((model,), f"The model consists of {parts}. Trained before the call: {before}.")


def _setting(rule: Callable[[str, Tensor], bool]) -> Callable[[nn.Module], nn.Module]:
    """A function that gives each parameter the flag of a rule on its name and itself."""

    def wrong(model: nn.Module) -> nn.Module:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(rule(name, parameter))
        return model

    return wrong


def _in_head(name: str) -> bool:
    return name.startswith("head.")


def _still_trained(rule: Callable[[str, Tensor], bool]) -> tuple[Callable[[nn.Module], nn.Module], ...]:
    """Functions that leave a part of the body trained: all flags set, head thawed or not, none thawed."""
    return (
        _setting(lambda name, p: _in_head(name) or rule(name, p)),
        _setting(lambda name, p: _in_head(name) or p.requires_grad and rule(name, p)),
        _setting(lambda name, p: p.requires_grad and (_in_head(name) or rule(name, p))),
    )


def _first_frozen(model: nn.Module) -> nn.Module:
    next(model.get_submodule("body").parameters()).requires_grad_(False)
    return model


FREEZE = Exercise(
    name="freeze",
    read=trained,
    solve=_setting(lambda name, p: _in_head(name)),
    calls=_freeze_calls,
    mistakes=mistakes(
        "freeze",
        {
            "nothing-frozen": lambda model: model,
            "everything-frozen": _setting(lambda name, p: False),
            "reversed": (
                _setting(lambda name, p: not _in_head(name)),
                _setting(lambda name, p: p.requires_grad and not _in_head(name)),
            ),
            "head-not-thawed": _setting(lambda name, p: p.requires_grad and _in_head(name)),
            "everything-trained": _setting(lambda name, p: True),
            "head-in-the-name": _still_trained(lambda name, p: "head" in name),
            "only-embeddings": (
                *_still_trained(lambda name, p: "embed" not in name),
                *_still_trained(lambda name, p: "token_embed" not in name),
            ),
            "norms-trained": _still_trained(lambda name, p: "norm" in name),
            "biases-trained": _still_trained(lambda name, p: name.endswith("bias")),
            "only-direct-parameters": _still_trained(lambda name, p: name.count(".") != 1),
            "only-first": _first_frozen,
            "only-matrices": _still_trained(lambda name, p: p.dim() < 2),
            "head-weight-only": _setting(lambda name, p: name == "head.weight"),
            "head-bias-only": _setting(lambda name, p: name == "head.bias"),
            "toggled": (
                _setting(lambda name, p: _in_head(name) or not p.requires_grad),
                _setting(lambda name, p: p.requires_grad == _in_head(name)),
            ),
        },
    ),
)
EXERCISES = (TRAINING_STEP, FREEZE)
