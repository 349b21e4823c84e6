"""What an exercise is: its rule, the inputs it is tried on, the right answer and the known wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from tinytx_course.exercises.card import Part
from tinytx_course.exercises.comparing import Reader
from tinytx_course.exercises.observation import Call, Observation


@dataclass(frozen=True)
class Mistake:
    """A way to get it wrong that people take.

    Attributes
    ----------
    slug : str
        Its stable name.
    words : str
        What was done and what is to be done instead.
    wrong : callable, or a tuple of these
        Small implementations that make it; results equal to those of one of them everywhere are so explained.
    section : str
        Heading to read, in the lesson of the exercise unless `lesson` says otherwise.
    lesson : int or None
        Number of another lesson.
    tolerance : float
        Where rounding weighs more than usual in this mistake.
    """

    slug: str
    words: str
    wrong: Callable[..., Any] | tuple[Callable[..., Any], ...]
    section: str = ""
    lesson: int | None = None
    tolerance: float = 0.0

    @property
    def wrongs(self) -> tuple[Callable[..., Any], ...]:
        """All implementations."""
        return self.wrong if isinstance(self.wrong, tuple) else (self.wrong,)


@dataclass(frozen=True)
class Exercise:
    """An exercise with its checker.

    Attributes
    ----------
    name, signature : str
        Of the function to write; the signature is ``name(parameter, ...)``.
    lesson : int
        Where it stands.
    section : str
        Heading of that lesson which explains it.
    rule : str
        What is to be returned, in one sentence.
    read : callable
        Reads a result.
    solve : callable
        The right answer.
    calls : callable
        From a seed to the calls, the smallest first. The judge makes them again, so they must depend on
        nothing else.
    mistakes : sequence of Mistake
        The commonest first.
    view : callable, optional
        From arguments and a tensor to what is compared, where several answers are right.
    judge : callable, optional
        From the exercise, its trials and their repeats to a Verdict; in place of a comparison, where results
        are random.
    recognise : callable, optional
        From trials to a Mistake, where none of `mistakes` agrees.
    explain : callable, optional
        From a trial to paragraphs that say more about the difference.
    probe : Call, optional
        A further call that fails nobody.
    hint : callable, optional
        From the observation of `probe` to a remark for those who passed, or to an empty text.
    """

    name: str
    signature: str
    lesson: int
    section: str
    rule: str
    read: Reader
    solve: Callable[..., Any]
    calls: Callable[[int], Iterable[Call]]
    mistakes: Sequence[Mistake] = field(default=(), repr=False)
    view: Callable[[tuple[Any, ...], Tensor], Tensor] | None = None
    judge: Callable[..., Any] | None = None
    recognise: Callable[..., Mistake | None] | None = None
    explain: Callable[..., list[Part]] | None = None
    probe: Call | None = None
    hint: Callable[[Observation], str] | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        inner = self.signature[self.signature.index("(") + 1 : -1]
        return tuple(name.strip() for name in inner.split(","))


def family(
    compute: Callable[..., Any],
    slips: Mapping[str, tuple[str, str]],
    exclusive: Iterable[Iterable[str]] = (),
    together: Iterable[str] = (),
) -> tuple[Mistake, ...]:
    """Mistakes of one implementation that can make several slips: each alone, then pairs.

    Parameters
    ----------
    compute : callable
        Takes the arguments of the exercise and ``slips``, a frozenset of slugs.
    slips : mapping
        From slug to words and section, the commonest first.
    exclusive : iterable of groups of slugs
        Slips of one group do not go together.
    together : slugs
        Slips that often come with another one: pairs with these are tried.
    """
    often = set(together)
    apart = [frozenset(group) for group in exclusive]
    found = [
        Mistake(slug, words, partial(compute, slips=frozenset({slug})), section)
        for slug, (words, section) in slips.items()
    ]
    for one, other in combinations(slips, 2):
        if not often & {one, other} or any({one, other} <= group for group in apart):
            continue
        words = f"Two things at once. {slips[one][0]} And: {slips[other][0]}"
        both = partial(compute, slips=frozenset({one, other}))
        found.append(Mistake(f"{one}+{other}", words, both, slips[one][1]))
    return tuple(found)


def generator(seed: int, salt: int = 0) -> torch.Generator:
    """A random generator on the CPU of its own; the global one is left alone."""
    return torch.Generator("cpu").manual_seed(1_000_003 * salt + seed)


def normal(rng: torch.Generator, *shape: int) -> Tensor:
    """Normal numbers in float32 on the CPU, whatever the defaults are."""
    return torch.randn(shape, generator=rng, dtype=torch.float32, device="cpu")
