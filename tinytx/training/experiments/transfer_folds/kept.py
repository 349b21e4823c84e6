"""The table of an experiment from its kept records alone, where neither texts nor bodies are at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tinytx.training.experiments.transfer_folds.conditions import condition
from tinytx.training.experiments.transfer_folds.rows import TableRow, row_of
from tinytx.training.experiments.transfer_folds.tasks import TASKS


def kept_rows(records: Mapping[str, Mapping[str, Any]], budget: str | None = None) -> list[TableRow]:
    """Rows of which every fold is kept; others are left out.

    Parameters
    ----------
    records : mapping of str to mapping
        By key, as ``tinytx experiment transfer --corpus cls-books`` keeps them.
    budget : str, optional
        By default that of most records.

    Returns
    -------
    list of TableRow
        In the order of the records, over as many repetitions of the folds as all of them have. Only those of
        one set of texts and folds, that of most records, and of the conditions, models and fine-tuning that
        the recipes have now, as others cannot be compared.

    Examples
    --------
    >>> cell = {"condition": "scratch", "n_labels": 50, "origin": {"texts": "a", "n_folds": 2}}
    >>> records = {
    ...     f"mine/study/scratch/labels 50/repeat 0/fold {k}": {**cell, "repeat": 0, "fold": k, "seed": k,
    ...     "accuracy": 0.5 + k / 10} for k in (0, 1)}
    >>> kept_rows(records)[0].accuracies
    (0.5, 0.6)
    """
    if not records:
        return []
    budgets = {key: key.split("/")[1] for key in records}
    budget = _commonest(budgets.values()) if budget is None else budget
    chosen = [one for key, one in records.items() if budgets[key] == budget and _is_of_the_recipe(key, one)]
    if not chosen:
        return []
    texts, n_folds = _commonest((one["origin"]["texts"], one["origin"]["n_folds"]) for one in chosen)
    cells: dict[tuple[str, int], dict[tuple[int, int], tuple[int, float]]] = {}
    for one in chosen:
        if (one["origin"]["texts"], one["origin"]["n_folds"]) == (texts, n_folds):
            row = cells.setdefault((one["condition"], one["n_labels"]), {})
            row[one["repeat"], one["fold"]] = one["seed"], one["accuracy"]
    for row_name in [name for name, row in cells.items() if _repeats(row, n_folds) == 0]:
        del cells[row_name]
    shared = min((_repeats(row, n_folds) for row in cells.values()), default=0)
    due = [(repeat, fold) for repeat in range(shared) for fold in range(n_folds)]
    whole = {name: dict(row[place] for place in due) for name, row in cells.items()}
    return [row_of(name, n, values, whole) for (name, n), values in whole.items()]


def _is_of_the_recipe(key: str, record: Mapping[str, Any]) -> bool:
    """Whether a record follows from the recipe as it is now, so far as can be told without the texts."""
    corpus, budget = key.split("/")[:2]
    task = TASKS.get(corpus)
    if task is None:
        return True
    try:
        wanted = condition(record["condition"], task)
    except ValueError:  # kept under a name that has been given up since
        return False
    origin = wanted.origin(task.recipes[budget])
    return all(record["origin"].get(name) == value for name, value in origin.items())


def _repeats(row: Mapping[tuple[int, int], Any], n_folds: int) -> int:
    """How many repetitions, from the first on, have all their folds."""
    repeat = 0
    while all((repeat, fold) in row for fold in range(n_folds)):
        repeat += 1
    return repeat


def _commonest(values: Any) -> Any:
    return Counter(values).most_common(1)[0][0]


_BAGS = {
    "majority": "the commoner class",
    "tfidf-logistic": "bag of words",
    "tfidf-bayes": "naive Bayes",
    "tfidf-letters": "bag of words and letters",
    "tfidf+linear-stars": "bag of words + stars foretold",
}
_BODIES = {"scratch": "from scratch", "scratch-causal": "from scratch, causal", "stars": "star ratings first"}
_WAYS = {
    "brief": "tuned briefly",
    "probe": "frozen",
    "tfidf": "+ bag",
    "letters": "+ bag and letters",
    "tfidf+stars": "+ bag + stars foretold",
}


def spoken(condition: str) -> str:
    """The name of a condition as a table for people has it.

    Examples
    --------
    >>> spoken("masked:near/probe"), spoken("counts:readers+stars"), spoken("tfidf-logistic")
    ('masked, near, frozen', 'counts, readers, then stars', 'bag of words')
    """
    if condition in _BAGS:
        return _BAGS[condition]
    body, _, way = condition.partition("/")
    pretrained, _, stars = body.partition("+")
    words = _BODIES.get(body) or pretrained.replace(":", ", ") + (", then stars" if stars else "")
    if not way:
        return words
    read = _WAYS.get(way, way)
    return f"{words} {read}" if read.startswith("+") else f"{words}, {read}"


def kind_of(condition: str) -> str:
    """What a condition learned from before it saw labels.

    Returns
    -------
    str
        "words" for a bag of words and "nothing" for a new body, which saw nothing before; "text", for one
        pretrained on text without labels; "neighbour", for whatever learned another task with labels, the
        stars that readers gave.

    Examples
    --------
    >>> [kind_of(name) for name in ("majority", "scratch", "masked:near/probe", "tfidf+linear-stars")]
    ['words', 'nothing', 'text', 'neighbour']
    """
    if "stars" in condition:
        return "neighbour"
    if condition in _BAGS:
        return "words"
    return "nothing" if condition.partition("/")[0] in _BODIES else "text"
