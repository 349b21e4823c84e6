"""The one table of lessons: the README, the map in notebook 00 and the index of the site come from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tinytx_course.results import ROOTS, Results, read_results

FURTHER = "further"  # the tag of cells that are folded on pages, counted apart, and not shown in class


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One notebook of the course."""

    number: int  # from 0, in the order of the course
    slug: str  # the name of its files, after the number
    title: str
    question: str  # the one that it answers
    seconds: int  # aimed running time on a laptop with two cores, stated until the lesson is published

    @property
    def name(self) -> str:
        """File name without ending, such as ``02_attention_and_masks``."""
        return f"{self.number:02d}_{self.slug}"


@dataclass(frozen=True, kw_only=True)
class Times:
    """How long a lesson takes."""

    reading: int  # minutes of its core to read
    doing: int  # minutes for its exercises, predictions, explorers, questions
    everything: int  # minutes with what is *Further*
    seconds: int  # to run, on two cores

    @property
    def core(self) -> int:
        """Minutes of the core."""
        return self.reading + self.doing

    def __str__(self) -> str:
        more = f", {self.everything} with everything" if self.everything > self.core else ""
        run = format_duration(self.seconds)
        return f"{self.reading} minutes to read and {self.doing} to do{more}; {run} to run"


_TABLE = (
    ("start_here", "Start here", "Does my machine run it, how does the course work, where does it lead?", 15),
    ("tokens", "Tokens", "What does a model read?", 25),
    ("attention_and_masks", "Attention and masks", "Who may attend to whom?", 15),
    ("positions", "Positions", "How does it know the order of words?", 40),
    ("many_heads", "Many heads", "Why many heads?", 30),
    ("the_block", "The block", "What holds a deep network together?", 45),
    ("counting_parameters", "Counting parameters", "How many numbers are learned?", 10),
    ("your_own_gpt", "Your own GPT", "Can I build it?", 60),
    ("pretraining", "Pretraining", "What does predicting the next token teach?", 120),
    ("transfer", "Transfer", "Is pretraining worth it?", 105),
    ("masked_or_causal", "Masked or causal", "What does looking both ways buy?", 75),
    ("translation", "Translation", "How do two languages meet?", 80),
    ("the_price_of_attention", "The price of attention", "Attention, recurrence or convolution?", 45),
    ("faster_and_larger", "Faster and larger", "Where does the time go?", 60),
    ("since_2017", "Since 2017", "What changed?", 60),
    ("real_text", "Real text", "Does it pay outside?", 60),
    ("real_models", "Real models", "Is it the same machine?", 45),
    ("looking_inside", "Looking inside", "What did it learn, and how do we know?", 45),
    ("bug_museum", "Bug museum", "What went wrong here?", 45),
)

LESSONS: tuple[Lesson, ...] = tuple(
    Lesson(number=number, slug=slug, title=title, question=question, seconds=seconds)
    for number, (slug, title, question, seconds) in enumerate(_TABLE)
)


#: Three short courses: the first lesson of each, its name, and what you have at its end.
COURSES = (
    (0, "A · The machine", "a GPT made of your own functions"),
    (8, "B · What it learns", "a model that you pretrained, fine-tuned and asked"),
    (12, "C · What it costs, today's models, the world outside", "your own verdict on a claim"),
)


def by_course() -> list[tuple[str, str, tuple[Lesson, ...]]]:
    """Return the three short courses: name, what you have at its end, lessons."""
    ends = [first for first, *_ in COURSES[1:]] + [len(LESSONS)]
    return [(name, has, LESSONS[first:end]) for (first, name, has), end in zip(COURSES, ends, strict=True)]


def project_root() -> Path:
    """Return the folder of the checkout this package is imported from.

    Raises
    ------
    ValueError
        If the package is installed without the notebooks of the course.
    """
    root = Path(__file__).resolve().parents[1]
    if not any((root / "notebooks").glob("*.ipynb")) and not (root / "notebooks" / "src").is_dir():
        raise ValueError(
            "the course needs a checkout of the project with its notebooks/ folder, "
            "got a package installed without one: clone the project and use `pip install -e .`"
        )
    return root


