"""Fine-tuning on reviews of their true lengths, against loops that pad every batch to one length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.peers import HuggingFaceBert, our_loop, plain_loop
from benchmarks.report import AS_IT_COMES, OURS, Record, compare
from benchmarks.settings import SEED_LAB, TINY, BenchSettings, reviews
from benchmarks.workers import Build, Candidate, build, workers
from tinytx.batching import pad_batch, padding_share
from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.counting import count_parameters
from tinytx.objectives import ClassificationObjective
from tinytx.settings import TrainingSettings, choose_precision
from tinytx_course.labs.lesson_13 import tokenizer_for
from tinytx_course.labs.timing import take_turns
from tinytx_run.classify import classifier_inputs
from tinytx_run.corpora import Corpus
from tinytx_run.hf.families import BERT
from tinytx_run.training import seeded

PAD = 0
LR = 1e-4
BATCH_SIZE = 8  # rows of a batch that is padded to the longest text of all
ONE_LENGTH, OWN_LENGTH = "padded to one length", "padded to its batch"
# Slower loops read only a part of the sample, as the time of a text is compared: an eighth where all texts
# have one length, a quarter where batches in random order are padded to their longest.
PARTS = {ONE_LENGTH: 8, AS_IT_COMES: 8, OWN_LENGTH: 4}


@dataclass(frozen=True)
class ReviewsCase:
    """Settings of a model, ids of each text with its label, and how to compute."""

    config: TransformerConfig
    rows: tuple[tuple[int, ...], ...]
    labels: tuple[int, ...]
    precision: str
    device: torch.device


def our_candidate(case: ReviewsCase) -> dict[str, Candidate]:
    """Our fine-tuning: texts of similar length together, no padding wider than its batch."""
    model = _our_model(case)
    objective = ClassificationObjective(case.rows, case.labels, pad_id=PAD)
    tokens_per_batch = BATCH_SIZE * case.config.max_len
    training = TrainingSettings(n_steps=1, lr=LR, precision=case.precision, tokens_per_batch=tokens_per_batch)
    batches = objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=tokens_per_batch)
    epoch = our_loop(model, objective, training, batches, n_updates=len(batches))
    details = {
        "precision": case.precision,
        "n_params": count_parameters(model),
        "n_texts": len(case.rows),
        "n_updates": len(batches),
        "padding_share": padding_share(list(map(len, case.rows)), batches),
    }
    return {OURS: Candidate(epoch, details)}


def same_model_candidate(case: ReviewsCase) -> dict[str, Candidate]:
    """Our model in the loop of the tutorials."""
    return {f"the same model, {ONE_LENGTH}": padded_candidate(case, _our_model(case), ONE_LENGTH)}


def bert_candidates(case: ReviewsCase) -> dict[str, Candidate]:
    """BERT of `transformers`: padded to its batch, to one length, and to one length as it comes."""
    names = {
        f"transformers BERT, {OWN_LENGTH}": OWN_LENGTH,
        f"transformers BERT, {ONE_LENGTH}, {case.precision}, {ONE_LENGTH}": ONE_LENGTH,
        f"transformers BERT, {ONE_LENGTH}, fp32, {AS_IT_COMES}": AS_IT_COMES,
    }
    make = partial(HuggingFaceBert, case.config)
    return {name: padded_candidate(case, seeded(make, 0), group) for name, group in names.items()}


def padded_candidate(case: ReviewsCase, model: nn.Module, group: str) -> Candidate:
    """A model in the loop of the tutorials: batches in random order, padded as the group has it."""
    model.to(case.device)
    n_texts = len(case.rows) // PARTS[group]
    batches = []
    for start in range(0, n_texts, BATCH_SIZE):
        part = slice(start, min(start + BATCH_SIZE, n_texts))
        ids = pad_batch(case.rows[part], PAD)  # (B, T)
        if group != OWN_LENGTH:
            ids = F.pad(ids, (0, case.config.max_len - ids.shape[1]), value=PAD)
        batch = ids, ids != PAD, torch.tensor(case.labels[part])
        batches.append(tuple(each.to(case.device) for each in batch))
    fused = group != AS_IT_COMES
    bf16 = fused and case.precision == "bf16"
    details = {
        "precision": "bf16" if bf16 else "fp32",
        "n_params": count_parameters(model),
        "n_texts": n_texts,
        "n_updates": len(batches),
        "padding_share": 1 - torch.cat([real.flatten() for _, real, _ in batches]).double().mean().item(),
        "group": group,
    }
    epoch = plain_loop(model, batches, n_updates=len(batches), lr=LR, bf16=bf16, fused=fused)
    return Candidate(epoch, details)


def _our_model(case: ReviewsCase) -> Classifier:
    return seeded(lambda: Classifier(case.config, 2, "first"), 0).to(case.device)


def measure(settings: BenchSettings) -> Iterator[tuple[str, Record]]:
    """Time an update on each text of a sample, on average over the sample."""
    corpus = reviews(settings)
    case = _case(corpus, settings)
    key = f"{corpus.name}, {len(case.rows)} reviews, up to {case.config.max_len} ids"
    makes = {OURS: our_candidate, "the same model": same_model_candidate}
    makes["transformers BERT"] = bert_candidates
    builds: dict[str, Build] = {name: partial(make, case) for name, make in makes.items()}
    with workers(len(builds)) as processes:
        built = build(processes, builds)
        turns = take_turns(built.tasks, n_rounds=settings.n_rounds, device=settings.device, label=key)
    turns = turns.per({name: about["n_texts"] for name, about in built.details.items()})
    record = {
        "kind": "reviews",
        "config": case.config.to_dict(),
        "corpus": corpus.name,
        "n_texts": len(case.rows),
        "precision": case.precision,
        "threads": torch.get_num_threads(),
        "n_rounds": settings.n_rounds,
        "left_out": built.left_out,
        **compare(turns, built.details),
    }
    yield key, record


def _case(corpus: Corpus, settings: BenchSettings) -> ReviewsCase:
    """A sample of labelled reviews with the lengths they have, up to the longest that is read."""
    n_texts, max_len, sizes, vocab_size = 256, 512, SEED_LAB, 8_000
    if settings.tiny:
        n_texts, max_len, sizes, vocab_size = 8, 24, TINY, 600
    tokenizer = tokenizer_for(corpus, vocab_size)
    chosen = np.random.default_rng(0).permutation(len(corpus.train))[:n_texts]
    rows, _ = classifier_inputs(tokenizer, [corpus.train.texts[i] for i in chosen], max_len, causal=False)
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, max_len=max_len, dropout=0.1, n_segments=2, **sizes, **BERT
    )
    labels = tuple((corpus.train.labels or ())[i] for i in chosen)
    precision = choose_precision("auto", settings.device)
    return ReviewsCase(config, tuple(map(tuple, rows)), labels, precision, settings.device)
