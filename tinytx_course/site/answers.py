"""What a lesson folds, hints, solutions and answers, apart: on paper it comes at the end, with links."""

from __future__ import annotations

import re

_FOLDED = re.compile(
    r"<details><summary>((?:(?!</summary>).)*)</summary>((?:(?!</?details).)*)</details>", re.S
)
_TOGETHER = re.compile(rf"(?:{_FOLDED.pattern.replace('((?:', '(?:(?:')}\s*)+", re.S)
_CHOICE = re.compile(r"[A-H]\. ")


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
