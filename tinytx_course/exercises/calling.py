"""The learner's half of a check: call a function and record what it does, never an exception."""

from __future__ import annotations

import ast
import contextlib
import copy
import dis
import functools
import inspect
import io
import linecache
import re
import textwrap
import time
import traceback
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tinytx_course import PACKAGES
from tinytx_course.exercises.catalogue import Function
from tinytx_course.exercises.errors import meaning
from tinytx_course.exercises.limits import TimeUp, call_within
from tinytx_course.exercises.observation import Call, Failure, Observation, Record, encode, kind_of, plain
from tinytx_course.exercises.passing_on import is_in_package, passed_on

if TYPE_CHECKING:
    from tinytx_course.exercises.exercise import Exercise

_KEPT_OUTPUT = 2_000  # characters of what a function prints
SLOWER_ELSEWHERE = 5  # times: on a GPU each small operation of a loop is sent there, and waited for
_READING_SECONDS = 2.0  # for looking at a result or an exception, whose methods may be the learner's


def observe(exercise: Exercise, function: Any, seed: int, seconds: float) -> Record:
    """Call a function on the inputs of an exercise, each twice, and record what it does.

    The seconds are those of the processor, for all first calls together, and again for all second ones.
    """
    refusal = refuse(function, exercise.parameters)
    if refusal is not None:
        return Record(refusal=refusal)
    if working_device().type != "cpu":
        seconds *= SLOWER_ELSEWHERE
    with on_cpu():  # as they are judged; `copied` moves them to where the learner works
        calls = tuple(exercise.calls(seed))
    first = _observe_all(function, exercise.parameters, calls, seconds)
    slip, chance = _seen_in_source(function)
    if first[-1].failure is not None and len(first) < len(calls):
        return Record(calls=first, slip=slip, chance=chance)
    repeats = _observe_all(function, exercise.parameters, calls, seconds)
    probe = exercise.probe
    probed = None if probe is None else observe_call(function, exercise.parameters, probe, seconds)
    ready_made = None if first[0].failure else _ready_made(exercise, function, calls[0], seconds)
    remembers = _remembers(function, exercise.parameters, calls, first, seconds)
    return Record(None, first, repeats, probed, ready_made, remembers, slip, chance)


def _observe_all(
    function: Any, parameters: Sequence[str], calls: Sequence[Call], seconds: float
) -> tuple[Observation, ...]:
    observations: list[Observation] = []
    started = time.process_time()
    for call in calls:
        left = max(seconds - (time.process_time() - started), 0.1)
        observations.append(observe_call(function, parameters, call, left))
        failure = observations[-1].failure
        if failure is not None and (
            not failure.attempted or failure.mistake in ("time-limit", "interrupted")
        ):
            break
    return tuple(observations)


def observe_call(function: Any, parameters: Sequence[str], call: Call, seconds: float) -> Observation:
    """Call a function once on copies of the arguments, positionally where that is possible."""
    device = working_device()
    given, before = copied(call.arguments, device), copied(call.arguments, device)
    printed = _Printed()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        value, error = call_within(seconds, _called, function, parameters, given)
        failure = None
        if error is None:
            value, failure = _returned(value, function)
            failure = failure or _another_model(value, parameters, given)
        if error is None and failure is None:
            value, problem = call_within(_READING_SECONDS, plain, value)
            if problem is not None:
                words = f"The result could not be read: {type(problem).__name__}."
                failure = Failure("wrong-type", words)
        if error is not None:  # what an exception says is the learner's code too
            failure, problem = call_within(_READING_SECONDS, _failure_of, error, function, seconds)
            if problem is not None:
                words = f"The function stopped with {type(error).__name__}."
                failure = Failure("error", words)
    changed = () if failure is not None else modified(parameters, given, before)
    return Observation(None if failure is not None else value, failure, printed.getvalue(), changed)


def _called(function: Any, parameters: Sequence[str], given: Sequence[Any]) -> Any:
    """Call a function with arguments by position, and by name where that is the only way."""
    try:
        by_name = _by_name(inspect.signature(function), parameters) or set()
    except (TypeError, ValueError):
        by_name = set()
    named = dict(zip(parameters, given, strict=True))
    keywords = {name: named.pop(name) for name in by_name}
    return function(*named.values(), **keywords)


