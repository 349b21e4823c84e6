"""Encoders of the transfer experiment: pretrained in cached stages, fine-tuned, or read as they are."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.harness import digest_of
from experiments.transfer_data import Fold
from experiments.transfer_variants import Sources, Stage, Task, Tuning, Variant
from tinytx.model.config import TransformerConfig
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.transformer import Classifier, LanguageModel, Transformer, pool
from tinytx.text.corpora import Split, label_subset
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.checkpoint import MODEL_FILE, load, save, step_folders, step_of
from tinytx.training.evaluate import classifier_inputs, count_correct
from tinytx.training.files import write_file
from tinytx.training.fit import Report, describe
from tinytx.training.loop import train
from tinytx.training.masking import Masking
from tinytx.training.objectives import ClassificationObjective, Objective, PackedSequences
from tinytx.training.recipes import Recipe as TrainingRecipe
from tinytx.training.recipes import resize
from tinytx.training.runs import open_run
from tinytx.training.settings import TrainingSettings, choose_device, choose_precision
from tinytx.training.tasks import epoch_ends, new_model, objective_for, seeded

WINDOW = 15  # wide: words of one mood share a sentence, not a phrase
SMOOTHING = 0.75  # of the frequencies of context tokens, so that rare ones do not count too much
TEXTS_AT_ONCE = 32
AnyModel = LanguageModel | MaskedLanguageModel | Classifier
Plan = dict[str, Any]


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

    Parameters
    ----------
    sequences : sequence of sequences of int
        Token ids of texts.
    vocab_size, width : int
        V and D, at most V.

    Returns
    -------
    ndarray of shape (V, D)
        Zero for tokens that never occur near another.

    References
    ----------
    Levy, Goldberg and Dagan, "Improving Distributional Similarity with Lessons Learned from Word Embeddings",
    TACL 3 (2015), sections 2 and 3.
    """
    from sklearn.utils.extmath import randomized_svd

    if not 1 <= width <= vocab_size:
        raise ValueError(f"width must be from 1 to vocab_size={vocab_size}, got {width}")
    counts = cooccurrences(sequences, vocab_size)
    if not counts.any():
        raise ValueError("sequences must hold a text of at least two tokens, got none")
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


class StarsObjective(ClassificationObjective):
    """Predict the share of other readers who gave fewer stars: soft labels that are balanced by design."""

    def __init__(self, sequences: Sequence[Sequence[int]], stars: Sequence[float], *, pad_id: int) -> None:
        from scipy.stats import rankdata

        super().__init__(sequences, [0] * len(sequences), pad_id=pad_id)
        self.shares = torch.from_numpy((rankdata(stars) - 0.5) / len(stars)).float()  # (N,)

    def loss(self, model: Classifier, indices: list[int]) -> Tensor:
        """Mean nats a text, against the share as the probability of class 1."""
        logits = self.logits(model, indices).float()  # (B, 2)
        wanted = self.shares[indices].to(logits.device)
        return F.cross_entropy(logits, torch.stack([1 - wanted, wanted], dim=1))


