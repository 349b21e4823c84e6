"""TODO: one line."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from experiments.transfer_data import (
    DOCSTRINGS,
    ELSEWHERE,
    PACKAGE_RECIPES,
    PIECES_WORDS,
    REVIEW_RECIPES,
    PackageSources,
    ReviewSources,
    Task,
    Text,
    TransferRecipe,
    Tuning,
    digest_of,
)

OBJECTIVES = ("counts", "causal", "masked")


WAYS = ("tuned", "brief", "probe", "tfidf", "letters")


STAR_WAYS = ("tfidf+stars",)


BAGS = ("majority", "tfidf-logistic", "tfidf-bayes", "tfidf-letters")


STAR_BAGS = ("tfidf+linear-stars",)


@dataclass(frozen=True)
class Condition:
    """A way to name the class of a text.

    Attributes
    ----------
    name : str
        One of `BAGS`, or BODY, or BODY/WAY with a way of `WAYS`. BODY is "scratch", "scratch-causal" or
        OBJECTIVE:TEXT: pretrained with an objective of `OBJECTIVES` on a text of the task. A task with a
        neighbour also knows `STAR_BAGS`, BODY/tfidf+stars, and as BODY "stars" and OBJECTIVE:TEXT+stars:
        trained, last or only, on the star ratings of other readers.
    objective : str or None
        None for new weights.
    text : str or None
    stars : bool
    causal : bool
        Whether the body looks to the left only.
    way : str
        "tuned": all of it learns; "brief": the same, in few and small steps; "probe": a linear model reads
        its states; "tfidf": the same, beside the words themselves; "letters": and beside runs of letters;
        "tfidf+stars": beside words and the stars that a linear model foretells; "bag": no body. A body that
        learned stars gives its opinion to the last three, others their states.
    needs_fold : bool
        Whether the body is pretrained for each fold anew, on texts that are not tested there.
    """

    name: str
    objective: str | None = None
    text: str | None = None
    stars: bool = False
    causal: bool = False
    way: str = "bag"
    needs_fold: bool = False

    @property
    def is_fresh(self) -> bool:
        """Whether the body has new weights."""
        return self.objective is None and not self.stars

    def tuning(self, recipe: TransferRecipe) -> Tuning | None:
        """How a recipe trains the body on the labels; None where they do not change it."""
        if self.way not in ("tuned", "brief"):
            return None
        tuning = recipe.fresh_tuning if self.is_fresh else recipe.tuning
        return tuning.brief() if self.way == "brief" else tuning

    def origin(self, recipe: TransferRecipe) -> dict[str, Any]:
        """The part of a record's origin that follows from the recipe alone; nothing where no body is used."""
        if self.way == "bag":
            return {}
        tuning = self.tuning(recipe)
        return {
            "model": digest_of(recipe.config(causal=self.causal).to_dict()),
            "tuning": None if tuning is None else dataclasses.asdict(tuning),
        }


def condition(name: str, task: Task) -> Condition:
    """The condition of a name, for a task that has the texts for it."""
    with_stars = task.neighbour is not None
    bags, ways = (*BAGS, *STAR_BAGS * with_stars), (*WAYS, *STAR_WAYS * with_stars)
    if name in bags:
        return Condition(name)
    body, slash, way = name.partition("/")
    way = way if slash else "tuned"
    if way not in ways:
        raise ValueError(f"a body must be read by one of {', '.join(ways)}, got {name!r}")
    if body in ("scratch", "scratch-causal"):
        return Condition(name, causal=body == "scratch-causal", way=way)
    if body == "stars" and with_stars:
        return Condition(name, stars=True, way=way)
    pretrained, plus, stars = body.partition("+")
    objective, _, text = pretrained.partition(":")
    if objective not in OBJECTIVES or (plus and not (with_stars and stars == "stars")):
        bodies = "stars or OBJECTIVE:TEXT[+stars]" if with_stars else "or OBJECTIVE:TEXT"
        known = f"{', '.join(bags)}, scratch, scratch-causal, {bodies}"
        raise ValueError(f"condition must be {known}, objectives {', '.join(OBJECTIVES)}, got {name!r}")
    if text not in task.texts:
        raise ValueError(f"text must be one of {', '.join(task.texts)}, got {text!r} in {name!r}")
    return Condition(
        name, objective, text, bool(plus), objective == "causal", way, needs_fold=task.texts[text].own
    )


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
