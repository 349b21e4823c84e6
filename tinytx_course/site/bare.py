"""Each explorer on a bare page of its own, for frames, slides and phones, and its still picture."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from tinytx_course.building.elsewhere import raw_file
from tinytx_course.lessons import project_root
from tinytx_course.results import tables_of
from tinytx_course.site.templates import render
from tinytx_course.widgets import assets
from tinytx_course.widgets.base import ELSEWHERE

#: The picture of a page without one of its own.
PLAIN = "index-playground"
_TRIES = "widgets/tries.toml"
FOLDER = "explorers"
_STILLS = files(__package__).joinpath("stills")
_STATE = r"""(?: data-tx-(?:explorer|page)=(?:'[^']*'|"[^"]*"))*"""
EXPLORER = re.compile(
    rf'<div (?:id="explorer" )?class="tx-explorer"{_STATE} '
    rf'data-tx-kind="(?!questions|outcome|parsons|by_hand)(\w+)"{_STATE}>'
    r'(?:<p class="tx-tries">.*?</p>)?<p class="tx-still"><strong>(.*?)[.]?</strong> (.*?)</p></div>'
)
_BOUND = re.compile("[<>]=")
_NAME = re.compile(r"\d\d|\w+")
_SHOWN = re.compile(r"stills/([\w-]+)\.png")


def still(name: str) -> str:
    """Return where a page finds a still picture, "" if there is none."""
    return f"stills/{name}.png" if _STILLS.joinpath(f"{name}.png").is_file() else ""


def still_bytes(name: str) -> bytes:
    """Return a still picture as PNG, empty if there is none."""
    return _STILLS.joinpath(f"{name}.png").read_bytes() if still(name) else b""


def sent(picture: str, up: str = "") -> str:
    """Return the address of a picture for where a link to its page is shown: whole, once there is one."""
    return raw_file(project_root(), f"tinytx_course/site/{picture}") or up + picture if picture else ""


def names_on(stem: str) -> Callable[[str], str]:
    """Return what names the explorers of a page in their order, each by its kind.

    Examples
    --------
    >>> name = names_on("02_attention_and_masks")
    >>> name("mask"), name("attention"), name("mask")
    ('02-mask', '02-attention', '02-mask2')
    """
    seen: Counter[str] = Counter()
    start = _NAME.match(stem)[0]  # type: ignore[index]

    def name(kind: str) -> str:
        seen[kind] += 1
        return f"{start}-{kind}{seen[kind] if seen[kind] > 1 else ''}"

    return name


def main_still(body: str, stem: str) -> str:
    """Return the still picture of the first explorer of a page, or that of the page."""
    first = EXPLORER.search(body)
    return still(names_on(stem)(first[1]) if first else stem)


def printed(body: str, stem: str) -> str:
    """Return a page in which each explorer is its still picture with its words, as paper cannot respond."""
    name = names_on(stem)

    def picture(match: re.Match[str]) -> str:
        kind, title, words = match.groups()
        image = f'<img class="tx-picture" src="{still(name(kind))}" alt="">'
        return f"<p>{image}<strong>{title}{'.' * (title[-1] != '?')}</strong> {without_elsewhere(words)}</p>"

    return EXPLORER.sub(picture, body)


def with_tries(explorer: str, kind: str, name: str) -> str:
    """Return an explorer with links above it that set its state, and ask what is seen then: see _tries.js."""
    links = [
        f'<a href="#{name}?{quote(_BOUND.sub("=", state), safe="=&")}" data-done="{html.escape(state)}">'
        f"{words}</a>"
        for words, state in tables_of(_TRIES).get(kind, {}).items()
    ]
    tries = f'<p class="tx-tries"><b>Try this:</b> {" ".join(links)}</p>' if links else ""
    return explorer.replace('<p class="tx-still">', f'{tries}<p class="tx-still">')


def without_elsewhere(words: str) -> str:
    """Return what an explorer says without the sentence on where it responds."""
    return words.replace(ELSEWHERE, "").strip()


def main_figure(body: str) -> re.Match[str] | None:
    """Return the anchor and the number of the figure that stands for a lesson without an explorer."""
    return re.search(r'<a class="number" href="#(figure-1)" tabindex="-1">(Figure [\d.]+)</a>', body)


def bare_pages(page: str, stem: str) -> tuple[str, dict[str, str]]:
    """Return a page whose explorers know their bare pages, and these, by the name of their file."""
    name_of = names_on(stem)
    alone: dict[str, str] = {}
    where = "its first page" if stem == "index" else re.findall("<title>(.*?)(?: · tinytx)?</title>", page)[0]

    def known(match: re.Match[str]) -> str:
        whole, kind, title, words = match[0], *match.groups()
        name = name_of(kind)
        anchor = name.partition("-")[2]
        # The strip of the first page has a button and a switch.
        asked = "" if name == PLAIN else name if name in tables_of(_TRIES) else kind
        own = (
            with_tries(whole, asked, kind)
            .replace('id="explorer" ', "")
            .replace(" data-tx-kind", f' data-tx-page="{name}.html" data-tx-kind')
        )
        scripts = "".join(f'<script src="../{file}"></script>\n' for file in assets.shared_files([kind]))
        alone[f"{name}.html"] = render(
            "site/shell.html",
            title=f"{title} · tinytx",
            description=html.unescape(without_elsewhere(words)),
            picture=sent(still(name) or still(PLAIN), up="../"),
            style=assets.compact_style(assets.style_sheet([kind])),
            first="",
            policy="",
            about=' class="tx-page"',
            body=render(
                "site/bare.html", title=title, explorer=own, link=f"../{stem}.html#{anchor}?", where=where
            ),
            script=f'{scripts}<script type="module">\n{assets.page_script([kind], alone=False)}\n</script>',
        )
        return with_tries(whole, asked, anchor).replace(
            " data-tx-kind", f' data-tx-page="{FOLDER}/{name}.html" data-tx-kind'
        )

    return EXPLORER.sub(known, page), alone


def write_beside(folder: Path, page: str, stem: str) -> str:
    """Write next to a page the bare pages of its explorers, and pictures; return the page that knows them."""
    page, alone = bare_pages(page, stem)
    for name, text in alone.items():
        (folder / FOLDER).mkdir(exist_ok=True)
        (folder / FOLDER / name).write_text(text, encoding="utf-8")
    write_stills(folder, page, *alone.values())
    return page


def gallery(page: str, stem: str) -> list[tuple[str, str, str, str]]:
    """Return the explorers of a page: name of its own page, still picture, title, first sentence."""
    name_of, found = names_on(stem), []
    for kind, title, words in EXPLORER.findall(page):
        name = name_of(kind)
        found.append((name, still(name), title, f"{words.partition('. ')[0].rstrip('.')}."))
    return found


def write_stills(folder: Path, *pages: str) -> None:
    """Write the still pictures that pages show into a folder next to them."""
    for name in {found for text in pages for found in _SHOWN.findall(text)}:
        (folder / "stills").mkdir(exist_ok=True)
        (folder / still(name)).write_bytes(still_bytes(name))
