"""Exercises on real text: repeated texts, TF-IDF, gains over folds."""

from __future__ import annotations

import math
import random
import re
import statistics
import string
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from tinytx_course.exercises.comparing import floats, ids, number, pair
from tinytx_course.exercises.exercise import Exercise, mistakes
from tinytx_course.exercises.observation import Call

_WITHOUT_ACCENTS = str.maketrans("àâéèêëîïôûùç", "aaeeeeiiouuc")
_WORDS = ("un", "livre", "été", "peut", "être", "fin", "belle", "mais", "triste", "roman", "déjà", "lu")


def _key(text: str, slips: frozenset[str]) -> Any:
    """What two texts must share to count as the same."""
    text = text if "case-kept" in slips else text.lower()
    if "case-only" in slips:
        return text
    if "only-the-ends" in slips:
        return text.strip(string.punctuation + string.whitespace)
    if "spaces-only" in slips:
        return " ".join(text.split())
    if "accents-removed" in slips:
        text = text.translate(_WITHOUT_ACCENTS)
    if "typographic-signs-kept" in slips:
        trace = "" if "words-joined" in slips else " "
        return " ".join(re.sub(f"[{re.escape(string.punctuation)}]", trace, text).split())
    if "words-joined" in slips:
        return " ".join(re.sub(r"[^\w\s]", "", text).split())
    if "spaces-removed" in slips:
        return re.sub(r"\W", "", text)
    words = re.findall(r"[a-z0-9]+" if "accents-cut" in slips else r"\w+", text)
    return frozenset(words) if "order-lost" in slips else " ".join(words)


def _repeated(train: Sequence[str], test: Sequence[str], *, slips: frozenset[str] = frozenset()) -> list[int]:
    """Places of repeated texts, with slips."""
    slips = slips | {"case-kept"} if "word-for-word" in slips else slips
    key = (lambda text, _: text) if "word-for-word" in slips else _key
    seen, keys = [key(text, slips) for text in train], [key(text, slips) for text in test]
    if "places-of-train" in slips:
        return [i for i, one in enumerate(seen) if one in keys]
    if "repeats-within-test" in slips:
        return [i for i, one in enumerate(keys) if one in seen or one in keys[:i]]
    if "first-copy-only" in slips:
        return [i for i, one in enumerate(keys) if one in seen and one not in keys[:i]]
    if "part-of-a-text" in slips:
        return [i for i, one in enumerate(keys) if any(one in other for other in seen)]
    found = [i for i, one in enumerate(keys) if (one in seen) != ("reversed" in slips)]
    if "marks-for-places" in slips:
        return [int(i in found) for i in range(len(test))]
    return [i + ("counted-from-one" in slips) for i in found]


def _repeated_calls(seed: int) -> Iterator[Call]:
    drawn = random.Random(seed)

    def sentence(n_words: int) -> str:
        return " ".join(drawn.choice(_WORDS) for _ in range(n_words))

    new, other = sentence(4), sentence(5)
    fixed = (
        (["Un livre."], ["Un livre.", "Une fin."]),
        (["Une fin.", "Un livre !"], ["un livre", "la fin"]),
        (["La fin, hélas."], ["la fin... hélas", "la fin", "Lafin hélas"]),
        (["L'été est long"], ["Déjà lu.", "« L’été est long »"]),
        (["Peut-être.", "Déjà lu"], ["peut être", "deja lu", "déjà  lu", "Peutêtre"]),
        (["été", "un bel été", "Un\tlivre"], ["ôté", "été un bel", "un livre", "bel été"]),
        (["Note 3/5", "Vu 2 fois"], ["note 4/5", "note 3 5", "vu 2 fois"]),
        (["la pêche"], ["le péché", "La fin", "la fin", "LA PÊCHE", "la peche", "La pêche..."]),
    )
    for train, test in fixed:
        yield Call((train, test))
    train = [sentence(n) for n in (3, 4, 5)]
    noisy = [train[1].upper() + " !", new, train[2].replace(" ", ", "), other, train[1], other.title()]
    drawn.shuffle(noisy)
    yield Call((train, noisy))


