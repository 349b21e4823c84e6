"""A model against a corpus: the right measure for its kind, on a named split; the floor if known."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tinytx.model.encoder_decoder import Translator
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.transformer import Classifier, LanguageModel
from tinytx.text.batching import batches_by_length, pad_batch
from tinytx.text.corpora import Corpus, load_corpus
from tinytx.text.pairs import PairCorpus
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.beam import Search
from tinytx.training.bleu import TranslationEvaluation, evaluate_translator
from tinytx.training.checkpoint import load, load_tokenizer
from tinytx.training.generate import check_vocabulary, unwritten_ids
from tinytx.training.intervals import Interval, wilson_interval
from tinytx.training.objectives import CausalObjective, ClassificationObjective, masked_rows
from tinytx.training.settings import choose_device
from tinytx.training.translate import GREEDY


@dataclass(frozen=True)
class LanguageModelScore:
    """How surprised a language model is by some texts.

    Attributes
    ----------
    total_nats : float
        ``-log P`` of all texts together.
    n_tokens : int
        Predicted tokens: all pieces, and one end mark a text.
    n_texts : int
    """

    total_nats: float
    n_tokens: int
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
        return {
            **dataclasses.asdict(self),
            "nats_per_token": self.nats_per_token,
            "perplexity": self.perplexity,
        }

    def __str__(self) -> str:
        return f"{self.nats_per_token:.4f} nats per token, perplexity {self.perplexity:.2f}"


@dataclass(frozen=True)
class ClassifierScore:
    """How often a classifier is right.

    Attributes
    ----------
    correct, n : int
    n_cut : int
        Texts that were longer than the model can read, and lost their end.
    """

    correct: int
    n: int
    n_cut: int = 0

    @property
    def accuracy(self) -> float:
        """Share of right answers."""
        return self.correct / self.n

    @property
    def interval(self) -> Interval:
        """Wilson interval of the accuracy at 95 %."""
        return wilson_interval(self.correct, self.n)

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        return {**dataclasses.asdict(self), "accuracy": self.accuracy, "interval": list(self.interval)}

    def __str__(self) -> str:
        low, high = self.interval
        return f"accuracy {self.accuracy:.4f} [{low:.4f}, {high:.4f}], {self.correct:,} of {self.n:,}"


@torch.no_grad()
def text_nats(
    model: LanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    tokens_per_batch: int = 4096,
) -> np.ndarray:
    """``-log P`` of each text in nats, the end mark included.

    Texts longer than the model can read are read in chunks, each from its own beginning, so that every
    token counts once. Computed in float32 whatever training used; sums are made in float64.

    Parameters
    ----------
    model : LanguageModel
    tokenizer : Tokenizer
    texts : sequence of N str
    tokens_per_batch : int
        Changes memory and speed, not the result.

    Returns
    -------
    ndarray of shape (N,), float64
    """
    return _nats(model, _causal_objective(model, tokenizer, texts), tokenizer.pad_id, tokens_per_batch)


def evaluate_language_model(
    model: LanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    tokens_per_batch: int = 4096,
) -> LanguageModelScore:
    """Loss and perplexity on some texts; parameters as in `text_nats`."""
    objective = _causal_objective(model, tokenizer, texts)
    nats = _nats(model, objective, tokenizer.pad_id, tokens_per_batch)
    return LanguageModelScore(float(nats.sum()), objective.n_tokens, objective.n_texts)


def _causal_objective(model: LanguageModel, tokenizer: Tokenizer, texts: Sequence[str]) -> CausalObjective:
    check_vocabulary(model, tokenizer)
    return CausalObjective(
        tokenizer.encode_batch(texts),
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
        pad_id=tokenizer.pad_id,
        max_len=model.config.max_len,
    )


@torch.no_grad()
def _nats(model: LanguageModel, objective: CausalObjective, pad_id: int, tokens_per_batch: int) -> np.ndarray:
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    nats = np.zeros(objective.n_texts)
    text_of_row = np.asarray(objective.text_of_row)
    for indices in objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=tokens_per_batch):
        inputs, targets = (part.to(device) for part in objective.batch(indices))
        logits = model(inputs).float()  # (B, T, V)
        losses = F.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id, reduction="none"
        )
        rows = losses.view(targets.shape).double().sum(dim=1)  # (B,)
        np.add.at(nats, text_of_row[indices], rows.cpu().numpy())
    model.train(was_training)
    return nats


def classifier_inputs(
    tokenizer: Tokenizer, texts: Sequence[str], max_len: int, *, causal: bool = True
) -> tuple[list[list[int]], int]:
    """Ids of labelled texts as a classifier reads them, and how many texts were cut.

    A row looks as in pretraining: it begins with ``bos`` for a causal body, and stands between ``cls`` and
    ``sep`` for one that looks both ways. Of a text that is too long the beginning is kept.
    """
    if not causal:
        cls_id, sep_id, room = tokenizer.cls_id, tokenizer.sep_id, max_len - 2
        texts_ids = tokenizer.encode_batch(texts)
        return [[cls_id, *ids[:room], sep_id] for ids in texts_ids], sum(len(ids) > room for ids in texts_ids)
    whole = [[tokenizer.bos_id, *ids] for ids in tokenizer.encode_batch(texts)]
    return [ids[:max_len] for ids in whole], sum(len(ids) > max_len for ids in whole)


def evaluate_classifier(
    model: Classifier,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    labels: Sequence[int],
    *,
    tokens_per_batch: int = 4096,
) -> ClassifierScore:
    """Accuracy on labelled texts.

    Parameters
    ----------
    model : Classifier
    tokenizer : Tokenizer
    texts : sequence of N str
    labels : sequence of N int
    tokens_per_batch : int
        Changes memory and speed, not the result.
    """
    check_vocabulary(model, tokenizer)
    sequences, n_cut = classifier_inputs(tokenizer, texts, model.config.max_len, causal=model.config.causal)
    objective = ClassificationObjective(sequences, labels, pad_id=tokenizer.pad_id)
    correct = count_correct(model, objective, tokens_per_batch=tokens_per_batch)
    return ClassifierScore(correct, len(labels), n_cut)


@torch.no_grad()
def class_probabilities(
    model: Classifier, tokenizer: Tokenizer, texts: Sequence[str], *, tokens_per_batch: int = 4096
) -> np.ndarray:
    """``P(class | text)`` as the classifier sees it.

    Parameters
    ----------
    model : Classifier
    tokenizer : Tokenizer
    texts : sequence of N str
        Cut as in `classifier_inputs`.
    tokens_per_batch : int
        Changes memory and speed, not the result.

    Returns
    -------
    ndarray of shape (N, C), float64
        In the order of the texts; rows sum to 1.
    """
    check_vocabulary(model, tokenizer)
    sequences, _ = classifier_inputs(tokenizer, texts, model.config.max_len, causal=model.config.causal)
    objective = ClassificationObjective(sequences, [0] * len(sequences), pad_id=tokenizer.pad_id)
    was_training = model.training
    model.eval()
    found = np.zeros((len(sequences), model.head.out_features))
    for indices in objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=tokens_per_batch):
        found[indices] = objective.logits(model, indices).double().softmax(dim=-1).cpu().numpy()
    model.train(was_training)
    return found


@torch.no_grad()
def count_correct(
    model: Classifier, objective: ClassificationObjective, *, tokens_per_batch: int = 4096
) -> int:
    """Number of texts of the objective whose class the model names."""
    was_training = model.training
    model.eval()
    correct = 0
    for indices in objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=tokens_per_batch):
        answers = objective.logits(model, indices).argmax(dim=-1).cpu()
        correct += int((answers == objective.labels[indices]).sum())
    model.train(was_training)
    return correct


Sides = Literal["both", "left"]
MAX_BLANKS = 8_000  # of an evaluation: each is a pass over its text


@dataclass(frozen=True)
class BlankScore:
    """How surprised a masked model is by pieces that are hidden one at a time.

    Attributes
    ----------
    total_nats : float
        Sum over all blanks. It is no ``-log P`` of a text.
    n_blanks : int
    n_texts : int
    correct : int
        Blanks whose piece was the most probable one.
    """

    total_nats: float
    n_blanks: int
    n_texts: int
    correct: int

    @property
    def nats_per_blank(self) -> float:
        """Mean loss."""
        return self.total_nats / self.n_blanks

    @property
    def accuracy(self) -> float:
        """Share of blanks filled with the right piece."""
        return self.correct / self.n_blanks

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        return {**asdict(self), "nats_per_blank": self.nats_per_blank, "accuracy": self.accuracy}

    def __str__(self) -> str:
        return (
            f"{self.nats_per_blank:.4f} nats per blank, {self.accuracy:.4f} filled right, "
            f"{self.n_blanks:,} blanks in {self.n_texts:,} texts"
        )


def blank_texts(tokenizer: Tokenizer, texts: Sequence[str], max_blanks: int = MAX_BLANKS) -> Sequence[str]:
    """The first texts that have so many pieces together, at least one text."""
    n_blanks = 0
    for number, ids in enumerate(tokenizer.encode_batch(texts)):
        n_blanks += len(ids)
        if n_blanks > max_blanks and number:
            return texts[:number]
    return texts


@torch.no_grad()
def evaluate_blanks(
    model: MaskedLanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    max_blanks: int = MAX_BLANKS,
    tokens_per_batch: int = 4096,
) -> BlankScore:
    """Hide each piece of some texts in turn, the others in view, and ask for it.

    Parameters
    ----------
    model : MaskedLanguageModel
    tokenizer : Tokenizer
    texts : sequence of str
        Long ones are read in windows.
    max_blanks : int
        The first texts are taken that have so many pieces together.
    tokens_per_batch : int
        Changes memory and speed, not the result.
    """
    check_vocabulary(model, tokenizer)
    taken = blank_texts(tokenizer, texts, max_blanks)
    rows, _ = masked_rows(tokenizer, taken, model.config.max_len)
    if not rows:
        raise ValueError("blanks need at least one text that is not empty, got none")
    nats, correct, n_blanks = 0.0, 0, 0
    for log_probs, wanted in _each_place_hidden(model, tokenizer, rows, tokens_per_batch):
        nats -= float(log_probs.gather(1, wanted[:, None]).sum())
        correct += int((log_probs.argmax(dim=1) == wanted).sum())
        n_blanks += len(wanted)
    return BlankScore(nats, n_blanks, len(taken), correct)


def _each_place_hidden(
    model: MaskedLanguageModel, tokenizer: Tokenizer, rows: list[list[int]], tokens_per_batch: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Log-probabilities (N, V) at hidden places, and what stood there (N,), batch by batch."""
    asked = [(number, place) for number, row in enumerate(rows) for place in range(1, len(row) - 1)]
    lengths = [len(rows[number]) for number, _ in asked]
    for indices in batches_by_length(lengths, max(tokens_per_batch, max(lengths)), seed=0, epoch=0):
        chosen = [asked[i] for i in indices]
        places = torch.tensor([place for _, place in chosen])
        inputs = pad_batch([rows[number] for number, _ in chosen], tokenizer.pad_id)  # (N, T)
        wanted = inputs[torch.arange(len(chosen)), places]
        yield _at_hidden(model, tokenizer, inputs, places).cpu(), wanted


