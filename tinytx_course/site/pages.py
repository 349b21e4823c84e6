"""The course as web pages that hold what they show and make no request to any host.

Without scripts every page can be read: menus unfold, explorers show a sentence of text, questions unfold
their answers. Some files lie next to the pages, as they serve all or several: ``site.js`` (menus, search, the
class view), ``math.css`` (the font of formulas), ``explorers.js`` (what explorers run on), ``engine.js`` and
``training.js`` (a model that answers, one that learns) and ``search-index.js``, which is read when asked for.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from tinytx_course.building.elsewhere import open_links, source_of
from tinytx_course.building.notebooks import Run, without_outputs
from tinytx_course.lessons import LESSONS, Lesson, by_course, project_root
from tinytx_course.plots.diagrams.svg import style_sheet as diagram_style
from tinytx_course.results import text_of
from tinytx_course.site import bare, figures, finding, front
from tinytx_course.site.cells import code_style, notebook_to_html
from tinytx_course.site.reference import reference_body
from tinytx_course.site.tasks import exercises_body
from tinytx_course.site.templates import render, titled
from tinytx_course.site.typography import typographic
from tinytx_course.terms import names_table, terms, terms_table
from tinytx_course.widgets import assets
from tinytx_course.widgets.playground import playground

_SHOWS = "Its language is generated, so each model is shown next to the exact truth."
_ABOUT = f"A course on transformers, from the first token to a GPT of your own. {_SHOWS}"
_DESCRIPTIONS = {
    "gallery": "Every explorer of a course on transformers, on a page of its own.",
    "glossary": "The terms of a course on transformers, each in a sentence, and where it is explained.",
    "reference": "Every function of tinytx, a small transformer in PyTorch: shapes, formulas, papers.",
    "exercises": "Exercises on transformers without Python: fill masks, order lines, predict numbers.",
    "playground": "A transformer learns in your browser, next to the lowest loss that any model can be "
    "expected to reach. Switch parts off while it learns, and let it cheat.",
}
_ALWAYS = ("page", "bar", "reading", "present", "print")
_SCRIPTS = """
menus contents scrolling search code cards figures predictions present clock keys filter front tasks
"""
_STYLES = re.compile(r'(<figure class="txd"[^>]*>)<style>.*?</style>', re.S)
# What a lesson folds: hints, solutions, answers.
_FOLDED = re.compile(
    r"<details><summary>((?:(?!</summary>).)*)</summary>((?:(?!</?details).)*)</details>", re.S
)
_TOGETHER = re.compile(rf"(?:{_FOLDED.pattern.replace('((?:', '(?:(?:')}\s*)+", re.S)
_CHOICE = re.compile(r"[A-H]\. ")


@cache
def math_style() -> str:
    """Return the font of formulas as a sheet that holds it: not every browser reads fonts from the disk."""
    font = base64.b64encode(files(__package__).joinpath("fonts", "math.woff").read_bytes()).decode()
    source = f'url("data:font/woff;base64,{font}") format("woff")'
    return f'@font-face {{ font-family: "tinytx math"; src: {source}; }}\n'


def write_shared(folder: Path, page: str) -> None:
    """Write next to a page the files that it reads."""
    if 'src="site.js"' in page:
        (folder / "site.js").write_text(site_script(), encoding="utf-8")
    if "<math" in page:
        (folder / "math.css").write_text(math_style(), encoding="utf-8")
    for name, script in assets.shared_files(assets.explorers_in(page)).items():
        (folder / name).write_text(script, encoding="utf-8")


def style_sheet(body: str = "", own: Iterable[str] = ()) -> str:
    """Return the style of a page: what all have, what this body needs, and the sheets named."""
    sheet = "\n".join(text_of(f"site/css/{name}.css") for name in (*_ALWAYS, *own))
    if 'class="highlight' in body:
        sheet += code_style()
    if 'class="txd' in body:
        sheet += diagram_style()
    if kinds := assets.explorers_in(body):
        sheet += assets.style_sheet(kinds)
    return assets.compact_style(sheet + figures.style_sheet())


def first_script() -> str:
    """Return what is run before anything is drawn: light, dark or as the system says."""
    return assets.shared_script("_store.js") + assets.compact(text_of("site/js/look.js"))


@cache
def site_script() -> str:
    """Return what all pages share, each part in a function of its own, which does nothing on other pages."""
    parts = "\n".join(f"(() => {{\n{text_of(f'site/js/{name}.js')}}})();" for name in _SCRIPTS.split())
    own = assets.compact(f"{text_of('site/js/words.js')}{parts}")
    return f"(() => {{\n{assets.shared_script('_elements.js')}\n{own}\n}})();\n"


def fill_page(
    template: str,
    *,
    title: str,
    about: str = "",
    sheets: Iterable[str] = (),
    scripted: bool = True,
    policy: str = "",
    description: str = _ABOUT,
    picture: str = "",
    **values: Any,
) -> str:
    """Return a whole page: what its template holds, in the shell of all pages.

    Parameters
    ----------
    template : str
        Its file; `values` are filled in.
    title : str
    about : str
        Attributes of the body.
    sheets : iterable of str
        Files of css/ that not all pages need.
    scripted : bool
        Whether it reads ``site.js``.
    policy : str
        What a browser is to refuse (Content-Security-Policy); such a page has no script at all.
    description : str
        What a link to the page says of it, where links are shown with a text.
    picture : str
        What is shown with it, a file of stills/.
    """
    body = _STYLES.sub(r"\1", render(f"site/{template}", title=title, **values).rstrip())
    script = '<script src="site.js"></script>' if scripted and not policy else ""
    if kinds := assets.explorers_in(body):
        script += "".join(f'\n<script src="{name}"></script>' for name in assets.shared_files(kinds))
        script += f'\n<script type="module">\n{assets.page_script(kinds, alone=False)}\n</script>'
    return render(
        "site/shell.html",
        title=title,
        description=description,
        picture=bare.sent(picture),
        style=style_sheet(body, sheets),
        first=first_script(),
        policy=policy,
        about=about,
        body=typographic(body),
        script=script,
    )


def bar(where: str, shown: Sequence[Lesson], lesson: Lesson | None = None, *, present: bool = False) -> str:
    """Return the bar of a page; `shown` are the lessons that have a page."""
    before, after = neighbours(lesson, shown)
    around = {"lesson": lesson, "before": before, "after": after}
    return render("site/bar.html", courses=by_course(), shown=shown, where=where, present=present, **around)


def neighbours(lesson: Lesson | None, shown: Sequence[Lesson]) -> tuple[Lesson | None, Lesson | None]:
    """Return the lessons before and after this one among those that have a page."""
    before = [one for one in shown if lesson and one.number < lesson.number]
    after = [one for one in shown if lesson and one.number > lesson.number]
    return (before[-1] if before else None), (after[0] if after else None)


def _qr_code(address: str) -> str:
    """Return an address as a code for phones, on the first screen in front of a class; "" without one."""
    if not address:
        return ""
    import segno

    return segno.make(address, micro=False).svg_inline(light="white", omitsize=True, lineclass=None)


def without_answers(body: str, number: int, *, on_screen: bool = False) -> tuple[str, str]:
    """Return a lesson without what it folds, and what it folds: hints, solutions, answers, numbered.

    Parameters
    ----------
    body : str
    number : int
        Of the lesson.
    on_screen : bool
        Leave on the screen what is folded; only on paper links take its place.

    Examples
    --------
    >>> text, answers = without_answers("<p>1 + 1?</p><details><summary>Answer</summary>2</details>", 3)
    >>> text
    '<p>1 + 1?</p><p class="see">Answer: <a href="#answer-3-1">3.1 at the end</a></p>'
    >>> answers
    '<div id="answer-3-1"><h3>3.1</h3><p><b>Answer</b></p>2</div>'
    """
    found: list[str] = []

    def moved(match: re.Match[str]) -> str:
        parts = _FOLDED.findall(match[0])
        label, anchor = f"{number}.{len(found) + 1}", f"answer-{number}-{len(found) + 1}"
        inside = "".join(f"<p><b>{name}</b></p>{content}" for name, content in parts)
        found.append(f'<div id="{anchor}"><h3>{label}</h3>{inside}</div>')
        choices = [name for name, _ in parts if _CHOICE.match(name)]
        what = "Answer" if choices else ", ".join(name for name, _ in parts)
        shown = "".join(f'<p class="choice">{name}</p>' for name in choices)
        link = f'{shown}<p class="see">{what}: <a href="#{anchor}">{label} at the end</a></p>'
        if not on_screen:
            return link
        return f'<div class="on-screen">{match[0]}</div><div class="on-paper">{link}</div>'

    return _TOGETHER.sub(moved, body), "".join(found)


def _with_trial(body: str, picture: str) -> str:
    """Show the first explorer of a lesson, or its main figure, as a picture below the title."""
    if found := bare.EXPLORER.search(body):
        body = f'{body[: found.start()]}<div id="explorer"{body[found.start() + 4 :]}'
        link, words = "explorer", f"◆ Try it: {found[2]}"
    elif found := bare.main_figure(body):
        link, words = found[1], f"▣ {found[2]}"
    else:
        return body
    phone = bare.still(f"{Path(picture).stem}-phone")
    image = f'<img src="{picture}" width="1200" height="630" alt="">' if picture else ""
    if phone:
        source = f'<source media="(max-width: 40rem)" srcset="{phone}" width="624" height="480">'
        image = f"<picture>{source}{image}</picture>"
    return body.replace("</h1>", f'</h1><p class="try"><a href="#{link}">{image}{words}</a></p>', 1)


def page(run: Run, shown: Sequence[Lesson] = LESSONS, drawings: Path | None = None) -> str:
    """Return one lesson as a whole page.

    Parameters
    ----------
    run : Run
    shown : sequence of Lesson
        Those that have a page: they are linked.
    drawings : Path, optional
        The folder of the figures as SVG.
    """
    lesson = run.lesson
    body = notebook_to_html(run.notebook, lesson, shown, drawings)
    body = re.sub(r'href="(?!notebooks/)([\w./-]+)\.ipynb(#[^"]*)?"', r'href="\1.html\2"', body)
    body = body.replace('class="anchor-link"', 'class="anchor-link" tabindex="-1" aria-hidden="true"')
    body, answers = without_answers(body, lesson.number, on_screen=True)
    picture = bare.main_still(body, lesson.name)
    body = _with_trial(body, picture)
    before, after = neighbours(lesson, shown)
    address = source_of(project_root())
    return fill_page(
        "page.html",
        title=f"{titled(lesson)} · tinytx",
        picture=picture,
        about=f' data-lesson="{lesson.name}"',
        description=f"{lesson.question} Lesson {lesson.number:02d} of a course on transformers. {_SHOWS}",
        bar=bar(f"Lesson {lesson.number:02d}", shown, lesson, present=True),
        address=address,
        elsewhere=open_links(address, lesson.name),
        code=_qr_code(address),
        contents=finding.contents(body),
        failed=run.failure,
        body=finding.numbered(body),
        answers=answers,
        lesson=lesson,
        before=before,
        after=after,
    )


def other_pages(folder: Path) -> dict[str, str]:
    """Return by name the pages that are no lesson; lessons that have a page in `folder` are linked."""
    shown = lessons_in(folder)
    explorers = [
        one
        for lesson in shown
        for one in bare.gallery((folder / f"{lesson.name}.html").read_text(encoding="utf-8"), lesson.name)
    ]
    first: dict[str, str] = {}
    for term in sorted(terms().values(), key=lambda term: term.name.lower()):
        first.setdefault(term.name[0].upper(), term.anchor)
    pages: dict[str, dict[str, Any]] = {
        "glossary": {
            "letters": first,
            "terms": terms_table({lesson.number: f"{lesson.name}.html" for lesson in shown}),
            "names": names_table().replace("<td>–</td>", "<td></td>"),
        },
        "gallery": {"explorers": explorers, "sheets": ["front"]},
        "reference": {"body": reference_body(), "sheets": ["reference"]},
        "exercises": {"body": exercises_body(folder, shown), "sheets": ["exercises"]},
        "playground": {
            "body": playground().to_html(),
            "sheets": ["playground"],
            "behind": [one for one in shown if one.slug in ("pretraining", "bug_museum")],
        },
    }
    for name, values in pages.items():
        values["contents"] = finding.contents(values.get("body", ""))
        values |= {"title": f"{name.capitalize()} · tinytx", "bar": bar("", shown)}
        values |= {"description": _DESCRIPTIONS[name], "picture": bare.still(bare.PLAIN)}
    return {name: fill_page(f"{name}.html", **values) for name, values in pages.items()}


def index_page(runs: Sequence[Run], folder: Path, drawings: Path | None = None) -> str:
    """Return the first page: what the course is, and its lessons as a map.

    Pages of earlier runs in `folder` are linked too.
    """
    shown = lessons_in(folder, [run.lesson for run in runs])
    return fill_page(
        "index.html",
        title="tinytx · a course on transformers",
        sheets=["front"],
        picture=bare.still(bare.PLAIN),
        bar=bar("", shown),
        shown=shown,
        parts=front.course_map(shown, {run.lesson for run in runs if run.failure}, folder, drawings),
        facts=front.facts(runs),
        **front.doors(shown),
    )


def lessons_in(folder: Path, others: Iterable[Lesson] = ()) -> list[Lesson]:
    """Return the lessons that have a page in `folder`, and the others, in order."""
    known = set(others)
    return [lesson for lesson in LESSONS if lesson in known or (folder / f"{lesson.name}.html").is_file()]


def _write(page: str, path: Path) -> Path:
    """Write a page, and next to it the files that it reads, and its explorers alone."""
    page = bare.write_beside(path.parent, page, path.stem)
    path.write_text(page, encoding="utf-8")
    write_shared(path.parent, page)
    return path


def write_page(run: Run, folder: Path, coming: Iterable[Lesson] = (), drawings: Path | None = None) -> Path:
    """Write the page of one lesson, and its notebook; it links lessons with a page and those `coming`."""
    (folder / "notebooks").mkdir(parents=True, exist_ok=True)
    small = json.dumps(without_outputs(run.notebook), ensure_ascii=False, separators=(",", ":"))
    (folder / "notebooks" / f"{run.lesson.name}.ipynb").write_text(small, encoding="utf-8")
    shown = lessons_in(folder, {run.lesson, *coming})
    return _write(page(run, shown, drawings), folder / f"{run.lesson.name}.html")


def write_index(runs: Sequence[Run], folder: Path, drawings: Path | None = None) -> Path:
    """Write the pages that are no lesson, such as the glossary and the search; return the index."""
    for name, text in other_pages(folder).items():
        _write(text, folder / f"{name}.html")
    (folder / "search-index.js").write_text(finding.search_index(folder), encoding="utf-8")
    return _write(index_page(runs, folder, drawings), folder / "index.html")


def write_site(runs: Sequence[Run], folder: Path, drawings: Path | None = None) -> Path:
    """Write a page a lesson, and what links them; pages of other lessons stay. Return the first page."""
    for run in runs:
        write_page(run, folder, [run.lesson for run in runs], drawings)
    return write_index(runs, folder, drawings)