def working_device() -> torch.device:
    """Where the learner wants to work: the default device."""
    device = torch.get_default_device()
    return torch.device("cpu") if device.type == "meta" else device


def on_cpu() -> contextlib.AbstractContextManager[object]:
    """Where checks make their tensors; a context of torch's, which slows each operation, only if needed."""
    return contextlib.nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu")


def copied(arguments: Sequence[Any], device: torch.device | str = "cpu") -> tuple[Any, ...]:
    """Arguments that may be modified without harm, on a device; an optimizer stays with its model."""
    memo: dict[int, Any] = {}
    return tuple(_copy(argument, device, memo) for argument in arguments)


def _copy(argument: Any, device: torch.device | str, memo: dict[int, Any]) -> Any:
    if isinstance(argument, Tensor):
        return argument.clone().to(device)
    if isinstance(argument, torch.optim.Optimizer):
        return copy.deepcopy(argument, memo)
    if isinstance(argument, nn.Module):
        module = copy.deepcopy(argument, memo)
        for mine, given in zip(module.parameters(), argument.parameters(), strict=True):
            mine.grad = None if given.grad is None else given.grad.clone()  # deepcopy leaves it out
        return module.to(device)
    if isinstance(argument, (list, dict)):
        return argument.copy()
    if not isinstance(argument, torch.Generator):
        return argument
    fresh = torch.Generator(device)
    if fresh.device == argument.device:
        return fresh.set_state(argument.get_state())
    return fresh.manual_seed(argument.initial_seed())  # states of one kind of device fit no other


def modified(names: Sequence[str], given: Sequence[Any], before: Sequence[Any]) -> tuple[str, ...]:
    """Names of the arguments that a function has changed; models and generators are there to be changed."""
    changeable = (torch.Generator, nn.Module, torch.optim.Optimizer)

    def same(now: Any, then: Any) -> bool:
        if isinstance(now, changeable):
            return True
        return torch.equal(now, then) if isinstance(now, Tensor) else now == then

    return tuple(name for name, now, then in zip(names, given, before, strict=True) if not same(now, then))


def is_of_the_package(function: Any) -> bool:
    """Whether a function's code lies in this project: in its packages, or in the solutions of its tests."""
    file = getattr(code_of(function), "co_filename", "")
    return is_in_package(file, (*PACKAGES, "tests"))


def _ready_made(exercise: Exercise, function: Any, call: Call, seconds: float) -> Failure | None:
    """Say so if a function returns what a ready-made answer has made, as it is or as a copy."""
    given = copied(call.arguments, working_device())

    def run() -> str:
        answers: list[Function] = [exercise.solve, *exercise.answers]
        return passed_on(lambda: _called(function, exercise.parameters, given), exercise.name, answers)

    with contextlib.redirect_stdout(_Printed()), contextlib.redirect_stderr(_Printed()):
        whose, error = call_within(seconds, run)
    if error is not None or not whose:
        return None
    words = (
        f"What your function returns comes from `{whose}`, a ready-made answer: write these lines yourself, "
        "and compare outside the function."
    )
    return Failure("calls-the-answer", words)


def _remembers(
    function: Any,
    parameters: Sequence[str],
    calls: Sequence[Call],
    seen: Sequence[Observation],
    seconds: float,
) -> Failure | None:
    """Say so if a call gives another result once what was stored in earlier ones is gone."""
    for store in _stores(function):
        before = copy.copy(store)
        try:
            for call, earlier in zip(calls, seen, strict=True):
                store.clear()
                alone = observe_call(function, parameters, call, seconds)
                if alone.failure is not None or not store:
                    break  # what is never filled is no store: a table of the learner's
                if encode(alone.value) != encode(earlier.value):
                    words = (
                        "It remembers results of an earlier call, and gives another one without them: "
                        "make the list or dict that holds them inside the function, anew in each call."
                    )
                    return Failure("remembers-earlier-calls", words)
        finally:
            store.clear()
            store.extend(before) if isinstance(store, list) else store.update(before)
    return None


