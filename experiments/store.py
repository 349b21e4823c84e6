"""Records that are measured once and kept: again only when what they came from has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class Store(Protocol):
    """Where records are kept by key; ``put`` has them on disk when it returns."""

    def get(self, key: str) -> dict | None:
        """The record under a key, or None."""
        ...

    def put(self, key: str, record: dict) -> None:
        """Keep a record."""
        ...


def kept_or_measured(
    store: Store, key: str, origin: Mapping[str, Any], measure: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """The record under a key; measured and kept where there is none, or one of another origin.

    Parameters
    ----------
    store : Store
    key : str
    origin : mapping
        Everything that the record follows from, as JSON can hold it; it is kept in the record.
    measure : callable
        Gives the fields of the record.

    Examples
    --------
    >>> class Memory(dict):
    ...     put = dict.__setitem__
    >>> store = Memory()
    >>> kept_or_measured(store, "a", {"seed": 0}, lambda: {"loss": 2.5})["loss"]
    2.5
    >>> kept_or_measured(store, "a", {"seed": 0}, lambda: {"loss": 9.0})["loss"]
    2.5
    >>> kept_or_measured(store, "a", {"seed": 1}, lambda: {"loss": 9.0})["loss"]
    9.0
    """
    record = store.get(key)
    if record is None or record.get("origin") != origin:
        record = {**measure(), "origin": dict(origin)}
        store.put(key, record)
    return record
