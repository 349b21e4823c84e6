"""What an exercise is: its rule, the inputs it is tried on, the right answer and the known wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tinytx_course.exercises.card import Part
from tinytx_course.exercises.catalogue import Function, Mistake, Program, read_catalogue
from tinytx_course.exercises.comparing import Reader
from tinytx_course.exercises.observation import Call, Observation
from tinytx_course.exercises.statement import Statement


@dataclass(frozen=True, eq=False)
class Exercise:
    """An exercise with its checker; what is no parameter comes from the file of its name, see `catalogue`."""

    name: str  # of the function to write
    read: Reader  # reads a result
    #: The smallest first. The judge makes them again, so they must depend on the seed alone.
    calls: Callable[[int], Iterable[Call]]
    #: The commonest first: those given here, then those of the file.
    mistakes: Sequence[Mistake] = field(default=(), repr=False)
    #: From exercise, trials and repeats to a Verdict, in place of a comparison, where results are random.
    judge: Function | None = None
    #: From trials to a Mistake, where none of `mistakes` agrees.
    recognise: Callable[..., Mistake | None] | None = None
    explain: Callable[..., list[Part]] | None = None  # from a trial to more about the difference
    probe: Call | None = None  # a further call that cannot fail the exercise
    #: Ready-made, besides `solve` and functions of the package with its name: who only passes on is refused.
    answers: tuple[Function, ...] = field(default=(), repr=False)
    #: From the observation of `probe` to a remark for those who passed, or to an empty text.
    hint: Callable[[Observation], str] | None = None
    solve: Program = field(init=False)  # the right answer
    signature: str = field(init=False)  # ``name(parameter, ...)``
    lesson: int = field(init=False)  # with the exercise
    section: str = field(init=False)  # the heading of that lesson which explains it
    rule: str = field(init=False)  # what to return, in one sentence
    statement: Statement = field(init=False, repr=False)  # what its lesson asks
    puzzle: Mapping[str, Any] = field(init=False, repr=False)  # its Parsons problem; empty where it has none

    def __post_init__(self) -> None:
        about = read_catalogue(self.name)
        for name, value in (about | {"mistakes": (*self.mistakes, *about["mistakes"])}).items():
            object.__setattr__(self, name, value)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        inner = self.signature[self.signature.index("(") + 1 : -1]
        return tuple(name.strip() for name in inner.split(","))

    @property
    def stub(self) -> str:
        """The lines that a learner begins with."""
        return f"def {self.signature}:\n    ..."


def generator(seed: int, salt: int = 0) -> torch.Generator:
    """A random generator on the CPU of its own; the global one is left alone."""
    return torch.Generator("cpu").manual_seed(1_000_003 * salt + seed)


def normal(rng: torch.Generator, *shape: int) -> Tensor:
    """Normal numbers in float32 on the CPU, whatever the defaults are."""
    return torch.randn(shape, generator=rng, dtype=torch.float32, device="cpu")


def mixed(state: int) -> int:
    """Scramble 64 bits (splitmix64), the same with every version of every library."""
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
    return state ^ (state >> 31)
