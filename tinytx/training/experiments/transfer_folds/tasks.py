"""The tasks: real reviews in French, and docstrings by package."""

from __future__ import annotations

from tinytx.training.experiments.transfer_folds.conditions import BAGS, STAR_BAGS
from tinytx.training.experiments.transfer_folds.package_recipes import PACKAGE_RECIPES, PIECES_WORDS
from tinytx.training.experiments.transfer_folds.package_sources import DOCSTRINGS, PackageSources
from tinytx.training.experiments.transfer_folds.review_recipes import REVIEW_RECIPES
from tinytx.training.experiments.transfer_folds.review_sources import ELSEWHERE, ReviewSources
from tinytx.training.experiments.transfer_folds.task import Task, Text

# Which of two classes a review is of: the words that tell are few, and unlabelled text does not mark them.
REVIEWS = Task(
    corpus="cls-books",
    sources=ReviewSources,
    texts={
        **{name: Text(name) for name in (*ELSEWHERE, "around")},
        "reviews": Text(None, own=True),
        "near": Text("readers", own=True),
        "all": Text("around", own=True),
    },
    pieces_from="around",
    pieces_words={"novels": 300_000, "tatoeba": 200_000, "readers": 10_000_000},
    recipes=REVIEW_RECIPES,
    conditions=(
        *BAGS,
        *STAR_BAGS,
        "scratch",
        "scratch-causal",
        *(
            f"{objective}:{text}"
            for objective in ("causal", "masked")
            for text in (*ELSEWHERE, "around", "reviews", "near", "all")
        ),
        "masked:near/brief",
        "masked:near/probe",
        "masked:near/tfidf",
        "masked:near/letters",
        "counts:near",
        "counts:near/probe",
        "counts:near/tfidf",
        "stars",
        "counts:readers+stars",
        "masked:readers+stars",
        "counts:readers+stars/tfidf",
        "counts:readers+stars/tfidf+stars",
    ),
    neighbour="readers",
)

# Which package a text comes from: what it is about tells, and unlabelled text says what belongs together.
PACKAGES = Task(
    corpus="docstrings-packages",
    sources=PackageSources,
    texts={DOCSTRINGS: Text(DOCSTRINGS)},
    pieces_from=DOCSTRINGS,
    pieces_words=PIECES_WORDS,
    recipes=PACKAGE_RECIPES,
    conditions=(
        *BAGS,
        "scratch",
        "scratch-causal",
        *(
            f"{objective}:{DOCSTRINGS}{way}"
            for objective in ("counts", "masked", "causal")
            for way in ("", "/probe", "/tfidf", "/letters")
        ),
    ),
    n_texts=2_400,
)

TASKS = {task.corpus: task for task in (REVIEWS, PACKAGES)}


def task_of(corpus: str) -> Task:
    """The task of a corpus.

    Examples
    --------
    >>> task_of("cls-books").n_folds
    6
    """
    if corpus not in TASKS:
        raise ValueError(f"corpus must be one of {', '.join(TASKS)}, got {corpus!r}")
    return TASKS[corpus]
