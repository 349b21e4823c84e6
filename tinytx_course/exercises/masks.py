"""Exercises on masks, causal, with a window, padding, of cross-attention, and on the test for leaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tinytx.masks import causal_mask
from tinytx_course.exercises.comparing import boolean, truth
from tinytx_course.exercises.exercise import Exercise, generator, normal
from tinytx_course.exercises.observation import Call

Model = Callable[[Tensor], Tensor]  # from inputs (T, D) to outputs (T, ...)


def _causal_calls(seed: int) -> Iterator[Call]:
    for seq_len in (1, 2, 3, 5 + seed % 3, 9):
        yield Call((seq_len,))


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
    yield Call((torch.tensor([[373, 11, 50_256], [0, 50_256, 50_256]], device="cpu"), 50_256))


def _cross_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 2)
    yield Call((torch.tensor([[4, 2]], device="cpu"), torch.tensor([[5]], device="cpu"), 2))
    yield Call((_padded(rng, [3], 1, 9), _padded(rng, [2], 1, 9), 1))
    yield Call((_padded(rng, [3, 2], 4, 9), _padded(rng, [1, 3], 4, 9), 4))
    yield Call((_padded(rng, [2, 5, 1], 6, 9), _padded(rng, [3, 1, 2], 6, 9), 6))
    yield Call((_padded(rng, [2, 3], 0, 9), _padded(rng, [4, 2], 0, 9), 0))


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


def _plus_and_minus(x: Tensor) -> Tensor:
    """Each output holds the first number of the last token, plus and minus: their sum is 0."""
    return torch.stack((x[-1:, 0], -x[-1:, 0]), dim=1).expand(len(x), -1)


def _second_number_leaks(x: Tensor) -> Tensor:
    """Each output holds its own first number, and the second one of the last token."""
    return torch.stack((x[:, 0], x[-1:, 1].expand(len(x))), dim=1)


def _normed_sum(x: Tensor) -> Tensor:
    """The sum of all inputs, each less the mean of its two numbers: what is added to both of them is gone."""
    half = (x[:, 0] - x[:, 1]).sum() / 2
    return torch.stack((half, -half)).expand(len(x), -1)


def _leak_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 17)

    def case(model: Model, given: int | list[list[float]], words: str) -> Call:
        x = normal(rng, given, 2).round(decimals=1) if isinstance(given, int) else torch.tensor(given)
        return Call((model, x.masked_fill(x == 0, 0.5) if given == len(x) else x), f"The model: {words}.")

    def some(seq_len: int, *pairs: tuple[int, int], weight: float = 0.5) -> Tensor:
        weights = torch.eye(seq_len, device="cpu")
        for t, s in pairs:
            weights[t, s] = weight
        return weights

    def before(seq_len: int) -> Tensor:
        return torch.eye(seq_len, device="cpu").roll(-1, 1).tril()

    n, a_little = 4 + seed % 3, _mix(some(4, (1, 2), weight=5e-6))
    yield case(torch.clone, 2, "output t is input t")  # not by a product, which passes NaN on
    yield case(_mix(some(2, (0, 1))), 2, "output 0 reads inputs 0 and 1, output 1 reads input 1")
    yield case(_mix(before(2)), 2, "output 0 is zero, output 1 is input 0")
    yield case(_mix(0 * before(2)), 2, "every output is zero")
    yield case(_attend(3), 3, "attention with a causal mask")
    yield case(_mix(before(3)), 3, "output 0 is zero, output t is input t - 1")
    yield case(_mix(some(3, (0, 2))), 3, "output 0 reads inputs 0 and 2, every other output its own input")
    yield case(_mix(some(3, (0, 2), (1, 2))), 3, "outputs 0 and 1 read their own input and input 2")
    yield case(_mix(some(4, (0, 1))), 4, "output 0 reads inputs 0 and 1, every other output its own input")
    yield case(_mix(some(4, (2, 3))), 4, "output 2 reads inputs 2 and 3, every other output its own input")
    words = "output 0 reads inputs 0 and 1, every other output its own input"
    yield case(_mix(some(3, (0, 1))), [[1.0, 2.0], [0.0, 0.0], [3.0, 4.0]], words)
    yield case(_mix(some(3) * 0 + 1), [[1.0, 1.0]] * 3, "every output is the sum of all inputs")
    words = "every output is its own input, and output 0 is less by half of input 2"
    yield case(_mix(some(3, (0, 2), weight=-0.5)), 3, words)
    halves = [[0.5, 1.5], [2.0, -1.0], [-0.5, 3.5]]  # exact, with their means
    yield case(_plus_and_minus, halves, "every output is plus and minus the first number of the last input")
    yield case(_mix(some(4) * 0 + 1), 4, "every output is the sum of all inputs")
    yield case(_second_number_leaks, 4, "the second number of every output is that of the last input")
    words = "a norm subtracts from each input its mean, then every output is the sum of all, without a mask"
    yield case(_normed_sum, halves, words)
    words = "every output is its own input plus 3, and output 1 also reads a little, 0.000005, of input 2"
    yield case(lambda x: 3 + a_little(x), [*halves, [1.5, -2.5]], words)
    words = "output 0 is a billionth of input 2, every other output is zero"
    yield case(_mix(some(3, (0, 2), weight=1e-9).triu(1)), 3, words)
    yield case(_attend(n, zeroed_after=True), n, "attention with weights set to zero after softmax")
    yield case(_attend(n), n, "attention with a causal mask")


def _window_calls(seed: int) -> Iterator[Call]:
    small = ((1, 1, 0), (2, 1, 0), (2, 1, 1), (3, 1, 2), (3, 2, 0), (4, 2, 1), (4, 1, 3), (5, 3, 2))
    for sizes in (*small, (7 + seed % 3, 2, 3), (5, 7, 1), (3, 1, 3)):
        yield Call(sizes)


EXERCISES = (
    Exercise(name="causal_mask", read=boolean, calls=_causal_calls),
    Exercise(name="window_prefix_mask", read=boolean, calls=_window_calls),
    Exercise(name="padding_mask", read=boolean, calls=_padding_calls),
    Exercise(name="cross_attention_mask", read=boolean, calls=_cross_calls),
    Exercise(name="leaks_future", read=truth, calls=_leak_calls),
)
