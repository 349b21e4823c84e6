"""Solutions for repeated_texts, tfidf and gain_interval."""

from __future__ import annotations

import math
import re
import statistics
import string
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


@wrong("case-only")
def repeated_lower(train, test):
    seen = {text.lower() for text in train}
    return [i for i, text in enumerate(test) if text.lower() in seen]


@wrong("case-kept")
def repeated_words_with_case(train, test):
    seen = [re.findall(r"\w+", text) for text in train]
    return [i for i, text in enumerate(test) if re.findall(r"\w+", text) in seen]


@wrong("spaces-only")
def repeated_split(train, test):
    seen = [text.lower().split() for text in train]
    return [i for i, text in enumerate(test) if text.lower().split() in seen]


@wrong("only-the-ends")
def repeated_stripped(train, test):
    def key(text):
        return text.lower().strip(string.whitespace + string.punctuation)

    seen = set(map(key, train))
    return [i for i, text in enumerate(test) if key(text) in seen]


@wrong("typographic-signs-kept")
def repeated_ascii_signs(train, test):
    table = str.maketrans(string.punctuation, " " * len(string.punctuation))
    seen = [text.lower().translate(table).split() for text in train]
    return [i for i, text in enumerate(test) if text.lower().translate(table).split() in seen]


@wrong("typographic-signs-kept+words-joined")
def repeated_translated(train, test):
    def key(text):
        return text.lower().translate(str.maketrans("", "", string.punctuation)).split()

    seen = [key(text) for text in train]
    return [i for i, text in enumerate(test) if key(text) in seen]


@wrong("words-joined")
def repeated_glued(train, test):
    def key(text):
        return "".join(c for c in text.lower() if c.isalnum() or c.isspace()).split()

    seen = [key(text) for text in train]
    return [i for i, text in enumerate(test) if key(text) in seen]


@wrong("spaces-removed")
def repeated_letters(train, test):
    def key(text):
        return "".join(filter(str.isalnum, text.lower()))

    seen = set(map(key, train))
    return [i for i, text in enumerate(test) if key(text) in seen]


@wrong("accents-cut")
def repeated_a_to_z(train, test):
    seen = [re.findall("[a-z0-9]+", text.lower()) for text in train]
    return [i for i, text in enumerate(test) if re.findall("[a-z0-9]+", text.lower()) in seen]


@wrong("order-lost")
def repeated_bags(train, test):
    seen = [set(words_of(text)) for text in train]
    return [i for i, text in enumerate(test) if set(words_of(text)) in seen]


@wrong("places-of-train")
def repeated_in_train(train, test):
    keys = [words_of(text) for text in test]
    return [i for i, text in enumerate(train) if words_of(text) in keys]


@wrong("repeats-within-test")
def repeated_growing(train, test):
    seen = {tuple(words_of(text)) for text in train}
    found = []
    for i, text in enumerate(test):
        if tuple(words_of(text)) in seen:
            found.append(i)
        seen.add(tuple(words_of(text)))
    return found


@wrong("marks-for-places")
def repeated_flags(train, test):
    seen = [words_of(text) for text in train]
    return [words_of(text) in seen for text in test]


@wrong("wrong-type")
def repeated_as_texts(train, test):
    seen = [words_of(text) for text in train]
    return [text for text in test if words_of(text) in seen]


@wrong("wrong-type")
def repeated_counted(train, test):
    seen = [words_of(text) for text in train]
    return sum(words_of(text) in seen for text in test)


@wrong("reversed")
def repeated_kept(train, test):
    seen = [words_of(text) for text in train]
    return [i for i, text in enumerate(test) if words_of(text) not in seen]


wrong("word-for-word", lambda train, test: [i for i, text in enumerate(test) if text in train])
wrong("first-copy-only", repeated_growing, {"seen.add": "    seen.remove"})


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


@wrong("counts")
def tfidf_bare_counts(train, texts):
    return tfidf_of(train, texts, idf=lambda df, n, own, asked: 1, scale=lambda row: row)


@wrong("count-logged")
def tfidf_sublinear(train, texts):
    return tfidf_of(train, texts, tf=lambda count: torch.where(count > 0, 1 + count.log(), 0))


@wrong("nothing-over-nothing")
def tfidf_nan(train, texts):
    return tfidf_of(train, texts, scale=lambda row: row / row.norm(dim=1, keepdim=True))


@wrong("idf-of-texts")
def tfidf_of_tested(train, texts):
    def idf(df, n, own, asked):
        return (len(texts) / (asked > 0).sum(0).clamp(min=1)).log()

    return tfidf_of(train, texts, idf=idf)


@wrong("idf-of-both")
def tfidf_of_all(train, texts):
    def idf(df, n, own, asked):
        return (len([*train, *texts]) / (df + (asked > 0).sum(0))).log()

    return tfidf_of(train, texts, idf=idf)


@wrong("one-added-to-the-log")
def tfidf_sklearn_unsmoothed(train, texts):
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(token_pattern=r"\S+", smooth_idf=False).fit(train)
    return torch.from_numpy(vectorizer.transform(texts).toarray())


@wrong("one-added-to-df")
def tfidf_careful(train, texts):
    return tfidf_of(train, texts, idf=lambda df, n, own, asked: (n / (1 + df)).log())


@wrong("no-root")
def tfidf_squares(train, texts):
    return tfidf_of(train, texts, scale=lambda row: row / (row * row).sum(1, keepdim=True).clamp(min=1e-9))


