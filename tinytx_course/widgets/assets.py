"""JavaScript and style of the explorers as text: for one widget, or for a whole page.

The modules import nothing, as relative imports do not work from where anywidget loads them: shared code is
put in front of them. In a page each module is wrapped in a function of its own, and shared code, host and
style come once, however many explorers there are; pages of a site share them as a file.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterable
from functools import cache

from tinytx_course.engine import training_parts
from tinytx_course.engine.bundle import bundle
from tinytx_course.engine.shipped import FOLDER, RECORDED, WEIGHTS
from tinytx_course.engine.tables import world_tables
from tinytx_course.results import text_of
from tinyworld.world import World

_STORE = "_store.js"  # which a page of the site has for itself, before anything is drawn
_SHARED = ("_numbers.js", "_elements.js", "_paint.js", "_plot.js", "_frame.js")
_IN_PAGES = ("_address.js", "_tries.js", "_host.js")
# Explorers that run the shipped model in the page: they share _live.js and _live.css, and need these modules.
_LIVE = frozenset({"live_model", "sampling"})
_ENGINE = ("safetensors", "model", "shipped", "tokenizer", "tokens", "world")
_TRAINS = "playground"  # the explorer that trains, in a worker that is made of the same engine
_PARTS = {_TRAINS: ("_training.js", "_conductor.js")}  # modules of one explorer, put in front of it
_EXPORT = re.compile(r"^export (default )?", re.M)
_KEYFRAMES = re.compile(r"^@keyframes .*$", re.M)
_COMMENT = re.compile(r"^ *//.*\n", re.M)
_REMARK = re.compile(r"/\*.*?\*/", re.S)
_TRAILING = re.compile(r"""[ \t]+// [^\n"'`]*$""", re.M)
_INDENT = re.compile(r"^ +", re.M)
_BREAK = re.compile(r"^((?:(?!//).)*[,;({\[])\n", re.M)  # after these a new line says nothing
_KIND = re.compile(r'data-tx-kind="([a-z_]+)"')


def _read(*names: str) -> str:
    return "\n".join(text_of(f"widgets/js/{name}") for name in names)


def style_sheet(kinds: Iterable[str]) -> str:
    """Return the shared style, then ``js/<kind>.css`` of each kind, limited to explorers of that kind.

    In these files ``:scope`` is the explorer itself.
    """
    shared, all_kinds = ["explorers.css"], sorted(set(kinds))
    shared += ["_live.css"] if _LIVE.intersection(all_kinds) else []
    own = (_limited(kind) for kind in all_kinds)
    return "\n".join([_read(*shared), *own])


def _limited(kind: str) -> str:
    """Return the style of a kind as `@scope` limits it, for browsers that do not know that yet.

    A nested rule in `:where` limits without adding weight; ``@keyframes`` cannot be nested.
    """
    own = _read(f"{kind}.css").replace(":scope", "&.tx")
    moves = "\n".join(_KEYFRAMES.findall(own))
    return f'{moves}\n:where(.tx[data-kind="{kind}"]) {{\n{_KEYFRAMES.sub("", own)}}}'


@cache
def shared_script(*names: str) -> str:
    """Return shared modules as part of a script that is no module, as the site's own are."""
    return compact(_EXPORT.sub("", _read(*names)))


def compact(script: str) -> str:
    """Return a script without its comments, its indentation and most line breaks, which stay in the files.

    A comment after code is taken out where it holds no quotation mark: it cannot be part of a text then.

    Examples
    --------
    >>> compact("f(\\n  1, // one\\n  2, // it's two\\n);\\ng();\\n")
    "f(1,2, // it's two\\n);g();"
    """
    return _BREAK.sub(r"\1", _INDENT.sub("", _TRAILING.sub("", _COMMENT.sub("", script))))


