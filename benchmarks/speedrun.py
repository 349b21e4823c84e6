"""How good a model is after so many seconds: on characters of Shakespeare, and on the world.

The clock runs while a model trains and stops while it is evaluated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers import TorchEncoder
from benchmarks.report import OURS, Record
from benchmarks.settings import BenchSettings
from tinytx.model.config import TransformerConfig
from tinytx.model.counting import count_parameters
from tinytx.model.transformer import LanguageModel
from tinytx.text.corpora import load_corpus
from tinytx.text.download import corpus_folder
from tinytx.text.ngrams import NGramModel
from tinytx.training.evaluate import evaluate_language_model, exact_nats
from tinytx.training.loop import train
from tinytx.training.objectives import Objective
from tinytx.training.recipes import MUON, plan
from tinytx.training.settings import TrainingSettings, choose_precision
from tinytx.training.tasks import causal_objective, seeded, steps_within, train_tokenizer

PEER = "torch.nn.TransformerEncoder"
ORDERS = (2, 3, 4, 5, 6)  # of the n-gram models: one to five characters of context
MARGIN = 0.95  # of the planned time, as some steps take longer
N_LOOKS = 12
TINY_STEPS = 5
N_LOOKED_AT = 20_000  # validation characters of each point of the curve; the end counts all


class StreamObjective:
    """Next-token prediction on one long text, cut into windows of equal length, each epoch elsewhere.

    Parameters
    ----------
    ids : LongTensor of shape (N,)
        The text.
    seq_len : int
        T, tokens of a window, at most N / 2.
    """

    def __init__(self, ids: Tensor, seq_len: int) -> None:
        self._ids = ids
        self.seq_len = seq_len

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Windows in shuffled order, each named by the position where it begins; all batches are full."""
        rng = np.random.default_rng([seed, epoch])
        begin = int(rng.integers(self.seq_len))
        starts = np.arange(begin, len(self._ids) - self.seq_len, self.seq_len)
        n_rows = min(max(1, tokens_per_batch // self.seq_len), len(starts))
        whole = len(starts) - len(starts) % n_rows
        return rng.permutation(starts)[:whole].reshape(-1, n_rows).tolist()

    def batch(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        """Inputs and targets (B, T) of the windows that begin at ``indices``."""
        rows = self._ids[torch.tensor(indices)[:, None] + torch.arange(self.seq_len + 1)]
        return rows[:, :-1], rows[:, 1:]

    def n_predictions(self, indices: Sequence[int]) -> int:
        """All positions of the windows."""
        return len(indices) * self.seq_len

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean nats a token, of our model, or of one that gives logits (B, T, V)."""
        inputs, targets = self.batch(indices)
        device = next(model.parameters()).device
        if isinstance(model, LanguageModel):
            return model.loss(inputs.to(device), targets)
        logits = model(inputs.to(device))
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten().to(device))


@torch.no_grad()
def stream_nats(
    model: Callable[[Tensor], Tensor], ids: Tensor, seq_len: int, *, stride: int, rows_per_batch: int = 64
) -> Tensor:
    """Negative log-probability of each token of one long text but the first.

    Parameters
    ----------
    model : callable
        From ids (B, T) to logits (B, T, V); in evaluation mode.
    ids : LongTensor of shape (N,)
        On the device of the model.
    seq_len : int
        T, the longest window that is read.
    stride : int
        From 1 to T: how far apart windows begin. A token counts in the earliest window that has it, and so
        has at least ``T - stride`` tokens of context, except near the beginning of the text.
    rows_per_batch : int

    Returns
    -------
    Tensor of shape (N - 1,), float32
        ``-log P`` in nats of tokens 1, 2, ..., each counted once.
    """
    n = len(ids) - 1
    whole = min(seq_len, n)
    starts = torch.tensor(sorted({*range(0, n - whole, stride), n - whole}), device=ids.device)
    offsets = torch.arange(whole + 1, device=ids.device)
    nats = torch.empty(n, device=ids.device)
    for some in starts.flip(0).split(rows_per_batch):  # earlier windows overwrite later ones
        windows = ids[some[:, None] + offsets]
        logits = model(windows[:, :-1]).float().transpose(1, 2)  # (B, V, T)
        losses = F.cross_entropy(logits, windows[:, 1:], reduction="none")  # (B, T)
        for start, loss in zip(some.tolist(), losses, strict=True):
            nats[start : start + whole] = loss
    return nats.cpu()


@dataclass(frozen=True)
class Run:
    """A model and how long it trains: for some seconds, or for the steps of its settings."""

    name: str
    make: Callable[[TransformerConfig], nn.Module]
    config: TransformerConfig
    settings: TrainingSettings
    seconds: float | None


def measure(settings: BenchSettings, ceiling: Record) -> Iterator[tuple[str, Record]]:
    """Train on characters, ours and a peer with the published recipe for laptops; then on the world."""
    text = (corpus_folder("tinyshakespeare", settings.data_dir) / "input.txt").read_text(encoding="utf-8")
    characters, ids = np.unique(list(text), return_inverse=True)
    n_train = int(0.9 * len(ids))  # as is usual for this text
    train_ids, valid_ids = torch.tensor(ids[:n_train]), torch.tensor(ids[n_train:])
    if settings.tiny:
        train_ids, valid_ids = train_ids[:5_000], valid_ids[:500]
    sizes = {"n_train": len(train_ids), "n_valid": len(valid_ids), "n_characters": len(characters)}
    yield "characters: counting models", {"kind": "counts", **sizes, **_counted(train_ids, valid_ids)}
    for run in runs(len(characters), settings):
        record = _on_characters(run, train_ids, valid_ids.to(settings.device), settings)
        yield f"characters: {run.name}", {"kind": "speedrun", "unit": "character", **sizes, **record}
    yield "world: tinytx", {"kind": "speedrun", "unit": "token", **_on_world(settings)}


def runs(n_characters: int, settings: BenchSettings) -> list[Run]:
    """Ours for three minutes, with Muon and with AdamW; a peer as nanoGPT is trained on laptops."""
    tiny, seconds = settings.tiny, None if settings.tiny else 180.0
    sizes: dict[str, Any] = {"d_model": 128, "n_heads": 4, "n_layers": 4, "d_ff": 512}
    # A wide batch, so that the optimizer is a small part of a step; ReLU, as GELU takes far longer here.
    ours = TransformerConfig(
        vocab_size=n_characters, max_len=128, positions="rotary", activation="relu", bias=False, **sizes
    )
    muon = TrainingSettings(n_steps=TINY_STEPS, lr=1e-2, tokens_per_batch=512 if tiny else 4096, **MUON)
    adamw = muon.replace(optimizer="adamw", lr=4e-3)
    # github.com/karpathy/nanoGPT, README, "I only have a macbook": its command, and the rates of the script.
    theirs = TransformerConfig(
        vocab_size=n_characters,
        max_len=64,
        positions="learned",
        activation="gelu-tanh",
        tie_embeddings=True,
        scale_embeddings=False,
        **sizes,
    )
    published = TrainingSettings(
        n_steps=TINY_STEPS if tiny else 2_000,
        lr=1e-3,
        warmup_steps=0 if tiny else 100,
        final_lr_fraction=0.1,
        betas=(0.9, 0.99),
        tokens_per_batch=12 * 64,
        precision="fp32",
    )
    return [
        Run(OURS, LanguageModel, ours, muon, seconds),
        Run(f"{OURS}, AdamW", LanguageModel, ours, adamw, seconds),
        Run(f"{PEER}, 2,000 steps", TorchEncoder, theirs, published, None),
        Run(f"{PEER}, as long", TorchEncoder, theirs, published, seconds),
    ]


def _on_characters(run: Run, train_ids: Tensor, valid_ids: Tensor, settings: BenchSettings) -> Record:
    seq_len = run.config.max_len

    def nats(model: nn.Module, ids: Tensor, stride: int) -> float:
        return stream_nats(model, ids, seq_len, stride=stride).mean().item()

    def look(model: nn.Module) -> float:
        return nats(model, valid_ids[:N_LOOKED_AT], seq_len // 2)

    model, record = trained(run, StreamObjective(train_ids, seq_len), look, settings)
    return {
        **record,
        "seq_len": seq_len,
        "nats": nats(model, valid_ids, seq_len // 2),
        "nats_side_by_side": nats(model, valid_ids, seq_len),
    }


def _on_world(settings: BenchSettings) -> Record:
    """A minute of training on the world, whose entropy bound is known."""
    corpus, recipe = load_corpus("world"), plan("world", "causal", "smoke" if settings.tiny else "laptop")
    texts, valid = corpus.train.texts, corpus.valid.texts[: 100 if settings.tiny else None]
    tokenizer = train_tokenizer(texts, recipe.vocab_size, exact=False, kind="world")
    config = recipe.config.replace(vocab_size=tokenizer.vocab_size)
    run = Run(OURS, LanguageModel, config, recipe.settings, 60.0)
    if settings.tiny:
        run = Run(OURS, LanguageModel, config, recipe.settings.replace(n_steps=TINY_STEPS), None)

    def look(model: Any) -> float:
        return evaluate_language_model(model, tokenizer, valid[:200]).nats_per_token

    objective = causal_objective(tokenizer, texts, config.max_len)
    model, record = trained(run, objective, look, settings)
    score = evaluate_language_model(model, tokenizer, valid)
    bound = float(cast(np.ndarray, exact_nats(corpus, valid)).sum()) / score.n_tokens
    return {
        "n_valid": score.n_tokens,
        **record,
        "nats": score.nats_per_token,
        "floor": bound,
        "above_floor": score.nats_per_token / bound - 1,
    }


def trained(
    run: Run, objective: Objective, look: Callable[[Any], float], settings: BenchSettings
) -> tuple[Any, Record]:
    """A trained model and the record of its training, with the curve of its quality."""
    how, device = run.settings, settings.device
    model = seeded(lambda: run.make(run.config), 0).to(device)
    if run.seconds is not None:
        how, _ = steps_within(MARGIN * run.seconds, model, objective, how)
    due = {1 + round(i * (how.n_steps - 1) / N_LOOKS) for i in range(N_LOOKS + 1)}
    curve: list[dict[str, float]] = []
    begin, paused = _now(device), 0.0

    def on_step(step: int, model: nn.Module) -> None:
        nonlocal paused
        if step in due:
            now = _now(device)
            curve.append({"step": step, "seconds": now - begin - paused, "nats": look(model)})
            paused += _now(device) - now

    train(model, objective, how, on_step=on_step, label=run.name)
    seconds = _now(device) - begin - paused
    return model, {
        "config": run.config.to_dict(),
        "settings": how.to_dict(),
        "n_params": count_parameters(model),
        "precision": choose_precision(how.precision, device),
        "threads": torch.get_num_threads(),
        "seconds": seconds,
        "n_steps": how.n_steps,
        "curve": curve,
    }


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _counted(train_ids: Tensor, valid_ids: Tensor) -> Record:
    """Loss of interpolated Witten-Bell n-gram models on all of the validation text."""
    shift = 4  # ids below the characters mark beginning and end
    fitted, judged = ([(ids + shift).tolist()] for ids in (train_ids, valid_ids))
    vocab_size = int(max(train_ids.max(), valid_ids.max())) + 1 + shift
    model = NGramModel(max(ORDERS), vocab_size).fit(fitted)
    nats = {str(order): model.nats_per_token(judged, order=order) for order in ORDERS}
    return {"nats_by_order": nats, "nats": min(nats.values())}
