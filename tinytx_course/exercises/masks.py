"""Exercises on masks: causal, padding, and that of cross-attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from tinytx.model.masks import causal_mask, padding_mask
from tinytx_course.exercises.comparing import boolean
from tinytx_course.exercises.exercise import Exercise, generator, mistakes
from tinytx_course.exercises.observation import Call


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
EXERCISES = (CAUSAL_MASK, PADDING_MASK, CROSS_ATTENTION_MASK)