def _at_hidden(model: MaskedLanguageModel, tokenizer: Tokenizer, inputs: Tensor, places: Tensor) -> Tensor:
    """Log-probabilities (N, V), in float64, of one place of each row, which is hidden first."""
    device, rows = next(model.parameters()).device, torch.arange(len(inputs))
    inputs = inputs.clone()
    inputs[rows, places] = tokenizer.mask_id
    real = inputs != tokenizer.pad_id
    was_training = model.training
    model.eval()
    hidden = model.body(inputs.to(device), None if bool(real.all()) else real.to(device))  # (N, T, D)
    logits = model.head(hidden[rows.to(device), places.to(device)])  # (N, V)
    model.train(was_training)
    return logits.double().log_softmax(dim=-1)


@torch.no_grad()
def fill_probs(
    model: LanguageModel | MaskedLanguageModel,
    tokenizer: Tokenizer,
    ids: Sequence[int],
    position: int,
    *,
    sides: Sides = "both",
    tokens_per_batch: int = 8192,
) -> np.ndarray:
    """What a model expects at one place of a text.

    Parameters
    ----------
    model : LanguageModel or MaskedLanguageModel
        A language model must be causal.
    tokenizer : Tokenizer
    ids : sequence of int
        The pieces of the whole text, without special ids; the one at `position` is not looked at.
    position : int
    sides : {"both", "left"}
        "left": given only what stands before, for a causal model.
    tokens_per_batch : int
        Changes memory and speed, not the result.

    Returns
    -------
    ndarray of shape (V,), float64
        Sums to 1 over the pieces that texts are made of; special ids have 0.

    Notes
    -----
    For both sides a causal model scores the text once for each piece: V passes over what follows the blank.
    """
    check_vocabulary(model, tokenizer)
    if not 0 <= position < len(ids):
        raise ValueError(f"position must be from 0 to {len(ids) - 1}, got {position}")
    if sides not in ("both", "left"):
        raise ValueError(f"sides must be 'both' or 'left', got {sides!r}")
    masked = isinstance(model, MaskedLanguageModel)
    if not masked and not model.config.causal:
        raise ValueError("a blank needs a causal or a masked language model, got one that is neither")
    longest = model.config.max_len - (2 if masked else 1)
    if len(ids) > longest:
        raise ValueError(f"a text with a blank must be at most {longest} pieces long, got {len(ids)}")
    if isinstance(model, MaskedLanguageModel):
        if sides == "left":
            raise ValueError("the left side alone is what a causal model sees, got a masked model")
        row = torch.tensor([[tokenizer.cls_id, *ids, tokenizer.sep_id]])
        log_probs = _at_hidden(model, tokenizer, row, torch.tensor([position + 1]))[0].cpu()
    else:
        was_training = model.training
        model.eval()
        log_probs = _from_left(model, tokenizer, ids, position)
        if sides == "both":
            log_probs = log_probs + _what_follows(model, tokenizer, ids, position, tokens_per_batch)
        model.train(was_training)
    log_probs[[*unwritten_ids(tokenizer), tokenizer.eos_id]] = -torch.inf
    return log_probs.softmax(dim=0).numpy()


