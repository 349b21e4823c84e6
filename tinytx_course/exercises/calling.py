"""Call a learner's function: whatever it does becomes an outcome, never an exception."""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import io
import linecache
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tinytx_course.exercises.limits import TimeUp, call_within

_KEPT_OUTPUT = 2_000  # characters of what a function prints


@dataclass(frozen=True)
class Trouble:
    """Why there is no result to compare.

    Attributes
    ----------
    slug : str or None
        Name of the mistake.
    text : str
        What happened, in plain words.
    attempted : bool
        False where nothing has been written yet.
    """

    slug: str | None
    text: str
    attempted: bool = True


@dataclass(frozen=True)
class Outcome:
    """What came of one call: a value, or a trouble, and what was printed meanwhile."""

    value: Any = None
    trouble: Trouble | None = None
    printed: str = ""


class _Printed(io.StringIO):
    """Keeps the beginning of what is printed, however much it is."""

    def write(self, text: str) -> int:
        room = _KEPT_OUTPUT - self.tell()
        if room > 0:
            super().write(str(text)[:room])
        return len(text)


@contextlib.contextmanager
def _screen_captured() -> Iterator[_Printed]:
    printed = _Printed()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        yield printed


def refuse(function: Any, parameters: Sequence[str]) -> Trouble | None:
    """Say why something cannot be called as the exercise asks, or None if it can."""
    if function is None or function is Ellipsis:
        return Trouble(None, "There is nothing to check yet.", attempted=False)
    if not callable(function):
        return Trouble(
            "not-a-function",
            f"The second argument must be your function itself, without calling it; got {kind_of(function)}.",
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None  # some built-in and compiled functions do not tell
    names = list(signature.parameters)
    if set(parameters) <= set(names) and [name for name in names if name in parameters] != list(parameters):
        return Trouble(
            "parameter-order",
            f"The parameters stand in this order: ({', '.join(parameters)}); yours are ({', '.join(names)}).",
        )
    if _by_name(signature, parameters) is None:
        return Trouble(
            "wrong-parameters",
            f"The function is called with ({', '.join(parameters)}); yours takes ({', '.join(names)}).",
        )
    return None


def _by_name(signature: inspect.Signature, parameters: Sequence[str]) -> set[str] | None:
    """Parameters to hand over by name, since they can be had in no other way; None if it fits in no way."""
    only = {p.name for p in signature.parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY}
    by_name = only & set(parameters)
    try:
        signature.bind(*(name for name in parameters if name not in by_name), **dict.fromkeys(by_name))
    except TypeError:
        return None
    return by_name


def call(function: Any, parameters: Sequence[str], arguments: Sequence[Any], seconds: float) -> Outcome:
    """Call a function, positionally where that is possible, and catch all that may happen."""
    try:
        by_name = _by_name(inspect.signature(function), parameters) or set()
    except (TypeError, ValueError):
        by_name = set()
    named = dict(zip(parameters, arguments, strict=True))
    keywords = {name: named.pop(name) for name in by_name}
    with _screen_captured() as printed:
        value, error = call_within(seconds, function, *named.values(), **keywords)
        if error is not None:
            # What an exception says is the learner's code too.
            trouble, failed = call_within(1.0, _trouble_of, error, function, seconds)
            if failed is not None:
                trouble = Trouble("error", f"The function stopped with {type(error).__name__}.")
        else:
            value, trouble = _plain_value(value, function)
    return Outcome(value, trouble, printed.getvalue())


def _trouble_of(error: BaseException, function: Any, seconds: float) -> Trouble:
    where = _learners_line(error, function)
    if isinstance(error, TimeUp):
        return Trouble(
            "time-limit", f"The function was still running after {seconds:.2g} s and was stopped{where}."
        )
    if isinstance(error, NotImplementedError) and not str(error).strip():
        return Trouble(None, "There is nothing here yet.", attempted=False)
    last_line = traceback.format_exception_only(error)[-1].strip()
    if "ellipsis" in last_line.lower():
        return Trouble(None, f"There is still a `...` to fill in ({last_line}{where}).", attempted=False)
    if isinstance(error, RecursionError):
        return Trouble("endless-recursion", f"The function calls itself without end: {last_line}{where}.")
    if isinstance(error, KeyboardInterrupt):
        return Trouble("interrupted", f"The check was interrupted{where}.")
    return Trouble("error", f"The function stopped with an error: {last_line[:500]}{where}.")


def _learners_line(error: BaseException, function: Any) -> str:
    """Where in the learner's own code it happened: the deepest line of their file or cell."""
    home = code_of(function)
    frames = [(f.f_code.co_filename, line) for f, line in traceback.walk_tb(error.__traceback__)]
    own = [(name, line) for name, line in frames if home is not None and name == home.co_filename]
    if not own:
        return ""
    name, line = own[-1]
    text = linecache.getline(name, line).strip()
    return f", in your line {line}" + (f": `{text}`" if text else "")


def code_of(function: Any) -> Any:
    """Code object behind a function, method, partial, module or other callable; None where there is none."""
    for _ in range(10):
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif hasattr(function, "__code__"):
            return function.__code__
        elif hasattr(function, "forward"):
            function = function.forward
        elif hasattr(function, "__func__"):
            function = function.__func__
        elif callable(function) and not isinstance(function, type):
            function = type(function).__call__
        else:
            return None
    return None


def _plain_value(value: Any, function: Any) -> tuple[Any, Trouble | None]:
    if inspect.iscoroutine(value) or inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        return None, Trouble("async", "The function is asynchronous: write `def`, not `async def`.")
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return None, Trouble("yields", "The function yields: hand the whole result back with `return`.")
    if isinstance(value, (tuple, list)) and value and all(item is Ellipsis or item is None for item in value):
        value = value[0]
    if value is Ellipsis or value is NotImplemented:
        return None, Trouble(None, "There is nothing here yet.", attempted=False)
    if value is None:
        if _does_something(function):
            words = "The function computes something and returns None: its last line should `return` it."
            return None, Trouble("nothing-returned", words)
        return None, Trouble(None, "There is nothing here yet.", attempted=False)
    return value, None


_WORK = ("BINARY", "CALL", "COMPARE", "STORE_SUBSCR", "FOR_ITER")


def _does_something(function: Any) -> bool:
    """Whether there is more to a function than a stub: it computes, and no `...` is left in it."""
    code = code_of(function)
    if code is None:
        return False
    try:
        source = inspect.getsource(code)
    except (OSError, TypeError):
        source = ""
    steps = list(dis.get_instructions(code))
    prints = sum(step.argval == "print" for step in steps)
    return "..." not in source and sum(step.opname.startswith(_WORK) for step in steps) > prints


def kind_of(value: Any) -> str:
    """What something is, with its article."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def quoted(printed: str, lines: int = 3) -> str:
    """The first lines of what was printed."""
    kept = [line[:100] for line in printed.strip().splitlines()]
    more = ["..."] if len(kept) > lines else []
    return "\n".join(f"  | {line}" for line in kept[:lines] + more)
