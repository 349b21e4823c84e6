"""Exercises on the block and its parts, and on the language model made of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, chosen, generator, mistakes, normal
from tinytx_course.exercises.observation import Call

Slips = frozenset[str]
Layer = Callable[[Tensor], Tensor]

_AXES: dict[str, tuple[int, ...]] = {
    "over-tokens": (1,),
    "over-batch": (0,),
    "over-tokens-and-features": (1, 2),
    "over-everything": (0, 1, 2),
}
_SPREADS: dict[str, Callable[[Tensor, Tensor, Tensor, float], Tensor]] = {
    # from x, centred x, variance and eps to what the centred numbers are divided by
    "eps-outside-root": lambda x, c, variance, eps: variance.sqrt() + eps,
    "eps-missing": lambda x, c, variance, eps: variance.sqrt(),
    "no-root": lambda x, c, variance, eps: variance + eps,
    "not-divided": lambda x, c, variance, eps: torch.ones_like(variance),
    "second-moment-not-centred": lambda x, c, variance, eps: (_mean_square(x, (-1,)) + eps).sqrt(),
    "mean-absolute-deviation": lambda x, c, variance, eps: c.abs().mean(-1, keepdim=True) + eps,
    "unit-length": lambda x, c, variance, eps: (c.square().sum(-1, keepdim=True) + eps).sqrt(),
    "multiplied": lambda x, c, variance, eps: 1 / (variance + eps).sqrt(),
}


def _mean_square(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return x.square().mean(axes, keepdim=True)


def _root(x: Tensor, c: Tensor, variance: Tensor, eps: float) -> Tensor:
    return (variance + eps).sqrt()


def _layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, eps: float, *, slips: Slips = frozenset()) -> Tensor:
    """Layer norm with slips; without any it is that of torch."""
    axes = chosen(_AXES, slips, (-1,))
    centred = x if "not-centred" in slips else x - x.mean(axes, keepdim=True)
    variance = _mean_square(centred, axes)
    if "unbiased-variance" in slips:
        variance = variance * (centred.shape[-1] / (centred.shape[-1] - 1))
    normed = centred / chosen(_SPREADS, slips, _root)(x, centred, variance, eps)
    if "gamma-and-beta-exchanged" in slips:
        gamma, beta = beta, gamma
    if "beta-before-gamma" in slips:
        return gamma * (normed + beta)
    factor = 1 if "gamma-missing" in slips else gamma + ("gamma-plus-one" in slips)
    return normed * factor + (0 if "beta-missing" in slips else beta)


def _norm_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 15)

    def case(*shape: int, eps: float) -> Call:
        x = (3 * normal(rng, *shape) + 1).round(decimals=1)
        gamma, beta = 1 + normal(rng, shape[-1]) / 2, normal(rng, shape[-1])
        return Call((x, gamma.round(decimals=1), beta.round(decimals=1), eps))

    hand = torch.tensor([[[1.0, 3.0, 5.0, 7.0]]], device="cpu")
    yield Call(
        (hand, torch.tensor([1.0, 1, 2, 2], device="cpu"), torch.tensor([0.0, 1, 0, 1], device="cpu"), 1e-5)
    )
    yield case(1, 2, 3, eps=1e-5)
    yield case(2, 3, 5, eps=0.5)
    flat = case(2, 1, 4, eps=0.1)
    flat.arguments[0][0] = 2.0  # a token whose numbers are all equal: its variance is 0
    yield flat
    yield case(3, 5, 7, eps=1e-5)


LAYER_NORM = Exercise(
    name="layer_norm",
    read=floats,
    solve=_layer_norm,
    calls=_norm_calls,
    answers=(F.layer_norm, torch.layer_norm),
    mistakes=mistakes(
        "layer_norm",
        with_slips=_layer_norm,
        exclusive=([*_AXES, "unbiased-variance"], [*_SPREADS]),
        together=("unbiased-variance", "eps-missing", "eps-outside-root"),
    ),
)

_ACTIVATIONS: dict[str, Layer] = {
    "no-activation": lambda h: h,
    "activation-at-the-end": lambda h: h,
    "activation-on-input": lambda h: h,
    "gelu": F.gelu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "leaky": F.leaky_relu,
    "absolute": torch.abs,
    "minimum": lambda h: h.clamp(max=0),
    "softmax": lambda h: h.softmax(-1),
}


def _feed_forward(
    x: Tensor, w_up: Tensor, b_up: Tensor, w_down: Tensor, b_down: Tensor, *, slips: Slips = frozenset()
) -> Tensor:
    """The feed-forward network with slips."""
    read = x.relu() if "activation-on-input" in slips else x
    if "mean-over-tokens" in slips:
        read = x.mean(1, keepdim=True).expand_as(x)
    if slips & {"b-up-missing", "biases-missing", "b-up-after-activation"}:
        b_before, b_after = 0 * b_up, b_up * ("b-up-after-activation" in slips)
    else:
        b_before, b_after = b_up, 0 * b_up
    hidden = chosen(_ACTIVATIONS, slips, F.relu)(read @ w_up + b_before) + b_after  # (B, T, F)
    if "only-up" in slips:
        return hidden
    out = hidden @ w_down + (0 if slips & {"b-down-missing", "biases-missing"} else b_down)
    out = out.relu() if slips & {"activation-at-the-end", "activation-twice"} else out
    return x + out if "residual-added" in slips else out


def _feed_forward_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 16)
    for b, t, d, f in ((1, 1, 2, 3), (1, 2, 2, 3), (2, 3, 5, 7), (1, 4, 3, 11), (3, 2, 7, 5)):
        shapes = ((b, t, d), (d, f), (f,), (f, d), (d,))
        yield Call(tuple(normal(rng, *shape).round(decimals=1) for shape in shapes))


FEED_FORWARD = Exercise(
    name="feed_forward",
    read=floats,
    solve=_feed_forward,
    calls=_feed_forward_calls,
    mistakes=mistakes(
        "feed_forward",
        with_slips=_feed_forward,
        exclusive=([*_ACTIVATIONS, "activation-twice"],),
        together=("b-up-missing", "b-down-missing"),
    ),
)


def _add(x: Tensor, norm: Layer, sublayer: Layer, which: str, norm_first: bool, slips: Slips) -> Tensor:
    """One sublayer with its norm and its residual connection."""
    if slips & {"norms-missing", f"{which}-norm-missing"}:

        def norm(x: Tensor) -> Tensor:
            return x

    added = {"attn": "attention", "ff": "feed-forward"}[which]
    stream = 0 * x if slips & {"residual-missing", f"residual-missing-at-{added}"} else x
    stream = 2 * x if "residual-doubled" in slips else stream
    if "norm-on-sublayer-output" in slips:
        return stream + norm(sublayer(x))
    if "both-norms" in slips:
        return norm(stream + sublayer(norm(x)))
    if not norm_first:
        return norm(stream + sublayer(x))
    stream = norm(x) if "residual-from-norm" in slips else stream
    return stream + sublayer(norm(x))


def _block(
    x: Tensor,
    attn: Layer,
    ff: Layer,
    attn_norm: Layer,
    ff_norm: Layer,
    norm_first: bool,
    *,
    slips: Slips = frozenset(),
) -> Tensor:
    """The block with slips."""
    fixed = {"always-pre-norm": True, "always-post-norm": False, "orders-exchanged": not norm_first}
    first = chosen(fixed, slips, norm_first)
    norms = {
        "attn-norm-twice": (attn_norm, attn_norm),
        "ff-norm-twice": (ff_norm, ff_norm),
        "norms-exchanged": (ff_norm, attn_norm),
    }
    attn_norm, ff_norm = chosen(norms, slips, (attn_norm, ff_norm))
    steps = {"attn": (attn_norm, attn), "ff": (ff_norm, ff)}
    if "sublayers-exchanged" in slips:
        steps = {"ff": steps["ff"], "attn": steps["attn"]}
    missing = {"attention-missing": "attn", "feed-forward-missing": "ff"}
    steps.pop(chosen(missing, slips, ""), None)
    if "parallel" in slips:
        parts = [_add(x, *step, which, first, slips) for which, step in steps.items()]
        return parts[0] + parts[1] - x
    out = x
    for which, step in steps.items():
        out = _add(out, *step, which, first, slips)
    if "residual-from-input" in slips and first:
        middle = _add(x, *steps["attn"], "attn", first, slips)
        return out - middle + x
    if "residual-from-input" in slips:
        middle = _add(x, *steps["attn"], "attn", first, slips)
        return ff_norm(x + ff(middle))
    return ff_norm(out) if "norm-at-the-end" in slips and first else out


def _mean_token(x: Tensor) -> Tensor:
    return x.mean(1, keepdim=True).repeat(1, x.shape[1], 1)  # no view: it may be written into


def _normed(gain: float) -> Layer:
    return lambda x: gain * F.layer_norm(x, x.shape[-1:])


def _mixed(scores: Tensor, w: Tensor) -> Layer:
    # (T, T) @ (B, T, D) @ (D, D), where x is
    return lambda x: scores.softmax(-1).to(x.device) @ x @ w.to(x.device)


def _bent(w: Tensor) -> Layer:
    return lambda x: (x @ w.to(x.device)).relu() @ w.T.to(x.device)


_TOYS = (
    "attn gives each token the mean token, ff(x) = x * x, attn_norm(x) = x / 2 + 1, ff_norm(x) = x - 3, "
    "norm_first as above."
)


def _block_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 17)
    toys = (_mean_token, torch.square, lambda x: x / 2 + 1, lambda x: x - 3)
    for norm_first in (True, False):
        x = torch.tensor([[[1.0, 2.0], [3.0, 6.0]]], device="cpu")
        yield Call((x, *toys, norm_first), _TOYS)
    for b, t, d in ((1, 3, 5), (2, 5, 7)):
        layers = _mixed(normal(rng, t, t), normal(rng, d, d)), _bent(normal(rng, d, d + 1))
        words = "attn mixes tokens, ff acts on each token, both norms are layer norms."
        for norm_first in (True, False):
            x = normal(rng, b, t, d).round(decimals=1)
            yield Call((x, *layers, _normed(1.0), _normed(0.5), norm_first), words)


BLOCK = Exercise(
    name="block",
    read=floats,
    solve=_block,
    calls=_block_calls,
    mistakes=mistakes(
        "block",
        with_slips=_block,
        exclusive=(
            ["always-pre-norm", "always-post-norm", "orders-exchanged"],
            ["attn-norm-twice", "ff-norm-twice", "norms-exchanged"],
        ),
        together=("always-pre-norm", "always-post-norm"),
    ),
)


class _Blocks(tuple[Layer, ...]):
    """Blocks that name themselves in a message."""

    def __repr__(self) -> str:
        return f"({', '.join(f'block {i + 1}' for i in range(len(self)))})"


def _running_mean(x: Tensor) -> Tensor:
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1, device=x.device)[:, None]


_STACK = "Block 1 adds the mean of the tokens so far, block 2(x) = x * x, final_norm(x) = x / 2 + 1."


def _tiny_gpt_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 19)
    toys = _Blocks((lambda x: x + _running_mean(x), torch.square)), lambda x: x / 2 + 1

    def case(b: int, t: int, d: int, v: int, max_len: int, stack: _Blocks, norm: Layer, words: str) -> Call:
        ids = torch.randint(v, (b, t), generator=rng, device="cpu")
        table, positions, w_out = (
            normal(rng, *shape).round(decimals=1) for shape in ((v, d), (max_len, d), (d, v))
        )
        return Call((ids, table, positions, stack, norm, w_out), words)

    yield case(1, 2, 4, 3, 2, *toys, _STACK)
    yield case(1, 2, 4, 3, 5, *toys, _STACK)
    for b, t, d, v, max_len in ((2, 3, 5, 7, 4), (3, 5, 2, 11, 7)):
        layers = (_mixed(normal(rng, t, t), normal(rng, d, d)), _bent(normal(rng, d, d + 1)))
        stack = _Blocks(layers if t == 3 else (*layers, torch.tanh))
        words = "block 1 mixes tokens, the other blocks act on each token, final_norm is a layer norm."
        yield case(b, t, d, v, max_len, stack, _normed(1.5), words)


TINY_GPT = Exercise(
    name="tiny_gpt",
    read=floats,
    calls=_tiny_gpt_calls,
)
EXERCISES = (LAYER_NORM, FEED_FORWARD, BLOCK, TINY_GPT)