REPEATED_TEXTS = Exercise(
    name="repeated_texts",
    read=ids,
    solve=_repeated,
    calls=_repeated_calls,
    mistakes=mistakes(
        "repeated_texts",
        with_slips=_repeated,
        together=("case-kept", "words-joined", "counted-from-one", "places-of-train", "repeats-within-test"),
    ),
)


def _counts(texts: Sequence[str], vocabulary: Sequence[str], cased: bool) -> Tensor:
    """How often each text holds each word, shape (N, V)."""
    rows = [(text if cased else text.lower()).split() for text in texts]
    return torch.tensor([[float(row.count(word)) for word in vocabulary] for row in rows])


def _inverse_frequency(own: Tensor, asked: Tensor, slips: frozenset[str]) -> Tensor:
    """The weight of each word by its rarity in the training texts, with slips."""
    source = asked if "idf-of-texts" in slips else torch.cat((own, asked)) if "idf-of-both" in slips else own
    n_texts, held = float(len(source)), (source > 0).sum(0).double()
    held = source.sum(0).double() if "every-occurrence" in slips else held
    n_texts = float(source.sum()) if "words-for-texts" in slips else n_texts
    share = n_texts / held.clamp(min=1)
    if "smoothed" in slips:
        return ((1 + n_texts) / (1 + held)).log() + 1
    if "one-added-to-the-log" in slips:
        return share.log() + 1
    if "one-added-to-df" in slips:
        return (n_texts / (1 + held)).log()
    if "idf-inverted" in slips:
        return -share.log()
    if "idf-without-log" in slips:
        return share
    return torch.ones_like(share) if "no-idf" in slips else share.log()


def _scaled(weights: Tensor, slips: frozenset[str]) -> Tensor:
    """Rows of length 1, with slips."""
    if "not-scaled" in slips:
        return weights
    if "columns-scaled" in slips:
        length = weights.square().sum(0, keepdim=True).sqrt()
    elif "sum-of-one" in slips:
        length = weights.abs().sum(1, keepdim=True)
    elif "no-root" in slips:
        length = weights.square().sum(1, keepdim=True)
    else:
        length = weights.square().sum(1, keepdim=True).sqrt()
    return weights / length if "nothing-over-nothing" in slips else weights / length.where(length > 0, 1.0)


def _tfidf(train: Sequence[str], texts: Sequence[str], *, slips: frozenset[str] = frozenset()) -> Tensor:
    """Rows of TF-IDF, with slips."""
    cased = "case-kept" in slips
    held = [*texts, *train] if "words-of-both" in slips else texts if "words-of-texts" in slips else train
    words = [word for text in held for word in (text if cased else text.lower()).split()]
    vocabulary = list(dict.fromkeys(words)) if "not-sorted" in slips else sorted(set(words))
    own, asked = _counts(train, vocabulary, cased), _counts(texts, vocabulary, cased)
    weight = _inverse_frequency(own, asked, slips)
    asked = asked.clamp(max=1) if "present-or-not" in slips else asked
    asked = torch.log1p(asked) if "count-logged" in slips else asked
    asked = torch.where(asked > 0, 1 + asked.log(), 0) if "count-logged-plus-one" in slips else asked
    return _scaled(asked.double() * weight, slips)


def _slipping(*slips: str, base: float = math.e) -> Any:
    def slipped(train: Sequence[str], texts: Sequence[str]) -> Tensor:
        return _tfidf(train, texts, slips=frozenset(slips)) / math.log(base)

    return slipped


