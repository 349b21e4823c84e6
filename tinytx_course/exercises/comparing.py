"""Read the plain value that a function returned, and find where it differs."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tinytx_course.exercises.observation import Failure, Opaque, kind_of, plain

_TOLERANCE = 2e-4  # relative to numbers of size 1, for float32 and better
_COARSE = {torch.float16: 1e-2, torch.bfloat16: 4e-2}


@dataclass(frozen=True)
class Reading:
    """A result as it is compared."""

    tensors: tuple[Tensor, ...]  # on the CPU; float64, int64 or bool
    tolerance: float = _TOLERANCE  # what rounding may do to numbers of size 1
    complaint: Failure | None = None  # a wrong type or dtype of values that can be compared all the same
    note: str = ""  # a friendly remark; the result may still pass
    names: tuple[str, ...] = ()  # what the tensors are called, where there are several
    cells: tuple[tuple[str, ...], ...] = ()  # shown in place of the tensors, where they are codes of texts

    def agrees_with(self, other: Reading) -> bool:
        """Same shapes and, up to rounding, same values; NaN equals NaN."""
        tolerance = max(self.tolerance, other.tolerance)
        pairs = list(zip(self.tensors, other.tensors, strict=False))
        return len(self.tensors) == len(other.tensors) and all(
            a.shape == b.shape and not differing(a, b, tolerance).any() for a, b in pairs
        )


Reader = Callable[[Any], "Reading | Failure"]


def differing(got: Tensor, expected: Tensor, tolerance: float = _TOLERANCE) -> Tensor:
    """Boolean tensor, True where two tensors of one shape differ by more than rounding."""
    if got.dtype == torch.bool or expected.dtype == torch.bool:
        return got.bool() != expected.bool()
    got, expected = got.double(), expected.double()
    return ~torch.isclose(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def _as_tensor(value: Any, due: str) -> tuple[Tensor, Failure | None] | Failure:
    """A plain tensor on the CPU, with what is wrong about its type."""
    complaint = None
    if isinstance(value, (tuple, list)) and value and isinstance(value[0], Tensor) and value[0].dim():
        words = f"{due} is due and nothing else; got {len(value)} results: return only the one asked for."
        if isinstance(value, tuple) and len(value) == 1:
            words = f"{due} is due, got {kind_of(value)} that holds one: a comma at the end makes a tuple."
        elif len({getattr(each, "shape", None) for each in value}) == 1:
            words = (
                f"{due} is due, got {len(value)} tensors of one shape: torch.stack or torch.cat "
                "makes one of them; if only one was asked for, return that one."
            )
        value, complaint = value[0], Failure("too-many-results", words)
    if isinstance(value, np.ndarray):
        words = f"{due} is due, got a numpy array: torch.from_numpy(...) makes a tensor of it."
        value, complaint = torch.from_numpy(value.copy()), Failure("numpy-array", words)
    if not isinstance(value, Tensor):
        hint = " (torch.tensor(...) makes a tensor of it)" if isinstance(value, (list, tuple)) else ""
        return Failure("wrong-type", f"{due} is due, got {kind_of(value)}{hint}.")
    if value.is_complex():
        return Failure("wrong-dtype", f"{due} is due, got dtype {value.dtype}.")
    return value.detach().clone(), complaint


def boolean(value: Any) -> Reading | Failure:
    """Read a mask; numbers are complained about, but compared as what they mean."""
    due = "A boolean tensor"
    found = _as_tensor(value, due)
    if isinstance(found, Failure):
        return found
    tensor, complaint = found
    if tensor.dtype == torch.bool:
        return Reading((tensor,), complaint=complaint)
    if tensor.is_floating_point() and (torch.isinf(tensor).any() or (tensor < -1e3).any()):
        words = (
            "This mask is one that is added to scores (0 and a huge negative number). "
            "Here masks are boolean: True = may attend."
        )
        return Reading((tensor == 0,), complaint=Failure("additive-mask", words))
    words = f"Masks are boolean, True = may attend; got dtype {tensor.dtype}"
    if ((tensor != 0) & (tensor != 1)).any():  # such as the ids that were given
        words += " with other numbers than 0 and 1: compare, with `==` or `<`, to get True and False."
        return Failure("not-boolean", words)
    words += ": `.bool()` makes a mask of 0 and 1."
    return Reading((tensor != 0,), complaint=complaint or Failure("not-boolean", words))


def truth(value: Any) -> Reading | Failure:
    """Read one answer, True or False; a tensor or array that holds one is taken, with a remark."""
    note = ""
    if isinstance(value, (Tensor, np.ndarray)):
        if math.prod(value.shape) != 1:
            return Failure("wrong-shape", f"One True or False is due, got shape {tuple(value.shape)}.")
        note = "" if isinstance(value, Tensor) and not value.dim() else "One answer has no axes; yours has."
        value = value.item()
    if not isinstance(value, bool):
        return Failure("wrong-type", f"True or False is due, got {kind_of(value)}.")
    return Reading((torch.tensor(value),), note=note)


def floats(value: Any) -> Reading | Failure:
    """Read a tensor of real numbers of any precision."""
    found = _as_tensor(value, "A floating-point tensor")
    if isinstance(found, Failure):
        return found
    tensor, complaint = found
    if not tensor.is_floating_point():
        words = f"A floating-point tensor is due, got dtype {tensor.dtype}."
        complaint = complaint or Failure("not-floating-point", words)
    return Reading((tensor.double(),), _COARSE.get(tensor.dtype, _TOLERANCE), complaint)


def integers(value: Any) -> Reading | Failure:
    """Read a tensor of ids."""
    found = _as_tensor(value, "An integer tensor")
    if isinstance(found, Failure):
        return found
    tensor, complaint = found
    if tensor.is_floating_point() or tensor.dtype == torch.bool:
        words = f"Token ids are integers, got dtype {tensor.dtype}."
        complaint = complaint or Failure("not-integer", words)
        return Reading((tensor.double(),), complaint=complaint)
    return Reading((tensor.long(),), complaint=complaint)


def number(value: Any) -> Reading | Failure:
    """Read one real number: a Python or numpy number, or a tensor with one element."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            return Failure("wrong-shape", f"One number is due, got a tensor of shape {tuple(value.shape)}.")
        note = f"One number has shape (); yours has shape {tuple(value.shape)}." if value.dim() else ""
        dtype, value = value.dtype, value.detach().cpu().reshape(())
        if dtype.is_complex:
            return Failure("wrong-dtype", f"A real number is due, got dtype {dtype}.")
        return Reading((value.double(),), _COARSE.get(dtype, _TOLERANCE), note=note)
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    try:
        if isinstance(value, (str, bytes, bool, complex)):
            raise TypeError
        return Reading((torch.tensor(float(value), dtype=torch.float64),))
    except (TypeError, ValueError, OverflowError):
        return Failure("wrong-type", f"One number is due, got {kind_of(value)}.")


