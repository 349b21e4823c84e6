"""Does a prediction of the course come out the same with other seeds, and with one thread and two?

Of each lesson the statements are run that its outcomes follow from, and no others, once for each seed and
number of threads. Seed 0 leaves all seeds of the lesson as they are; others move them all. What decides may
be a machine's speed: then `course.resolve` is given a range, and the outcome may be open.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

import pandas as pd
import torch

from experiments.harness import Record, Records, Settings, digest_of
from experiments.lesson_cells import code_cells, run_statements, statements_of
from tinytx_course.grading.slicing import Statement, names_changed, needed, root_name
from tinytx_course.lessons import project_root, written_lessons
from tinytx_course.progress.predictions import OPEN, OutcomeCard

THREADS = (1, 2)
_CALLS = ("course.predict", "course.resolve")
STEP = 1_000  # between the seeds of two runs
_DRAWN_WITH = ("default_rng", "Random")  # what takes a seed first; torch is seeded in `_moved_seeds`


def predictions(settings: Settings, *, lessons: Sequence[str] | None = None) -> pd.DataFrame:
    """Resolve all predictions of some lessons, named by their two digits, or of all; see `table`."""
    names = lessons or [f"{one.number:02d}" for one in written_lessons(project_root())]
    code = {name: [ast.unparse(one.node) for one in _needed(name)] for name in names if calls_of(name)}
    origins = {name: {"code": digest_of({"code": lines})} for name, lines in code.items()}
    settings.measured(
        "predictions",
        product(origins, settings.seeds(), THREADS),
        "{}/seed {}/threads {}".format,
        lambda lesson, seed, n_threads: origins[lesson],
        outcomes,
        n_threads=1,
    )
    return table(settings.store.data)


def calls_of(lesson: str) -> dict[str, dict[str, Statement]]:
    """By number of a prediction the statements that ask and resolve it."""
    found: dict[str, dict[str, Statement]] = {}
    for one in _statements(lesson):
        call = one.node.value if isinstance(one.node, ast.Expr) else None
        if isinstance(call, ast.Call) and (what := ast.unparse(call.func)) in _CALLS:
            found.setdefault(ast.literal_eval(call.args[0]), {})[what] = one
    return found


@cache
def _statements(lesson: str) -> tuple[Statement, ...]:
    """The statements of a lesson, each knowing what the functions that it calls may change in place.

    A function of the lesson or of its lab may change what it is given, and what it changes outside itself; a
    loop may change what it runs over.
    """
    found, inner = [], dict[str, set[str]]()  # by name of a function, what it changes outside itself
    for one in statements_of(code_cells(lesson)):
        changes = set(one.changes)
        if isinstance(one.node, (ast.FunctionDef, ast.ClassDef)):
            inner[one.node.name] = set().union(*map(names_changed, one.node.body)) & one.calls
        elif isinstance(one.node, ast.ImportFrom) and "labs" in str(one.node.module):
            inner |= {alias.asname or alias.name: set() for alias in one.node.names}
        else:
            for call in (part for part in ast.walk(one.node) if isinstance(part, ast.Call)):
                if (called := root_name(call.func)) in inner:
                    given = {part.id for part in ast.walk(call) if isinstance(part, ast.Name)}
                    changes |= given.union(*(inner.get(name, ()) for name in {called, *given}))
        if isinstance(one.node, ast.For) and changes:
            changes |= {part.id for part in ast.walk(one.node.iter) if isinstance(part, ast.Name)}
        found.append(replace(one, changes=frozenset(changes - inner.keys())))
    return tuple(found)


def _needed(lesson: str) -> list[Statement]:
    """The statements that the outcomes follow from, and those that ask and resolve, in the lesson's order.

    Where torch is given a seed, all that is drawn later follows from it, and from its number of threads.
    """
    every = _statements(lesson)
    said = ("torch.manual_seed", "torch.set_num_threads")
    set_up = [
        one for one in every if one.reads == {"torch"} and any(name in ast.unparse(one.node) for name in said)
    ]
    chosen = set[tuple[int, int]]()
    for call in (*set_up, *(call for calls in calls_of(lesson).values() for call in calls.values())):
        before = [one for one in every if (one.cell, one.index) < (call.cell, call.index)]
        needs = needed(before, [], call.reads | call.calls)
        chosen |= {(one.cell, one.index) for one in [*needs, call]}
    return [one for one in every if (one.cell, one.index) in chosen]


def outcomes(lesson: str, seed: int, n_threads: int) -> Record:
    """The answer to each prediction of a lesson, on so many threads unless it says itself.

    An answer is None where its statement failed; `problem` then names the first one that did.
    """
    pairs = [(number, one) for number, calls in calls_of(lesson).items() for one in calls.values()]
    asking = {(one.cell, one.index): number for number, one in pairs}
    answers, problem = dict[str, str | None](), ""
    space = types.ModuleType("__main__")
    space.__dict__["display"] = lambda *_: None
    torch.set_num_threads(n_threads)
    with _moved_seeds(seed * STEP), contextlib.redirect_stdout(io.StringIO()):
        for one in _needed(lesson):
            node = _MovedSeeds(seed * STEP).visit(copy.deepcopy(one.node))
            number = asking.get((one.cell, one.index))
            try:
                if number is None:
                    run_statements([replace(one, node=node)], space)
                    continue
                code = compile(ast.Expression(node.value), f"<code cell {one.cell}>", "eval")
                card = eval(code, space.__dict__)
                answers[number] = card.answer if isinstance(card, OutcomeCard) else None
            except Exception as error:
                problem = problem or f"code cell {one.cell}: {type(error).__name__}: {error}"[:300]
    return {"lesson": lesson, "seed": seed, "threads": n_threads, "answers": answers, "problem": problem}


def table(records: Records) -> pd.DataFrame:
    """How often each prediction came out in the same way.

    Returns
    -------
    DataFrame
        Columns `number`, ``n`` runs, the most frequent ``answer``, ``same``, the share of runs with it,
        ``open``, the share that came out open, and ``problem``, the first one of any run.
    """
    rows = []
    for number in sorted({number for one in records.values() for number in one["answers"]}):
        runs = [one for one in records.values() if number in one["answers"]]
        answers = [one["answers"][number] for one in runs]
        (answer, times), *_ = Counter(answers).most_common()
        row = {"number": number, "n": len(runs), "answer": answer, "same": times / len(runs)}
        problem = next((one["problem"] for one in runs if one["problem"]), "")
        rows.append({**row, "open": answers.count(OPEN) / len(runs), "problem": problem})
    return pd.DataFrame(rows)


class _MovedSeeds(ast.NodeTransformer):
    """Adds a number to each seed that a lesson's own cells name."""

    def __init__(self, by: int) -> None:
        self._by = by

    def _moved(self, seed: ast.expr) -> ast.expr:
        if isinstance(seed, ast.Constant) and not isinstance(seed.value, int):
            return seed
        return ast.copy_location(ast.BinOp(seed, ast.Add(), ast.Constant(self._by)), seed)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        for keyword in node.keywords:
            if keyword.arg == "seed":
                keyword.value = self._moved(keyword.value)
        if node.args and ast.unparse(node.func).split(".")[-1] in _DRAWN_WITH:
            node.args[0] = self._moved(node.args[0])
        return ast.fix_missing_locations(node)


@contextlib.contextmanager
def _moved_seeds(by: int) -> Iterator[None]:
    """Adds a number to each seed that torch is given."""
    before = torch.manual_seed, torch.Generator

    class Generator(torch.Generator):
        def manual_seed(self, seed: int) -> torch.Generator:
            return super().manual_seed(seed + by)

    torch.manual_seed = lambda seed: before[0](seed + by)
    torch.Generator = Generator  # type: ignore[misc]
    try:
        yield
    finally:
        torch.manual_seed, torch.Generator = before  # type: ignore[misc]
