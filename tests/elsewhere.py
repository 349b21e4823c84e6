"""A device of its own: tensors "elsewhere" compute on the CPU, and refuse to meet tensors that stayed there.

``python -m tests.elsewhere 02 08 commands gpu`` runs lessons, and the commands, with models that live there,
and the tests of a GPU.

What assumes a CPU fails here as it fails on a GPU: ``numpy()`` of what a model gave, an operation with an
operand on each side, random numbers from a generator of the CPU. What else a GPU does, its speed, its memory,
its rounding, is not pretended.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

NAME = "elsewhere"
CPU = torch.device("cpu")
aten = torch.ops.aten
MOVES = (aten.copy_, aten._to_copy, aten._foreach_copy_)  # from one device to the other
READS = (aten._local_scalar_dense, aten.is_nonzero, aten.equal, aten.nonzero, aten.masked_select)
INDEXES = (aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_)  # by indices of the CPU, too


class Elsewhere(Tensor):
    """A tensor of the other device; its `numbers` lie on the CPU."""

    numbers: Tensor
    n_computed = 0  # operations of this process
    may_wait = True  # whether Python may wait until a GPU has computed all before

    @staticmethod
    def __new__(cls, numbers: Tensor) -> Elsewhere:
        return torch.Tensor._make_wrapper_subclass(
            cls,
            numbers.size(),
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            layout=numbers.layout,
            device=torch.device(NAME, 0),
        )

    def __init__(self, numbers: Tensor) -> None:
        self.numbers = numbers

    def __repr__(self, **_: Any) -> str:
        return repr(self.numbers)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copied = memo[id(self)] = Elsewhere(self.numbers.clone())
        return nn.Parameter(copied, self.requires_grad) if isinstance(self, nn.Parameter) else copied

    def __format__(self, spec: str) -> str:
        return format(self.numbers, spec)

    def data_ptr(self) -> int:
        """Where the numbers lie: tensors that share them share this, too."""
        return self.numbers.data_ptr()

    def tolist(self) -> Any:
        """The numbers, as torch gives them of any device."""
        if not Elsewhere.may_wait:
            raise RuntimeError("tolist makes Python wait")
        return self.numbers.tolist()

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Elsewhere.n_computed += 1
        kwargs = dict(kwargs or {})
        if func.overloadpacket is aten._fused_sdp_choice:
            return 0  # plain products: fused attention has another operation for each device
        device = kwargs.get("device")
        leaves, tree = tree_flatten((args, kwargs))
        if not Elsewhere.may_wait and _waits(func, leaves, args):
            raise RuntimeError(f"{func} makes Python wait")
        _check_one_device(func, leaves)
        given_args, given_kwargs = tree_unflatten([_on_cpu(leaf) for leaf in leaves], tree)
        found = func(*given_args, **given_kwargs)
        if device is not None and device.type == "cpu":
            return found
        found = tree_map(lambda one: cls(one) if type(one) is Tensor else one, found)
        return return_and_correct_aliasing(func, args, kwargs, found)


def _on_cpu(leaf: Any) -> Any:
    if isinstance(leaf, Elsewhere):
        return leaf.numbers
    return CPU if isinstance(leaf, torch.device) else leaf


def _waits(func: Any, leaves: list[Any], args: Any) -> bool:
    """Whether a GPU makes Python wait: numbers are read, or counted to know a shape, or copied at once."""
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    if func.overloadpacket in INDEXES:
        return any(one.dtype == torch.bool for one in tree_flatten(args[1])[0] if isinstance(one, Tensor))
    if func.overloadpacket is aten.copy_:
        return len({type(one) for one in tensors}) > 1 and not (len(args) > 2 and args[2])
    return func.overloadpacket in READS or CPU in leaves


def _check_one_device(func: Any, leaves: list[Any]) -> None:
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    behind = [one for one in tensors if not isinstance(one, Elsewhere) and one.dim()]
    if func.overloadpacket in INDEXES and isinstance(tensors[0], Elsewhere):
        behind = [one for one in behind if one.is_floating_point()]
    if behind and func.overloadpacket not in MOVES:
        raise RuntimeError(f"{func} expected all tensors to be on the same device, got {NAME} and cpu")


class _Generator(torch.Generator):
    """A generator of any device; that of the other one draws on the CPU."""

    lies_on = CPU

    def __new__(cls, device: Any = "cpu") -> _Generator:
        lies_on = torch.device(device)
        made = super().__new__(cls, CPU if lies_on.type == NAME else lies_on)
        made.lies_on = lies_on
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """Where it is to draw."""
        return self.lies_on


class _Factories(TorchFunctionMode):
    """``torch.zeros(..., device="elsewhere")`` and the like."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        device, generator = kwargs.get("device"), kwargs.get("generator")
        draws_here = isinstance(generator, _Generator) and generator.lies_on == CPU  # below: a plain one
        if draws_here and any(isinstance(leaf, Elsewhere) for leaf in args):
            raise RuntimeError(f"{func} expected a {NAME!r} device type for generator, got 'cpu'")
        if device is None or func not in _device_constructors() or torch.device(device).type != NAME:
            return func(*args, **kwargs)
        made = func(*args, **{**kwargs, "device": CPU})
        return Elsewhere(made.detach()).requires_grad_(made.requires_grad)


