"""What a group learned: answers before and after, read from a table, as a normalised gain with its interval.

Also how many learners such a comparison needs: the power of the paired t test, exactly.

Rows are as wide as the form (``learner, form, time, 1, 2, ...``, one a sitting) or long (``learner, form,
time, item, answer``). What cannot be used is named in one line each, and the rest is analysed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tinytx_course.grading.submission import printable, spelled_alike
from tinytx_course.inventory.items import FORMS, LETTERS, Stored, read_items
from tinytx_course.sheets import read_sheet
from tinytx_run.intervals import PairedInterval, paired_interval

TIMES = ("pre", "post")
N_RESAMPLES, SEED = 10_000, 0  # of the bootstrap
LEVEL = 0.05  # of a two-sided paired t test
MOST = 2_000  # learners
BEFORE = 0.4  # mean share of right answers before the lessons; guessing among four options alone gives 0.25
_SITTING = ("learner", "form", "time")


@dataclass(frozen=True)
class Sitting:
    """One learner's answers to one form."""

    learner: str
    form: str
    time: str
    answers: dict[int, str]  # letters by number of the item; what was left out is not there

    def share(self, items: Sequence[Stored]) -> float:
        """The share of right answers; one that was left out is not right."""
        right = [self.answers.get(item["number"]) == item["forms"][self.form]["key"] for item in items]
        return sum(right) / len(right)