def _stores(function: Any) -> list[Any]:
    """Lists, dicts and sets that live on between calls: defaults of a function, and globals it names."""
    if not inspect.isfunction(function):
        return []
    names = [name for code in _codes(function.__code__) for name in code.co_names]
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    found = [*defaults, *(function.__globals__.get(name) for name in names)]
    return list({id(one): one for one in found if isinstance(one, list | dict | set)}.values())


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those defined in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


class _Printed(io.StringIO):
    """Keeps the beginning of what is printed, however much it is."""

    def write(self, text: str) -> int:
        room = _KEPT_OUTPUT - self.tell()
        if room > 0:
            super().write(str(text)[:room])
        return len(text)


def refuse(function: Any, parameters: Sequence[str]) -> Failure | None:
    """Say why something cannot be called as the exercise asks, or None if it can."""
    if function is None or function is Ellipsis:
        return Failure(None, "There is nothing to check yet.", attempted=False)
    if not callable(function):
        words = (
            f"The second argument must be your function itself, without calling it; got {kind_of(function)}."
        )
        return Failure("not-a-function", words)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None  # some built-in and compiled functions do not tell
    names = list(signature.parameters)
    due, yours = f"({', '.join(parameters)})", f"({', '.join(names)})"
    if set(parameters) <= set(names) and [name for name in names if name in parameters] != list(parameters):
        return Failure("parameter-order", f"The parameters come in this order: {due}; yours are {yours}.")
    if _by_name(signature, parameters) is None:
        return Failure("wrong-parameters", f"The function is called with {due}; yours takes {yours}.")
    source, tree = _source(code_of(function))
    source = ast.unparse(tree) or source  # without comments
    empty = re.search(r"Parameter\(\s*torch\.(empty|Tensor)\((?!\[)", source)
    if empty and not re.search(r"init\.|(?<!requires_grad)(?<!_)_\(|\.data\b", source):
        words = f"A parameter made of `torch.{empty[1]}` is not drawn: it holds what was in memory before."
        return Failure("not-drawn", words)
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


def _failure_of(error: BaseException, function: Any, seconds: float) -> Failure:
    where = _learners_line(error, function)
    if isinstance(error, TimeUp):
        words = f"The function was still running after {seconds:.2g} s and was stopped{where}."
        return Failure("time-limit", words)
    if isinstance(error, NotImplementedError) and not str(error).strip():
        return Failure(None, "There is nothing here yet.", attempted=False)
    last_line = traceback.format_exception_only(error)[-1].strip()
    if "ellipsis" in last_line.lower() and "einsum" not in last_line:
        return Failure(None, f"There is still a `...` to fill in ({last_line}{where}).", attempted=False)
    if isinstance(error, RecursionError):
        return Failure("endless-recursion", f"The function calls itself without end: {last_line}{where}.")
    if isinstance(error, KeyboardInterrupt):
        return Failure("interrupted", f"The check was interrupted{where}.")
    words = f"The function stopped with an error: {last_line[:500]}{where}."
    return Failure("error", f"{words} {meaning(last_line + where)}".rstrip())


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


def _returned(value: Any, function: Any) -> tuple[Any, Failure | None]:
    if inspect.iscoroutine(value) or inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        return None, Failure("async", "The function is asynchronous: write `def`, not `async def`.")
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return None, Failure("yields", "The function yields: hand the whole result back with `return`.")
    if isinstance(value, (tuple, list)) and value and all(item is Ellipsis or item is None for item in value):
        value = value[0]
    if value is Ellipsis or value is NotImplemented:
        return None, Failure(None, "There is nothing here yet.", attempted=False)
    if value is None:
        if _does_something(function):
            return None, Failure("nothing-returned", _why_nothing(function))
        return None, Failure(None, "There is nothing here yet.", attempted=False)
    return value, None


def _another_model(value: Any, parameters: Sequence[str], given: Sequence[Any]) -> Failure | None:
    """Say so where a model comes back that is not the one that was given, but of its kind."""
    results = value if isinstance(value, (tuple, list)) else [value]
    for name, model in zip(parameters, given, strict=True):
        alike = [one for one in results if isinstance(model, nn.Module) and type(one) is type(model)]
        if alike and all(one is not model for one in alike):
            words = f"Another model comes back than the one given: change `{name}` itself, and return it."
            return Failure("copy-returned", words)
    return None


