"""Training steps of language models of this package and of others on the same batches.

Tried without success, on two cores with bfloat16 instructions (processor time of one thread, forward and
backward): queries, keys and values by one product of a joined matrix, 9.9 to 17.8 ms where three
products took 10.1 to 18.4 (lengths 64 to 1,024); torch's fused attention in bfloat16, 82 ms where two
products took 54 (1,024 keys) and 19 where they took 8 (128 keys).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from benchmarks.ceiling import Ceiling
from benchmarks.peers import PEERS, PLAIN, SHARED, peer_step
from benchmarks.report import OURS, Record, compare
from benchmarks.settings import BenchSettings, reviews, token_stream
from benchmarks.workers import Candidate, Worker, workers
from tinytx.model.config import TransformerConfig
from tinytx.model.costs import cost_table
from tinytx.model.counting import count_parameters
from tinytx.model.transformer import LanguageModel
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.loop import TrainingStep
from tinytx.training.objectives import CausalObjective
from tinytx.training.settings import TrainingSettings, choose_precision
from tinytx_course.labs.lesson_13 import tokenizer_for
from tinytx_course.labs.roofline import product
from tinytx_course.labs.timing import take_turns

BOS, EOS, PAD = 2, 3, 0
N_BATCHES = 4  # different ones, used in turn
CEILING = "largest product"
AS_IT_COMES, EQUAL = "as it comes", "equal precision"


@dataclass(frozen=True)
class StepCase:
    """One comparison: a model, and the batches it learns from."""

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


def cases(tiny: bool = False) -> list[StepCase]:
    """All comparisons: the seed-lab preset, a small GPT, and several lengths at equal tokens a batch."""
    lab: dict[str, Any] = {"d_model": 200, "n_heads": 2, "n_layers": 4, "d_ff": 200}
    gpt: dict[str, Any] = {"d_model": 256, "n_heads": 4, "n_layers": 6, "d_ff": 1024}
    if tiny:
        config = TransformerConfig(
            vocab_size=300, d_model=8, n_heads=2, n_layers=1, d_ff=8, max_len=6, **SHARED
        )
        return [StepCase("tiny", config, 2, 6), StepCase("tiny", config.replace(dropout=0.1), 1, 5)]
    rows = [
        ("seed lab", lab, 8_000, 16, 128, 0.0),
        ("seed lab", lab, 1_000, 16, 128, 0.0),
        ("small GPT", gpt, 8_000, 16, 128, 0.0),
        ("small GPT", gpt, 1_000, 16, 128, 0.0),
        ("small GPT", gpt, 1_000, 16, 128, 0.1),
        ("small GPT", gpt, 1_000, 32, 64, 0.0),
        ("small GPT", gpt, 1_000, 4, 512, 0.0),
        ("small GPT", gpt, 1_000, 2, 1024, 0.0),
    ]
    return [
        StepCase(
            name,
            TransformerConfig(vocab_size=vocab_size, max_len=seq_len, dropout=p, **sizes, **SHARED),
            batch_size,
            seq_len,
        )
        for name, sizes, vocab_size, batch_size, seq_len, p in rows
    ]


def measure(settings: BenchSettings, ceiling: Ceiling) -> Iterator[tuple[str, Record]]:
    """Time a step of each candidate in turn, case by case."""
    corpus = reviews(settings)
    with workers(1 + len(PEERS)) as processes:
        ours, theirs = processes[0], dict(zip(PEERS, processes[1:], strict=True))
        tokenizers: dict[int, Tokenizer] = {}
        for case in cases(settings.tiny):
            size = case.config.vocab_size
            if size not in tokenizers:
                tokenizers[size] = tokenizer_for(corpus, size)
            n = N_BATCHES * case.batch_size * case.seq_len + 1
            stream = token_stream(corpus, tokenizers[size], n)
            yield case.key, _compare(case, stream, ours, theirs, settings, ceiling, corpus.name)


def _compare(
    case: StepCase,
    stream: list[int],
    ours: Worker,
    theirs: dict[str, Worker],
    settings: BenchSettings,
    ceiling: Ceiling,
    corpus: str,
) -> Record:
    """Build all candidates of a case, time them in turn, and compare."""
    device = settings.device
    precision = choose_precision("auto", device)
    details = ours.build(partial(our_candidate, case, stream, precision, device))
    tasks = {OURS: ours.task(OURS)}
    groups: dict[str, list[str]] = {EQUAL: [], AS_IT_COMES: []}
    left_out: dict[str, str] = {}
    for name, worker in theirs.items():
        try:
            built = worker.build(partial(peer_candidates, name, case, stream, precision, device))
        except ImportError as missing:
            left_out[name] = str(missing)
            continue
        details.update(built)
        for each, about in built.items():
            tasks[each] = worker.task(each)
            groups.setdefault(about["group"], []).append(each)
    flops = cost_table(case.config, batch_size=case.batch_size, seq_len=case.seq_len).flops_training
    width = ceiling.width[precision]
    turns = take_turns(
        {**tasks, CEILING: product(width, precision, device)},
        n_rounds=settings.n_rounds,
        n_warmup=2,
        device=device,
        label=case.key,
        progress=settings.progress,
    )
    for name, about in details.items():
        about["tokens_per_second"] = case.batch_size * case.seq_len / turns.wall[name].median
    record = compare(turns, details=details, groups=groups)
    # The operations of a step as a share of what one large product reaches in the same round.
    rates = turns.ratio(CEILING, OURS)
    share = {name: flops / (2 * width**3) * value for name, value in rates.to_dict().items()}
    return {
        "kind": "step",
        "config": case.config.to_dict(),
        "batch_size": case.batch_size,
        "seq_len": case.seq_len,
        "corpus": corpus,
        "precision": precision,
        "threads": torch.get_num_threads(),
        "n_rounds": settings.n_rounds,
        "flops": flops,
        "share_of_largest_product": share,
        "left_out": left_out,
        **record,
    }


def our_candidate(
    case: StepCase, stream: list[int], precision: str, device: torch.device
) -> dict[str, Candidate]:
    """Our model and one whole step of the training loop."""
    torch.manual_seed(0)
    model = LanguageModel(case.config).to(device)
    objective = _objective(case, stream)
    training = TrainingSettings(
        n_steps=1, lr=1e-3, precision=precision, weight_decay=0.01, betas=(0.9, 0.999)
    )
    learner = TrainingStep(model, objective, training)
    learner.start()
    model.train()
    batches = _indices(case)
    number = 0

    def step() -> float:
        nonlocal number
        loss = learner.backward(batches[number % N_BATCHES])
        number += 1
        learner.update(1e-3)
        return loss.item()

    return {OURS: Candidate(step, {"precision": precision, "n_params": count_parameters(model)})}


def peer_candidates(
    name: str, case: StepCase, stream: list[int], precision: str, device: torch.device
) -> dict[str, Candidate]:
    """A peer as it comes, and one with our precision and torch's fused optimizer."""
    make, differs = PEERS[name]
    objective = _objective(case, stream)
    batches = [
        (inputs.to(device), targets.contiguous().to(device))
        for inputs, targets in (objective.batch(indices) for indices in _indices(case))
    ]
    equal: tuple[str, bool, dict[str, Any]] = (EQUAL, precision == "bf16", {"fused": True})
    ways = {f"{name}, {EQUAL}": equal, f"{name}, {AS_IT_COMES}": (AS_IT_COMES, False, {})}
    if name == PLAIN:
        ways = {name: (name, *equal[1:])}
    found = {}
    for each, (group, bf16, optimizer) in ways.items():
        torch.manual_seed(0)
        model = make(case.config).to(device)
        step = peer_step(model, batches, bf16=bf16, optimizer={"lr": 1e-3, **optimizer})
        about = {
            "group": group,
            "precision": "bf16" if bf16 else "fp32",
            "n_params": count_parameters(model),
            "differs": differs,
        }
        found[each] = Candidate(step, about)
    return found


def _objective(case: StepCase, stream: list[int]) -> CausalObjective:
    """Rows of exactly `seq_len` inputs each."""
    return CausalObjective([stream[:-1]], bos_id=BOS, eos_id=EOS, pad_id=PAD, max_len=case.seq_len)


def _indices(case: StepCase) -> list[list[int]]:
    size = case.batch_size
    return [list(range(start * size, (start + 1) * size)) for start in range(N_BATCHES)]
