"""Fine-tuning on reviews of their true lengths, against loops that pad every batch to one length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.ceiling import Ceiling
from benchmarks.report import OURS, Record, compare
from benchmarks.settings import BenchSettings, reviews
from benchmarks.workers import Candidate, workers
from tinytx.hf.convert import BERT
from tinytx.model.config import TransformerConfig
from tinytx.model.counting import count_parameters
from tinytx.model.transformer import Classifier
from tinytx.text.batching import pad_batch, padding_share
from tinytx.training.evaluate import classifier_inputs
from tinytx.training.loop import TrainingStep
from tinytx.training.objectives import ClassificationObjective
from tinytx.training.settings import TrainingSettings, choose_precision
from tinytx_course.labs.lesson_13 import tokenizer_for
from tinytx_course.labs.timing import take_turns

PAD = 0
BATCH_SIZE = 8  # rows of a batch that is padded to the longest text of all
# Slower loops read only a part of the sample, as the time of a text is compared: an eighth where all texts
# have one length, a quarter where batches in random order are padded to their longest.
PART_ONE_LENGTH, PART_OWN_LENGTH = 8, 4
ONE_LENGTH, OWN_LENGTH, AS_IT_COMES = "padded to one length", "padded to its batch", "as it comes"
Score = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class ReviewsCase:
    """A model, rows of ids with their labels, and the length that plain loops pad them to.

    Parameters
    ----------
    config : TransformerConfig
        ``max_len`` is that length.
    rows : tuple of tuples of int
    labels : tuple of int
    precision : {"fp32", "bf16"}
    device : torch.device
    """

    config: TransformerConfig
    rows: tuple[tuple[int, ...], ...]
    labels: tuple[int, ...]
    precision: str
    device: torch.device

    @property
    def lengths(self) -> list[int]:
        """Ids of each row."""
        return [len(row) for row in self.rows]


def our_candidate(case: ReviewsCase) -> dict[str, Candidate]:
    """Our fine-tuning: texts of similar length together, no padding wider than its batch."""
    model = _our_model(case)
    objective = ClassificationObjective(case.rows, case.labels, pad_id=PAD)
    tokens_per_batch = BATCH_SIZE * case.config.max_len
    training = TrainingSettings(
        n_steps=1, lr=1e-4, precision=case.precision, tokens_per_batch=tokens_per_batch
    )
    learner = TrainingStep(model, objective, training)
    learner.start()
    model.train()
    batches = objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=tokens_per_batch)

    def epoch() -> float:
        total = 0.0
        for indices in batches:
            total += learner.backward(indices).item() * len(indices)
            learner.update(1e-4)
        return total / len(case.rows)

    return {OURS: Candidate(epoch, _details(case, model, len(case.rows), batches))}


def same_model_padded(case: ReviewsCase) -> dict[str, Candidate]:
    """Our model in a plain loop that pads every batch to the longest text the model can read."""
    model = _our_model(case)
    batches = _in_order(len(case.rows) // PART_ONE_LENGTH)
    epoch = plain_epoch(model, model, case, batches, width=case.config.max_len, bf16=case.precision == "bf16")
    about = _details(case, model, len(case.rows) // PART_ONE_LENGTH, batches, case.config.max_len)
    return {f"the same model, {ONE_LENGTH}": Candidate(epoch, {**about, "group": ONE_LENGTH})}


def bert_padded(case: ReviewsCase) -> dict[str, Candidate]:
    """BERT of `transformers`, every batch padded to one length: with our precision, and as it comes."""
    n_texts, width = len(case.rows) // PART_ONE_LENGTH, case.config.max_len
    batches = _in_order(n_texts)
    found = {}
    for group, bf16 in ((ONE_LENGTH, case.precision == "bf16"), (AS_IT_COMES, False)):
        model, score = _bert(case)
        how = {"fused": True} if group == ONE_LENGTH else {}
        epoch = plain_epoch(model, score, case, batches, width=width, bf16=bf16, **how)
        about = _details(case, model, n_texts, batches, width)
        found[f"transformers BERT, {ONE_LENGTH}, {'bf16' if bf16 else 'fp32'}, {group}"] = Candidate(
            epoch, {**about, "group": group, "precision": "bf16" if bf16 else "fp32"}
        )
    return found


def bert_padded_to_its_batch(case: ReviewsCase) -> dict[str, Candidate]:
    """BERT of `transformers` with our precision, batches in random order, each as wide as its longest."""
    model, score = _bert(case)
    n_texts = len(case.rows) // PART_OWN_LENGTH
    batches = _in_order(n_texts)
    epoch = plain_epoch(model, score, case, batches, width=None, bf16=case.precision == "bf16", fused=True)
    about = _details(case, model, n_texts, batches)
    return {f"transformers BERT, {OWN_LENGTH}": Candidate(epoch, {**about, "group": OWN_LENGTH})}


def plain_epoch(
    model: nn.Module,
    score: Score,
    case: ReviewsCase,
    batches: Sequence[Sequence[int]],
    *,
    width: int | None,
    bf16: bool,
    fused: bool = True,
) -> Callable[[], float]:
    """A task: updates on some batches, as the tutorials write them.

    Parameters
    ----------
    model : Module
    score : callable
        From ids (B, T) and which of them are real (B, T) to logits (B, C).
    case : ReviewsCase
    batches : sequence of sequences of int
    width : int or None
        T of every batch; None: the longest row of each.
    bf16, fused : bool
        Precision of the products; torch's fused AdamW.
    """
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused)
    model.train()
    ready = []
    for batch in batches:
        ids = pad_batch([case.rows[i] for i in batch], PAD)
        ids = F.pad(ids, (0, (width or ids.shape[1]) - ids.shape[1]), value=PAD).to(case.device)
        ready.append((ids, torch.tensor([case.labels[i] for i in batch], device=case.device)))

    def epoch() -> float:
        total = 0.0
        for ids, labels in ready:
            with torch.autocast(case.device.type, dtype=torch.bfloat16, enabled=bf16):
                logits = score(ids, ids != PAD)
            loss = F.cross_entropy(logits.float(), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adamw.step()
            adamw.zero_grad(set_to_none=True)
            total += loss.item() * len(labels)
        return total

    return epoch


def _our_model(case: ReviewsCase) -> Classifier:
    torch.manual_seed(0)
    return Classifier(case.config, 2, "first").to(case.device)


def _bert(case: ReviewsCase) -> tuple[nn.Module, Score]:
    """A BERT of the same sizes, and how it is called. Its pooler is one matrix more than ours."""
    from transformers import BertConfig, BertForSequenceClassification

    config = case.config
    torch.manual_seed(0)
    model: nn.Module = BertForSequenceClassification(
        BertConfig(
            vocab_size=config.vocab_size,
            hidden_size=config.d_model,
            num_hidden_layers=config.n_layers,
            num_attention_heads=config.n_heads,
            intermediate_size=config.d_ff,
            hidden_act=config.activation,
            hidden_dropout_prob=config.dropout,
            attention_probs_dropout_prob=config.dropout,
            max_position_embeddings=config.max_len,
            type_vocab_size=config.n_segments,
            layer_norm_eps=config.norm_eps,
        )
    )
    model.to(case.device)
    return model, lambda ids, real: model(input_ids=ids, attention_mask=real.long()).logits


def _in_order(n_texts: int) -> list[list[int]]:
    """Batches of equally many rows, in the random order in which the texts were drawn."""
    return [list(range(start, min(start + BATCH_SIZE, n_texts))) for start in range(0, n_texts, BATCH_SIZE)]


def _details(
    case: ReviewsCase,
    model: nn.Module,
    n_texts: int,
    batches: Sequence[Sequence[int]],
    width: int | None = None,
) -> dict[str, Any]:
    lengths = case.lengths[:n_texts]
    padding = padding_share(lengths, batches)
    if width is not None:
        padding = 1 - sum(lengths) / (n_texts * width)
    return {
        "precision": case.precision,
        "n_params": count_parameters(model),
        "n_texts": n_texts,
        "n_updates": len(batches),
        "padding_share": padding,
    }


def measure(settings: BenchSettings, ceiling: Ceiling) -> Iterator[tuple[str, Record]]:
    """Time an update on each text of a sample, on average over the sample."""
    corpus = reviews(settings)
    case, n_cut = _case(settings)
    key = f"{corpus.name}, {len(case.rows)} reviews, up to {case.config.max_len} ids"
    with workers(4) as (ours, same, own, theirs):
        builders: list[tuple[Any, Callable[[ReviewsCase], dict[str, Candidate]]]] = [
            (ours, our_candidate),
            (same, same_model_padded),
            (own, bert_padded_to_its_batch),
            (theirs, bert_padded),
        ]
        tasks, details, left_out = {}, {}, {}
        for worker, make in builders:
            try:
                built = worker.build(partial(make, case))
            except ImportError as missing:
                left_out["transformers BERT"] = str(missing)
                continue
            details.update(built)
            tasks.update({name: worker.task(name) for name in built})
        turns = take_turns(
            tasks,
            n_rounds=settings.n_rounds,
            device=settings.device,
            label=key,
            progress=settings.progress,
        ).per({name: about["n_texts"] for name, about in details.items()})
    groups: dict[str, list[str]] = {}
    for name, about in details.items():
        about["texts_per_second"] = 1 / turns.wall[name].median
        if name != OURS:
            groups.setdefault(about["group"], []).append(name)
    yield (
        key,
        {
            "kind": "reviews",
            "config": case.config.to_dict(),
            "corpus": corpus.name,
            "n_texts": len(case.rows),
            "n_cut": n_cut,
            "mean_length": float(np.mean(case.lengths)),
            "precision": case.precision,
            "threads": torch.get_num_threads(),
            "n_rounds": settings.n_rounds,
            "left_out": left_out,
            **compare(turns, details=details, groups=groups),
        },
    )


def _case(settings: BenchSettings) -> tuple[ReviewsCase, int]:
    """A sample of labelled reviews with the lengths they have, as both models read them."""
    corpus = reviews(settings)
    n_texts, max_len = 256, 512
    sizes: dict[str, Any] = {"d_model": 200, "n_heads": 2, "n_layers": 4, "d_ff": 200}
    if settings.tiny:
        n_texts, max_len = 8, 24
        sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8}
    tokenizer = tokenizer_for(corpus, 600 if settings.tiny else 8_000)
    chosen = np.random.default_rng(0).permutation(len(corpus.train))[:n_texts]
    texts = [corpus.train.texts[i] for i in chosen]
    rows, n_cut = classifier_inputs(tokenizer, texts, max_len, causal=False)
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, max_len=max_len, dropout=0.1, n_segments=2, **sizes, **BERT
    )
    labels = tuple((corpus.train.labels or ())[i] for i in chosen)
    precision = choose_precision("auto", settings.device)
    return ReviewsCase(config, tuple(map(tuple, rows)), labels, precision, settings.device), n_cut
