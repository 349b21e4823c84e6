"""Linear readers: bags of words, and columns of numbers beside them; chosen inside the labels at hand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.transfer_conditions import Condition
from experiments.transfer_data import Fold, Rated, Sources, Stage, Task, TransferRecipe, Tuning, digest_of
from tinytx.model.config import TransformerConfig
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.transformer import Classifier, LanguageModel, Transformer, pool
from tinytx.text.corpora import Split, label_subset
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.checkpoint import (
    MODEL_FILE,
    RunFolder,
    describe,
    load,
    save,
    step_folders,
    step_of,
    write_file,
)
from tinytx.training.evaluate import classifier_inputs, count_correct
from tinytx.training.fit import Report, new_model, objective_for
from tinytx.training.loop import train
from tinytx.training.objectives import ClassificationObjective, Masking, Objective, PackedSequences
from tinytx.training.recipes import Recipe, epoch_ends, resize
from tinytx.training.settings import TrainingSettings, choose_device, choose_precision

RIDGE = 3.0


class StarsObjective(ClassificationObjective):
    """Say which share of other readers gave fewer stars: soft labels that are balanced by their making.

    Parameters
    ----------
    sequences : sequence of sequences of int
        Ids of each text as the model reads them.
    stars : sequence of float
    pad_id : int
    """

    def __init__(self, sequences: Sequence[Sequence[int]], stars: Sequence[float], *, pad_id: int) -> None:
        super().__init__(sequences, [0] * len(sequences), pad_id=pad_id)
        self.shares = torch.from_numpy(shares_below(stars)).float()  # (N,)

    def loss(self, model: Classifier, indices: list[int], batch: list[int] | None = None) -> Tensor:
        """Mean nats a text, against the share as the probability of class 1."""
        logits = self.logits(model, indices).float()  # (B, 2)
        wanted = self.shares[indices].to(logits.device)
        loss = F.cross_entropy(logits, torch.stack([1 - wanted, wanted], dim=1))
        return loss if batch is None else loss * (len(indices) / len(batch))


def shares_below(stars: Sequence[float]) -> np.ndarray:
    """For each rating, the share of ratings that are lower, equal ones counted half.

    Examples
    --------
    >>> shares_below([5, 1, 5, 3]).tolist()
    [0.75, 0.125, 0.75, 0.375]
    """
    given = np.asarray(stars, dtype=float)
    ordered = np.sort(given)
    lower = np.searchsorted(ordered, given, side="left")
    not_higher = np.searchsorted(ordered, given, side="right")
    return (lower + not_higher) / (2 * len(given))


class LinearStars:
    """Stars foretold from words and from letters: two ridge regressions on TF-IDF, standardised and added.

    Parameters
    ----------
    rated : sequence of Rated
    """

    def __init__(self, rated: Sequence[Rated]) -> None:
        try:
            from sklearn.feature_extraction.text import TfidfVectorizer
        except ImportError as error:
            raise ImportError(NEED) from error
        texts, stars = [one.text for one in rated], [one.stars for one in rated]
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
        letters = TfidfVectorizer(
            analyzer="char_wb", ngram_range=LETTERS, sublinear_tf=True, min_df=5, max_features=120_000
        )
        self._by_words, self._by_letters = _Reader(words, texts, stars), _Reader(letters, texts, stars)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """What the words let expect, from low to high, as a column (N, 1)."""
        return (self._by_words(texts) + self._by_letters(texts))[:, None]


class _Reader:
    """One ridge regression, whose answers have mean 0 and spread 1 on the texts that it learned from."""

    def __init__(self, vectorizer: Any, texts: Sequence[str], stars: Sequence[float]) -> None:
        from sklearn.linear_model import Ridge

        table = vectorizer.fit_transform(texts)
        self._vectorizer = vectorizer
        self._ridge = Ridge(alpha=RIDGE, solver="sparse_cg").fit(table, stars)
        own = self._ridge.predict(table)
        self._mean, self._spread = own.mean(), own.std()

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        return (self._ridge.predict(self._vectorizer.transform(texts)) - self._mean) / self._spread


WINDOW = 15  # wide: words of one mood stand in one sentence, not side by side
SMOOTHING = 0.75  # of the neighbours' frequencies, so that rare neighbours do not count too much
EXTRA, ROUNDS = 16, 4  # of the randomised decomposition


def count_vectors(
    sequences: Sequence[Sequence[int]], vocab_size: int, width: int, *, seed: int = 0
) -> Tensor:
    r"""Positive pointwise mutual information with near tokens, reduced to its strongest directions.

    .. math:: M_{ij} = \max(0, \log \frac{P(i, j)}{P(i) P(j)^{0.75}}) \approx U \Sigma V^T, \quad
        \text{rows of } U \Sigma^{1/2}

    Parameters
    ----------
    sequences : sequence of sequences of int
        Token ids of texts.
    vocab_size : int
        V; a table of V times V counts is held in memory.
    width : int
        D, at most V.
    seed : int
        Of the randomised decomposition.

    Returns
    -------
    Tensor of shape (V, D), float32
        Zero for tokens that were never seen beside another.

    References
    ----------
    Levy, Goldberg and Dagan, "Improving Distributional Similarity with Lessons Learned from Word Embeddings",
    TACL 3 (2015), sections 2 and 3.
    """
    if not 1 <= width <= vocab_size:
        raise ValueError(f"width must be from 1 to vocab_size={vocab_size}, got {width}")
    counts = near_counts(sequences, vocab_size)
    total = counts.sum()
    if total == 0:
        raise ValueError("counting needs a text of at least two tokens, got none")
    own = counts.sum(1)
    weights = counts.sum(0) ** SMOOTHING
    weights /= weights.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(counts / (own[:, None] * weights[None, :]))
    positive = torch.from_numpy(np.nan_to_num(np.maximum(information, 0), posinf=0, neginf=0))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        rank = min(vocab_size, width + EXTRA)
        left, values, _ = torch.svd_lowrank(positive.float(), q=rank, niter=ROUNDS)
    return left[:, :width] * values[:width].sqrt()  # (V, D)


def spread_evenly(vectors: Tensor, frequencies: Tensor) -> Tensor:
    """Vectors (V, D) without what all tokens of a text share, each direction with a spread of 1.

    ``frequencies`` (V,) weigh the mean: what a mean over a text would show of every text is taken away.
    """
    centred = vectors - (frequencies[:, None] * vectors).sum(0) / frequencies.sum()
    return centred / (centred.std(0) + 1e-6)


def near_counts(sequences: Sequence[Sequence[int]], vocab_size: int) -> np.ndarray:
    """How often each token stands at most `WINDOW` places from each other one, shape (V, V), float32.

    Examples
    --------
    >>> near_counts([[0, 1], [1, 1]], 2).tolist()
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


