"""What a judge may know of a learner's function: plain values and what happened, in a form JSON can hold.

A check has two halves. The learner's half (:mod:`calling`) calls the function and records observations; the
judge (:mod:`judging`) sees nothing else. In a notebook both run in one process. Grading runs the first in a
process of its own and sends the record as JSON, so that the judge never runs or unpickles anything of the
learner's.
"""

from __future__ import annotations

import base64
import operator
import re
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

LARGEST_TENSOR = 200_000  # numbers; a larger one is no answer to an exercise
_LONGEST = 1_000  # items of a list
_DEEPEST = 6  # lists within lists
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    + (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128)
}


@dataclass(frozen=True, eq=False)
class Call:
    """One call of the learner's function."""

    arguments: tuple[Any, ...]  # in the order of the signature
    shown: str = ""  # printed below the call where the arguments do not explain themselves


@dataclass(frozen=True)
class Failure:
    """Why there is no result to compare, or why a result is wrong whatever its values are."""

    mistake: str | None  # its slug
    message: str  # what happened, in plain words
    attempted: bool = True  # False where nothing has been written yet


@dataclass(frozen=True)
class Opaque:
    """A result that is not plain data: what it is; of a module the state dict and what would be trained."""

    kind: str
    state: dict[str, Any] = field(default_factory=dict)
    trained: tuple[str, ...] = ()  # names of the parameters that require a gradient


@dataclass(frozen=True)
class Observation:
    """What one call did.

    A plain value is None, bool, int, float, str, base-class Tensor on the CPU, numpy array, Opaque, and
    lists, tuples and dicts of these.
    """

    value: Any = None  # plain
    failure: Failure | None = None  # in place of a value
    printed: str = ""  # the beginning of what was printed
    modified: tuple[str, ...] = ()  # parameters whose arguments were changed in place


@dataclass(frozen=True)
class Record:
    """All observations of one check."""

    refusal: Failure | None = None  # why the function was not called at all
    calls: tuple[Observation, ...] = ()  # each call once; shorter where time ran out
    repeats: tuple[Observation, ...] = ()  # then each once more
    probe: Observation | None = None  # of the exercise's further call
    passes_on: Failure | None = None  # to a ready-made answer: no pass, but a wrong result is explained first
    remembers: Failure | None = None  # results of earlier calls, where they change a later one
    slip: Failure | None = None  # seen in the source: the likely cause where no mistake is recognised
    chance: str = ""  # what in the source makes results change from call to call

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "refusal": _encode_failure(self.refusal),
            "calls": [_encode_observation(one) for one in self.calls],
            "repeats": [_encode_observation(one) for one in self.repeats],
            "probe": None if self.probe is None else _encode_observation(self.probe),
            "passes_on": _encode_failure(self.passes_on),
            "remembers": _encode_failure(self.remembers),
            "slip": _encode_failure(self.slip),
            "chance": _text(self.chance),
        }

    @classmethod
    def from_dict(cls, data: Any) -> Record:
        """Read a record from somewhere that is not trusted.

        Raises
        ------
        ValueError
            If it is not what :meth:`to_dict` makes.
        """
        try:
            calls, repeats = ([_decode_observation(one) for one in data[key]] for key in ("calls", "repeats"))
            probe = None if data["probe"] is None else _decode_observation(data["probe"])
            names = ("refusal", "passes_on", "remembers", "slip")
            refusal, passes_on, remembers, slip = (_decode_failure(data[name]) for name in names)
            seen = tuple(calls), tuple(repeats), probe
            return cls(refusal, *seen, passes_on, remembers, slip, _text(data["chance"]))
        except (TypeError, KeyError, AttributeError, IndexError, RuntimeError, RecursionError) as problem:
            raise ValueError(f"a record must hold observations, got {type(problem).__name__}") from None


def kind_of(value: Any) -> str:
    """What something is, with its article."""
    if isinstance(value, Opaque):
        return value.kind
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    name = value.dtype.name if isinstance(value, np.ndarray) and not value.ndim else type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value as plain data, see :class:`Observation`; it shares nothing with the original."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Tensor):
        return _plain_tensor(value)
    if isinstance(value, (np.ndarray, np.generic)):
        fits = np.dtype(value.dtype).name in _DTYPES and value.size <= LARGEST_TENSOR
        return np.array(value) if fits else Opaque(kind_of(value))
    if isinstance(value, int):  # a judge compares in 64 bits
        return max(min(operator.index(value), 2**62), -(2**62))
    if isinstance(value, float):
        return float.__add__(value, 0.0)
    if isinstance(value, str):
        return _text(str.__str__(value)[:LARGEST_TENSOR])
    if isinstance(value, (list, tuple, dict)) and len(value) <= _LONGEST and depth < _DEEPEST:
        if isinstance(value, dict):
            return {_text(str(name)): plain(item, depth + 1) for name, item in value.items()}
        items = [plain(item, depth + 1) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, nn.Module):
        state = {name: plain(tensor) for name, tensor in value.state_dict().items()}
        parameters = value.named_parameters(remove_duplicate=False)
        trained = (_text(name) for name, parameter in parameters if parameter.requires_grad)
        return Opaque(_text(kind_of(value)), state, tuple(trained))
    return Opaque(_text(kind_of(value)))


