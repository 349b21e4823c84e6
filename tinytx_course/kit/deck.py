"""What of a lesson goes on slides: chosen by rules from its published notebook, its notes and its votes.

Prose stays out of the slides and goes to the speaker notes. A heading opens a stack of slides; its figures,
explorers, formulas, short code and predictions follow in their order, then its votes and talking points.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from tinytx_course.building.editions import at_headings, is_further
from tinytx_course.building.elsewhere import is_first_cell
from tinytx_course.building.notebooks import joined_streams
from tinytx_course.building.statements import statements_in
from tinytx_course.kit.code_slides import code_slides
from tinytx_course.kit.outline import cards
from tinytx_course.kit.teaching import Teaching, exercise_steps, read_teaching
from tinytx_course.lessons import Lesson
from tinytx_course.quizzes.bank import Question, votes, with_twins
from tinytx_course.site.cells import markdown_to_html
from tinytx_course.site.figures import Figures
from tinytx_course.site.templates import line_to_html, macro

_HOW = (
    "A minute alone, then all show a letter. Say no answer. Fewer than 3 in 10 right: explain again. "
    "More than 7 in 10 right: skip the twin, go on to the answers.",
    "First two minutes with a neighbour who chose another letter. The answers to both come after this vote.",
)
WORDS = 44  # of talking points on a slide, at most
_LARGEST = 10**6  # characters of a drawing: letters of a picture of pixels cannot grow
_NO_SLIDES = {"Set-up", "Questions", "Exercises", "Summary"}  # sections for the notebook alone
_NOT_ALIVE = {"outcome", "parsons"}  # cards that are part of a vote, or an exercise
_FORMULA = re.compile(r"\$\$.+?\$\$", re.S)
_FIGCAPTION = re.compile(r'<figcaption>(?:<a class="number"[^>]*>(.*?)</a>)?(.*?)</figcaption>', re.S)
_NUMBERED = "<p><strong>Figure "  # how the note of a figure begins
_made = partial(macro, "kit/deck.html")


@dataclass(frozen=True, kw_only=True)
class Slide:
    """One slide: its kind is a class of the style sheet; body and notes are HTML."""

    kind: str
    title: str = ""
    body: str = ""
    notes: str = ""


@dataclass(kw_only=True)
class Stack:
    """The slides of one section; `headings` are its own and those within it."""

    headings: list[str]
    slides: list[Slide] = field(default_factory=list)


def make_deck(lesson: Lesson, root: Path) -> list[Stack]:
    """Return the slides of a lesson, a stack a section; nothing is executed.

    Raises
    ------
    ValueError
        If its notes or its votes lack a part.
    """
    notebook = nbformat.read(root / "notebooks" / f"{lesson.name}.ipynb", 4)
    teaching, voted = read_teaching(lesson, root), votes(lesson)
    stacks = _sections(notebook, lesson, root / "figures")
    taught = [stack for stack in stacks if stack.headings[0] not in _NO_SLIDES]
    for number, stack in enumerate(taught, 1):
        asked = [vote for vote in voted if vote.section in stack.headings]
        _frame(stack, teaching, f"{number} of {len(taught)}", asked)
    return [_beginning(teaching), *taught, _ending(notebook, teaching)]


def _frame(stack: Stack, teaching: Teaching, place: str, votes: Iterable[Question]) -> None:
    """Put the opening slide of a section before what it shows; votes, talking points, exercise after it."""
    heading = stack.headings[0]
    notes = teaching.sections[heading]
    voted = [slide for vote in votes for slide in _vote(vote)]
    if voted and stack.slides and stack.slides[-1].kind == "figure":  # what is said of it answers the votes
        prose, *caption = stack.slides[-1].notes.rpartition(_NUMBERED)
        stack.slides[-1] = replace(stack.slides[-1], notes="".join(caption))
        voted[-1] = replace(voted[-1], notes=voted[-1].notes + prose)
    asks = any(slide.kind == "vote" for slide in [*stack.slides, *voted])
    groups = f"**Groups:** {notes.groups}\n\n" if notes.groups else ""
    said = groups + "\n".join(f"- {point}" for point in notes.points)
    said += f"\n\n**Then:** {notes.then}" if notes.then else ""
    opening = Slide(
        kind="opener",
        title=line_to_html(heading),
        body=f"<p>{place}</p>",
        notes=markdown_to_html(
            f"**Board:** {notes.board}\n\n{'**After the votes:**' if asks else ''}\n\n{said}"
        ),
    )
    talking = [
        Slide(kind="points", title=line_to_html(heading), body=body)
        for body in _portions(map(line_to_html, notes.points))
    ]
    together = [Slide(kind="waking", body=f"<p>{line_to_html(notes.groups)}</p>")] if notes.groups else []
    stack.slides = [opening, *stack.slides, *voted, *together, *talking]
    if notes.exercise:
        way = markdown_to_html(exercise_steps(teaching.lesson, notes.exercise))
        title = f"Exercise: {line_to_html(notes.exercise)}"
        stack.slides.append(Slide(kind="exercises", title=title, body=way))


def words_in(body: str) -> int:
    """Return how many words a piece of HTML shows; a formula is one.

    Examples
    --------
    >>> words_in("<p>True means <em>may attend</em>.</p>")
    4
    """
    plain = re.sub(r"<[^>]+>", "", re.sub(r"(?s)<math.*?</math>", "x", body))
    return len(re.findall(r"\S*\w\S*", plain))


def _portions(items: Iterable[str]) -> list[str]:
    """Return lists of at most 44 words, one a slide; items after the first come with a key."""
    portions: list[list[str]] = [[]]
    for item in items:
        if portions[-1] and sum(map(words_in, portions[-1])) + words_in(item) > WORDS:
            portions.append([])
        later = ' class="fragment"' if portions[-1] else ""
        portions[-1].append(f"<li{later}>{item}</li>")
    return [f"<ul>{''.join(portion)}</ul>" for portion in portions]


def _beginning(teaching: Teaching) -> Stack:
    """Return the title, and the question that wakes the room."""
    lesson, about = teaching.lesson, teaching.about_all
    head = f"**Aim:** {teaching.aim}\n\n**Run before:** {teaching.run_before}\n\n"
    title = Slide(
        kind="first",
        title=f"{lesson.number:02d} · {lesson.title}",
        body=f"<p>{html.escape(lesson.question)}</p>",
        notes=markdown_to_html(f"{head}**When late**\n\n{about['When late']}"),
    )
    waking = f"<p>{line_to_html(about['The question that wakes the room'])}</p>"
    return Stack(headings=[lesson.title], slides=[title, Slide(kind="waking", body=waking)])


def _ending(notebook: NotebookNode, teaching: Teaching) -> Stack:
    """Return the list of exercises; wrong ideas and where people get stuck are in its notes."""
    texts = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    found = statements_in(texts, teaching.lesson.number)
    about = (
        f"**{name}**\n\n{teaching.about_all[name]}" for name in ("Wrong ideas", "Where people get stuck")
    )
    slide = Slide(
        kind="exercises",
        title="Exercises" if found else "Your turn",
        body=_made("exercises", found) if found else "<p>The questions at the end of the notebook.</p>",
        notes=markdown_to_html("\n\n".join(about)),
    )
    return Stack(headings=[slide.title], slides=[slide])


def _sections(notebook: NotebookNode, lesson: Lesson, drawings: Path) -> list[Stack]:
    """Return the stack of each heading of the notebook, with what its cells show."""
    figures = Figures(lesson.number, drawings, largest=_LARGEST)
    outcomes = {state["number"]: state for kind, state in cards(notebook.cells) if kind == "outcome"}
    stacks: list[Stack] = []
    title = prose = ""
    for cell in notebook.cells:
        if cell.cell_type == "code" and not is_first_cell(cell):
            outputs = figures.renew(joined_streams(cell.outputs))  # all are numbered, shown or not
            for slide in _of_code(cell.source, outputs, outcomes) if stacks and not is_further(cell) else ():
                stacks[-1].slides.append(
                    replace(slide, title=slide.title or title, notes=prose + slide.notes)
                )
                prose = ""
            continue
        for level, heading, text in at_headings(cell.source) if cell.cell_type == "markdown" else ():
            if is_further(cell):
                break
            title = line_to_html(heading) or title
            if level == "##":
                stacks.append(Stack(headings=[]))
            if stacks:
                stacks[-1].headings += [heading] if heading else []
                prose = markdown_to_html(_FORMULA.sub("", text))
                if formulas := "".join(map(markdown_to_html, _FORMULA.findall(text))):
                    body = f'<div class="fit">{formulas}</div>'
                    stacks[-1].slides.append(Slide(kind="formula", title=title, body=body, notes=prose))
                    prose = ""
    return stacks


def _of_code(
    source: str, outputs: Iterable[NotebookNode], outcomes: dict[str, dict[str, Any]]
) -> Iterator[Slide]:
    """Give the slides of a code cell: its code if it is short, predictions, explorers, figures."""
    shown = list(outputs)
    printed = "".join(output.text for output in shown if output.output_type == "stream")
    for body in code_slides(source, printed):
        yield Slide(kind="code", body=body)
    for output in shown:
        body = output.get("data", {}).get("text/html", "")
        if '<figure class="figure"' in body or '<figure class="txd"' in body:
            yield _figure(body)
            continue
        for kind, state in cards([NotebookNode(outputs=[output])]):
            if kind == "questions":
                yield from _prediction(state, outcomes)
            elif kind not in _NOT_ALIVE:
                yield Slide(kind="explorer", body=f'<div class="fit">{body}</div>')


def _figure(body: str) -> Slide:
    """Return a figure without its caption, which is in the notes: the picture has the slide for itself."""
    number, words = caption.groups("") if (caption := _FIGCAPTION.search(body)) else ("", "")
    body = _FIGCAPTION.sub("", body)
    return Slide(kind="figure", body=body, notes=f"<p><strong>{number}.</strong> {words.strip()}</p>")


def _prediction(state: dict[str, Any], outcomes: dict[str, dict[str, Any]]) -> Iterator[Slide]:
    """Give the vote on a prediction: the answer and what was measured come with a key."""
    for question in state["questions"]:
        outcome = outcomes.get(question["key"])
        if outcome is None:
            continue  # a quiz, which belongs to the notebook
        texts = [choice["text"] for choice in question["choices"]]
        body = _made("ballot", question["prompt"], texts, outcome["answer"], outcome["finding"])
        yield Slide(kind="vote", title=f"Predict {question['key']}", body=body)


def _vote(vote: Question) -> Iterator[Slide]:
    """Give a question of the vote cards, its twin, and with one more key the answers to both."""
    asked = with_twins([vote])
    for one, title, how in zip(asked, ("Vote", "Discuss, then vote again"), _HOW, strict=False):
        body = _made("ballot", one.prompt, [option.text for option in one.options])
        yield Slide(kind="vote", title=title, body=body, notes=f"<p>{how}</p>{_made('reveals', one)}")
    notes = "".join(_made("reveals", one) for one in asked)
    yield Slide(kind="answers", title="The answers", body=_made("answers", asked), notes=notes)