AnyModel = LanguageModel | MaskedLanguageModel | Classifier
Plan = dict[str, Any]


@dataclass
class Bodies:
    """Makes bodies when they are first needed, from what lies below `work_dir` where it can.

    Attributes
    ----------
    task : Task
    recipe : TransferRecipe
    sources : Sources
    work_dir : Path
    device : str
    report : callable
        Told what is pretrained, a line each.
    """

    task: Task
    recipe: TransferRecipe
    sources: Sources
    work_dir: Path
    device: str = "auto"
    report: Report = print
    _tokenizer: Tokenizer | None = field(default=None, repr=False)

    @property
    def tokenizer(self) -> Tokenizer:
        """One for all conditions, learned from text elsewhere: no text of the task was read for it."""
        if self._tokenizer is None:
            file = self.work_dir / f"tokenizer-{digest_of(self._pieces())}.model"
            if not file.is_file():
                task = self.task
                texts = lowered(self.sources.elsewhere(task.pieces_from, task.pieces_words))
                made = Tokenizer.train(texts, vocab_size=self.recipe.vocab_size, max_chars=4_000_000)
                write_file(file, made.to_bytes())
            self._tokenizer = Tokenizer.load(file)
        return self._tokenizer

    def _pieces(self) -> Plan:
        words = dict(self.task.pieces_words)
        return {
            "vocab_size": self.recipe.vocab_size,
            "words": words,
            **self.sources.identity(self.task.pieces_from),
        }

    def new_body(self, *, causal: bool, seed: int) -> Transformer:
        """A body with new weights."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return Transformer(self.recipe.config(causal=causal).replace(tie_embeddings=False))

    def model(self, wanted: Condition, fold: Fold) -> AnyModel | None:
        """The model whose body a condition uses, pretrained where it is not yet; None for new weights."""
        model: AnyModel | None = None
        for stage, folder in self.stages(wanted, fold):
            model = _finished(stage, folder) or self._made(stage, folder, model, fold)
        return model

    def stages(self, wanted: Condition, fold: Fold) -> list[tuple[Plan, Path]]:
        """How a body comes about, and the folder of each stage: named after all that went into it."""
        found, digest = [], ""
        for stage in self._plans(wanted, fold):
            digest = digest_of({"stage": stage, "before": digest})
            found.append((stage, self.work_dir / f"{stage['what']}-{stage['text']}-{digest}"))
        return found

    def _plans(self, wanted: Condition, fold: Fold) -> list[Plan]:
        recipe = self.recipe
        shape = {"config": recipe.config(causal=wanted.causal).to_dict(), "pieces": self._pieces()}
        learns = {"what": wanted.objective, "mask": recipe.mask, "from_counts": recipe.from_counts, **shape}
        stages: list[Plan] = []
        if wanted.text is not None:
            before, own = self.task.texts[wanted.text].elsewhere, self.task.own
            elsewhere = {"words": recipe.words, **({} if before is None else self.sources.identity(before))}
            read = {own: digest_of({"texts": list(fold.train.texts)})} if wanted.needs_fold and own else {}
            if wanted.objective == "counts":
                stages.append({"what": "counts", **shape, **read, "text": wanted.text, **elsewhere})
            else:
                if before is not None:
                    stages.append(
                        {**learns, "text": before, **elsewhere, "stage": _fields(recipe.pretraining)}
                    )
                if read:
                    stages.append({**learns, "text": own, **read, "stage": _fields(recipe.adapting)})
        if wanted.stars:
            rates = {"what": "stars", "text": self.task.neighbour, "from_counts": recipe.from_counts}
            stages.append({**rates, **shape, "stage": _fields(recipe.rating)})
        return stages

    def _made(self, plan: Plan, folder: Path, before: AnyModel | None, fold: Fold) -> AnyModel:
        """Carry a stage out, from its latest checkpoint where there is one."""
        if plan["what"] == "stars":
            return self._rated(plan, folder, before)
        texts = lowered(self._texts(plan, fold))
        config = TransformerConfig.from_dict(plan["config"])
        if plan["what"] == "counts":
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                counted = MaskedLanguageModel(config)
            self._count(counted, texts)
            save(counted, folder, self.tokenizer)
            return counted.eval()
        masking = None if config.causal else Masking(p=self.recipe.mask)
        settings = self._settings(plan)
        recipe = Recipe(self.recipe.budget, config.vocab_size, config, settings, masking=masking)
        model = new_model(recipe, seed=0)
        if before is not None:
            model.load_state_dict(before.state_dict())  # body and head
        elif plan["from_counts"]:
            self._count(model, texts)
        # At the rates at which a body learns, what was counted would be gone within a few steps.
        model.body.token_embed.weight.requires_grad_(not plan["from_counts"])
        return self._run(model, objective_for(recipe, self.tokenizer, texts), plan, folder)

    def _texts(self, plan: Plan, fold: Fold) -> list[str]:
        """What a stage reads: text elsewhere, the texts of the fold that are not tested, or both."""
        text = self.task.texts[plan["text"]]
        own = list(fold.train.texts) if text.own else []
        return own if text.elsewhere is None else self.sources.elsewhere(text.elsewhere, plan["words"]) + own

    def _count(self, model: LanguageModel | MaskedLanguageModel, texts: Sequence[str]) -> None:
        """Give the embeddings what counts tell, in the size of new ones that are scaled by the root of D."""
        weight = model.body.token_embed.weight
        ids = self.tokenizer.encode_batch(texts)
        flat = torch.from_numpy(np.concatenate([np.asarray(row, dtype=np.int64) for row in ids]))
        frequencies = torch.bincount(flat, minlength=len(weight)).float()
        with torch.no_grad():
            weight.copy_(spread_evenly(count_vectors(ids, *weight.shape), frequencies))
            weight.mul_(weight.shape[1] ** -0.5)

    def _rated(self, plan: Plan, folder: Path, before: AnyModel | None) -> AnyModel:
        """A classifier that says from the words whether a reader gave more stars than others."""
        config = TransformerConfig.from_dict(plan["config"])
        rated = self.sources.rated
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            config = config.replace(dropout=self.recipe.tuning.dropout, tie_embeddings=False)
            model = Classifier(config)
        if before is not None:
            model.body.load_state_dict(before.body.state_dict())
            model.body.token_embed.weight.requires_grad_(not plan["from_counts"])
        sequences, _ = classifier_inputs(
            self.tokenizer, lowered([one.text for one in rated]), config.max_len, causal=config.causal
        )
        learning = StarsObjective(sequences, [one.stars for one in rated], pad_id=self.tokenizer.pad_id)
        return self._run(model, learning, plan, folder)

    def _settings(self, plan: Plan) -> TrainingSettings:
        precision = choose_precision("auto", choose_device(self.device))
        return Stage(**plan["stage"]).settings(0, precision)

    def _run(self, model: Any, learning: Objective, plan: Plan, folder: Path) -> AnyModel:
        settings = self._settings(plan)
        model.to(choose_device(self.device))
        self.report(f"{plan['what']} on {plan['text']}: {describe(model, settings)}")
        with RunFolder.opened(folder, {"request": plan}, self.tokenizer, self.report) as run:
            train(model, learning, settings, run=run, label=f"{plan['what']} on {plan['text']}")
        return model


def is_finished(plan: Plan, folder: Path) -> bool:
    """Whether a stage has been carried out."""
    if plan["what"] == "counts":
        return (folder / MODEL_FILE).is_file()
    steps = step_folders(folder)
    return bool(steps) and step_of(steps[-1]) >= plan["stage"]["n_steps"]


def _finished(plan: Plan, folder: Path) -> AnyModel | None:
    if not is_finished(plan, folder):
        return None
    model = load(folder)
    assert not hasattr(model, "decoder")
    return model  # type: ignore[return-value]


def lowered(texts: Sequence[str]) -> list[str]:
    """Texts as bodies read them: in small letters, so that a word has one vector."""
    return [text.lower() for text in texts]


def _fields(stage: Stage | None) -> Plan:
    if stage is None:
        raise ValueError("the recipe must hold a stage for each text that a body reads, got None")
    return dataclasses.asdict(stage)


TEXTS_AT_ONCE = 32


def fine_tuned(
    body: Transformer,
    tokenizer: Tokenizer,
    train_split: Split,
    tested: Split,
    *,
    tuning: Tuning,
    seed: int,
    device: str = "auto",
) -> tuple[int, list[dict[str, Any]]]:
    """Train a body and a new head, and count how many tested texts the last state names rightly.

    Parameters
    ----------
    body : Transformer
        Copied, not changed.
    tokenizer : Tokenizer
    train_split, tested : Split
    tuning : Tuning
    seed : int
        Of the head, the order and dropout.
    device : str

    Returns
    -------
    correct : int
        Of all tested texts.
    curve : list of dict
        ``epoch``, ``step``, ``accuracy`` on ``n`` of the tested texts: to look at, not to choose by.
    """
    where = choose_device(device)
    n_classes = 1 + max((*(train_split.labels or ()), *(tested.labels or ())))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Classifier(
            body.config.replace(dropout=tuning.dropout), n_classes=n_classes, pooling=tuning.pooling
        )
    model.body.load_state_dict(body.state_dict())
    model.body.token_embed.weight.requires_grad_(not tuning.keep_embeddings)
    model.to(where)
    learning, lengths = _objective(tokenizer, train_split, body)
    settings = TrainingSettings(
        n_steps=1,
        lr=tuning.lr,
        optimizer=tuning.optimizer,
        tokens_per_batch=max(max(lengths), math.ceil(tuning.texts_per_batch * float(np.mean(lengths)))),
        precision=choose_precision("auto", where),
        seed=seed,
    )
    per_epoch = epoch_ends(learning, settings, 1)[0]
    n_epochs = max(tuning.n_epochs, math.ceil(tuning.n_updates / per_epoch))
    ends = epoch_ends(learning, settings, n_epochs)
    some = label_subset(tested, min(tuning.n_scored, len(tested)), seed)
    looked_at = _objective(tokenizer, some, body)[0]
    every = math.ceil(n_epochs / tuning.n_curve)

    def after(step: int, now: nn.Module) -> dict[str, Any] | None:
        epoch = 1 + ends.index(step) if step in ends else 0
        if epoch == 0 or (epoch % every and epoch != n_epochs) or not isinstance(now, Classifier):
            return None
        return {"epoch": epoch, "accuracy": count_correct(now, looked_at) / len(some), "n": len(some)}

    history = train(model, learning, resize(settings, ends[-1]), on_step=after, progress=False)
    return count_correct(model, _objective(tokenizer, tested, body)[0]), history.evaluations


def _objective(
    tokenizer: Tokenizer, split: Split, body: Transformer
) -> tuple[ClassificationObjective, list[int]]:
    sequences, _ = classifier_inputs(
        tokenizer, lowered(split.texts), body.config.max_len, causal=body.config.causal
    )
    learning = ClassificationObjective(sequences, split.labels or (), pad_id=tokenizer.pad_id)
    return learning, [len(sequence) for sequence in sequences]


def pooled_states(
    body: Transformer, tokenizer: Tokenizer, split: Split, *, device: str = "auto"
) -> np.ndarray:
    """The mean over each text of the embeddings and of the last states, side by side, shape (N, 2 D)."""

    def both(token_ids: Tensor, real: Tensor) -> Tensor:
        layers = body.token_embed(token_ids), body(token_ids, real)
        return torch.cat([pool(states, real, "mean") for states in layers], dim=1)

    return _for_each(both, body, body.config, tokenizer, split, device)


def opinions(model: Classifier, tokenizer: Tokenizer, split: Split, *, device: str = "auto") -> np.ndarray:
    """How much a classifier of two classes leans to the second, in nats, as a column (N, 1)."""

    def lean(token_ids: Tensor, real: Tensor) -> Tensor:
        logits = model(token_ids, real)  # (B, 2)
        return logits[:, 1:] - logits[:, :1]

    return _for_each(lean, model, model.config, tokenizer, split, device)


@torch.no_grad()
def _for_each(
    figures: Callable[[Tensor, Tensor], Tensor],
    module: nn.Module,
    config: TransformerConfig,
    tokenizer: Tokenizer,
    split: Split,
    device: str,
) -> np.ndarray:
    where = choose_device(device)
    module.to(where).eval()
    sequences, _ = classifier_inputs(tokenizer, lowered(split.texts), config.max_len, causal=config.causal)
    rows = PackedSequences(sequences, tokenizer.pad_id)
    order = np.argsort(rows.lengths).tolist()
    found: dict[int, np.ndarray] = {}
    for at in range(0, len(order), TEXTS_AT_ONCE):
        chosen = order[at : at + TEXTS_AT_ONCE]
        token_ids = rows.rows(chosen).to(where)
        found.update(
            zip(chosen, figures(token_ids, token_ids != tokenizer.pad_id).cpu().numpy(), strict=True)
        )
    return np.stack([found[i] for i in range(len(order))]).astype(float)


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