def count(value: Any) -> Reading | Failure:
    """Read a whole number; a float without a fraction is taken, with a remark."""
    note = ""
    if isinstance(value, (Tensor, np.ndarray)) and math.prod(value.shape) == 1:
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
        note = "A count is an int; yours is a float: `//` instead of `/` keeps it whole."
    if isinstance(value, float):
        return Reading((torch.tensor(value, dtype=torch.float64),))
    try:
        if isinstance(value, bool):
            raise TypeError
        whole = operator.index(value)
        return Reading((torch.tensor(max(min(whole, 2**62), -(2**62)), dtype=torch.int64),), note=note)
    except TypeError:
        return Failure("wrong-type", f"A whole number is due, got {kind_of(value)}.")


def ids(value: Any) -> Reading | Failure:
    """Read a list of ids; tuples, arrays and tensors of one axis are taken, with a remark."""
    note = "" if isinstance(value, list) else f"A list is due; yours is {kind_of(value)}."
    if isinstance(value, (Tensor, np.ndarray)):
        if value.ndim != 1:
            return Failure("wrong-shape", f"A list of ids is due, got shape {tuple(value.shape)}.")
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        return Failure("wrong-type", f"A list of ids is due, got {kind_of(value)}.")
    try:
        plain = [operator.index(item) for item in value]
        others = [item for item in value if not isinstance(item, int)]
        note = note or (f"Ids are ints; your list holds {kind_of(others[0])}." if others else "")
    except TypeError:
        kinds = sorted({kind_of(item) for item in value})
        return Failure(
            "wrong-type", f"A list of ids (ints) is due, got a list that holds {', '.join(kinds)}."
        )
    return Reading((torch.tensor(plain, dtype=torch.int64),), note=note)