def compact_style(sheet: str) -> str:
    """Return a style sheet without its comments, its indentation and spaces that say nothing.

    Examples
    --------
    >>> compact_style("a { b: c;  /* why */ d: calc(1px + 2px); }")
    'a{b:c;d:calc(1px + 2px)}'
    """
    short = re.sub(r"\s*([{};])\s*", r"\1", re.sub(r"\s+", " ", _REMARK.sub("", sheet))).strip()
    return re.sub(r"([{;][\w-]+): ", r"\1:", short).replace(";}", "}")


def engine_script(kinds: Collection[str]) -> str:
    """Return what these explorers compute with: the engine, the shipped model and the world; "" for none."""
    return "".join(_engines(kinds).values())


def shared_files(kinds: Collection[str]) -> dict[str, str]:
    """Return the scripts that pages with these explorers can share, by the name of a file."""
    return {"explorers.js": shared_script(*_SHARED, *_IN_PAGES), **_engines(kinds)} if kinds else {}


def _engines(kinds: Collection[str]) -> dict[str, str]:
    live = {"engine.js": _engine()} if _LIVE.intersection(kinds) else {}
    return {**live, "training.js": _training()} if _TRAINS in kinds else live


@cache
def _training() -> str:
    parts = training_parts(World())
    files = "".join(f'  {name}: "{parts[name]}",\n' for name in ("wasm", "tables"))
    files += f"  recorded: {FOLDER.joinpath(RECORDED).read_text(encoding='utf-8').strip()},\n"
    return f"const TRAINING = {{\n{files}  make: () => {{\n{parts['script']}return ENGINE;\n}} }};\n"


@cache
def _engine() -> str:
    data = {"SHIPPED": FOLDER.joinpath(WEIGHTS).read_bytes(), "WORLD": world_tables(World())}
    lines = [f'const {name} = "{base64.b64encode(content).decode()}";' for name, content in data.items()]
    return "\n".join([bundle(_ENGINE), *lines, ""])


def module_source(kind: str) -> str:
    """Return an explorer as one module, the shared part first."""
    return _read(*_SHARED, *_own_parts([kind])) + engine_script([kind]) + _own(kind)


def embedded_module(kind: str, content: str) -> str:
    """Return an explorer as one module for a page of somebody else; the content is what Python wrote."""
    own = _EXPORT.sub(lambda match: "const EXPLORER = " if match[1] else "", _own(kind))
    shared, style = (*_SHARED, *_own_parts([kind])), json.dumps(compact_style(style_sheet([kind])))
    script = compact(_read(*shared) + _read("_host.js")) + engine_script([kind]) + compact(own)
    return f"{script}export default embedded(EXPLORER, {content}, {style});\n"


def _own_parts(kinds: Iterable[str]) -> list[str]:
    """Return the modules that come before these explorers, and are not shared by pages."""
    return [_STORE, "_live.js"] if _LIVE.intersection(kinds) else [_STORE]


def _own(kind: str) -> str:
    return _read(*_PARTS.get(kind, ()), f"{kind}.js")


def page_script(kinds: Iterable[str], *, alone: bool = True) -> str:
    """Return one module script that brings all explorers of these kinds in a page to life.

    If it is not alone, the page has to read `shared_files` before.
    """
    own = sorted(set(kinds))
    bodies = {kind: _EXPORT.sub(lambda match: "return " if match[1] else "", _own(kind)) for kind in own}
    wrapped = "\n".join(f"EXPLORERS.{kind} = (() => {{\n{compact(bodies[kind])}}})();" for kind in own)
    shared = "".join(shared_files(own).values()) if alone else ""
    return (
        f"{shared}\n{shared_script(*_own_parts(own))}\nconst EXPLORERS = {{}};\n{wrapped}\nhost(EXPLORERS);"
    )


def explorers_in(page: str) -> set[str]:
    """Return the kinds of the explorers in a piece of HTML.

    Examples
    --------
    >>> explorers_in("<p>none</p>")
    set()
    """
    return set(_KIND.findall(page))