@dataclass(frozen=True, kw_only=True)
class Gain:
    """What a group gained, of learners with both sittings."""

    before: float  # mean share of right answers
    after: float
    gain: float | None  # (after - before) / (1 - before); None where all was right before
    low: float | None  # of its 95 % interval; None with fewer than two learners
    high: float | None
    difference: PairedInterval | None  # of after - before, by Student's t
    n: int


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The analysis of a file of answers."""

    sittings: tuple[Sitting, ...]
    gain: Gain | None  # None where nobody has both sittings
    items: list[dict[str, Any]]  # for each its share of right answers, before and after
    misconceptions: list[dict[str, Any]]  # how often each was chosen of how often it was offered
    problems: list[str] = field(default_factory=list)  # what could not be used, or was read as left out

    def to_dict(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {**asdict(self), "sittings": len(self.sittings)}

    def __str__(self) -> str:
        lines = [*self.problems, ""] if self.problems else []
        lines.append(f"{len(self.sittings)} sittings of {len({s.learner for s in self.sittings})} learners")
        return "\n".join([*lines, in_a_sentence(self.gain)])


def in_a_sentence(gain: Gain | None) -> str:
    """The result for a group."""
    if gain is None:
        return "no learner has both sittings: no gain"
    shares = f"{gain.n} with both: {gain.before:.1%} right before, {gain.after:.1%} after"
    if gain.gain is None:
        return f"{shares}; all was right before, so nothing was left to gain"
    if gain.low is None:
        return f"{shares}; normalised gain {gain.gain:.2f}, without an interval (two learners are needed)"
    return f"{shares}; normalised gain {gain.gain:.2f}, 95 % interval {gain.low:.2f} to {gain.high:.2f}"


def analyse(path: Path) -> Survey:
    """Read a file of answers, see `read_sheet`, and analyse it.

    Raises
    ------
    ValueError
        If columns are missing, or no sitting can be used.
    """
    items = read_items()
    problems: list[str] = []
    sittings = read_sittings(path, items, problems)
    if not sittings:
        reasons = f": {problems[0]}" if problems else ""
        raise ValueError(f"{path} must hold at least one sitting that can be used, got none{reasons}")
    return Survey(
        sittings=tuple(sittings),
        gain=group_gain(_paired_shares(sittings, items, problems)),
        items=_by_item(sittings, items),
        misconceptions=_by_misconception(sittings, items),
        problems=problems,
    )


# ---- reading


def read_sittings(path: Path, items: Sequence[Stored], problems: list[str]) -> list[Sitting]:
    """The sittings of a file that can be used; one line in `problems` for each thing that cannot."""
    rows = [texts for _, texts in read_sheet(path)]
    names = [name.strip().lower() for name in rows[0]] if rows else []
    if missing := [name for name in _SITTING if name not in names]:
        raise ValueError(f"{path} must have the columns learner, form and time, got no {', '.join(missing)}")
    if twice := [name for name in names if name and names.count(name) > 1]:
        raise ValueError(f"{path} must name each column once, got {twice[0]} {len(twice)} times")
    known = {str(item["number"]): item["number"] for item in items}
    is_long, cells = {"item", "answer"} <= {*names}, []
    for number, texts in enumerate(rows[1:], 2):
        if any(map(str.strip, texts[len(names) :])):
            problems.append(f"row {number}: more cells than columns: {texts[len(names)]!a} is not read")
        row = defaultdict(str, zip(names, map(str.strip, texts), strict=False))
        if any(row.values()):
            given = {name: answer for name, answer in row.items() if name not in _SITTING}
            cells.append((number, row, {row["item"]: row["answer"]} if is_long else given))
    unknown = sorted({name for *_, given in cells for name in given if name not in known})
    problems += [f"unknown item {name!r}: left out" for name in unknown]
    return _joined(cells, known, problems)


def _joined(
    cells: Iterable[tuple[int, Mapping[str, str], Mapping[str, str]]],
    known: Mapping[str, int],
    problems: list[str],
) -> list[Sitting]:
    """One sitting for each learner and time; left out with two forms, or with two answers to an item."""
    forms: dict[tuple[str, str], set[str]] = defaultdict(set)
    answers: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    twice = set()
    spellings: dict[str, str] = {}
    for number, row, given in cells:
        name, form, time = row["learner"], row["form"].upper(), row["time"].lower()
        learner = spellings.setdefault(spelled_alike(name), printable(name))
        if learner != printable(name):
            problems.append(f"row {number}: {name!a} is read as another spelling of {learner!a}")
        if not learner or form not in FORMS or time not in TIMES:
            given_form = f"form must be A or B, got {form!r}"
            wrong = given_form if form not in FORMS else f"time must be pre or post, got {time!r}"
            problems.append(f"row {number}: {wrong if learner else 'no learner'}: left out")
            continue
        forms[learner, time].add(form)
        for name, answer in given.items():
            if name not in known or not answer:
                continue
            if answer.upper() not in LETTERS or len(answer) != 1:
                problems.append(f"row {number}, item {name}: {answer!r} is no answer: read as empty")
            elif known[name] in answers[learner, time]:
                twice.add((learner, time))
            else:
                answers[learner, time][known[name]] = answer.upper()
    found = []
    for who, taken in forms.items():
        name = f"{who[0]}, {who[1]}"
        empty = [str(n) for n in known.values() if n not in answers[who]]
        if len(taken) > 1 or who in twice:
            what = "two forms mixed" if len(taken) > 1 else "answers given twice"
            problems.append(f"{name}: {what} in one sitting: left out")
            continue
        if empty:
            shown = ", ".join(empty[:8]) + (f" and {len(empty) - 8} more" if len(empty) > 8 else "")
            problems.append(f"{name}: no answer to {shown}: counted as not right")
        found.append(Sitting(who[0], taken.pop(), who[1], answers[who]))
    return found


# ---- analysing


def _paired_shares(sittings: Sequence[Sitting], items: Sequence[Stored], problems: list[str]) -> np.ndarray:
    """Shares before and after, a row a learner with both."""
    by_time = {time: {s.learner: s for s in sittings if s.time == time} for time in TIMES}
    pre, post = (by_time[time] for time in TIMES)
    for learner in sorted(pre.keys() ^ post.keys()):
        problems.append(f"{learner}: only {'pre' if learner in pre else 'post'}: not in the gain")
    both = sorted(pre.keys() & post.keys())
    for learner in both:
        if pre[learner].form == post[learner].form:
            problems.append(
                f"{learner}: form {pre[learner].form} both times: counted, but questions were known"
            )
    pairs = [(pre[who].share(items), post[who].share(items)) for who in both]
    return np.array(pairs).reshape(-1, 2)


def group_gain(shares: np.ndarray) -> Gain | None:
    r"""Normalised gain of a group, with a bootstrap interval over learners.

    .. math:: g = \frac{\bar p_\text{post} - \bar p_\text{pre}}{1 - \bar p_\text{pre}}

    Learners are drawn with replacement 10,000 times, with a fixed seed; the interval holds the middle 95 %.

    Parameters
    ----------
    shares : array of shape (n, 2)
        Before and after, a row a learner.

    References
    ----------
    R. R. Hake, "Interactive-engagement versus traditional methods", American Journal of Physics 66 (1998),
    64-74. B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap" (1993), section 13.3.

    Examples
    --------
    >>> group_gain(np.array([[0.2, 0.6]])).gain
    0.5
    """
    n = len(shares)
    if not n:
        return None
    before, after = (float(mean) for mean in shares.mean(axis=0))
    low = high = difference = None
    if n > 1:
        drawn = np.random.default_rng(SEED).integers(n, size=(N_RESAMPLES, n))
        means = shares[drawn].mean(axis=1)
        possible = means[means[:, 0] < 1]
        if len(possible) == N_RESAMPLES:
            gains = (possible[:, 1] - possible[:, 0]) / (1 - possible[:, 0])
            low, high = (float(end) for end in np.quantile(gains, (0.025, 0.975)))
        difference = paired_interval(shares[:, 1] - shares[:, 0])
    gain = None if math.isclose(before, 1) else round((after - before) / (1 - before), 12)
    return Gain(before=before, after=after, gain=gain, low=low, high=high, difference=difference, n=n)


def _by_item(sittings: Sequence[Sitting], items: Sequence[Stored]) -> list[dict[str, Any]]:
    rows = []
    for item in items:
        row = {"item": item["number"], "concept": item["concept"], "function": item["function"]}
        for time in TIMES:
            own = [s for s in sittings if s.time == time]
            right = sum(s.answers.get(item["number"]) == item["forms"][s.form]["key"] for s in own)
            row |= {time: right / len(own) if own else None}
        rows.append(row)
    return rows


def _by_misconception(sittings: Sequence[Sitting], items: Sequence[Stored]) -> list[dict[str, Any]]:
    """Those chosen at least once, the most often chosen first."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for item in items:
        for slug, words in item["words"].items():
            start = {"function": item["function"], "misconception": slug, "words": words, "items": []}
            row = rows.setdefault((item["function"], slug), {**start, **dict.fromkeys(TIMES, 0)})
            row["items"].append(item["number"])
        for sitting in sittings:
            if letter := sitting.answers.get(item["number"]):
                slug = item["forms"][sitting.form]["options"][LETTERS.index(letter)]["reveals"]
                if slug is not None:
                    rows[item["function"], slug][sitting.time] += 1
    n = Counter(sitting.time for sitting in sittings)
    for row in rows.values():
        row["offered"] = {time: len(row["items"]) * n[time] for time in TIMES}
    chosen = [row for row in rows.values() if row["pre"] + row["post"]]
    return sorted(chosen, key=lambda row: -(row["pre"] + row["post"]))


