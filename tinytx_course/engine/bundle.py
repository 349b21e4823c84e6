"""The modules of the engine as one script for a page, which cannot import from a file on the disk."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:class|function\*?|const|let) (\w+))", re.M)


@cache
def read_module(name: str) -> str:
    """The source of one module, as node runs it."""
    return (FOLDER / f"{name}.js").read_text(encoding="utf-8")


def bundle(names: Iterable[str]) -> str:
    """One script that defines ``ENGINE``, an object with the exports of some modules.

    What they import comes with them. All share one scope, so no two may declare the same name at top level.

    Examples
    --------
    >>> bundle(["safetensors"]).partition("\\n")[0]
    'const ENGINE = (() => {'
    """
    order: dict[str, None] = {}

    def add(name: str) -> None:
        if name not in order:
            for needed in _IMPORT.findall(read_module(name)):
                add(needed)
            order[name] = None

    wanted = list(names)
    for name in wanted:
        add(name)
    exports = dict.fromkeys(export for name in wanted for export in _EXPORT.findall(read_module(name)))
    body = "\n".join(_EXPORT.sub("", _IMPORT.sub("", read_module(name))) for name in order)
    return f"const ENGINE = (() => {{\n{body}\nreturn {{ {', '.join(exports)} }};\n}})();\n"
