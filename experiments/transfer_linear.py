"""Linear models of the transfer experiment: TF-IDF, other features next to it, and ratings from words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinytx.text.corpora import Split

Answers = np.ndarray  # (N,) of int, the class predicted for each text
STRENGTHS = (10.0, 1.0, 100.0)  # inverse regularisation of logistic regression; the first wins a tie
MORE_STRENGTHS = (*STRENGTHS, 1_000.0)  # with characters
PROBE_STRENGTHS = (1.0, 0.1, 10.0)
SMOOTHINGS = (0.5, 0.1, 1.0)  # of naive Bayes
SHARES = (0.3, 0.1, 1.0)  # length of a text's other features, where that of its words is 1
CHARACTERS = (2, 5)
N_PARTS = 5
RIDGE = 3.0


def majority(train: Split, test: Split) -> Answers:
    """The most frequent class, for every text."""
    return np.full(len(test), np.bincount(np.asarray(train.labels)).argmax())


def bag_of_words(train: Split, test: Split, kind: str, seed: int) -> tuple[Answers, dict[str, Any]]:
    """TF-IDF of words and pairs of words, read by logistic regression or naive Bayes ("bayes").

    With the kind "letters" the regression reads runs of characters, too. The seed draws the folds in which
    the regularisation is chosen, among the training texts; the choice is the second result.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import MultinomialNB

    features, others = tfidf(train.texts, test.texts, letters=kind == "letters")
    if kind == "bayes":
        model = _searched(MultinomialNB(), {"alpha": SMOOTHINGS}, features, train.labels, seed)
    else:
        strengths = {"C": MORE_STRENGTHS if kind == "letters" else STRENGTHS}
        features, others = gram_features(features, others)
        model = _searched(LogisticRegression(max_iter=500), strengths, features, train.labels, seed)
    return model.predict(others), {"chosen": str(*model.best_params_.values())}


def probe(
    train: Split, test: Split, columns: np.ndarray, test_columns: np.ndarray, seed: int
) -> tuple[Answers, dict[str, Any]]:
    """Logistic regression on standardised columns (n, D) and (N, D)."""
    from sklearn.linear_model import LogisticRegression

    own, others = standardised(columns, test_columns)
    strengths = {"C": PROBE_STRENGTHS}
    model = _searched(LogisticRegression(max_iter=500), strengths, own, train.labels, seed)
    return model.predict(others), {"chosen": str(*model.best_params_.values())}


def with_words(
    train: Split,
    test: Split,
    columns: np.ndarray,
    test_columns: np.ndarray,
    seed: int,
    *,
    letters: bool = False,
) -> tuple[Answers, dict[str, Any]]:
    """Logistic regression on TF-IDF and standardised columns together.

    Regularisation and share of the columns are chosen among the training texts.
    """
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    words, other_words = tfidf(train.texts, test.texts, letters=letters)
    own, others = standardised(columns, test_columns)
    found = []
    for share in SHARES:
        features, other_features = gram_features(
            hstack([words, csr_matrix(share * own)]).tocsr(),
            hstack([other_words, csr_matrix(share * others)]).tocsr(),
        )
        strengths = {"C": STRENGTHS}
        model = _searched(LogisticRegression(max_iter=500), strengths, features, train.labels, seed)
        found.append((model, other_features, f"share {share}, strength {model.best_params_['C']}"))
    model, other_features, name = max(found, key=lambda each: each[0].best_score_)
    return model.predict(other_features), {"chosen": name}


def _searched(
    model: Any, grid: Mapping[str, tuple[float, ...]], features: Any, labels: Sequence[int] | None, seed: int
) -> Any:
    """The model of the grid with the smallest cross-validated log loss, fitted to all texts.

    Where a class has a single text there is nothing to choose by: the first of the grid.
    """
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    n_parts = min(N_PARTS, int(np.unique(np.asarray(labels), return_counts=True)[1].min()))
    parts: Any = StratifiedKFold(n_parts, shuffle=True, random_state=seed) if n_parts > 1 else None
    if parts is None:
        grid = {name: values[:1] for name, values in grid.items()}
        parts = [(np.arange(len(labels or ())),) * 2]
    return GridSearchCV(model, grid, scoring="neg_log_loss", cv=parts).fit(features, labels)


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


class StarRegression:
    """Ridge regression of stars on TF-IDF of words, and on that of characters, standardised and added."""

    def __init__(self, rated: Sequence[tuple[str, float]]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline

        texts, stars = zip(*rated, strict=True)
        vectorizers = (
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2),
            TfidfVectorizer(
                analyzer="char_wb", ngram_range=CHARACTERS, sublinear_tf=True, min_df=5, max_features=120_000
            ),
        )
        self._models = []
        for vectorizer in vectorizers:
            model = make_pipeline(vectorizer, Ridge(alpha=RIDGE, solver="sparse_cg")).fit(texts, stars)
            own = model.predict(texts)
            self._models.append((model, own.mean(), own.std()))

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Predicted ratings as a column (N, 1), from low to high."""
        return sum((model.predict(texts) - mean) / spread for model, mean, spread in self._models)[:, None]
