"""Linear models for texts: TF-IDF of words and letters, and a probe of hidden states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytx_run.corpora import Split

#: Scores of all classes for each text, (N, C), and what was chosen.
Predicted = tuple[np.ndarray, dict[str, Any]]
STRENGTHS = (10.0, 1.0, 100.0)  # inverse regularisation of logistic regression; the first wins a tie
MORE_STRENGTHS = (*STRENGTHS, 1_000.0)  # with characters
RATED_STRENGTHS = (1.0, 10.0)  # were tried with thousands of texts that have stars or pseudo-labels
PROBE_STRENGTHS = (1.0, 0.1, 10.0)
CHARACTERS = (2, 5)
LSA_WIDTH = 256
N_PARTS = 5


def bag_of_words(train: Split, test: Split, seed: int, *, letters: bool = False) -> Predicted:
    """Logistic regression on TF-IDF of words and pairs of words and, with letters, of runs of characters.

    The seed draws the parts of the training texts in which the regularisation is chosen.
    """
    features = gram_features(*tfidf(train.texts, test.texts, letters=letters))
    return _regression(*features, train, MORE_STRENGTHS if letters else STRENGTHS, seed)


def probe(train: Split, test: Split, columns: np.ndarray, test_columns: np.ndarray, seed: int) -> Predicted:
    """Logistic regression on standardised columns (n, D) and (N, D)."""
    return _regression(*standardised(columns, test_columns), train, PROBE_STRENGTHS, seed)


def with_tfidf(
    train: Split, test: Split, columns: np.ndarray, test_columns: np.ndarray, seed: int
) -> Predicted:
    """Logistic regression on TF-IDF of words and letters next to standardised columns (n, D) and (N, D)."""
    return beside_tfidf(train, test, *standardised(columns, test_columns), seed)


def lsa(texts: Sequence[str]) -> Callable[[Sequence[str]], np.ndarray]:
    """Latent semantic analysis of unlabelled texts: maps others to rows (N, `LSA_WIDTH`) of length 1.

    TF-IDF of words, reduced by a truncated SVD: words that stand in the same texts come near to each other.

    References
    ----------
    Deerwester et al., Indexing by latent semantic analysis, JASIS 41, 1990.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    words = TfidfVectorizer(sublinear_tf=True, min_df=2)
    table = words.fit_transform(texts)
    reduced = TruncatedSVD(min(LSA_WIDTH, table.shape[1] - 1), random_state=0).fit(table)
    return lambda others: np.asarray(normalize(reduced.transform(words.transform(others))))


def beside_tfidf(train: Split, test: Split, rows: np.ndarray, test_rows: np.ndarray, seed: int) -> Predicted:
    """Logistic regression on TF-IDF of words and letters next to rows (n, D) and (N, D) as they are."""
    bags = gram_features(*tfidf(train.texts, test.texts, letters=True))
    own, others = (np.concatenate(pair, axis=1) for pair in zip(bags, (rows, test_rows), strict=True))
    return _regression(own, others, train, MORE_STRENGTHS, seed)


def _regression(own: Any, others: Any, train: Split, strengths: Sequence[float], seed: int) -> Predicted:
    """The regression with the smallest cross-validated log loss, fitted to all training texts.

    Where a class has a single text there is nothing to choose by: the first strength.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    labels = np.asarray(train.labels)
    n_parts = min(N_PARTS, int(np.unique(labels, return_counts=True)[1].min()))
    if n_parts > 1:
        parts: Any = StratifiedKFold(n_parts, shuffle=True, random_state=seed)
    else:
        strengths, parts = strengths[:1], [(np.arange(len(labels)),) * 2]
    model = LogisticRegression(max_iter=500)
    search = GridSearchCV(model, {"C": strengths}, scoring="neg_log_loss", cv=parts).fit(own, labels)
    scores = np.zeros((others.shape[0], 1 + labels.max()))
    scores[:, search.classes_] = search.predict_proba(others)
    return scores, {"chosen": str(search.best_params_["C"])}


def tfidf(texts: Sequence[str], others: Sequence[str], *, letters: bool = False) -> tuple[Any, Any]:
    """Sparse rows for both, with the vocabulary of the first: of length 1, and as long for characters."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import FeatureUnion

    parts = [("words", TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True))]
    if letters:
        runs = TfidfVectorizer(analyzer="char_wb", ngram_range=CHARACTERS, sublinear_tf=True)
        parts.append(("letters", runs))
    vectorizer = FeatureUnion(parts)
    return vectorizer.fit_transform(texts), vectorizer.transform(others)


def gram_features(table: Any, others: Any) -> tuple[np.ndarray, np.ndarray]:
    r"""Rows of a sparse table (n, F) in at most n columns, and other rows (N, F) in the same columns.

    .. math:: X X^T = Q \Lambda Q^T, \quad Z = Q \Lambda^{1/2}, \quad Z' = X' X^T Q \Lambda^{-1/2}

    Notes
    -----
    All inner products with rows of the table stay as they are. A linear model with a quadratic penalty
    follows from these alone, so its answers are the same, many times faster: with nine classes and characters
    it would have a million weights.
    """
    values, vectors = np.linalg.eigh((table @ table.T).toarray())
    positive = values > 1e-10 * values.max()
    roots, vectors = np.sqrt(values[positive]), vectors[:, positive]
    return vectors * roots, (others @ table.T).toarray() @ vectors / roots


def standardised(columns: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both with mean and spread of the first taken away, divided by the square root of the width."""
    mean, spread = columns.mean(0), columns.std(0) + 1e-6
    scale = spread * columns.shape[1] ** 0.5
    return (columns - mean) / scale, (others - mean) / scale
