"""What an exercise is: its rule, the inputs it is tried on, the right answer and the known wrong ones."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from tinytx_course.exercises.card import Part
from tinytx_course.exercises.catalogue import Function, Mistake, read_catalogue
from tinytx_course.exercises.comparing import Reader
from tinytx_course.exercises.observation import Call, Observation

_TEXTS = tomllib.loads(files(__package__).joinpath("texts.toml").read_text(encoding="utf-8"))


def _of_the_file(*arguments: Any) -> Any:
    """Stand for what comes from the file of an exercise."""


@dataclass(frozen=True)
class Exercise:
    """An exercise with its checker; what is not a parameter comes from the file of its name, see `catalogue`.

    Attributes
    ----------
    name : str
        Of the function to write.
    read : callable
        Reads a result.
    calls : callable
        From a seed to the calls, the smallest first. The judge makes them again, so they must depend on
        nothing else.
    solve : callable
        The right answer, that of the file.
    mistakes : sequence of Mistake
        The commonest first: those given here, then those of the file.
    in_python : mapping
        From the slug of a mistake that no text can say to one or several functions that make it.
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
        A further call that cannot fail the exercise.
    answers : tuple of callable
        Ready-made answers, besides `solve` and functions of the package with the name of the exercise: a
        function that only passes on to one is refused.
    hint : callable, optional
        From the observation of `probe` to a remark for those who passed, or to an empty text.
    signature : str
        ``name(parameter, ...)``.
    lesson : int
        Number of the lesson with the exercise.
    section : str
        Heading of that lesson which explains it.
    rule : str
        What to return, in one sentence.
    puzzle : mapping
        The table of its Parsons problem; empty where it has none.
    """

    name: str
    read: Reader
    calls: Callable[[int], Iterable[Call]]
    solve: Function = _of_the_file
    mistakes: Sequence[Mistake] = field(default=(), repr=False)
    in_python: Mapping[str, Function | tuple[Function, ...]] = field(default_factory=dict, repr=False)
    view: Callable[[tuple[Any, ...], Tensor], Tensor] | None = None
    judge: Function | None = None
    recognise: Callable[..., Mistake | None] | None = None
    explain: Callable[..., list[Part]] | None = None
    probe: Call | None = None
    answers: tuple[Function, ...] = field(default=(), repr=False)
    hint: Callable[[Observation], str] | None = None
    signature: str = field(init=False)
    lesson: int = field(init=False)
    section: str = field(init=False)
    rule: str = field(init=False)
    puzzle: Mapping[str, Any] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.solve is _of_the_file:
            about = vars(read_catalogue(self.name, self.in_python))
            about["mistakes"] = (*self.mistakes, *about["mistakes"])
        else:
            about = {name: _TEXTS[self.name][name] for name in ("signature", "lesson", "section", "rule")}
        for name, value in about.items():
            object.__setattr__(self, name, value)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        inner = self.signature[self.signature.index("(") + 1 : -1]
        return tuple(name.strip() for name in inner.split(","))


def mistakes(
    table: str,
    wrong: Mapping[str, Function | tuple[Function, ...]] | None = None,
    with_slips: Function | tuple[Function, ...] = (),
    exclusive: Iterable[Iterable[str]] = (),
    together: Iterable[str] = (),
) -> tuple[Mistake, ...]:
    """Mistakes of a table in ``texts.toml``, in its order: each alone, then pairs of slips.

    Parameters
    ----------
    table : str
        Usually the name of the exercise.
    wrong : mapping
        From a slug to one or several implementations that make this mistake.
    with_slips : callable or tuple of these
        Make the other mistakes: each takes the arguments of the exercise and ``slips``, a frozenset of slugs.
    exclusive : iterable of groups of slugs
        Slips of one group exclude each other.
    together : slugs
        Slips that often come with another one: pairs with these are tried.
    """
    wrong, often, apart = wrong or {}, set(together), [set(group) for group in exclusive]
    texts = {slug: text for slugs, text in _TEXTS[table]["mistakes"].items() for slug in slugs.split()}
    if unknown := wrong.keys() - texts.keys():
        raise ValueError(f"a mistake must be in the table {table!r} of texts.toml, got {sorted(unknown)}")

    def slipping(*slugs: str) -> tuple[Function, ...]:
        return tuple(partial(compute, slips=frozenset(slugs)) for compute in _several(with_slips))

    found = []
    for slug, text in texts.items():
        mistake = Mistake(slug, *([text] if isinstance(text, str) else text))
        ways = _several(wrong[slug]) if slug in wrong else slipping(slug)
        found.append(replace(mistake, wrongs=ways))
    for one, other in combinations([mistake for mistake in found if mistake.slug not in wrong], 2):
        pair = {one.slug, other.slug}
        if pair & often and not any(pair <= group for group in apart):
            slug, words = f"{one.slug}+{other.slug}", f"Two things at once. {one.words} And: {other.words}"
            found.append(Mistake(slug, words, one.section, one.lesson, slipping(*pair)))
    return tuple(found)


def _several(functions: Function | tuple[Function, ...]) -> tuple[Function, ...]:
    return functions if isinstance(functions, tuple) else (functions,)


def chosen(table: Mapping[str, Any], slips: frozenset[str], right: Any) -> Any:
    """The first entry of a table whose slug is among the slips, or else what is right."""
    return next((entry for slug, entry in table.items() if slug in slips), right)


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
