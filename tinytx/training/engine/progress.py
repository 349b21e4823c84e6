"""A progress bar when a person watches, silence otherwise."""

from __future__ import annotations

import sys
from typing import Any

import tqdm


def in_notebook() -> bool:
    """Whether this code runs in a Jupyter kernel."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and "IPKernelApp" in running.config


def progress_bar(total: int, *, initial: int = 0, label: str = "", show: bool | None = None) -> Any:
    """A tqdm bar on standard error; ``show=None`` draws it in a terminal or notebook only.

    The environment variable ``TQDM_DISABLE=1`` switches such an automatic bar off.
    """
    notebook = in_notebook()
    make = tqdm.tqdm
    if notebook:
        from tqdm.notebook import tqdm as make  # type: ignore[no-redef]
    settings: dict[str, Any] = {"total": total, "initial": initial, "desc": label, "leave": False}
    if show is not None:
        settings["disable"] = not show
    elif not (notebook or sys.stderr.isatty()):
        settings["disable"] = True
    return make(**settings)
