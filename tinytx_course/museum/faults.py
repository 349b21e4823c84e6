"""The faults: each is one line of `program.py`, healthy and broken; a patient has one of them.

They are in ``faults.toml``, written as `tinytx_course.exercises.catalogue` describes mistakes.

>>> FAULTS["mask_transposed"].broken
'mask = mask & tx.causal_mask(seq_len).T  # (B, 1, T, T)'
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

from tinytx_course.exercises.catalogue import check_fields, edited, read_statement
from tinytx_course.results import nearest, tables_of, text_of

PROGRAM = text_of("museum/program.py")
Known = TypeVar("Known")
_FIELDS = {"edit": list, "words": str, "test": str, "symptom": str}


@dataclass(frozen=True)
class Fault:
    """One line that is wrong, and still runs."""

    name: str  # what a diagnosis calls it
    meaning: str  # what is wrong, in a few words
    task: str  # what its patient was to become: language model, classifier or translator
    healthy: str  # the line without its indentation, as it is in `program.py`
    broken: str  # and as it is in the patient
    test: str  # the name of the test that finds it
    symptom: str  # what is seen without a test
    program: str = field(repr=False)  # the healthy program with this one line changed


def read_fault(name: str, task: str, table: Mapping[str, Any]) -> Fault:
    """Read a fault as it is written in the file.

    Raises
    ------
    ValueError
        If a field is missing or unknown, what is edited does not occur once, or not one line changes.
    """
    whose = f"the mistake {name!r} of faults.toml"
    check_fields(whose, table, _FIELDS, _FIELDS)
    program = edited(whose, PROGRAM, table["edit"])
    pairs = zip(PROGRAM.splitlines(), program.splitlines(), strict=False)
    changed = [(one.strip(), other.strip()) for one, other in pairs if one != other]
    if len(changed) != 1:
        raise ValueError(f"{whose} must change one line, got {len(changed)}")
    return Fault(name, table["words"], task, *changed[0], table["test"], table["symptom"], program)


_FILE = tables_of("museum/faults.toml")
_MISTAKES, _BY_TASK = _FILE["mistakes"], _FILE["patients"]
_TASKS = {fault: task for task, patients in _BY_TASK.items() for fault in patients.values()}
FAULTS = MappingProxyType({name: read_fault(name, _TASKS[name], one) for name, one in _MISTAKES.items()})
_NUMBERS = {int(number): fault for patients in _BY_TASK.values() for number, fault in patients.items()}
#: By number of the patient; the lesson solves patient 0 as an example.
PATIENTS = tuple(_NUMBERS[number] for number in range(len(FAULTS)))
#: What the rooms ask, by their names.
ROOMS = {name: read_statement(f"the room {name} of faults.toml", one) for name, one in _FILE["rooms"].items()}


@cache
def load(fault: str | None) -> ModuleType:
    """The program as a module, with the line of a fault changed."""
    name = f"tinytx_course.museum._{fault or 'healthy'}"
    module = ModuleType(name)
    sys.modules[name] = module  # dataclasses and annotations look there
    exec(compile(FAULTS[fault].program if fault else PROGRAM, f"<{name}>", "exec"), module.__dict__)
    return module


def name_of(number: int) -> str:
    """How a patient is called, also in the record of the learner."""
    return f"patient {number}"


#: Those that a learner diagnoses, as `course.status` counts them.
PATIENT_NAMES = tuple(name_of(number) for number in range(1, len(PATIENTS)))


def check_number(number: object) -> int:
    """The number of a patient.

    Raises
    ------
    ValueError
        If there is none of this number; where it is a name that resembles one, that is suggested.
    """
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(PATIENTS):
        return number
    near = nearest(number, PATIENT_NAMES, 0.4) if isinstance(number, str) else ""
    raise ValueError(f"patient must be a number from 1 to {len(PATIENTS) - 1}, got {number!r}{near}")


def known(what: str, name: object, by_name: Mapping[str, Known]) -> Known:
    """The fault or test of this name.

    Raises
    ------
    ValueError
        If there is none; the nearest is suggested.
    """
    if isinstance(name, str) and name in by_name:
        return by_name[name]
    near = nearest(name, by_name, 0.4)
    raise ValueError(f"{what} must be one of {', '.join(by_name)}, got {name!r}{near}")