_WORK = ("BINARY", "CALL", "COMPARE", "STORE_SUBSCR", "FOR_ITER")


def _does_something(function: Any) -> bool:
    """Whether there is more to a function than a stub: it computes, and no `...` is left in it."""
    code = code_of(function)
    if code is None:
        return False
    steps = list(dis.get_instructions(code))
    prints = sum(step.argval == "print" for step in steps)
    return not _has_dots(code) and sum(step.opname.startswith(_WORK) for step in steps) > prints


def _source(code: Any) -> tuple[str, ast.Module]:
    """The source of a code object, and as a tree: empty where it is none, or a part of a statement."""
    file, first = (code.co_filename, code.co_firstlineno) if code else ("", 1)
    linecache.checkcache(file)  # a file may have been edited
    return _first_block(tuple(linecache.getlines(file)[first - 1 :]))


@functools.lru_cache(maxsize=1)
def _first_block(lines: tuple[str, ...]) -> tuple[str, ast.Module]:
    """What `inspect.getsource` finds, which looks through all modules first; and as a tree."""
    source = ""
    with contextlib.suppress(Exception):
        source = textwrap.dedent("".join(inspect.getblock(lines)))
        return source, ast.parse(source)
    return source, ast.Module([], [])


def _why_nothing(function: Any) -> str:
    """Why a function that computes something returns None."""
    _, tree = _source(code_of(function))
    own = next((node for node in tree.body if isinstance(node, ast.FunctionDef)), tree)
    inner = [node for node in ast.walk(own) if isinstance(node, ast.FunctionDef) and node is not own]
    others = {id(node) for function in inner for node in ast.walk(function)}
    returns = [node for node in ast.walk(own) if isinstance(node, ast.Return) and id(node) not in others]
    bare = [node for node in returns if node.value is None or ast.unparse(node.value) == "None"]
    is_lambda = getattr(code_of(function), "co_name", "") == "<lambda>"
    if len(bare) == len(returns) and not is_lambda:
        return "The function computes something and returns None: its last line should `return` it."
    if is_lambda or own.body[-1] in returns and not bare:
        return "What the last line returns is None: `print`, and methods such as `append`, give nothing back."
    if bare:
        return "For this input a `return` is reached that gives nothing back: say what is due in this case."
    return (
        "For this input no `return` is reached: it stands inside a loop or an `if`. Move it out, or add one "
        "for this case."
    )


def _seen_in_source(function: Any) -> tuple[Failure | None, str]:
    """A slip that may explain wrong results, and what makes results change."""
    code = code_of(function)
    source, tree = _source(code)
    source = ast.unparse(tree) or source  # without comments
    slip, chance = None, ""
    outside = getattr(function, "__globals__", {})
    steps = dis.get_instructions(code) if code else ()
    read = dict.fromkeys(step.argval for step in steps if step.opname == "LOAD_GLOBAL")
    sizes = [name for name in read if type(outside.get(name)) in (int, Tensor)]
    if power := re.search(r"\*\* ?(1|-1|\(-1\)) ?/ ?2\b", source):
        sign = "-" * ("-" in power[1])
        words = f"`a ** {sign}1/2` is `(a ** {sign}1) / 2`: write `a ** {sign}0.5`."
        slip = Failure("power-before-division", words)
    elif sizes:
        names = "`, `".join(sizes)
        words = f"The function takes `{names}` from outside: if that is a size, take it from the arguments."
        slip = Failure("from-outside", words)
    if "nn.Linear(" in source:
        chance = "`nn.Linear` draws a weight and a bias of its own: keep those that are given."
    elif empty := re.search(r"torch\.(empty|Tensor)\(", source):
        chance = f"`torch.{empty[1]}` draws nothing: it holds what was in memory."
    return slip, chance


def _has_dots(code: Any) -> bool:
    """Whether a `...` is left to fill in; one that indexes a tensor is not."""
    source, tree = _source(code)
    if not tree.body:
        return "..." in source
    slices = [node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
    indices = {id(inner) for each in slices for inner in ast.walk(each)}
    return any(isinstance(node, ast.Constant) and node.value is ... and id(node) not in indices
               for node in ast.walk(tree))  # fmt: skip