class _Module(backend_registration._DummyBackendModule):
    """What torch asks a device for: precisions that autocast may take, the state of random numbers."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]

    def get_rng_state(self, device: Any = None) -> Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        torch.set_rng_state(state)


def _empty(op: Any, *args: Any, **kwargs: Any) -> Tensor:
    """What moving a tensor here asks for first: an empty one."""
    return Elsewhere(op(*args, **{**kwargs, "device": CPU, "pin_memory": None}))


def install() -> None:
    """Have the device ``elsewhere`` from now on, in this process."""
    if _kept:
        return
    backend_registration._setup_privateuseone_for_python_backend(NAME, _Module())
    library = torch.library.Library("_", "IMPL")
    library.fallback(_empty, "PrivateUse1")
    library.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")  # computes in float32
    torch.__future__.set_swap_module_params_on_conversion(True)  # one weight may be in two modules
    # views that a wrapper makes have no version in inference mode; without gradients they compute the same
    torch.inference_mode = lambda mode=True: torch.no_grad() if mode else contextlib.nullcontext()  # type: ignore[misc,assignment]
    torch.Generator = _Generator  # type: ignore[misc]
    mode = _Factories()
    mode.__enter__()
    _kept.extend((library, mode))
    import tinytx.settings as settings
    from tinytx.fast import NO_WAIT

    NO_WAIT.add(NAME)
    here = settings.choose_device
    settings.choose_device = lambda name="auto": here("cpu") if name == "cpu" else torch.device(NAME, 0)


_kept: list[Any] = []  # as long as the process
GPU_IF_ANY = 'torch.device("cuda" if torch.cuda.is_available() else "cpu")'


def run_lesson(number: str) -> str | None:
    """Run a lesson at the smallest budget with its models elsewhere; the first cell that raised, or None."""
    from tinytx_course.building.notebooks import build_notebook, execute, kernel_environment
    from tinytx_course.lessons import pick_lessons

    root = Path(__file__).resolve().parents[1]
    (lesson,) = pick_lessons([number])
    notebook = build_notebook(lesson, root)
    for cell in notebook.cells:
        cell.source = cell.source.replace(GPU_IF_ANY, f'torch.device("{NAME}", 0)')
    notebook.cells.insert(0, nbformat.v4.new_code_cell("from tests import elsewhere\n\nelsewhere.install()"))
    with tempfile.TemporaryDirectory() as folder:
        environment = kernel_environment(root, budget="smoke") | {"IPYTHONDIR": folder}
        return execute(lesson, notebook, Path(folder), environment).failure


def run_commands() -> str | None:
    """Run each command that computes, its models elsewhere; the first that failed, or None."""
    install()
    from tests.torture.jobs import make_jobs
    from tinytx_run.cli import main

    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()) as printed:
        folder = Path(name)
        make_jobs(folder)  # writes small corpora
        few = ("--budget", "smoke", "--steps", "4")
        reviews, pairs = (("--corpus", str(folder / text)) for text in ("reviews.tsv", "pairs.tsv"))
        models = {name: str(folder / name) for name in ("causal", "masked", "hybrid", "translation", "tuned")}
        commands = []
        for objective in ("causal", "masked", "hybrid", "translation"):
            text = pairs if objective == "translation" else reviews
            commands.append(("pretrain", *text, *few, "--objective", objective, "--out", models[objective]))
            commands.append(("evaluate", models[objective], *text))
        commands += [
            ("finetune", models["causal"], *reviews, *few[:2], "--out", models["tuned"]),
            ("evaluate", models["tuned"], *reviews),
            ("generate", models["causal"], "--prompt", "le chat", "--max-new-tokens", "5"),
            ("pretrain", *reviews, *few, "--out", models["causal"], "--resume"),
            ("translate", models["translation"]),
            ("classify", models["tuned"]),
        ]
        for command in commands:
            sys.stdin = io.TextIOWrapper(io.BytesIO(b"the cat eats\n"))
            if main(command):
                return f"{' '.join(command)}: {printed.getvalue()}"
    return None if Elsewhere.n_computed else "nothing was computed elsewhere"


def run_gpu_tests() -> str | None:
    """Run tests that are made for a GPU; how they ended, or None."""
    os.environ["TINYTX_TEST_DEVICE"] = NAME
    files = [f"tests/gpu/test_{name}_gpu.py" for name in ("same", "model", "waits", "checkers")]
    status = pytest.main(["-q", "-x", "--tb=short", "-p", "no:cacheprovider", *files])
    nothing = None if Elsewhere.n_computed else "nothing was computed elsewhere"
    return f"pytest ended with {status}" if status else nothing


def main() -> int:
    """Run what is named, lessons, the commands or the tests of a GPU; print a line each."""
    others = {"commands": run_commands, "gpu": run_gpu_tests}
    n_failed = 0
    for name in sys.argv[1:]:
        begin = time.perf_counter()
        failure = others[name]() if name in others else run_lesson(name)
        print(name, failure or "ok", f"{time.perf_counter() - begin:.0f} s", flush=True)
        n_failed += failure is not None
    return 1 if n_failed else 0


if __name__ == "__main__":
    from tests import elsewhere  # the module that tests import, not a second one named __main__

    sys.exit(elsewhere.main())