def _plain_tensor(value: Tensor) -> Tensor | Opaque:
    value = value.detach()
    if value.is_meta or value.is_quantized or value.dtype not in _DTYPES.values():
        return Opaque(f"a tensor of dtype {value.dtype} on {value.device}")
    if value.numel() > LARGEST_TENSOR:
        return Opaque(f"a tensor of shape {tuple(value.shape)}, too large to be compared")
    if value.layout != torch.strided:
        value = value.to_dense()
    return value.cpu().resolve_conj().resolve_neg().clone().as_subclass(Tensor)


def _text(value: Any) -> str:
    """A text that can be written as UTF-8."""
    if not isinstance(value, str):
        raise ValueError(f"a record must hold a text here, got {type(value).__name__}")
    return value.encode(errors="replace").decode()


def _slug(value: Any) -> str | None:
    if value is not None and not re.fullmatch(r"[a-z0-9+-]{1,200}", _text(value)):
        raise ValueError(f"a mistake must have lower-case letters and hyphens, got {value!r:.80}")
    return value


def encode(value: Any) -> Any:
    """Return a plain value as what JSON can hold; tensors as dtype, shape and bytes in base64."""
    if isinstance(value, Tensor):
        flat = value.clone(memory_format=torch.contiguous_format).reshape(-1)
        bytes_ = flat.view(torch.uint8).numpy().tobytes()
        dtype = str(value.dtype).removeprefix("torch.")
        return {"tensor": [dtype, list(value.shape), base64.b64encode(bytes_).decode()]}
    if isinstance(value, np.ndarray):
        return {"array": encode(torch.from_numpy(value.copy()))["tensor"]}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": {name: encode(item) for name, item in value.items()}}
    if isinstance(value, Opaque):
        return {"opaque": [value.kind, encode(value.state), list(value.trained)]}
    return value


def decode(data: Any) -> Any:
    """Return the plain value behind :func:`encode`; a ValueError or one of its kin for anything else."""
    if data is None or isinstance(data, (bool, int, float)):
        return plain(data)
    if isinstance(data, str):
        return _text(data)
    ((kind, content),) = data.items()
    if kind == "tensor":
        return _decode_tensor(*content)
    if kind == "array":
        return _decode_tensor(*content).numpy()
    if kind in ("list", "tuple"):
        items = [decode(item) for item in content]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {_text(name): decode(item) for name, item in content.items()}
    if kind == "opaque":
        words, state, trained = content
        return Opaque(_text(words), decode(state), tuple(map(_text, trained)))
    raise ValueError(f"a record must hold plain values, got {kind!r:.80}")


def _decode_tensor(dtype: str, shape: list[int], text: str) -> Tensor:
    bytes_ = bytearray(base64.b64decode(text, validate=True))
    if any(type(size) is not int or size < 0 for size in shape) or prod(shape) > LARGEST_TENSOR:
        raise ValueError(f"a tensor must have at most {LARGEST_TENSOR} numbers, got shape {shape!r:.80}")
    if not bytes_:
        return torch.empty(shape, dtype=_DTYPES[dtype], device="cpu")
    tensor = torch.frombuffer(bytes_, dtype=torch.uint8)
    if dtype == "bool" and (tensor > 1).any():
        raise ValueError("a boolean tensor must hold bytes of 0 and 1")
    return tensor.view(_DTYPES[dtype]).reshape(shape)


def _encode_failure(failure: Failure | None) -> Any:
    return failure and [failure.mistake, _text(failure.message), failure.attempted]


def _decode_failure(data: Any) -> Failure | None:
    if data is None:
        return None
    mistake, message, attempted = data
    return Failure(_slug(mistake), _text(message), attempted is not False)


def _encode_observation(observation: Observation) -> dict[str, Any]:
    return {
        "value": encode(observation.value),
        "failure": _encode_failure(observation.failure),
        "printed": _text(observation.printed),
        "modified": list(observation.modified),
    }


def _decode_observation(data: Any) -> Observation:
    return Observation(
        decode(data["value"]),
        _decode_failure(data["failure"]),
        _text(data["printed"]),
        tuple(_text(name) for name in data["modified"]),
    )