def _from_left(model: LanguageModel, tokenizer: Tokenizer, ids: Sequence[int], position: int) -> Tensor:
    """Log-probability of each piece after those before a place; shape (V,)."""
    device = next(model.parameters()).device
    prefix = torch.tensor([[tokenizer.bos_id, *ids[:position]]], device=device)
    return model.head(model.body(prefix)[0, -1]).double().log_softmax(dim=-1).cpu()


def _what_follows(
    model: LanguageModel, tokenizer: Tokenizer, ids: Sequence[int], position: int, tokens_per_batch: int
) -> Tensor:
    """Log-probability of all that follows a place, for each piece that may stand there; shape (V,)."""
    device = next(model.parameters()).device
    row = torch.tensor([tokenizer.bos_id, *ids], device=device)
    targets = torch.tensor([*ids[position + 1 :], tokenizer.eos_id], device=device)
    found = []
    rows_per_batch = max(1, tokens_per_batch // len(row))
    for pieces in torch.arange(tokenizer.vocab_size, device=device).split(rows_per_batch):
        inputs = row.repeat(len(pieces), 1)  # (N, T)
        inputs[:, position + 1] = pieces
        logits = model.head(model.body(inputs)[:, position + 1 :]).float()  # (N, what follows, V)
        nats = F.cross_entropy(logits.flatten(0, 1), targets.repeat(len(pieces)), reduction="none")
        found.append(-nats.view(len(pieces), -1).double().sum(dim=1))
    return torch.cat(found).cpu()


def exact_nats(corpus: Corpus, texts: Sequence[str]) -> np.ndarray | None:
    """``-log P`` of each text under the language it was drawn from, None where that is not known.

    No model can expect to do better than this on the same texts: it is the floor under a loss curve.
    """
    if corpus.name != "world":
        return None
    from tinytx.world.world import World

    return -np.asarray(World().batch_log_prob([tuple(text.split(" ")) for text in texts]))


def exact_blank_nats(corpus: Corpus, tokenizer: Tokenizer, texts: Sequence[str]) -> np.ndarray | None:
    """``-log P(piece | all others)`` of each piece of some texts, None where the language is not known."""
    if corpus.name != "world":
        return None
    from tinytx.world.world import World

    world = World().through(tokenizer)
    nats = []
    for ids in tokenizer.encode_batch(texts):
        nats.append(-np.log(world.fill_tokens(ids)[np.arange(len(ids)), ids]))
    return np.concatenate(nats)


def reported_split(corpus: Corpus) -> str:
    """The split that figures are reported on: test where there is one, else valid."""
    return "valid" if corpus.test is None else "test"


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate_checkpoint` found.

    Attributes
    ----------
    corpus, split : str
    score : LanguageModelScore, BlankScore or ClassifierScore
    floor : float or None
        Exact nats per token, or per blank, of the same texts, where the language is known; None for a
        classifier.
    """

    corpus: str
    split: str
    score: LanguageModelScore | BlankScore | ClassifierScore
    floor: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        kinds = {LanguageModelScore: "language_model", BlankScore: "masked_language_model"}
        kind = kinds.get(type(self.score), "classifier")
        figures = {"kind": kind, "corpus": self.corpus, "split": self.split, **self.score.to_dict()}
        if isinstance(self.score, LanguageModelScore) and self.floor is not None:
            gap = self.score.nats_per_token - self.floor
            figures |= {"floor_nats_per_token": self.floor, "gap_nats_per_token": gap}
        if isinstance(self.score, BlankScore) and self.floor is not None:
            gap = self.score.nats_per_blank - self.floor
            figures |= {"floor_nats_per_blank": self.floor, "gap_nats_per_blank": gap}
        return figures

    def __str__(self) -> str:
        line = f"{self.corpus}, {self.split} split: {self.score}"
        if isinstance(self.score, LanguageModelScore) and self.floor is not None:
            gap = self.score.nats_per_token - self.floor
            line += f"; exact floor {self.floor:.4f}, gap {gap:.4f}"
        if isinstance(self.score, BlankScore) and self.floor is not None:
            gap = self.score.nats_per_blank - self.floor
            line += f"; exact floor {self.floor:.4f}, gap {gap:.4f}"
        if isinstance(self.score, ClassifierScore) and self.score.n_cut:
            line += f"; {self.score.n_cut:,} texts were too long and lost their end"
        return line


def evaluate_checkpoint(
    checkpoint: str | os.PathLike[str],
    corpus: str | os.PathLike[str] | Corpus | PairCorpus,
    *,
    split: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "auto",
    search: Search = GREEDY,
) -> Evaluation | TranslationEvaluation:
    """Evaluate what a checkpoint holds: a language model by its loss, a classifier by its accuracy.

    A translator is evaluated by its translations of a parallel corpus, see `evaluate_translator`.

    Parameters
    ----------
    checkpoint : path
        A checkpoint or run folder.
    corpus : str, path, Corpus or PairCorpus
    split : {"train", "valid", "test", "all"}, optional
        By default the test split, or valid where there is none.
    data_dir : path, optional
        Folder that holds one folder a corpus.
    device : {"auto", "cpu", "cuda"}
    search : Search
        How a translator searches.
    """
    model, tokenizer = load(checkpoint, choose_device(device)), load_tokenizer(checkpoint)
    if isinstance(model, Translator):
        if isinstance(corpus, Corpus):
            raise ValueError(f"a translator is evaluated on pairs, got the texts of {corpus.name}")
        return evaluate_translator(model, tokenizer, corpus, split=split, search=search, data_dir=data_dir)
    if isinstance(corpus, PairCorpus):
        raise ValueError(f"a {type(model).__name__} is evaluated on texts, got the pairs of {corpus.name}")
    data = corpus if isinstance(corpus, Corpus) else load_corpus(corpus, data_dir)
    chosen = reported_split(data) if split is None else split
    if chosen != "all" and chosen not in data.splits:
        raise ValueError(f"split must be all or one of {', '.join(data.splits)}, got {chosen!r}")
    return evaluate_split(model, tokenizer, data, chosen)


def evaluate_split(
    model: LanguageModel | MaskedLanguageModel | Classifier, tokenizer: Tokenizer, corpus: Corpus, split: str
) -> Evaluation:
    """Evaluate a model on one split of a corpus, or on "all"."""
    parts = list(corpus.splits.values()) if split == "all" else [corpus.splits[split]]
    texts = [text for part in parts for text in part.texts]
    if isinstance(model, LanguageModel):
        score = evaluate_language_model(model, tokenizer, texts)
        exact = exact_nats(corpus, texts)
        floor = None if exact is None else float(exact.sum()) / score.n_tokens
        return Evaluation(corpus.name, split, score, floor)
    if isinstance(model, MaskedLanguageModel):
        exact = exact_blank_nats(corpus, tokenizer, blank_texts(tokenizer, texts))
        floor = None if exact is None else float(exact.mean())
        return Evaluation(corpus.name, split, evaluate_blanks(model, tokenizer, texts), floor)
    labels = [label for part in parts for label in part.labels or ()]
    if len(labels) != len(texts):
        raise ValueError(f"a classifier is evaluated on texts with labels, got {corpus.name}, which has none")
    _check_classes(corpus, labels, model.head.out_features)
    return Evaluation(corpus.name, split, evaluate_classifier(model, tokenizer, texts, labels))


def _check_classes(corpus: Corpus, labels: Sequence[int], n_classes: int) -> None:
    names = corpus.label_names
    if names and len(names) != n_classes:
        # Another file may hold fewer of the words, which would then be numbered otherwise.
        raise ValueError(
            f"{corpus.name} must have the {n_classes} classes of the classifier, got {', '.join(names[:8])}: "
            "name all of them in their order (label_names, --label-names)"
        )
    if max(labels) >= n_classes:
        raise ValueError(
            f"labels must be from 0 to {n_classes - 1}, as the classifier knows them, got {max(labels)} "
            f"{labels.count(max(labels)):,} times in {corpus.name}"
        )
