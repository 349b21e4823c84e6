"""Training steps of language models of this package and of others on the same batches.

Tried without success, on two cores with bfloat16 instructions (processor time of one thread, forward and
backward): queries, keys and values by one product of a joined matrix, 9.9 to 17.8 ms where three
products took 10.1 to 18.4 (lengths 64 to 1,024); torch's fused attention in bfloat16, 82 ms where two
products took 54 (1,024 keys) and 19 where they took 8 (128 keys).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch

from benchmarks.peers import PEERS, PLAIN, our_loop, peers_of, plain_loop
from benchmarks.report import AS_IT_COMES, EQUAL, OURS, Record, compare
from benchmarks.settings import (
    GPT2_SMALL,
    SEED_LAB,
    SMALL_GPT,
    SMALL_LLAMA,
    TINY,
    BenchSettings,
    reviews,
    token_stream,
)
from benchmarks.workers import Built, Candidate, build, workers
from tinytx.config import TransformerConfig
from tinytx.counting import count_parameters
from tinytx.objectives import CausalObjective
from tinytx.settings import TrainingSettings, choose_precision
from tinytx_course.labs.lesson_13 import tokenizer_for
from tinytx_course.labs.timing import take_turns
from tinytx_run.hf.families import GPT2, LLAMA
from tinytx_run.pretrain import new_language_model
from tinytx_run.training import seeded

BOS, EOS, PAD = 2, 3, 0
N_BATCHES = 4  # different ones, used in turn
LR = 1e-3
COMPILED, MUON = "compiled", "tinytx, Muon"


@dataclass(frozen=True)
class StepCase:
    """What is timed: a model, and the batches it learns from."""

    name: str
    config: TransformerConfig
    batch_size: int
    seq_len: int

    @property
    def key(self) -> str:
        """Its name in the results."""
        c = self.config
        dropped = f", dropout {c.dropout}" if c.dropout else ""
        return f"{self.name}, vocabulary {c.vocab_size:,}, {self.batch_size} x {self.seq_len}{dropped}"


def cases(tiny: bool = False, on_gpu: bool = False) -> list[StepCase]:
    """All comparisons: the seed-lab preset, a small GPT at equal tokens a batch, and a small Llama.

    Those are too small for a GPU, which gets the smallest GPT-2.
    """
    llama = {**LLAMA, "tie_embeddings": True}
    rows: list[tuple[Any, ...]] = [
        ("seed lab", SEED_LAB, 8_000, 16, 128, 0.0),
        ("seed lab", SEED_LAB, 1_000, 16, 128, 0.0),
        ("small GPT", SMALL_GPT, 8_000, 16, 128, 0.0),
        ("small GPT", SMALL_GPT, 1_000, 16, 128, 0.0),
        ("small GPT", SMALL_GPT, 1_000, 16, 128, 0.1),
        ("small GPT", SMALL_GPT, 1_000, 32, 64, 0.0),
        ("small GPT", SMALL_GPT, 1_000, 4, 512, 0.0),
        ("small GPT", SMALL_GPT, 1_000, 2, 1024, 0.0),
        ("small Llama", SMALL_LLAMA | llama, 8_000, 16, 128, 0.0),
        ("small Llama", SMALL_LLAMA | llama, 1_000, 16, 128, 0.0),
    ]
    if on_gpu:
        rows = [("GPT-2", GPT2_SMALL, 50_304, 32, 1024, 0.0)]
    if tiny:
        rows = [
            ("tiny", TINY, 300, 2, 6, 0.0),
            ("tiny", TINY, 300, 1, 5, 0.1),
            ("tiny Llama", TINY | llama | {"n_kv_heads": 1}, 300, 2, 6, 0.0),
        ]
    found = []
    for name, of, vocab_size, batch_size, seq_len, p in rows:
        config = TransformerConfig(vocab_size=vocab_size, max_len=seq_len, dropout=p, **{**GPT2, **of})
        found.append(StepCase(name, config, batch_size, seq_len))
    return found


def measure(settings: BenchSettings) -> Iterator[tuple[str, Record]]:
    """Time a step of each candidate in turn, case by case."""
    corpus, device = reviews(settings), settings.device
    precision = choose_precision("auto", device)
    tokenizer = cache(partial(tokenizer_for, corpus))
    with workers(1 + len(PEERS)) as processes:
        for case in cases(settings.tiny, on_gpu := device.type == "cuda"):
            n, n_vocab = N_BATCHES * case.batch_size * case.seq_len + 1, case.config.vocab_size
            if on_gpu:  # no text has as many words
                stream = torch.randint(PAD + 1, n_vocab, (n,)).tolist()
            else:
                stream = token_stream(corpus, tokenizer(n_vocab), n)
            how = (case, stream, precision, device)
            peers = {name: partial(peer_candidates, name, *how) for name in peers_of(case.config, on_gpu)}
            built = build(processes[: 1 + len(peers)], {OURS: partial(our_candidate, *how), **peers})
            record = _compare(case, built, precision, settings)
            yield case.key, {"kind": "step", "corpus": corpus.name, **record}


def _compare(case: StepCase, built: Built, precision: str, settings: BenchSettings) -> Record:
    """Time all candidates of a case in turn, and compare."""
    turns = take_turns(
        built.tasks,
        n_rounds=settings.n_rounds,
        n_warmup=2,
        device=settings.device,
        label=case.key,
    )
    return {
        "config": case.config.to_dict(),
        "batch_size": case.batch_size,
        "seq_len": case.seq_len,
        "precision": precision,
        "threads": torch.get_num_threads(),
        "n_rounds": settings.n_rounds,
        "left_out": built.left_out,
        **compare(turns, built.details),
        "peak_gib": {name: peak() for name, peak in built.peaks.items()},
    }


def our_candidate(
    case: StepCase, stream: list[int], precision: str, device: torch.device
) -> dict[str, Candidate]:
    """Our model and one whole step of the training loop, on a GPU with Muon, too."""
    long: dict[str, Any] = {"n_steps": 1_000_000, "tokens_per_batch": case.batch_size * case.seq_len}
    training = TrainingSettings(**long, lr=LR, precision=precision, weight_decay=0.01, betas=(0.9, 0.999))
    optimizers = {OURS: "adamw"} | ({MUON: "muon"} if device.type == "cuda" else {})
    objective, candidates = _objective(case, stream), {}
    for name, optimizer in optimizers.items():
        model = new_language_model(case.config, 0).to(device)
        its = training.replace(optimizer=optimizer)
        step = our_loop(model, objective, its, _indices(case), n_updates=1)
        about = {"precision": precision, "n_params": count_parameters(model)}
        candidates[name] = Candidate(step, about if name == OURS else {**about, "group": name})
    return candidates


def peer_candidates(
    name: str, case: StepCase, stream: list[int], precision: str, device: torch.device
) -> dict[str, Candidate]:
    """A peer as it comes, and one with our precision and torch's fused optimizer."""
    make, differs = PEERS[name]
    objective = _objective(case, stream)
    parts = [objective.batch(indices) for indices in _indices(case)]
    batches = [tuple(part.contiguous().to(device) for part in both) for both in parts]
    other = COMPILED if device.type == "cuda" else AS_IT_COMES
    groups = {f"{name}, {group}": group for group in (EQUAL, other)}
    candidates = {}
    for each, group in {PLAIN: PLAIN}.items() if name == PLAIN else groups.items():
        model = seeded(partial(make, case.config), 0).to(device)
        if group == COMPILED:
            model.compile()
        fused = group != AS_IT_COMES
        bf16 = fused and precision == "bf16"
        step = plain_loop(model, batches, n_updates=1, lr=LR, bf16=bf16, fused=fused)
        about = {"precision": "bf16" if bf16 else "fp32", "n_params": count_parameters(model)}
        candidates[each] = Candidate(step, {"group": group, **about, "differs": differs})
    return candidates


def _objective(case: StepCase, stream: list[int]) -> CausalObjective:
    """Rows of exactly `seq_len` inputs each."""
    return CausalObjective([stream[:-1]], bos_id=BOS, eos_id=EOS, pad_id=PAD, max_len=case.seq_len)


def _indices(case: StepCase) -> list[list[int]]:
    size = case.batch_size
    return [list(range(start * size, (start + 1) * size)) for start in range(N_BATCHES)]