# ---- planning


def power(n: int, gain: float, spread: float) -> float:
    r"""Probability that a paired t test of n learners finds a normalised gain.

    The differences are taken to be normal, with mean :math:`g (1 - p)`; then t has a noncentral t
    distribution with n - 1 degrees of freedom and noncentrality :math:`\sqrt n \, g (1 - p) / s`, where p is
    `BEFORE`.

    Parameters
    ----------
    n : int
        Learners with both sittings, at least 2.
    gain : float
        g, the share gained of what was missing before.
    spread : float
        s, the standard deviation, over learners, of the difference of their two shares.

    References
    ----------
    J. Cohen, "Statistical Power Analysis for the Behavioral Sciences", second edition (1988), section 2.3.

    Examples
    --------
    >>> print(f"{power(10, 0.0, 0.15):.3f}")
    0.050
    """
    from scipy import stats

    shift = math.sqrt(n) * gain * (1 - BEFORE) / spread
    edge = stats.t.ppf(1 - LEVEL / 2, n - 1)
    return float(stats.nct.sf(edge, n - 1, shift) + stats.nct.cdf(-edge, n - 1, shift))


def learners_needed(gain: float, spread: float, wanted: float = 0.8) -> int | None:
    """The smallest number of learners that finds a gain with this probability; None above 2,000."""
    n = 2 + bisect_left(range(2, MOST + 1), wanted, key=lambda n: power(n, gain, spread))
    return n if n <= MOST else None


def power_table() -> tuple[list[str], list[list[object]]]:
    """Learners needed for a gain, by spread and power: names of columns, and rows."""
    columns = [(spread, wanted) for spread in (0.1, 0.15, 0.25) for wanted in (0.8, 0.9)]
    head = ["normalised gain", *(f"spread {spread}, power {wanted:.0%}" for spread, wanted in columns)]
    return head, [
        [gain, *(learners_needed(gain, *column) or f"over {MOST:,}" for column in columns)]
        for gain in (0.05, 0.1, 0.2, 0.3, 0.5)
    ]
