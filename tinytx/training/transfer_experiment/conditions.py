"""What is compared: a name says how a body came about and how it is read."""

from __future__ import annotations

from dataclasses import dataclass

from tinytx.training.transfer_experiment.sources import BEFORE_REVIEWS, TEXTS

OBJECTIVES = ("counts", "causal", "masked")
WAYS = ("tuned", "probe", "tfidf", "tfidf+stars")
BAGS = ("majority", "tfidf-logistic", "tfidf-bayes", "tfidf+linear-stars")

# Compared at 200 labels; the best of each kind have the full table.
CONDITIONS = (
    *BAGS,
    "scratch",
    "scratch-causal",
    *(f"{objective}:{text}" for objective in ("causal", "masked") for text in TEXTS),
    "masked:near/probe",
    "counts:near",
    "counts:near/probe",
    "counts:near/tfidf",
    "stars",
    "counts:readers+stars",
    "masked:readers+stars",
    "counts:readers+stars/tfidf",
    "counts:readers+stars/tfidf+stars",
)


@dataclass(frozen=True)
class Condition:
    """A way to name the class of a review.

    Attributes
    ----------
    name : str
        One of `BAGS`, or BODY, BODY/probe, BODY/tfidf, BODY/tfidf+stars. BODY is "scratch",
        "scratch-causal", "stars", OBJECTIVE:TEXT or OBJECTIVE:TEXT+stars: pretrained with an objective of
        `OBJECTIVES` on a text of `TEXTS`, then, with "+stars", trained on the star ratings of other readers.
    objective : str or None
        None for new weights.
    text : str or None
    stars : bool
    causal : bool
        Whether the body looks to the left only.
    way : str
        "tuned": all of it learns; "probe": a linear model reads its states; "tfidf": the same, beside the
        words themselves; "tfidf+stars": and beside the stars that a linear model foretells; "bag": no body.
        A body that learned stars gives its opinion to the last two, others their states.
    """

    name: str
    objective: str | None = None
    text: str | None = None
    stars: bool = False
    causal: bool = False
    way: str = "bag"

    @property
    def is_fresh(self) -> bool:
        """Whether the body has new weights."""
        return self.objective is None and not self.stars

    @property
    def needs_fold(self) -> bool:
        """Whether the body is pretrained for each fold anew, on reviews that are not tested there."""
        return self.text in BEFORE_REVIEWS


def condition(name: str) -> Condition:
    """The condition of a name.

    Examples
    --------
    >>> condition("masked:around+stars/probe").way, condition("causal:novels").causal
    ('probe', True)
    >>> condition("masked:newspapers")
    Traceback (most recent call last):
    ValueError: text must be one of novels, tatoeba, readers, around, reviews, near, all, got 'newspapers' ...
    """
    if name in BAGS:
        return Condition(name)
    body, slash, way = name.partition("/")
    way = way if slash else "tuned"
    if way not in WAYS:
        raise ValueError(f"a body must be read by one of {', '.join(WAYS)}, got {name!r}")
    if body in ("scratch", "scratch-causal"):
        return Condition(name, causal=body == "scratch-causal", way=way)
    if body == "stars":
        return Condition(name, stars=True, way=way)
    pretrained, plus, stars = body.partition("+")
    objective, _, text = pretrained.partition(":")
    if objective not in OBJECTIVES or (plus and stars != "stars"):
        known = f"{', '.join(BAGS)}, scratch, scratch-causal, stars or OBJECTIVE:TEXT[+stars]"
        raise ValueError(f"condition must be {known}, objectives {', '.join(OBJECTIVES)}, got {name!r}")
    if text not in TEXTS:
        raise ValueError(f"text must be one of {', '.join(TEXTS)}, got {text!r} in {name!r}")
    return Condition(name, objective, text, bool(plus), objective == "causal", way)
