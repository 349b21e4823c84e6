"""Exercises on masks, causal, padding and that of cross-attention, and on the test that finds leaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from tinytx.masks import causal_mask, padding_mask
from tinytx_course.exercises.comparing import boolean, truth
from tinytx_course.exercises.exercise import Exercise, generator, mistakes, normal
from tinytx_course.exercises.observation import Call

Model = Callable[[Tensor], Tensor]  # from inputs (T, D) to outputs (T, ...)


def _rule(rule: Callable[[Tensor, Tensor], Tensor]) -> Callable[[int], Tensor]:
    def mask(seq_len: int) -> Tensor:
        place = torch.arange(seq_len, device="cpu")
        return rule(place[:, None], place[None, :]).expand(seq_len, seq_len)  # t down, s across

    return mask


def _causal_calls(seed: int) -> Iterator[Call]:
    for seq_len in (1, 2, 3, 5 + seed % 3, 9):
        yield Call((seq_len,))


CAUSAL_MASK = Exercise(
    name="causal_mask",
    read=boolean,
    solve=causal_mask,
    calls=_causal_calls,
    mistakes=mistakes(
        "causal_mask",
        {
            "reversed": _rule(lambda t, s: s > t),
            "transposed": _rule(lambda t, s: s >= t),
            "diagonal-blocked": _rule(lambda t, s: s < t),
            "one-ahead": _rule(lambda t, s: s <= t + 1),
            "everything-allowed": _rule(lambda t, s: s >= 0 * t),
            "nothing-allowed": _rule(lambda t, s: s < 0 * t),
            "only-itself": _rule(lambda t, s: s == t),
            "only-others": _rule(lambda t, s: s != t),
            "only-first": _rule(lambda t, s: (s == 0) & (t >= 0)),
            "short-memory": _rule(lambda t, s: (s <= t) & (s >= t - 1)),
            "flipped": (_rule(lambda t, s: s <= t.flip(0)), _rule(lambda t, s: s >= t.flip(0))),
            "extra-axes": (lambda n: causal_mask(n)[None], lambda n: causal_mask(n)[None, None]),
        },
    ),
)


def _padded(rng: torch.Generator, lengths: list[int], pad_id: int, vocab_size: int) -> Tensor:
    """Random ids, right-padded to one more than the longest or to it; 0 occurs as a real id."""
    width = max(lengths)
    real = torch.tensor([i for i in range(vocab_size) if i != pad_id], device="cpu")
    draw = torch.randint(len(real), (len(lengths), width), generator=rng, device="cpu")
    token_ids = real[draw]
    token_ids[0, 0] = real[0]
    if lengths[-1] > 1:
        token_ids[-1, 1] = real[-1]
    places = torch.arange(width, device="cpu")
    return token_ids.masked_fill(places >= torch.tensor(lengths, device="cpu")[:, None], pad_id)


def _padding_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 1)
    yield Call((torch.tensor([[4]], device="cpu"), 2))
    yield Call((torch.tensor([[7, 2]], device="cpu"), 2))
    yield Call((_padded(rng, [2, 3], 5, 9), 5))
    yield Call((_padded(rng, [4, 2, 1], 3, 8), 3))
    yield Call((_padded(rng, [1, 3], 0, 9), 0))
    yield Call((_padded(rng, [2, 7, 4, 5], 6, 12), 6))


def _first_pad(token_ids: Tensor, pad_id: int) -> Tensor:
    first = (token_ids == pad_id).int().argmax(dim=1)  # 0 where there is no padding
    return torch.arange(token_ids.shape[1], device="cpu") < first[:, None]


def _by_length(shift: int) -> Callable[[Tensor, int], Tensor]:
    def mask(token_ids: Tensor, pad_id: int) -> Tensor:
        lengths = (token_ids != pad_id).sum(dim=1)
        return torch.arange(token_ids.shape[1], device="cpu") < lengths[:, None] + shift

    return mask


PADDING_MASK = Exercise(
    name="padding_mask",
    read=boolean,
    solve=padding_mask,
    calls=_padding_calls,
    mistakes=mistakes(
        "padding_mask",
        {
            "reversed": lambda ids, pad: ids == pad,
            "pad-id-0-assumed": lambda ids, pad: ids != 0,
            "reversed+pad-id-0-assumed": lambda ids, pad: ids == 0,
            "greater-than-pad-id": lambda ids, pad: ids > pad,
            "less-than-pad-id": lambda ids, pad: ids < pad,
            "row-without-padding": _first_pad,
            "one-too-many": _by_length(1),
            "last-token-lost": _by_length(-1),
            "one-length-for-all": (
                lambda ids, pad: (ids[:1] != pad).expand(ids.shape),
                lambda ids, pad: (ids != pad).any(0, keepdim=True).expand(ids.shape),
            ),
            "everything-allowed": lambda ids, pad: torch.ones_like(ids).bool(),
            "everything-blocked": lambda ids, pad: torch.zeros_like(ids).bool(),
            "extra-axes": (
                lambda ids, pad: (ids != pad)[:, None, None, :],
                lambda ids, pad: (ids != pad)[:, None, :],
                lambda ids, pad: (ids != pad)[:, :, None],
            ),
            "square": (
                lambda ids, pad: (ids != pad)[:, None, :] & (ids != pad)[:, :, None],
                lambda ids, pad: (ids != pad)[:, None, :].expand(-1, ids.shape[1], -1),
            ),
            "one-per-row": lambda ids, pad: (ids != pad).any(1),
            "transposed": lambda ids, pad: (ids != pad).T,
        },
    ),
)


def _cross_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 2)
    yield Call((torch.tensor([[4, 2]], device="cpu"), torch.tensor([[5]], device="cpu"), 2))
    yield Call((_padded(rng, [3], 1, 9), _padded(rng, [2], 1, 9), 1))
    yield Call((_padded(rng, [3, 2], 4, 9), _padded(rng, [1, 3], 4, 9), 4))
    yield Call((_padded(rng, [2, 5, 1], 6, 9), _padded(rng, [3, 1, 2], 6, 9), 6))
    yield Call((_padded(rng, [2, 3], 0, 9), _padded(rng, [4, 2], 0, 9), 0))


def _cross(
    src_ids: Tensor, tgt_ids: Tensor, pad_id: int, *, target_too: bool = False, causal: bool = False
) -> Tensor:
    mask = (src_ids != pad_id)[:, None, :].expand(-1, tgt_ids.shape[1], -1)  # (B, T, S)
    if target_too:
        mask = mask & (tgt_ids != pad_id)[:, :, None]
    return mask.tril() if causal else mask


CROSS_ATTENTION_MASK = Exercise(
    name="cross_attention_mask",
    read=boolean,
    solve=_cross,
    calls=_cross_calls,
    mistakes=mistakes(
        "cross_attention_mask",
        {
            "reversed": lambda src, tgt, pad: ~_cross(src, tgt, pad),
            "target-padding-too": partial(_cross, target_too=True),
            "target-instead-of-source": lambda src, tgt, pad: (tgt != pad)[:, :, None].expand(
                -1, -1, src.shape[1]
            ),
            "causal-too": partial(_cross, causal=True),
            "causal-too+target-padding-too": partial(_cross, causal=True, target_too=True),
            "transposed": lambda src, tgt, pad: _cross(src, tgt, pad).transpose(1, 2),
            "pad-id-0-assumed": lambda src, tgt, pad: _cross(src, tgt, 0),
            "extra-axes": (
                lambda src, tgt, pad: (src != pad)[:, None, :],
                lambda src, tgt, pad: _cross(src, tgt, pad)[:, None],
                lambda src, tgt, pad: (src != pad)[:, None, None, :],
            ),
            "source-mask-only": lambda src, tgt, pad: src != pad,
            "source-against-source": lambda src, tgt, pad: _cross(src, src, pad),
            "everything-allowed": lambda src, tgt, pad: torch.ones_like(_cross(src, tgt, pad)),
            "first-row-for-all": lambda src, tgt, pad: _cross(src, tgt, pad)[:1].expand(len(src), -1, -1),
            "same-token": lambda src, tgt, pad: src[:, None, :] == tgt[:, :, None],
        },
    ),
)


def _mix(weights: Tensor) -> Model:
    """A model whose output t is the sum of the inputs s, weighted by row t."""
    return lambda x: weights.to(x) @ x


def _attend(seq_len: int, *, zeroed_after: bool = False) -> Model:
    """Causal attention of a sequence over itself, masked before softmax, or, wrongly, after it."""
    mask = causal_mask(seq_len, device="cpu")

    def model(x: Tensor) -> Tensor:
        allowed, scores = mask.to(x.device), x @ x.T  # (T, T)
        if zeroed_after:
            return (scores.softmax(-1) * allowed) @ x
        return scores.masked_fill(~allowed, -torch.inf).softmax(-1) @ x

    return model


def _second_number_leaks(x: Tensor) -> Tensor:
    """Each output holds its own first number, and the second one of the last token."""
    return torch.stack((x[:, 0], x[-1:, 1].expand(len(x))), dim=1)


def _leak_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 17)

    def case(model: Model, seq_len: int, words: str) -> Call:
        x = normal(rng, seq_len, 2).round(decimals=1)
        return Call((model, x.masked_fill(x == 0, 0.5)), f"The model: {words}.")

    def some(seq_len: int, *pairs: tuple[int, int], weight: float = 0.5) -> Tensor:
        weights = torch.eye(seq_len, device="cpu")
        for t, s in pairs:
            weights[t, s] = weight
        return weights

    def before(seq_len: int) -> Tensor:
        return torch.eye(seq_len, device="cpu").roll(-1, 1).tril()

    n, a_little = 4 + seed % 3, _mix(some(4, (1, 2), weight=5e-6))
    yield case(_mix(some(2)), 2, "output t is input t")
    yield case(_mix(some(2, (0, 1))), 2, "output 0 reads inputs 0 and 1, output 1 reads input 1")
    yield case(_mix(before(2)), 2, "output 0 is zero, output 1 is input 0")
    yield case(_mix(0 * before(2)), 2, "every output is zero")
    yield case(_attend(3), 3, "attention with a causal mask")
    yield case(_mix(before(3)), 3, "output 0 is zero, output t is input t - 1")
    yield case(_mix(some(3, (0, 2))), 3, "output 0 reads inputs 0 and 2, every other output its own input")
    yield case(_mix(some(4, (0, 1))), 4, "output 0 reads inputs 0 and 1, every other output its own input")
    yield case(_mix(some(4, (2, 3))), 4, "output 2 reads inputs 2 and 3, every other output its own input")
    yield case(_mix(some(4) * 0 + 1), 4, "every output is the sum of all inputs")
    yield case(_second_number_leaks, 4, "the second number of every output is that of the last input")
    words = "every output is its own input plus 3, and output 1 also reads a little, 0.000005, of input 2"
    yield case(lambda x: 3 + a_little(x), 4, words)
    yield case(_attend(n, zeroed_after=True), n, "attention with weights set to zero after softmax")
    yield case(_attend(n), n, "attention with a causal mask")


def _moved(model: Model, x: Tensor, *, first_only: bool = False, nearly: bool = False) -> Tensor:
    """Which outputs t move when input s is changed, (T, T)."""
    before, columns = model(x), []
    for s in range(len(x)):
        changed = x.clone()
        changed[s, : 1 if first_only else None] += 1
        after = model(changed)
        same = torch.isclose(after, before) if nearly else after == before
        columns.append(~same.all(dim=-1))
    return torch.stack(columns, dim=1)


def _leaks(choose: Callable[[Tensor], Tensor], **how: bool) -> Callable[[Model, Tensor], Tensor]:
    """A verdict on those pairs of output and input that `choose` takes from the table of what moved."""
    return lambda model, x: choose(_moved(model, x, **how)).any()


def _changes_pile_up(model: Model, x: Tensor) -> Tensor:
    before, changed, found = model(x), x.clone(), False
    for s in range(len(x)):
        changed[s] += 1
        found = found or not torch.equal(model(changed)[:s], before[:s])
    return torch.tensor(found, device="cpu")


def _first_output_number(model: Model, x: Tensor) -> Tensor:
    return _moved(lambda x: model(x)[:, :1], x).triu(1).any()


LEAKS_FUTURE = Exercise(
    name="leaks_future",
    read=truth,
    solve=_leaks(lambda moved: moved.triu(1)),
    calls=_leak_calls,
    mistakes=mistakes(
        "leaks_future",
        {
            "every-movement-counted": _leaks(lambda moved: moved),
            "own-output-counted": _leaks(lambda moved: moved.triu()),
            "past-instead-of-future": _leaks(lambda moved: moved.tril(-1)),
            "reversed": lambda model, x: ~_moved(model, x).triu(1).any(),
            "changes-pile-up": _changes_pile_up,
            "only-last-input": _leaks(lambda moved: moved[:-1, -1]),
            "only-first-pair": _leaks(lambda moved: moved[:1, 1:2]),
            "only-first-output": _leaks(lambda moved: moved[0, 1:]),
            "only-last-outputs": _leaks(lambda moved: moved[-2, -1]),
            "only-neighbours": _leaks(lambda moved: moved.diagonal(1)),
            "neighbours-missed": _leaks(lambda moved: moved.triu(2)),
            "all-must-move": lambda model, x: (_moved(model, x) | causal_mask(len(x), device="cpu")).all(),
            "nearly-equal": _leaks(lambda moved: moved.triu(1), nearly=True),
            "only-first-number": (_leaks(lambda moved: moved.triu(1), first_only=True), _first_output_number),
            "always-true": lambda model, x: torch.tensor(True, device="cpu"),
            "always-false": lambda model, x: torch.tensor(False, device="cpu"),
        },
    ),
)
EXERCISES = (CAUSAL_MASK, PADDING_MASK, CROSS_ATTENTION_MASK, LEAKS_FUTURE)
