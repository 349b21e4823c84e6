"""Exercises on masks: causal, padding, and that of cross-attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tinytx.model.masks import causal_mask, padding_mask
from tinytx_course.exercises.comparing import boolean
from tinytx_course.exercises.exercise import Exercise, Mistake, generator
from tinytx_course.exercises.observation import Call

_PADDING, _CAUSAL, _SIGNS = "Padding", "The causal mask", "Two signs for one rule"


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
    signature="causal_mask(seq_len)",
    lesson=2,
    section=_CAUSAL,
    rule="a boolean tensor of shape (T, T); row t is True in the columns s <= t, its own and those before.",
    read=boolean,
    solve=causal_mask,
    calls=_causal_calls,
    mistakes=(
        Mistake(
            "reversed",
            'This is the mask of what is blocked. Here True means "may attend", so exchange True and False.',
            _rule(lambda t, s: s > t),
            _SIGNS,
        ),
        Mistake(
            "transposed",
            "Rows and columns are exchanged: each token sees itself and the future. Row t is the "
            "one who looks, "
            "column s is looked at, so the lower triangle is True.",
            _rule(lambda t, s: s >= t),
        ),
        Mistake(
            "diagonal-blocked",
            "The diagonal is False: a token must be able to see itself (the first one has nothing else).",
            _rule(lambda t, s: s < t),
        ),
        Mistake(
            "one-ahead",
            "The triangle reaches one place too far: each token sees the next one, which it should predict.",
            _rule(lambda t, s: s <= t + 1),
        ),
        Mistake(
            "everything-allowed",
            "Everything is True: every token sees the future too.",
            _rule(lambda t, s: s >= 0 * t),
        ),
        Mistake(
            "nothing-allowed",
            "Everything is False: no token may look anywhere.",
            _rule(lambda t, s: s < 0 * t),
        ),
        Mistake(
            "only-itself",
            "Only the diagonal is True: a token should also see all tokens before it.",
            _rule(lambda t, s: s == t),
        ),
        Mistake(
            "only-others",
            "Only the diagonal is False: past and future are both open, and a token cannot see itself.",
            _rule(lambda t, s: s != t),
        ),
        Mistake(
            "only-first",
            "Only the first column is True: a token should see all tokens up to itself.",
            _rule(lambda t, s: (s == 0) & (t >= 0)),
        ),
        Mistake(
            "short-memory",
            "Each token sees only itself and the one before: the whole past should be open.",
            _rule(lambda t, s: (s <= t) & (s >= t - 1)),
        ),
        Mistake(
            "flipped",
            "The triangle lies in the wrong corner: rows or columns are counted from the end.",
            (_rule(lambda t, s: s <= t.flip(0)), _rule(lambda t, s: s >= t.flip(0))),
        ),
        Mistake(
            "extra-axes",
            "The values are right, but axes of length 1 stand in front: return (T, T).",
            (lambda seq_len: causal_mask(seq_len)[None], lambda seq_len: causal_mask(seq_len)[None, None]),
        ),
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


_REVERSED = "True stands at the padding. Here True means a real token, one that may be looked at."
_PAD_ZERO = "Padding is taken to have id 0: it is `pad_id` that tells, and 0 may be a real token."
_BROADCAST = (
    "The values are right, but axes were added for broadcasting: return (B, S), and add axes where it "
    "is used."
)
PADDING_MASK = Exercise(
    name="padding_mask",
    signature="padding_mask(token_ids, pad_id)",
    lesson=2,
    section=_PADDING,
    rule="a boolean tensor of shape (B, S), True where a real token stands, False at the padding.",
    read=boolean,
    solve=padding_mask,
    calls=_padding_calls,
    mistakes=(
        Mistake("reversed", _REVERSED, lambda ids, pad: ids == pad, _SIGNS),
        Mistake("pad-id-0-assumed", _PAD_ZERO, lambda ids, pad: ids != 0),
        Mistake("reversed+pad-id-0-assumed", f"{_REVERSED} And: {_PAD_ZERO}", lambda ids, pad: ids == 0),
        Mistake(
            "greater-than-pad-id",
            "`>` lets only ids above `pad_id` count as real; real ids may lie below it too: use `!=`.",
            lambda ids, pad: ids > pad,
        ),
        Mistake(
            "less-than-pad-id",
            "`<` lets only ids below `pad_id` count as real; real ids may lie above it too: use `!=`.",
            lambda ids, pad: ids < pad,
        ),
        Mistake(
            "row-without-padding",
            "The first padding is looked for in each row; a row without any gets place 0, so "
            "nothing is left.",
            _first_pad,
        ),
        Mistake("one-too-many", "The first padding token is still True.", _by_length(1)),
        Mistake("last-token-lost", "The last real token of each row is False.", _by_length(-1)),
        Mistake(
            "one-length-for-all",
            "All rows get the same mask: each row has its own length.",
            (
                lambda ids, pad: (ids[:1] != pad).expand(ids.shape),
                lambda ids, pad: (ids != pad).any(0, keepdim=True).expand(ids.shape),
            ),
        ),
        Mistake("everything-allowed", "Everything is True.", lambda ids, pad: torch.ones_like(ids).bool()),
        Mistake("everything-blocked", "Everything is False.", lambda ids, pad: torch.zeros_like(ids).bool()),
        Mistake(
            "extra-axes",
            _BROADCAST,
            (
                lambda ids, pad: (ids != pad)[:, None, None, :],
                lambda ids, pad: (ids != pad)[:, None, :],
                lambda ids, pad: (ids != pad)[:, :, None],
            ),
        ),
        Mistake(
            "square",
            "This is a square for each row, who may look at whom: only the (B, S) mask of real "
            "tokens is asked.",
            (
                lambda ids, pad: (ids != pad)[:, None, :] & (ids != pad)[:, :, None],
                lambda ids, pad: (ids != pad)[:, None, :].expand(-1, ids.shape[1], -1),
            ),
        ),
        Mistake(
            "one-per-row",
            "This is one answer for each row: every token needs its own.",
            lambda ids, pad: (ids != pad).any(1),
        ),
        Mistake(
            "transposed",
            "The axes are exchanged: rows of the batch first, (B, S).",
            lambda ids, pad: (ids != pad).T,
        ),
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


_CROSS_REVERSED = "True stands where the source is padding: True means that a source token may be looked at."
_FIRST_ROW = "All rows of the batch get the same mask: each source has its own padding."
CROSS_ATTENTION_MASK = Exercise(
    name="cross_attention_mask",
    signature="cross_attention_mask(src_ids, tgt_ids, pad_id)",
    lesson=11,
    section="Three attentions, three masks",
    rule=(
        "a boolean tensor of shape (B, T, S): every target place t may attend to the real tokens s of its "
        "source, the same for every t, padded ones too."
    ),
    read=boolean,
    solve=_cross,
    calls=_cross_calls,
    mistakes=(
        Mistake("reversed", _CROSS_REVERSED, lambda src, tgt, pad: ~_cross(src, tgt, pad)),
        Mistake(
            "target-padding-too",
            "Rows of padded target places are emptied. The mask says which source tokens may be read, and is "
            "the same for every row; what padded places compute is ignored later.",
            lambda src, tgt, pad: _cross(src, tgt, pad, target_too=True),
        ),
        Mistake(
            "target-instead-of-source",
            "The padding of the target decides here; it is the source that is looked at.",
            lambda src, tgt, pad: (tgt != pad)[:, :, None].expand(-1, -1, src.shape[1]),
        ),
        Mistake(
            "causal-too",
            "A triangle hides part of the source. The source is known as a whole: only self-attention of the "
            "decoder is causal.",
            lambda src, tgt, pad: _cross(src, tgt, pad, causal=True),
            "Whose mask is it?",
            2,
        ),
        Mistake(
            "causal-too+target-padding-too",
            "A triangle hides part of the source, which is known as a whole; and rows of padded "
            "target places "
            "are emptied, which should be like the others.",
            lambda src, tgt, pad: _cross(src, tgt, pad, causal=True, target_too=True),
        ),
        Mistake(
            "transposed",
            "The axes are exchanged: those who look come first, (B, T, S).",
            lambda src, tgt, pad: _cross(src, tgt, pad).transpose(1, 2),
        ),
        Mistake("pad-id-0-assumed", _PAD_ZERO, lambda src, tgt, pad: _cross(src, tgt, 0)),
        Mistake(
            "extra-axes",
            "The values are right, but the axis of the target has length 1: repeat the row for each of the T "
            "places.",
            lambda src, tgt, pad: (src != pad)[:, None, :],
        ),
        Mistake(
            "extra-axes",
            "The values are right, but there is an axis for heads: return (B, T, S).",
            lambda src, tgt, pad: _cross(src, tgt, pad)[:, None],
        ),
        Mistake(
            "extra-axes",
            "The values are right, but axes were added for broadcasting: return (B, T, S).",
            lambda src, tgt, pad: (src != pad)[:, None, None, :],
        ),
        Mistake(
            "source-mask-only",
            "This is the (B, S) mask of the source: every target place needs its row, (B, T, S).",
            lambda src, tgt, pad: src != pad,
        ),
        Mistake(
            "source-against-source",
            "This is the mask of the source looking at itself, (B, S, S): here target places look.",
            lambda src, tgt, pad: _cross(src, src, pad),
        ),
        Mistake(
            "everything-allowed",
            "Everything is True: padding of the source must not be looked at.",
            lambda src, tgt, pad: torch.ones_like(_cross(src, tgt, pad)),
        ),
        Mistake(
            "first-row-for-all",
            _FIRST_ROW,
            lambda src, tgt, pad: _cross(src, tgt, pad)[:1].expand(len(src), -1, -1),
        ),
        Mistake(
            "same-token",
            "This compares tokens of source and target: only padding matters, not which words they are.",
            lambda src, tgt, pad: src[:, None, :] == tgt[:, :, None],
        ),
    ),
)
EXERCISES = (CAUSAL_MASK, PADDING_MASK, CROSS_ATTENTION_MASK)
