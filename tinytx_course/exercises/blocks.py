"""Exercises on the block and its parts, and on the language model made of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx_course.exercises.comparing import Reading, as_codes, count, floats
from tinytx_course.exercises.exercise import Exercise, generator, normal
from tinytx_course.exercises.observation import Call, Failure, Observation, Opaque, kind_of, plain

Layer = Callable[[Tensor], Tensor]


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


_OTHER_NORMS = (torch.native_layer_norm, F.group_norm, F.instance_norm, F.batch_norm)
_FAR = torch.tensor([[[10_000.0, 10_001, 10_002, 10_003]]], device="cpu")  # its squares need 9 digits
_FAR_FROM_0 = Call((_FAR, torch.ones(4, device="cpu"), torch.zeros(4, device="cpu"), 1e-5))


def _norm_hint(observation: Observation) -> str:
    """A mean of squares less a square: a remark, no failure."""
    value = observation.value
    if isinstance(value, Tensor) and not abs(value.double().std(correction=0) - 1) < 0.1:
        return (
            "With numbers near 10,000 the mean of the squares less the square of the mean is lost in "
            "rounding: subtract the mean first, then square."
        )
    return ""


def _feed_forward_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 16)
    for b, t, d, f in ((1, 1, 2, 3), (1, 2, 2, 3), (2, 3, 5, 7), (1, 4, 3, 11), (3, 2, 7, 5)):
        shapes = ((b, t, d), (d, f), (f,), (f, d), (d,))
        yield Call(tuple(normal(rng, *shape).round(decimals=1) for shape in shapes))


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


def _parallel_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 41)
    toys = (_mean_token, torch.square, lambda x: x / 2 + 1)
    words = "attn gives each token the mean token, ff(x) = x * x, norm(x) = x / 2 + 1."
    yield Call((torch.tensor([[[2.0], [4.0]]], device="cpu"), *toys), words)
    yield Call((normal(rng, 2, 3, 5).round(decimals=1), *toys), words)
    for b, t, d in ((1, 3, 2), (2, 5, 7)):
        layers = _mixed(normal(rng, t, t), normal(rng, d, d)), _bent(normal(rng, d, d + 1))
        words = "attn mixes tokens, ff acts on each token, norm is a layer norm and a factor of 1.5."
        yield Call((normal(rng, b, t, d).round(decimals=1), *layers, _normed(1.5)), words)


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


class GPT(nn.Module):
    """A GPT without its middle: embedding and output layer; never called."""

    def __init__(self, rng: torch.Generator, vocab_size: int, d_model: int, bias: bool) -> None:
        super().__init__()
        self.token_embed = nn.Embedding(vocab_size, d_model, device="cpu")
        self.final_norm = nn.LayerNorm(d_model, device="cpu")
        self.head = nn.Linear(d_model, vocab_size, bias, device="cpu")
        for parameter in self.parameters():
            parameter.data = normal(rng, *parameter.shape).round(decimals=1)

    def get_extra_state(self) -> Tensor:
        """Whether the head is linear, both tables are one parameter, and they lie in one memory."""
        head, embed = (getattr(self, name, None) for name in ("head", "token_embed"))
        mine, its = (getattr(layer, "weight", None) for layer in (head, embed))
        memory = isinstance(mine, Tensor) and isinstance(its, Tensor) and mine.data_ptr() == its.data_ptr()
        return torch.tensor([isinstance(head, nn.Linear), memory and mine is its, memory])

    def set_extra_state(self, state: Tensor) -> None:
        """Nothing: it is seen, not set."""


def _tied(value: Any) -> Reading | Failure:
    """Read a model as its parameters, with what the output layer shares, and the number of those saved."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return Failure("wrong-type", f"Two results are due, (model, n_saved); got {kind_of(value)}.")
    model, saved = value[0], count(value[1])
    model = plain(model) if isinstance(model, nn.Module) else model
    if not isinstance(model, Opaque) or "_extra_state" not in model.state:
        return Failure("wrong-type", f"The model itself comes first, got {kind_of(model)}.")
    if isinstance(saved, Failure):
        return saved
    linear, one, memory = model.state["_extra_state"].tolist()
    if not linear:
        now = "now the embedding itself, which looks ids up" if one else "no `nn.Linear` any more"
        words = f"`model.head` is {now}: keep the linear layer and share only its `weight`."
        return Failure("head-replaced", words)
    alike = "is token_embed.weight" if one else "in its memory" if memory else "of its own"
    rows = [
        (
            *(name, str(tuple(held.shape)), f"sum {held.double().sum():.1f}"),
            "trained" if name in model.trained else "frozen",
            alike * (name == "head.weight"),
        )
        for name, held in sorted(model.state.items())
        if name != "_extra_state"
    ]
    cells = (*rows, ("n_saved", f"{saved.tensors[0].item():,}"))
    return Reading((as_codes(cells),), note=saved.note, cells=cells)


def _tie_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 19)
    for vocab_size, d_model, bias in ((3, 2, False), (5, 2, True), (3, 7, True), (11, 5, False)):
        words = f"V = {vocab_size}, D = {d_model}, and the output layer has {'a' if bias else 'no'} bias."
        yield Call((GPT(rng, vocab_size, d_model, bias),), words)


EXERCISES = (
    Exercise(
        name="layer_norm",
        read=floats,
        calls=_norm_calls,
        answers=(F.layer_norm, torch.layer_norm, *_OTHER_NORMS),
        probe=_FAR_FROM_0,
        hint=_norm_hint,
    ),
    Exercise(name="feed_forward", read=floats, calls=_feed_forward_calls),
    Exercise(name="block", read=floats, calls=_block_calls),
    Exercise(name="parallel_block", read=floats, calls=_parallel_calls),
    Exercise(name="tiny_gpt", read=floats, calls=_tiny_gpt_calls),
    Exercise(name="tie_embeddings", read=_tied, calls=_tie_calls),
)
