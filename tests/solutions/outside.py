"""Solutions for repeated_texts, tfidf and gain_interval."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter

import numpy as np
import torch

from tests.solutions.collection import of

# mypy: ignore-errors


def words_of(text):
    return re.findall(r"\w+", text.lower())


right, wrong = of("repeated_texts")


@right
def repeated_regex(train, test):
    seen = {" ".join(words_of(text)) for text in train}
    return [i for i, text in enumerate(test) if " ".join(words_of(text)) in seen]


@right
def repeated_alnum(train, test):
    def key(text):
        return "".join(sign if sign.isalnum() else " " for sign in text.casefold()).split()

    seen = [key(text) for text in train]
    found = []
    for i in range(len(test)):
        if key(test[i]) in seen:
            found.append(i)
    return found


@right
def repeated_tuples(train, test):
    seen = set(map(tuple, map(words_of, train)))
    places = np.flatnonzero([tuple(words_of(text)) in seen for text in test])
    return places.tolist()


@right
def repeated_substituted(train, test):
    keys = [re.sub(r"\W+", " ", text).strip().lower() for text in train]
    return [i for i, text in enumerate(test) if re.sub(r"\W+", " ", text).strip().lower() in keys]


@right
def repeated_double_loop(train, test):
    found = []
    for i, one in enumerate(test):
        for other in train:
            if words_of(one) == words_of(other):
                found.append(i)
                break
    return found


@wrong("wrong-type")
def repeated_as_texts(train, test):
    seen = [words_of(text) for text in train]
    return [text for text in test if words_of(text) in seen]


@wrong("wrong-type")
def repeated_counted(train, test):
    seen = [words_of(text) for text in train]
    return sum(words_of(text) in seen for text in test)


right, wrong = of("tfidf")


@right
def tfidf_loops(train, texts):
    bags = [text.lower().split() for text in train]
    vocabulary = sorted({word for bag in bags for word in bag})
    idf = [math.log(len(bags) / sum(word in bag for bag in bags)) for word in vocabulary]
    rows = []
    for text in texts:
        bag = text.lower().split()
        row = [bag.count(word) * weight for word, weight in zip(vocabulary, idf, strict=True)]
        length = math.sqrt(sum(x * x for x in row))
        rows.append([x / length if length else 0.0 for x in row])
    return torch.tensor(rows)


@right
def tfidf_tensors_base_two(train, texts):
    vocabulary = sorted(set(" ".join(train).lower().split()))

    def counts(parts):
        bags = [Counter(text.lower().split()) for text in parts]
        return torch.tensor([[bag[word] for word in vocabulary] for bag in bags], dtype=torch.float64)

    own = counts(train)
    idf = torch.log2(len(train) / (own > 0).sum(dim=0))
    return torch.nn.functional.normalize(counts(texts) * idf, dim=1)


@right
def tfidf_share_of_the_text(train, texts):
    vocabulary = sorted({word for text in train for word in text.lower().split()})
    place = {word: i for i, word in enumerate(vocabulary)}
    df = Counter(word for text in train for word in set(text.lower().split()))
    found = torch.zeros(len(texts), len(vocabulary))
    for n, text in enumerate(texts):
        words = text.lower().split()
        for word in words:
            if word in place:
                found[n, place[word]] += math.log10(len(train) / df[word]) / len(words)
    lengths = found.norm(dim=1, keepdim=True)
    return torch.where(lengths > 0, found / lengths, found)


@right
def tfidf_sklearn_counts(train, texts):
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(token_pattern=r"\S+").fit(train)
    own, asked = (torch.from_numpy(vectorizer.transform(part).toarray()) for part in (train, texts))
    weights = asked * (len(train) / (own > 0).sum(0)).log()
    return weights / weights.norm(dim=1, keepdim=True).clamp(min=1e-12)


def tfidf_of(train, texts, *, idf=None, tf=None, scale=None, held=None, split=None):
    """TF-IDF with one part replaced."""
    split = split or (lambda text: text.lower().split())
    vocabulary = held or sorted({word for text in train for word in split(text)})

    def counts(parts):
        return torch.tensor([[float(split(text).count(word)) for word in vocabulary] for text in parts])

    own, asked = counts(train), counts(texts)
    df, n = (own > 0).sum(0), len(train)
    weights = (tf or (lambda count: count))(asked) * (idf(df, n, own, asked) if idf else (n / df).log())
    return (scale or (lambda row: torch.nn.functional.normalize(row, dim=1)))(weights)


@wrong("wrong-type")
def tfidf_dictionaries(train, texts):
    weights = tfidf_of(train, texts).tolist()
    vocabulary = sorted(set(" ".join(train).lower().split()))
    return [dict(zip(vocabulary, row, strict=True)) for row in weights]


right, wrong = of("gain_interval")


@right
def gain_by_hand(ours, theirs, t):
    gains = [a - b for a, b in zip(ours, theirs, strict=True)]
    mean = sum(gains) / len(gains)
    s = math.sqrt(sum((gain - mean) ** 2 for gain in gains) / (len(gains) - 1))
    half = t * s / math.sqrt(len(gains))
    return mean - half, mean + half


@right
def gain_numpy(ours, theirs, t):
    gains = np.array(ours) - np.array(theirs)
    half = t * gains.std(ddof=1) / np.sqrt(len(gains))
    return gains.mean() - half, gains.mean() + half


@right
def gain_torch(ours, theirs, t):
    gains = torch.tensor(ours, dtype=torch.float64) - torch.tensor(theirs, dtype=torch.float64)
    half = t * gains.std() / len(gains) ** 0.5
    return [gains.mean() - half, gains.mean() + half]


@right
def gain_covariance(ours, theirs, t):
    n = len(ours)
    shared = statistics.covariance(ours, theirs)
    variance = statistics.variance(ours) + statistics.variance(theirs) - 2 * shared
    middle, half = statistics.fmean(ours) - statistics.fmean(theirs), t * math.sqrt(variance / n)
    return middle - half, middle + half


@wrong("divided-by-n+reversed")
def gain_two_slips(ours, theirs, t):
    gains = np.array(theirs) - np.array(ours)
    half = t * gains.std() / np.sqrt(len(gains))
    return gains.mean() - half, gains.mean() + half
