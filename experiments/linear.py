"""Linear models for texts: TF-IDF of words and letters, a probe of hidden states, embeddings from counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tinytx.tokenizer import Tokenizer
from tinytx_run.corpora import Split

#: Scores of all classes for each text, (N, C), and what was chosen.
Predicted = tuple[np.ndarray, dict[str, Any]]
STRENGTHS = (10.0, 1.0, 100.0)  # inverse regularisation of logistic regression; the first wins a tie
MORE_STRENGTHS = (*STRENGTHS, 1_000.0)  # with characters
PROBE_STRENGTHS = (1.0, 0.1, 10.0)
CHARACTERS = (2, 5)
LSA_WIDTH = 256
N_PARTS = 5
WINDOW = 15  # of counts; wide: words of one mood share a sentence, not a phrase
SMOOTHING = 0.75  # of the frequencies of context tokens, so that rare ones do not count too much


def bag_of_words(train: Split, test: Split, seed: int, *, letters: bool = False) -> Predicted:
    """Logistic regression on TF-IDF of words and pairs of words and, with letters, of runs of characters.

    The seed draws the parts of the training texts in which the regularisation is chosen.
    """
    features = gram_features(*tfidf(train.texts, test.texts, letters=letters))
    return _regression(*features, train, MORE_STRENGTHS if letters else STRENGTHS, seed)


def probe(train: Split, test: Split, columns: np.ndarray, test_columns: np.ndarray, seed: int) -> Predicted:
    """Logistic regression on columns (n, D) and (N, D), standardised and divided by the root of D."""
    mean, scale = columns.mean(0), (columns.std(0) + 1e-6) * columns.shape[1] ** 0.5
    own, others = ((each - mean) / scale for each in (columns, test_columns))
    return _regression(own, others, train, PROBE_STRENGTHS, seed)


def lsa(texts: Sequence[str]) -> Callable[[Sequence[str]], np.ndarray]:
    """Latent semantic analysis of unlabelled texts: maps others to rows (N, `LSA_WIDTH`) of length 1.

    TF-IDF of words, reduced by a truncated SVD: words that occur in the same texts come near to each other.

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


def cooccurrences(sequences: Sequence[Sequence[int]], vocab_size: int) -> np.ndarray:
    """How often each token occurs at most `WINDOW` positions from each other one, shape (V, V), float32.

    Examples
    --------
    >>> cooccurrences([[0, 1], [1, 1]], 2).tolist()
    [[0.0, 1.0], [1.0, 2.0]]
    """
    ids = np.concatenate([np.asarray(ids, dtype=np.int64) for ids in sequences])
    text = np.repeat(np.arange(len(sequences)), [len(ids) for ids in sequences])
    counts = np.zeros((vocab_size, vocab_size), dtype=np.float32)
    for offset in range(1, WINDOW + 1):
        together = text[offset:] == text[:-offset]
        pairs = ids[:-offset][together] * vocab_size + ids[offset:][together]
        found, times = np.unique(pairs, return_counts=True)
        counts.reshape(-1)[found] += times
    return counts + counts.T


def ppmi_vectors(sequences: Sequence[Sequence[int]], vocab_size: int, width: int) -> np.ndarray:
    r"""Positive pointwise mutual information with near tokens, reduced by a truncated SVD.

    .. math:: M_{ij} = \max(0, \log \frac{P(i, j)}{P(i) P(j)^{0.75}}) \approx U \Sigma V^T, \quad
        \text{rows of } U \Sigma^{1/2}

    The sequences are ids of texts. A row of the result, (V, width), is zero where its token never occurs near
    another.

    References
    ----------
    Levy, Goldberg and Dagan, "Improving Distributional Similarity with Lessons Learned from Word Embeddings",
    TACL 3 (2015), sections 2 and 3.
    """
    from sklearn.utils.extmath import randomized_svd

    counts = cooccurrences(sequences, vocab_size)
    context = counts.sum(0) ** SMOOTHING
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(counts / (counts.sum(1)[:, None] * (context / context.sum())[None, :]))
    positive = np.nan_to_num(np.maximum(information, 0), posinf=0, neginf=0)
    left, values, _ = randomized_svd(positive, width, n_oversamples=16, n_iter=4, random_state=0)
    return left * np.sqrt(values)


def embed_by_counts(weight: Tensor, tokenizer: Tokenizer, texts: Sequence[str]) -> None:
    """Set embeddings, (V, D), to PPMI vectors of some texts, centred, of the size of new ones."""
    ids = tokenizer.encode_batch(texts)
    vectors = torch.from_numpy(ppmi_vectors(ids, *weight.shape)).float()
    flat = torch.from_numpy(np.concatenate([np.asarray(row, dtype=np.int64) for row in ids]))
    shares = torch.bincount(flat, minlength=len(weight)).float() / len(flat)
    centred = vectors - shares @ vectors
    with torch.no_grad():
        weight.copy_(centred / (centred.std(0) + 1e-6) * weight.shape[1] ** -0.5)