def _tfidf_calls(seed: int) -> Iterator[Call]:
    fixed = (
        (["bon livre", "mauvais livre"], ["bon", "mauvais livre"]),
        (["un Bon livre", "un livre", "une fin"], ["un bon bon livre", "Une fin", "rien"]),
        (["a b b", "b c", "c c a b"], ["c c c a", "b b", "a d c"]),
        (["bon, livre", "bon  livre", "l'été"], ["bon,  bon l'été", "l été bon"]),
        (["le chat", "le chien", "la fin du film", "Le film"], ["le le chat du film", "la fin", "LE chien"]),
    )
    for train, texts in fixed:
        yield Call((train, texts))
    drawn = random.Random(seed)
    for n_train, n_texts in ((5, 3), (7, 2)):
        both = [
            " ".join(drawn.choice(_WORDS[:7]) for _ in range(drawn.randint(2, 6)))
            for _ in range(n_train + n_texts)
        ]
        yield Call((both[:n_train], both[n_train:]))


_OTHER_IDF = ("idf-inverted", "idf-without-log", "smoothed", "one-added-to-the-log", "one-added-to-df")
TFIDF = Exercise(
    name="tfidf",
    read=floats,
    solve=_tfidf,
    calls=_tfidf_calls,
    mistakes=mistakes(
        "tfidf",
        {
            "not-scaled": tuple(_slipping("not-scaled", base=base) for base in (math.e, 2, 10)),
            "counts": _slipping("not-scaled", "no-idf"),
            "count-logged": (_slipping("count-logged"), _slipping("count-logged-plus-one")),
            "texts-in-columns": lambda train, texts: _tfidf(train, texts).T,
        },
        with_slips=_tfidf,
        together=("no-idf", "case-kept", "not-sorted", "nothing-over-nothing", "present-or-not"),
        exclusive=(["no-idf", *_OTHER_IDF], ["words-of-both", "words-of-texts"]),
    ),
)


def _gain(
    ours: Sequence[float], theirs: Sequence[float], t: float, *, slips: frozenset[str] = frozenset()
) -> tuple[float, float]:
    """The interval of a mean paired difference, with slips."""
    if "sorted-first" in slips:
        ours, theirs = sorted(ours), sorted(theirs)
    gains = [a - b for a, b in zip(ours, theirs, strict=True)]
    gains = [-gain for gain in gains] if "reversed" in slips else gains
    gains = list(ours) if "without-theirs" in slips else gains
    n, mean = len(gains), statistics.fmean(gains)
    spread = statistics.pstdev(gains) if "divided-by-n" in slips else statistics.stdev(gains)
    if "not-paired" in slips:
        spread = math.sqrt(statistics.variance(ours) + statistics.variance(theirs))
    spread = spread**2 if "variance-for-deviation" in slips else spread
    t = 1.96 if "normal-for-t" in slips else 1.0 if "without-t" in slips else t
    if "spread-of-folds" in slips:
        half = t * spread
    elif "divided-by-n-again" in slips:
        half = t * spread / n
    else:
        half = t * spread / math.sqrt(n)
    if "extremes" in slips:
        return min(gains), max(gains)
    if "mean-and-half" in slips:
        return mean, half
    ends = mean - half, mean + half
    return (ends[1], ends[0]) if "high-first" in slips else ends


def _gain_calls(seed: int) -> Iterator[Call]:
    yield Call(([70.0, 74.0], [68.0, 70.0], 12.7))
    yield Call(([71.0, 76.5, 66.0], [69.5, 72.0, 66.5], 4.3))
    drawn = random.Random(seed)
    for n, t in ((4, 3.18), (6, 2.57), (11, 2.23)):
        easy = [drawn.gauss(72, 4) for _ in range(n)]
        ours, theirs = ([round(one + drawn.gauss(gain, 1.5), 1) for one in easy] for gain in (2, 0))
        yield Call((ours, theirs, t))


GAIN_INTERVAL = Exercise(
    name="gain_interval",
    read=pair(number, number, "low, high"),
    solve=_gain,
    calls=_gain_calls,
    mistakes=mistakes(
        "gain_interval",
        with_slips=_gain,
        exclusive=(["mean-and-half", "extremes", "high-first"],),
        together=("reversed", "high-first"),
    ),
)
EXERCISES = (REPEATED_TEXTS, TFIDF, GAIN_INTERVAL)
