"""How good a model is: the right measure for its kind, next to the entropy bound where that is known.

A causal language model has a loss, a masked one a pseudo-likelihood, a classifier an accuracy, a translator
BLEU. Shape letters: N texts or rows, B rows of a batch, T tokens, V vocabulary, C classes.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from tinytx.batching import chunks
from tinytx.beam import Search
from tinytx.classifier import Classifier
from tinytx.encoder_decoder import Translator
from tinytx.generate import check_vocabulary, unwritten_ids
from tinytx.inference import TOKENS_PER_BATCH, eval_mode, evaluate_rows, padding_mask_or_none, row_nats
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.objectives import ClassificationObjective, masked_rows
from tinytx.settings import choose_device, require
from tinytx.tokenizer import Tokenizer, warn_of_unknown
from tinytx.transformer import LanguageModel, bidirectional
from tinytx.translate import GREEDY
from tinytx_run.bleu import Seen, TranslationEvaluation, evaluate_translator
from tinytx_run.checkpoint import Checkpoint, Model, load
from tinytx_run.classify import class_logits
from tinytx_run.corpora import Corpus, at_hand, load_corpus
from tinytx_run.intervals import Interval, wilson_interval
from tinytx_run.letters import canonical_label, warn
from tinytx_run.pairs import PairCorpus, load_pairs
from tinytx_run.splits import TextHashes

Sides = Literal["both", "left"]
MAX_MASKED = 8_000  # tokens of a pseudo-likelihood: each costs a forward pass over its text


@dataclass(frozen=True)
class LanguageModelScore:
    """Loss of a language model on some texts."""

    kind: ClassVar[str] = "language_model"
    total_nats: float  # -log P of all texts together
    n_tokens: int  # predicted ones: those of all texts, and one end mark a text
    n_texts: int

    @property
    def nats_per_token(self) -> float:
        """Mean loss."""
        return self.total_nats / self.n_tokens

    @property
    def perplexity(self) -> float:
        """``exp`` of the mean loss: as uncertain as a fair choice among so many tokens."""
        return math.exp(min(self.nats_per_token, 700.0))

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        means = {"nats_per_token": self.nats_per_token, "perplexity": self.perplexity}
        return {**dataclasses.asdict(self), **means}

    def __str__(self) -> str:
        return f"{self.nats_per_token:.4f} nats per token, perplexity {self.perplexity:.2f}"


def evaluate_language_model(
    model: LanguageModel, tokenizer: Tokenizer, texts: Sequence[str]
) -> LanguageModelScore:
    """Loss and perplexity on some texts; parameters as in `text_nats`."""
    nats = text_nats(model, tokenizer, texts)
    n_tokens = sum(len(ids) + 1 for ids in tokenizer.encode_batch(texts))
    return LanguageModelScore(float(nats.sum()), n_tokens, len(texts))


def text_nats(model: LanguageModel, tokenizer: Tokenizer, texts: Sequence[str]) -> np.ndarray:
    """``-log P`` of each text in nats, the end mark included; shape (N,), float64.

    Texts longer than ``max_len`` are read in chunks, each from its own beginning, so every token counts once.
    Computed in float32 whatever the precision of training; sums are float64. The model is a causal one.
    """
    check_vocabulary(model, tokenizer)
    if not model.config.causal:
        raise ValueError("a loss of next tokens must be of a causal model, got one with causal=False")
    windows: list[list[int]] = []
    text_of_window: list[int] = []
    for number, ids in enumerate(tokenizer.encode_batch(texts)):
        of_text = chunks([tokenizer.bos_id, *ids, tokenizer.eos_id], model.config.max_len)
        windows += of_text
        text_of_window += [number] * len(of_text)

    def window_nats(token_ids: Tensor, indices: list[int]) -> Tensor:
        return row_nats(model(token_ids), [windows[i][1:] for i in indices], tokenizer.pad_id)

    inputs = [window[:-1] for window in windows]
    values = evaluate_rows(model, inputs, window_nats, pad_id=tokenizer.pad_id)
    return np.bincount(text_of_window, weights=values.numpy(), minlength=len(texts))


@dataclass(frozen=True)
class PseudoLikelihoodScore(LanguageModelScore):
    """Loss of a masked language model on tokens that are masked one at a time.

    The total is the negative pseudo-log-likelihood, no ``-log P`` of a text.

    References
    ----------
    Salazar et al., Masked Language Model Scoring, arXiv:1910.14659, section 2.
    """

    kind: ClassVar[str] = "masked_language_model"
    correct: int  # tokens whose id was the most probable one

    @property
    def accuracy(self) -> float:
        """Share of masked tokens predicted right."""
        return self.correct / self.n_tokens

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        return {**super().to_dict(), "accuracy": self.accuracy}

    def __str__(self) -> str:
        return (
            f"{self.nats_per_token:.4f} nats per masked token, accuracy {self.accuracy:.4f}, "
            f"{self.n_tokens:,} tokens in {self.n_texts:,} texts"
        )


def first_texts(tokenizer: Tokenizer, texts: Sequence[str], max_tokens: int = MAX_MASKED) -> Sequence[str]:
    """The first texts that have at most so many tokens together; of a longer first one, its beginning."""
    rows = tokenizer.encode_batch(texts)
    n_texts = int(np.searchsorted(np.cumsum([len(ids) for ids in rows]), max_tokens, side="right"))
    return texts[:n_texts] if n_texts else [tokenizer.decode(ids[:max_tokens]) for ids in rows[:1]]


def evaluate_masked_model(
    model: MaskedLanguageModel, tokenizer: Tokenizer, texts: Sequence[str]
) -> PseudoLikelihoodScore:
    """Mask each token of some texts in turn, all others visible, and predict it; long texts in windows."""
    check_vocabulary(model, tokenizer)
    windows = masked_rows(tokenizer, texts, model.config.max_len)
    masked = [(window, position) for window in windows for position in range(1, len(window) - 1)]

    def surprise(token_ids: Tensor, indices: list[int]) -> Tensor:
        positions = torch.tensor([masked[i][1] for i in indices], device=token_ids.device)
        rows, inputs = torch.arange(len(indices), device=token_ids.device), token_ids.clone()
        inputs[rows, positions], wanted = tokenizer.mask_id, token_ids[rows, positions]
        hidden = model.body(inputs, padding_mask_or_none(inputs, tokenizer.pad_id))  # (B, T, D)
        log_probs = model.head(hidden[rows, positions]).double().log_softmax(dim=-1)  # (B, V)
        nats = -log_probs.gather(1, wanted[:, None])[:, 0]
        return torch.stack([nats, (log_probs.argmax(dim=1) == wanted).double()], dim=1)

    values = evaluate_rows(model, [window for window, _ in masked], surprise, pad_id=tokenizer.pad_id)
    total, correct = values.sum(dim=0).tolist()
    return PseudoLikelihoodScore(total, len(masked), len(texts), int(correct))


def fill_probs(
    model: LanguageModel | MaskedLanguageModel,
    tokenizer: Tokenizer,
    ids: Sequence[int],
    position: int,
    *,
    sides: Sides = "both",
    hybrid: bool = False,
) -> np.ndarray:
    """Distribution of the token at one position of a text, given the others: (V,), float64.

    It sums to 1 over the tokens of texts; special ids have 0. For both sides a causal model scores the text
    once with each token, by Bayes' rule: V passes. A hybrid one needs a single pass.

    Parameters
    ----------
    model : LanguageModel or MaskedLanguageModel
        A language model must be causal.
    tokenizer : Tokenizer
    ids : sequence of int
        The tokens of the whole text, without special ids; the one at `position` is ignored.
    position : int
    sides : {"both", "left"}
        "left": given only the tokens before it, for a causal model.
    hybrid : bool
        Whether a causal model has also learned to fill, see `HybridObjective`: for both sides it reads the
        text both ways with the token masked, and predicts it at the position before.
    """
    check_vocabulary(model, tokenizer)
    _check_fill(model, len(ids), position, sides)
    before, after = ids[:position], ids[position + 1 :]
    both_ways = hybrid and isinstance(model, LanguageModel) and sides == "both"
    row, at = [tokenizer.bos_id, *before], position
    if both_ways:
        row = [tokenizer.cls_id, *before, tokenizer.mask_id, *after]
    elif isinstance(model, MaskedLanguageModel):
        row, at = [tokenizer.cls_id, *before, tokenizer.mask_id, *after, tokenizer.sep_id], position + 1
    with eval_mode(model) as device, bidirectional(model.body) if both_ways else nullcontext():
        hidden = model.body(torch.tensor([row], device=device))[0, at]  # (D,)
        log_probs = model.head(hidden).double().log_softmax(dim=-1).cpu()  # (V,)
    if isinstance(model, LanguageModel) and sides == "both" and not both_ways:
        rest = [*after, tokenizer.eos_id]
        rows = [[tokenizer.bos_id, *before, token, *rest[:-1]] for token in range(len(log_probs))]

        def rest_nats(token_ids: Tensor, indices: list[int]) -> Tensor:
            logits = model.head(model.body(token_ids)[:, position + 1 :])  # (B, rest, V)
            return row_nats(logits, [rest] * len(indices), tokenizer.pad_id)

        log_probs = log_probs - evaluate_rows(model, rows, rest_nats, pad_id=tokenizer.pad_id)
    log_probs[[*unwritten_ids(tokenizer), tokenizer.eos_id]] = -torch.inf
    return log_probs.softmax(dim=0).numpy()


def _check_fill(model: Model, n_ids: int, position: int, sides: str) -> None:
    require(0 <= position < n_ids, f"position must be from 0 to {n_ids - 1}", position)
    require(sides in ("both", "left"), "sides must be 'both' or 'left'", repr(sides))
    masked = isinstance(model, MaskedLanguageModel)
    fills = masked or (isinstance(model, LanguageModel) and model.config.causal)
    require(fills, "filling needs a causal or a masked language model", "one that is neither")
    require(not masked or sides == "both", "sides='left' needs a causal model", "a masked model")
    longest = model.config.max_len - (2 if masked else 1)
    require(n_ids <= longest, f"a text to be filled must be at most {longest} tokens long", n_ids)


@dataclass(frozen=True)
class ClassifierScore:
    """How often a classifier is right."""

    kind: ClassVar[str] = "classifier"
    correct: int
    n: int
    n_cut: int  # texts longer than max_len, of which the model did not read the end

    @property
    def accuracy(self) -> float:
        """Share of right answers."""
        return self.correct / self.n

    @property
    def interval(self) -> Interval | None:
        """Wilson confidence interval of the accuracy at 95 %; None where the package scipy is missing."""
        try:
            return wilson_interval(self.correct, self.n)
        except ImportError:
            return None

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        interval = {"interval": list(self.interval)} if self.interval else {}
        return {**dataclasses.asdict(self), "accuracy": self.accuracy, **interval}

    def __str__(self) -> str:
        ends = "[{:.4f}, {:.4f}]".format(*self.interval) if self.interval else "(its interval needs scipy)"
        cut = f"; {self.n_cut:,} texts were cut to max_len" if self.n_cut else ""
        return f"accuracy {self.accuracy:.4f} {ends}, {self.correct:,} of {self.n:,}{cut}"


def evaluate_classifier(
    model: Classifier, tokenizer: Tokenizer, texts: Sequence[str], labels: Sequence[int]
) -> ClassifierScore:
    """Accuracy on N texts with N labels."""
    logits, cut = class_logits(model, tokenizer, texts)
    return ClassifierScore(int((logits.argmax(dim=-1) == torch.tensor(labels)).sum()), len(labels), len(cut))


def count_correct(model: Classifier, objective: ClassificationObjective) -> int:
    """Number of texts of an objective whose class the model predicts."""
    batches = objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=TOKENS_PER_BATCH)
    with eval_mode(model):
        predicted = [objective.logits(model, batch).argmax(dim=-1).cpu() for batch in batches]
    return sum(int((mine == objective.labels[i]).sum()) for mine, i in zip(predicted, batches, strict=True))


def exact_nats(corpus: Corpus, texts: Sequence[str]) -> np.ndarray | None:
    """``-log P`` of each text under the language that it was drawn from; None where that is not known.

    Its mean is the entropy bound: no model can expect a lower loss on fresh text of this language.
    """
    if corpus.name != "world":
        return None
    from tinyworld.world import World

    return -np.asarray(World().batch_log_prob([tuple(text.split(" ")) for text in texts]))


def exact_masked_nats(corpus: Corpus, tokenizer: Tokenizer, texts: Sequence[str]) -> np.ndarray | None:
    """``-log P(token | all others)`` of each token of some texts.

    None where the language is not known, or nothing is known of its words through this tokenizer.
    """
    if corpus.name != "world":
        return None
    from tinyworld.world import World

    try:
        world = World().through(tokenizer)
    except ValueError:  # of another language, of bytes, or without capitals
        return None
    rows = tokenizer.encode_batch(texts)
    return np.concatenate([-np.log(world.fill_tokens(ids)[np.arange(len(ids)), ids]) for ids in rows])


@dataclass(frozen=True)
class Evaluation:
    """A language model or a classifier on one split of a corpus."""

    corpus: str
    split: str
    score: LanguageModelScore | ClassifierScore
    # Exact nats per token of the same texts, where the language is known; None for a classifier.
    entropy_bound: float | None = None
    seen: Seen | None = None

    @property
    def gap(self) -> float | None:
        """Nats per token above the entropy bound, where that is known."""
        if self.entropy_bound is None or isinstance(self.score, ClassifierScore):
            return None
        return self.score.nats_per_token - self.entropy_bound

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        bound = {} if self.gap is None else {"entropy_bound": self.entropy_bound, "gap": self.gap}
        names = {"kind": self.score.kind, "corpus": self.corpus, "split": self.split}
        return {**names, **self.score.to_dict(), **bound, **(vars(self.seen) if self.seen else {})}

    def __str__(self) -> str:
        bound = "" if self.gap is None else f"; entropy bound {self.entropy_bound:.4f}, gap {self.gap:.4f}"
        return f"{self.corpus}, {self.split} split{self.seen or ''}: {self.score}{bound}"


def evaluate(
    model: str | os.PathLike[str] | Checkpoint | Model,
    corpus: str | os.PathLike[str] | Corpus | PairCorpus,
    *,
    tokenizer: Tokenizer | None = None,
    split: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "auto",
    search: Search = GREEDY,
) -> Evaluation | TranslationEvaluation:
    """Evaluate a model on a corpus, by the measure of its kind.

    Parameters
    ----------
    model : path, Checkpoint or Module
        A checkpoint or run folder, or a model with its `tokenizer`.
    corpus : str, path, Corpus or PairCorpus
        Pairs for a translator, texts for any other model. A classifier that knows the names of its classes
        takes labels by their names. How many texts a checkpoint has learned is said, see `Seen`; not of the
        held-out splits of the world, which are drawn independently, so short texts repeat.
    split : {"train", "valid", "test", "all"}, optional
        By default the test split, or valid where there is none; no "all" for a translator.
    data_dir : path, optional
        Folder that holds one folder a corpus.
    device : {"auto", "cpu", "cuda"}
        Where a checkpoint is loaded.
    search : Search
        Of a translator.

    Examples
    --------
    A model whose logits are all equal has a loss of ln V:

    >>> import math, tinytx as tx
    >>> from tinytx_run.corpora import Split
    >>> texts = Split(("le chat dort", "un chien mange"))
    >>> tokenizer = tx.Tokenizer.train(texts.texts, vocab_size=25)
    >>> model = tx.LanguageModel(tx.PRESETS["tiny"].replace(vocab_size=25, tie_embeddings=False))
    >>> _ = model.head.weight.data.zero_()
    >>> score = evaluate(model, Corpus("two", texts, texts), tokenizer=tokenizer).score
    >>> math.isclose(score.nats_per_token, math.log(25), rel_tol=1e-6)
    True
    """
    if isinstance(model, nn.Module):
        model = Checkpoint(model, tokenizer)
    found = model if isinstance(model, Checkpoint) else load(model, choose_device(device))
    model, tokenizer = found.with_tokenizer()
    if isinstance(model, Translator):
        pairs = at_hand(corpus, PairCorpus, load_pairs, data_dir)
        result = evaluate_translator(model, tokenizer, pairs, split=split, search=search)
        return dataclasses.replace(result, seen=Seen.of(found.learned, pairs.splits[result.split].sources))
    read = functools.partial(load_corpus, labels=isinstance(model, Classifier))
    data = at_hand(corpus, Corpus, read, data_dir)
    chosen = data.reported if split is None else split
    if chosen != "all" and chosen not in data.splits:
        raise ValueError(f"split must be all or one of {', '.join(data.splits)}, got {chosen!r}")
    return evaluate_split(model, tokenizer, data, chosen, found.class_names, found.learned)


def evaluate_split(
    model: LanguageModel | MaskedLanguageModel | Classifier,
    tokenizer: Tokenizer,
    corpus: Corpus,
    split: str,
    class_names: Sequence[str] | None = None,
    learned: Sequence[TextHashes] = (),
) -> Evaluation:
    """Evaluate a model on one split of a corpus, or on "all"; a label is the class that has its name."""
    parts = list(corpus.splits.values()) if split == "all" else [corpus.splits[split]]
    texts: Sequence[str] = [text for part in parts for text in part.texts]
    warn_of_unknown(tokenizer, texts, corpus.name)
    if corpus.draw and split in ("valid", "test"):  # of the world: drawn independently, so short texts repeat
        learned = ()
    if isinstance(model, Classifier):
        labels = [label for part in parts for label in part.labels or ()]
        if len(labels) != len(texts):
            got = f"{corpus.name}, which has none: label_column names their column"
            raise ValueError(f"a classifier needs texts with labels, got {got}")
        labels = _by_name(corpus, labels, model.head.out_features, class_names)
        accuracy = evaluate_classifier(model, tokenizer, texts, labels)
        return Evaluation(corpus.name, split, accuracy, seen=Seen.of(learned, texts))
    score: LanguageModelScore
    if isinstance(model, MaskedLanguageModel):
        texts = first_texts(tokenizer, texts)
        score = evaluate_masked_model(model, tokenizer, texts)
        exact = exact_masked_nats(corpus, tokenizer, texts)
    else:
        score, exact = evaluate_language_model(model, tokenizer, texts), exact_nats(corpus, texts)
    bound = None if exact is None else float(exact.sum()) / score.n_tokens
    return Evaluation(corpus.name, split, score, bound, Seen.of(learned, texts))


def _by_name(
    corpus: Corpus, labels: Sequence[int], n_classes: int, class_names: Sequence[str] | None
) -> list[int]:
    """Labels as the classifier numbers its classes; names that it has not learned are refused."""
    own = dict(enumerate(corpus.label_names)) or {label: str(label) for label in labels}
    if class_names is None:
        class_names = [str(i) for i in range(n_classes)]
        if len(corpus.label_names) == n_classes:
            class_names = corpus.label_names
            taken = f"they are taken to be, in order, {', '.join(class_names)}"
            unknown_names = "the classifier does not know what its classes are called"
            warn(f"{unknown_names}: {taken}")
    numbers = {canonical_label(name): i for i, name in enumerate(class_names)}
    if unknown := [name for name in own.values() if canonical_label(name) not in numbers]:
        raise ValueError(
            f"the classes of {corpus.name} must be among the {n_classes} of the classifier, "
            f"{', '.join(class_names[:8])}, got {', '.join(unknown[:8])}: label its texts with these names"
        )
    return [numbers[canonical_label(own[label])] for label in labels]
