"""Linear readers: bags of words, and columns of numbers beside them; chosen inside the labels at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytx.text.corpora import Split

Answers = np.ndarray  # (N,) of int, the class named for each text
STRENGTHS = (10.0, 1.0, 100.0)  # inverse regularisation of logistic regression; the first wins a draw
MORE_STRENGTHS = (1_000.0,)  # where letters stand beside words
SMOOTHINGS = (0.5, 0.1, 1.0)
SHARES = (0.3, 0.1, 1.0)  # length of a text's columns beside the length 1 of its words
LETTERS = (2, 5)
N_PARTS = 5
NEED = "bags of words need scikit-learn: install the extra `eval` (pip install 'tinytx[eval]')"


def majority(train: Split, tested: Split) -> Answers:
    """The most frequent class, for every text."""
    return np.full(len(tested), np.bincount(np.asarray(train.labels)).argmax())


def bag_of_words(train: Split, tested: Split, kind: str, seed: int) -> tuple[Answers, dict[str, Any]]:
    """TF-IDF of words and pairs of words, read by logistic regression or naive Bayes.

    Parameters
    ----------
    train, tested : Split
    kind : {"logistic", "bayes", "letters"}
        The last: logistic regression on runs of letters beside the words.
    seed : int
        Of the parts in which the strength is chosen.

    Returns
    -------
    answers : ndarray of shape (N,)
    chosen : dict
    """
    from sklearn.naive_bayes import MultinomialNB

    words, others = tfidf(train.texts, tested.texts, letters=kind == "letters")
    labels = np.asarray(train.labels)
    if kind == "bayes":
        makers = {str(value): _maker(MultinomialNB, alpha=value) for value in SMOOTHINGS}
    else:
        strengths = (*STRENGTHS, *MORE_STRENGTHS) if kind == "letters" else STRENGTHS
        makers = {str(value): _logistic(value) for value in strengths}
        words, others = turned(words, others)
    best = _choose(makers, dict.fromkeys(makers, words), labels, seed)
    return makers[best]().fit(words, labels).predict(others), {"chosen": best}


def read_columns(
    train: Split, tested: Split, columns: np.ndarray, tested_columns: np.ndarray, seed: int
) -> tuple[Answers, dict]:
    """Logistic regression on columns (n, D), standardised by those of the labelled texts, shape (N, D).

    Standardised columns of a text have a length of about 1, so that strengths mean the same for all widths.
    """
    labels = np.asarray(train.labels)
    own, others = standardised(columns, tested_columns)
    makers = {str(value): _logistic(value) for value in (1.0, 0.1, 10.0)}
    best = _choose(makers, dict.fromkeys(makers, own), labels, seed)
    return makers[best]().fit(own, labels).predict(others), {"chosen": best}


def beside_words(
    train: Split,
    tested: Split,
    columns: np.ndarray,
    tested_columns: np.ndarray,
    seed: int,
    *,
    letters: bool = False,
) -> tuple[Answers, dict[str, Any]]:
    """TF-IDF, of letters too where asked for, and standardised columns together, by logistic regression.

    Strength and share of the columns are chosen inside the labels.
    """
    from scipy.sparse import csr_matrix, hstack

    labels = np.asarray(train.labels)
    words, other_words = tfidf(train.texts, tested.texts, letters=letters)
    own, others = standardised(columns, tested_columns)
    makers, tables = {}, {}
    for share in SHARES:
        table = hstack([words, csr_matrix(share * own)]).tocsr()
        told = hstack([other_words, csr_matrix(share * others)]).tocsr()
        pair = turned(table, told)
        for strength in STRENGTHS:
            name = f"share {share}, strength {strength}"
            makers[name], tables[name] = _logistic(strength), pair
    best = _choose(makers, {name: table for name, (table, _) in tables.items()}, labels, seed)
    table, told = tables[best]
    return makers[best]().fit(table, labels).predict(told), {"chosen": best}


def tfidf(texts: Sequence[str], others: Sequence[str], *, letters: bool = False) -> tuple[Any, Any]:
    """Rows for both, with the words and the weights of the first: of length 1, and as long for letters.

    Letters are runs of `LETTERS` inside words: they see that two forms are of one word, and what mistakes of
    spelling leave.
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import FeatureUnion
    except ImportError as error:
        raise ImportError(NEED) from error
    parts = [("words", TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True))]
    if letters:
        runs = TfidfVectorizer(analyzer="char_wb", ngram_range=LETTERS, sublinear_tf=True)
        parts.append(("letters", runs))
    vectorizer = FeatureUnion(parts)
    return vectorizer.fit_transform(texts), vectorizer.transform(others)


def turned(table: Any, others: Any) -> tuple[np.ndarray, np.ndarray]:
    r"""Rows of a sparse table (n, F), turned so that n columns hold them; and other rows (N, F) beside.

    .. math:: X X^T = Q \Lambda Q^T, \quad Z = Q \Lambda^{1/2}, \quad Z' = X' X^T Q \Lambda^{-1/2}

    Returns
    -------
    rows : ndarray of shape (n, r)
    others : ndarray of shape (N, r)

    Notes
    -----
    All products between rows of the table, and with rows of the table, stay as they are. A linear model with
    a quadratic penalty follows from these alone, so it gives the same answers, many times faster: with nine
    classes and letters it would learn a million weights from some hundred texts.
    """
    values, vectors = np.linalg.eigh((table @ table.T).toarray())
    kept = values > 1e-10 * values.max()
    roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
    return vectors * roots, (others @ table.T).toarray() @ vectors / roots


def standardised(columns: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both with the mean and spread of the first taken away, divided by the square root of the width."""
    mean, spread = columns.mean(0), columns.std(0) + 1e-6
    scale = spread * columns.shape[1] ** 0.5
    return (columns - mean) / scale, (others - mean) / scale


def _choose(
    makers: dict[str, Callable[[], Any]], tables: dict[str, Any], labels: np.ndarray, seed: int
) -> str:
    """The maker whose models are least surprised by left-out parts of the labelled texts."""
    from sklearn.model_selection import StratifiedKFold

    n_parts = min(N_PARTS, int(np.bincount(labels).min()))
    if n_parts < 2:
        return next(iter(makers))
    parts = list(StratifiedKFold(n_parts, shuffle=True, random_state=seed).split(labels[:, None], labels))
    surprise = {}
    for name, make in makers.items():
        table, total = tables[name], 0.0
        for kept, left_out in parts:
            probs = make().fit(table[kept], labels[kept]).predict_proba(table[left_out])
            total -= np.log(np.clip(probs[np.arange(len(left_out)), labels[left_out]], 1e-9, 1)).sum()
        surprise[name] = total
    return min(surprise, key=surprise.__getitem__)


def _logistic(strength: float) -> Callable[[], Any]:
    from sklearn.linear_model import LogisticRegression

    return _maker(LogisticRegression, C=strength, max_iter=500)


def _maker(kind: Any, **settings: Any) -> Callable[[], Any]:
    return lambda: kind(**settings)