def course_file(name: str) -> Path:
    """Return the path of a file of the course, in the checkout, or where setup.py put it in a wheel.

    It is named from the root of the checkout, such as ``notebooks/gpt_one_page.py``.

    Raises
    ------
    FileNotFoundError
        If it is in neither place.
    """
    for root in ROOTS:
        if (root / name).is_file():
            return root / name
    raise FileNotFoundError(f"the course must hold {name}, got no such file here")


def written_lessons(root: Path | None = None) -> tuple[Lesson, ...]:
    """Return the lessons that have a source in ``notebooks/src``, in order.

    Where there are no sources, as in what ``tinytx-course release`` wrote, the notebooks themselves count.
    """
    folder = (root or project_root()) / "notebooks"
    sources = folder / "src"
    place, ending = (sources, "py") if sources.is_dir() else (folder, "ipynb")
    return tuple(lesson for lesson in LESSONS if (place / f"{lesson.name}.{ending}").is_file())


def pick_lessons(wanted: Iterable[str], root: Path | None = None) -> tuple[Lesson, ...]:
    """Return the written lessons named by number (``7``, ``07``), slug or name; all of them for nothing.

    Raises
    ------
    ValueError
        If a name fits no lesson that is written.
    """
    written = written_lessons(root)
    keys = {key: lesson for lesson in written for key in (str(lesson.number), lesson.slug, lesson.name)}
    picked = set()
    for word in wanted:
        key = word.removesuffix(".ipynb").removesuffix(".py")
        key = str(int(key)) if key.isdecimal() else key
        if key not in keys:
            numbers = ", ".join(f"{lesson.number:02d}" for lesson in written)
            raise ValueError(f"a lesson is named by its number or slug, one of {numbers}, got {word!r}")
        picked.add(keys[key])
    return tuple(lesson for lesson in written if lesson in picked) or written


def format_duration(seconds: float) -> str:
    """Return a duration in minutes and seconds.

    Examples
    --------
    >>> format_duration(10), format_duration(59.7), format_duration(80), format_duration(600)
    ('10 s', '1 min', '1 min 20 s', '10 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def lesson_table(folder: str = "", root: Path | None = None) -> str:
    """Return the lessons as a Markdown table, linked where they are written; links begin with `folder`.

    Where the course is installed without its notebooks, as in Colab, nothing is linked.
    """
    try:
        root = root or project_root()
        written = written_lessons(root)
    except ValueError:
        written = ()
    times = stored_times(root)
    rows = ["| | lesson | the question | it takes, on two cores |", "|---|---|---|---|"]
    for lesson in LESSONS:
        title = f"[{lesson.title}]({folder}{lesson.name}.ipynb)" if lesson in written else lesson.title
        time = times.get(lesson.name, "in preparation")
        rows.append(f"| {lesson.number:02d} | {title} | {lesson.question} | {time} |")
    return "\n".join(rows)


def course_table(folder: str = "", root: Path | None = None) -> str:
    """Return the three short courses as a Markdown table, with links to their lessons, and hours."""
    times = stored_times(root or project_root())
    rows = [
        "| short course | its lessons | at its end you have | core | with everything |",
        "|---|---|---|---|---|",
    ]
    for name, result, lessons in by_course():
        links = " · ".join(f"[{one.number:02d} {one.title}]({folder}{one.name}.ipynb)" for one in lessons)
        known = [times[one.name] for one in lessons if one.name in times]
        hours = [sum(one.core for one in known) / 60, sum(one.everything for one in known) / 60]
        rows.append(f"| **{name}** | {links} | {result} | {hours[0]:.0f} h | {hours[1]:.0f} h |")
    return "\n".join(rows)


def stored_times(root: Path | None = None) -> dict[str, Times]:
    """Return how long each published lesson takes, by name; without a checkout, as installed."""
    stored = read_results("lessons") if root is None else Results("lessons", root / "results")
    return {name: Times(**record) for name, record in stored.data.items()}