class Encoders:
    """Pretrained models of all variants; each stage is trained once and cached in a folder of `work_dir`."""

    def __init__(
        self, task: Task, budget: str, sources: Sources, work_dir: Path, device: str, report: Report
    ) -> None:
        self.task, self.budget, self.recipe = task, budget, task.recipes[budget]
        self.sources, self.work_dir, self.device, self.report = sources, work_dir, device, report

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """One for all variants, trained on unlabelled text: no text of the task was read for it."""
        file = self.work_dir / f"tokenizer-{digest_of(self._tokens())}.model"
        if not file.is_file():
            texts = lowered(self.sources.texts(self.task.tokens_from, self.task.token_words))
            made = Tokenizer.train(texts, vocab_size=self.recipe.vocab_size, max_chars=4_000_000)
            write_file(file, made.to_bytes())
        return Tokenizer.load(file)

    def _tokens(self) -> Plan:
        sizes = {"vocab_size": self.recipe.vocab_size, "words": dict(self.task.token_words)}
        return sizes | self.sources.identity(self.task.tokens_from)

    def new_encoder(self, *, causal: bool, seed: int) -> Transformer:
        """An encoder with new weights."""
        config = self.recipe.config(causal=causal).replace(tie_embeddings=False)
        return seeded(lambda: Transformer(config), seed)

    def model(self, wanted: Variant, fold: Fold) -> AnyModel | None:
        """The model whose encoder a variant uses, from the cache or trained now; None for new weights."""
        model: AnyModel | None = None
        for plan, folder in self.stages(wanted, fold):
            model = _cached(plan, folder) or self._trained(plan, folder, model, fold)
        return model

    def stages(self, wanted: Variant, fold: Fold) -> list[tuple[Plan, Path]]:
        """The stages of pretraining, and the folder of each: named after all that went into it."""
        found, digest = [], ""
        for plan in self._plans(wanted, fold):
            digest = digest_of({"stage": plan, "before": digest})
            found.append((plan, self.work_dir / f"{plan['what']}-{plan['text']}-{digest}"))
        return found

    def _plans(self, wanted: Variant, fold: Fold) -> list[Plan]:
        recipe = self.recipe
        shape = {"config": recipe.config(causal=wanted.causal).to_dict(), "pieces": self._tokens()}
        plans: list[Plan] = []
        if wanted.text is not None:
            text, own = self.task.texts[wanted.text], self.task.own_text
            before = text.source
            elsewhere = {"words": recipe.words, **({} if before is None else self.sources.identity(before))}
            read = {own: digest_of({"texts": list(fold.train.texts)})} if text.own and own else {}
            learns = {"what": wanted.objective, "mask": recipe.mask, "from_counts": True, **shape}
            if wanted.objective == "counts":
                plans.append({"what": "counts", **shape, **read, "text": wanted.text, **elsewhere})
            else:
                if before is not None:
                    stage = _fields(recipe.pretraining)
                    plans.append({**learns, "text": before, **elsewhere, "stage": stage})
                if read:
                    plans.append({**learns, "text": own, **read, "stage": _fields(recipe.adapting)})
        if wanted.stars:
            rates = {"what": "stars", "text": self.task.rated_source, "from_counts": True}
            plans.append({**rates, **shape, "stage": _fields(recipe.rating)})
        return plans

    def _trained(self, plan: Plan, folder: Path, before: AnyModel | None, fold: Fold) -> AnyModel:
        config = TransformerConfig.from_dict(plan["config"])
        if plan["what"] == "stars":
            rater, objective = self._rater(config, before)
            return self._train(rater, objective, plan, folder)
        text = self.task.texts[plan["text"]]
        texts = [] if text.source is None else self.sources.texts(text.source, plan["words"])
        texts = lowered(texts + (list(fold.train.texts) if text.own else []))
        if plan["what"] == "counts":
            counted = seeded(lambda: MaskedLanguageModel(config), 0)
            embed_by_counts(counted.body.token_embed.weight, self.tokenizer, texts)
            save(counted, folder, self.tokenizer)
            return counted.eval()
        masking = None if config.causal else Masking(p=self.recipe.mask)
        recipe = TrainingRecipe(self.budget, config.vocab_size, config, self._settings(plan), masking=masking)
        model = new_model(recipe, seed=0)
        if before is None:
            embed_by_counts(model.body.token_embed.weight, self.tokenizer, texts)
        else:
            model.load_state_dict(before.state_dict())
        # At the rate of pretraining, what the counts gave would be gone within a few steps.
        model.body.token_embed.weight.requires_grad_(False)
        return self._train(model, objective_for(recipe, self.tokenizer, texts), plan, folder)

    def _rater(self, config: TransformerConfig, before: AnyModel | None) -> tuple[Classifier, Objective]:
        config = config.replace(dropout=self.recipe.tuning.dropout, tie_embeddings=False)
        model = seeded(lambda: Classifier(config), 0)
        if before is not None:
            model.body.load_state_dict(before.body.state_dict())
            model.body.token_embed.weight.requires_grad_(False)
        texts, stars = zip(*self.sources.rated, strict=True)
        sequences, _ = classifier_inputs(self.tokenizer, lowered(texts), config.max_len, causal=config.causal)
        return model, StarsObjective(sequences, stars, pad_id=self.tokenizer.pad_id)

    def _settings(self, plan: Plan) -> TrainingSettings:
        return Stage(**plan["stage"]).settings(0, choose_precision("auto", choose_device(self.device)))

    def _train(self, model: Any, objective: Objective, plan: Plan, folder: Path) -> AnyModel:
        """Train from the latest checkpoint in the folder, where there is one."""
        settings = self._settings(plan)
        model.to(choose_device(self.device))
        label = f"{plan['what']} on {plan['text']}"
        self.report(f"{label}: {describe(model, settings)}")
        with open_run(folder, plan, self.tokenizer, self.report) as checkpoints:
            train(model, objective, settings, checkpoints=checkpoints, label=label)
        return model


def _cached(plan: Plan, folder: Path) -> AnyModel | None:
    if plan["what"] == "counts":
        is_finished = (folder / MODEL_FILE).is_file()
    else:
        steps = step_folders(folder)
        is_finished = bool(steps) and step_of(steps[-1]) >= plan["stage"]["n_steps"]
    return load(folder) if is_finished else None  # type: ignore[return-value]