_END = 0x110000  # of a text: no character has this code


def as_codes(rows: Sequence[Sequence[str]]) -> Tensor:
    """Texts as the codes of their characters: equal exactly where the texts are."""
    codes = [code for row in rows for text in row for code in (*map(ord, text), _END)]
    return torch.tensor(codes, dtype=torch.int64, device="cpu")


def tokens(value: Any) -> Reading | Failure:
    """Read a list of tokens, each a str; a tuple is taken, with a remark."""
    if not isinstance(value, (list, tuple)):
        return Failure("wrong-type", f"A list of tokens is due, got {kind_of(value)}.")
    if others := [item for item in value if not isinstance(item, str)]:
        words = f"A list of tokens (str) is due, got a list that holds {kind_of(others[0])}."
        return Failure("wrong-type", words)
    note = "" if isinstance(value, list) else "A list is due; yours is a tuple."
    return Reading((as_codes([value]),), note=note, cells=(tuple(value),))


def text(value: Any) -> Reading | Failure:
    """Read a text, shown in quotes, so that spaces at its ends are seen."""
    if not isinstance(value, str):
        return Failure("wrong-type", f"A text (str) is due, got {kind_of(value)}.")
    return Reading((as_codes([[value]]),), cells=((repr(value),),))


def trained(value: Any) -> Reading | Failure:
    """Read from a model which of its parameters would be trained, by their names."""
    value = plain(value) if isinstance(value, nn.Module) else value
    if not isinstance(value, Opaque) or not value.state:
        return Failure("wrong-type", f"The model itself is due, got {kind_of(value)}: `return model`.")
    total = sum(held.double().sum().item() for held in value.state.values())
    rows = (*((name,) for name in value.trained), (f"all numbers of the model: sum {total:.3f}",))
    return Reading((as_codes(rows),), cells=rows)


def token_pairs(value: Any) -> Reading | Failure:
    """Read a list of pairs of tokens, each pair a tuple or list of two str."""
    due = "A list of pairs (left, right) of tokens is due"
    if not isinstance(value, (list, tuple)):
        return Failure("wrong-type", f"{due}, got {kind_of(value)}.")
    for item in value:
        if not isinstance(item, (list, tuple)):
            return Failure("wrong-type", f"{due}, got a list that holds {kind_of(item)}.")
        if len(item) != 2 or not all(isinstance(token, str) for token in item):
            return Failure("wrong-type", f"{due}, got one that is {item!r:.60}.")
    return Reading((as_codes(value),), cells=tuple(map(tuple, value)))


def pair(first: Reader, second: Reader, names: str) -> Reader:
    """Read two results that come as a tuple or list."""

    def read(value: Any) -> Reading | Failure:
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            how_many = f" of {len(value)}" if isinstance(value, (tuple, list)) else ""
            return Failure("wrong-type", f"Two results are due, ({names}); got {kind_of(value)}{how_many}.")
        a, b = first(value[0]), second(value[1])
        both = tuple(names.split(", "))
        if isinstance(a, Failure):
            return _about(both[0], a)
        if isinstance(b, Failure):
            return _about(both[1], b)
        found = zip(both, (a.complaint, b.complaint), strict=True)
        complaint = next((_about(name, failure) for name, failure in found if failure), None)
        tolerance, note = max(a.tolerance, b.tolerance), a.note or b.note
        return Reading(a.tensors + b.tensors, tolerance, complaint, note, both)

    return read


def _about(name: str, failure: Failure) -> Failure:
    """A failure of one of two results."""
    return dataclasses.replace(failure, message=f"{name.capitalize()}: {failure.message}")