@wrong("columns-scaled")
def tfidf_columns(train, texts):
    return tfidf_of(train, texts, scale=lambda row: torch.nn.functional.normalize(row, dim=0))


@wrong("words-of-texts")
def tfidf_tested_words(train, texts):
    vocabulary = sorted({word for text in texts for word in text.lower().split()})

    def idf(df, n, own, asked):
        return (n / df.clamp(min=1)).log()

    return tfidf_of(train, texts, held=vocabulary, idf=idf)


@wrong("words-of-both")
def tfidf_all_words(train, texts):
    vocabulary = sorted({word for text in [*train, *texts] for word in text.lower().split()})
    return tfidf_of(train, texts, held=vocabulary, idf=lambda df, n, own, asked: (n / df.clamp(min=1)).log())


@wrong("not-sorted")
def tfidf_as_they_come(train, texts):
    return tfidf_of(train, texts, held=list(dict.fromkeys(" ".join(train).lower().split())))


@wrong("wrong-type")
def tfidf_dictionaries(train, texts):
    weights = tfidf_of(train, texts).tolist()
    vocabulary = sorted(set(" ".join(train).lower().split()))
    return [dict(zip(vocabulary, row, strict=True)) for row in weights]


wrong("not-scaled", lambda train, texts: tfidf_of(train, texts, scale=lambda row: row))
wrong("not-scaled", tfidf_bare_counts, {"1": "torch.log2(n / df)"})
wrong("not-scaled", tfidf_bare_counts, {"1": "torch.log10(n / df)"})
wrong(
    "no-idf", lambda train, texts: tfidf_of(train, texts, idf=lambda df, n, own, asked: torch.ones_like(df))
)
wrong("case-kept", lambda train, texts: tfidf_of(train, texts, split=str.split))
wrong("smoothed", tfidf_sklearn_unsmoothed, {", smooth_idf=False": ""})
wrong(
    "idf-inverted", lambda train, texts: tfidf_of(train, texts, idf=lambda df, n, own, asked: (df / n).log())
)
wrong("idf-without-log", lambda train, texts: tfidf_of(train, texts, idf=lambda df, n, own, asked: n / df))
wrong("every-occurrence", tfidf_careful, {"(1 + df)": "own.sum(0)"})
wrong("words-for-texts", tfidf_careful, {"n / (1 + df)": "own.sum() / df"})
wrong("present-or-not", lambda train, texts: tfidf_of(train, texts, tf=lambda count: (count > 0).float()))
wrong("count-logged", lambda train, texts: tfidf_of(train, texts, tf=torch.log1p))
wrong("sum-of-one", tfidf_columns, {"dim=0": "p=1, dim=1"})
wrong("texts-in-columns", lambda train, texts: tfidf_of(train, texts).T)


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


@wrong("not-paired")
def gain_welch(ours, theirs, t):
    ours, theirs = np.array(ours), np.array(theirs)
    error = np.sqrt(ours.var(ddof=1) / len(ours) + theirs.var(ddof=1) / len(theirs))
    middle = ours.mean() - theirs.mean()
    return middle - t * error, middle + t * error


@wrong("spread-of-folds")
def gain_no_root(ours, theirs, t):
    gains = [a - b for a, b in zip(ours, theirs, strict=True)]
    mean, s = statistics.mean(gains), statistics.stdev(gains)
    return mean - t * s, mean + t * s


@wrong("divided-by-n-again")
def gain_over_n(ours, theirs, t):
    gains = [a - b for a, b in zip(ours, theirs, strict=True)]
    mean, half = statistics.mean(gains), t * statistics.stdev(gains) / len(gains)
    return mean - half, mean + half


@wrong("normal-for-t")
def gain_normal(ours, theirs, t):
    gains = [a - b for a, b in zip(ours, theirs, strict=True)]
    half = 1.96 * statistics.stdev(gains) / math.sqrt(len(gains))
    return statistics.mean(gains) - half, statistics.mean(gains) + half


@wrong("without-t")
def gain_one_error(ours, theirs, t):
    gains = torch.tensor(ours) - torch.tensor(theirs)
    half = gains.std() / math.sqrt(len(gains))
    return gains.mean() - half, gains.mean() + half


@wrong("reversed")
def gain_of_theirs(ours, theirs, t):
    low, high = gain_by_hand(ours, theirs, t)
    return -high, -low


@wrong("without-theirs")
def gain_alone(ours, theirs, t):
    half = t * statistics.stdev(ours) / math.sqrt(len(ours))
    return statistics.mean(ours) - half, statistics.mean(ours) + half


@wrong("extremes")
def gain_range(ours, theirs, t):
    gains = [a - b for a, b in zip(ours, theirs, strict=True)]
    return min(gains), max(gains)


@wrong("mean-and-half")
def gain_centre(ours, theirs, t):
    gains = np.array(ours) - np.array(theirs)
    return gains.mean(), t * gains.std(ddof=1) / np.sqrt(len(gains))


@wrong("divided-by-n+reversed")
def gain_two_slips(ours, theirs, t):
    gains = np.array(theirs) - np.array(ours)
    half = t * gains.std() / np.sqrt(len(gains))
    return gains.mean() - half, gains.mean() + half


wrong("divided-by-n", gain_numpy, {"ddof=1": ""})
wrong("variance-for-deviation", gain_numpy, {"gains.std": "gains.var"})
wrong("sorted-first", lambda ours, theirs, t: gain_by_hand(sorted(ours), sorted(theirs), t))
wrong("high-first", lambda ours, theirs, t: gain_by_hand(ours, theirs, t)[::-1])