def lowered(texts: Sequence[str]) -> list[str]:
    """Texts in lower case, so that a word has one vector."""
    return [text.lower() for text in texts]


def _fields(stage: Stage | None) -> Plan:
    if stage is None:
        raise ValueError("the recipe must hold a stage for each text that an encoder reads, got None")
    return dataclasses.asdict(stage)


def fine_tuned(
    encoder: Transformer,
    tokenizer: Tokenizer,
    train_split: Split,
    test: Split,
    *,
    tuning: Tuning,
    seed: int,
    device: str = "auto",
) -> tuple[int, list[dict[str, Any]]]:
    """Train a copy of an encoder with a new head; count the tested texts that its last state gets right.

    The seed is that of the head, the order and dropout.

    Returns
    -------
    correct : int
        Of all tested texts.
    curve : list of dict
        ``epoch``, ``step``, ``accuracy`` on ``n`` of the tested texts; nothing is chosen by it.
    """
    where = choose_device(device)
    n_classes = 1 + max((*(train_split.labels or ()), *(test.labels or ())))
    config = encoder.config.replace(dropout=tuning.dropout)
    model = seeded(lambda: Classifier(config, n_classes=n_classes, pooling=tuning.pooling), seed)
    model.body.load_state_dict(encoder.state_dict())
    model.body.token_embed.weight.requires_grad_(not tuning.keep_embeddings)
    model.to(where)
    objective, lengths = _objective(tokenizer, train_split, config)
    settings = TrainingSettings(
        n_steps=1,
        lr=tuning.lr,
        optimizer=tuning.optimizer,
        tokens_per_batch=max(max(lengths), math.ceil(tuning.texts_per_batch * float(np.mean(lengths)))),
        precision=choose_precision("auto", where),
        seed=seed,
    )
    n_epochs = max(tuning.n_epochs, math.ceil(tuning.n_updates / epoch_ends(objective, settings, 1)[0]))
    ends = epoch_ends(objective, settings, n_epochs)
    some = label_subset(test, min(tuning.n_scored, len(test)), seed)
    curve_objective = _objective(tokenizer, some, config)[0]
    every = math.ceil(n_epochs / tuning.n_curve)

    def on_step(step: int, now: nn.Module) -> dict[str, Any] | None:
        epoch = 1 + ends.index(step) if step in ends else 0
        if epoch == 0 or (epoch % every and epoch != n_epochs) or not isinstance(now, Classifier):
            return None
        return {"epoch": epoch, "accuracy": count_correct(now, curve_objective) / len(some), "n": len(some)}

    history = train(model, objective, resize(settings, ends[-1]), on_step=on_step, progress=False)
    return count_correct(model, _objective(tokenizer, test, config)[0]), history.evaluations


def _objective(
    tokenizer: Tokenizer, split: Split, config: TransformerConfig
) -> tuple[ClassificationObjective, list[int]]:
    sequences, _ = classifier_inputs(tokenizer, lowered(split.texts), config.max_len, causal=config.causal)
    objective = ClassificationObjective(sequences, split.labels or (), pad_id=tokenizer.pad_id)
    return objective, [len(sequence) for sequence in sequences]


@torch.no_grad()
def columns_of(
    model: Transformer | Classifier, tokenizer: Tokenizer, split: Split, device: str = "auto"
) -> np.ndarray:
    """What a frozen model gives of each text, for a linear model to read.

    Returns
    -------
    ndarray
        Of a classifier the logit of class 1 against class 0, shape (N, 1); of an encoder the mean embedding
        and the mean last hidden state, shape (N, 2 D).
    """
    where = choose_device(device)
    model.to(where).eval()
    sequences, _ = classifier_inputs(
        tokenizer, lowered(split.texts), model.config.max_len, causal=model.config.causal
    )
    rows = PackedSequences(sequences, tokenizer.pad_id)
    order = np.argsort(rows.lengths).tolist()
    found: dict[int, np.ndarray] = {}
    for at in range(0, len(order), TEXTS_AT_ONCE):
        chosen = order[at : at + TEXTS_AT_ONCE]
        token_ids = rows.rows(chosen).to(where)  # (n, T)
        real = token_ids != tokenizer.pad_id
        if isinstance(model, Classifier):
            columns = model(token_ids, real).diff(dim=1)  # (n, 1)
        else:
            layers = model.token_embed(token_ids), model(token_ids, real)
            columns = torch.cat([pool(states, real, "mean") for states in layers], dim=1)  # (n, 2 D)
        found.update(zip(chosen, columns.cpu().numpy(), strict=True))
    return np.stack([found[i] for i in range(len(order))]).astype(float)
