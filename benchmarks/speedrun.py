"""How good a model is after so many seconds: on characters of Shakespeare, and on the world.

The clock runs while a model trains and stops while it is evaluated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.ceiling import Ceiling
from benchmarks.peers import TorchEncoder
from benchmarks.report import OURS, Record
from benchmarks.settings import BenchSettings
from tinytx.model.config import TransformerConfig
from tinytx.model.counting import count_parameters
from tinytx.model.transformer import LanguageModel
from tinytx.text.corpora import Corpus, Split, load_corpus
from tinytx.text.download import corpus_folder
from tinytx.text.ngrams import NGramModel
from tinytx.training.evaluate import LanguageModelScore, evaluate_language_model, evaluate_split
from tinytx.training.loop import train
from tinytx.training.objectives import Objective
from tinytx.training.recipes import MUON, plan
from tinytx.training.settings import TrainingSettings, choose_precision
from tinytx.training.tasks import causal_objective, new_language_model, steps_within, train_tokenizer

NO_TARGET = -1  # ids are 0 or more, and windows have no padding


class StreamObjective:
    """Next-token prediction on one long text, cut into windows of equal length, each epoch elsewhere.

    Parameters
    ----------
    ids : Tensor of shape (N,), integer
        The text.
    seq_len : int
        T, tokens of a window, at most N / 2.
    """

    def __init__(self, ids: Tensor, seq_len: int) -> None:
        if not 1 <= seq_len <= len(ids) // 2:
            raise ValueError(f"seq_len must be from 1 to {len(ids) // 2}, half of the text, got {seq_len}")
        self._ids = ids.long()
        self.seq_len = seq_len

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Windows in shuffled order, each named by the position where it begins."""
        rng = np.random.default_rng([seed, epoch])
        begin = int(rng.integers(self.seq_len))
        starts = np.arange(begin, len(self._ids) - self.seq_len, self.seq_len)
        n_rows = max(1, tokens_per_batch // self.seq_len)
        shuffled = rng.permutation(starts).tolist()
        whole = max(len(shuffled) - len(shuffled) % n_rows, min(n_rows, len(shuffled)))
        return [shuffled[i : i + n_rows] for i in range(0, whole, n_rows)]

    def batch(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        """Inputs and targets (B, T) of the windows that begin at ``indices``."""
        rows = self._ids[torch.tensor(indices)[:, None] + torch.arange(self.seq_len + 1)]
        return rows[:, :-1], rows[:, 1:]

    def n_predictions(self, indices: Sequence[int]) -> int:
        """All positions of the windows."""
        return len(indices) * self.seq_len

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean nats a token, of a model with a body and a head, or of one that gives logits (B, T, V)."""
        inputs, targets = self.batch(indices)
        device = next(model.parameters()).device
        if hasattr(model, "body"):
            return model.loss(inputs.to(device), targets, ignore_id=NO_TARGET)
        logits = model(inputs.to(device))
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten().to(device))


@torch.no_grad()
def stream_nats(
    model: Callable[[Tensor], Tensor],
    ids: Tensor,
    seq_len: int,
    *,
    stride: int,
    device: torch.device | None = None,
    rows_per_batch: int = 64,
) -> Tensor:
    """Negative log-probability of each token of one long text but the first.

    Parameters
    ----------
    model : callable
        From ids (B, T) to logits (B, T, V); in evaluation mode.
    ids : Tensor of shape (N,), integer
    seq_len : int
        T, the longest window that is read.
    stride : int
        From 1 to T: how far apart windows begin. Of each the last so many predictions count, so that every
        token has at least ``T - stride`` tokens of context, except near the beginning of the text.
    device : torch.device, optional
    rows_per_batch : int

    Returns
    -------
    Tensor of shape (N - 1,), float32
        ``-log P`` in nats of tokens 1, 2, ..., each counted once.
    """
    if not 1 <= stride <= seq_len:
        raise ValueError(f"stride must be from 1 to {seq_len}, the window, got {stride}")
    n = len(ids) - 1
    found = torch.full((n,), torch.nan)
    firsts = [0] if n < seq_len else list(range(0, n - seq_len + 1, stride))
    whole = min(seq_len, n)
    if firsts[-1] + whole < n:
        firsts.append(n - whole)  # the end, in a window that overlaps more
    offsets = torch.arange(whole + 1)
    done = 0
    for i in range(0, len(firsts), rows_per_batch):
        starts = firsts[i : i + rows_per_batch]
        rows = ids.long()[torch.tensor(starts)[:, None] + offsets].to(device)
        logits = model(rows[:, :-1]).float()
        nats = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), reduction="none")
        for start, each in zip(starts, nats.view(len(starts), -1).cpu(), strict=True):
            found[done : start + whole] = each[done - start :]
            done = start + whole
    return found


PEER = "torch.nn.TransformerEncoder"
ORDERS = (2, 3, 4, 5, 6)  # of the n-gram models: one to five characters of context
MARGIN = 0.95  # of the planned time, as some steps take longer
N_LOOKS = 12
TINY_STEPS = 5
N_LOOKED_AT = 20_000  # validation characters of each point of the curve; the end counts all


@dataclass(frozen=True)
class _Candidate:
    """A model and how long it trains: for some seconds, or for the steps of its settings."""

    name: str
    make: Callable[[], nn.Module]
    config: TransformerConfig
    seq_len: int
    settings: TrainingSettings
    seconds: float | None = None


def measure(settings: BenchSettings, ceiling: Ceiling) -> Iterator[tuple[str, Record]]:
    """Train on characters, ours and a peer with the published recipe for laptops; then on the world."""
    text = (corpus_folder("tinyshakespeare", settings.data_dir) / "input.txt").read_text(encoding="utf-8")
    n_train = int(0.9 * len(text))  # as is usual for this text
    parts = text[:n_train], text[n_train:]
    characters = sorted(set("".join(parts)))
    number = {character: i for i, character in enumerate(characters)}
    train_ids, valid_ids = (torch.tensor([number[character] for character in part]) for part in parts)
    if settings.tiny:
        train_ids, valid_ids = train_ids[:5_000], valid_ids[:500]
    sizes = {"n_train": len(train_ids), "n_valid": len(valid_ids), "n_characters": len(characters)}
    yield "characters: counting models", {"kind": "counts", **sizes, **_counted(train_ids, valid_ids)}
    for one in candidates(len(characters), settings):
        yield f"characters: {one.name}", _on_characters(one, train_ids, valid_ids, sizes, settings)
    yield "world: tinytx", _on_world(settings)


def candidates(n_characters: int, settings: BenchSettings) -> list[_Candidate]:
    """Ours for three minutes, with Muon and with AdamW; a peer as nanoGPT is trained on laptops."""
    seconds = None if settings.tiny else 180.0
    sizes: dict[str, Any] = {
        "vocab_size": n_characters,
        "d_model": 128,
        "n_heads": 4,
        "n_layers": 4,
        "d_ff": 512,
    }
    # A wide batch, so that the optimizer is a small part of a step; ReLU, as GELU takes far longer here.
    ours = TransformerConfig(**sizes, max_len=128, positions="rotary", activation="relu", bias=False)
    fast = TrainingSettings(
        n_steps=TINY_STEPS, lr=1e-2, **MUON, tokens_per_batch=512 if settings.tiny else 4096
    )
    usual = fast.replace(optimizer="adamw", lr=4e-3)
    # github.com/karpathy/nanoGPT, README, "I only have a macbook": its command, and the rates of the script.
    theirs = TransformerConfig(
        **sizes,
        max_len=64,
        positions="learned",
        activation="gelu-tanh",
        tie_embeddings=True,
        scale_embeddings=False,
    )
    published = TrainingSettings(
        n_steps=TINY_STEPS if settings.tiny else 2_000,
        lr=1e-3,
        warmup_steps=0 if settings.tiny else 100,
        final_lr_fraction=0.1,
        betas=(0.9, 0.99),
        tokens_per_batch=12 * 64,
        precision="fp32",
    )

    def peer() -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return TorchEncoder(theirs)

    return [
        _Candidate(OURS, lambda: new_language_model(ours, 0), ours, 128, fast, seconds),
        _Candidate(f"{OURS}, AdamW", lambda: new_language_model(ours, 0), ours, 128, usual, seconds),
        _Candidate(f"{PEER}, 2,000 steps", peer, theirs, 64, published),
        _Candidate(f"{PEER}, as long", peer, theirs, 64, published, seconds),
    ]


def _on_characters(
    one: _Candidate,
    train_ids: Tensor,
    valid_ids: Tensor,
    sizes: Record,
    settings: BenchSettings,
) -> Record:
    objective = StreamObjective(train_ids, one.seq_len)

    def judge(model: nn.Module, ids: Tensor, stride: int) -> float:
        nats = stream_nats(model, ids, one.seq_len, stride=stride, device=settings.device)
        return float(nats.mean())

    looked_at = valid_ids[:N_LOOKED_AT]
    model, record = _trained(
        one, objective, lambda model: judge(model, looked_at, one.seq_len // 2), settings
    )
    return {
        "kind": "speedrun",
        "unit": "character",
        **sizes,
        **record,
        "seq_len": one.seq_len,
        "nats": judge(model, valid_ids, one.seq_len // 2),
        "nats_side_by_side": judge(model, valid_ids, one.seq_len),
    }


def _on_world(settings: BenchSettings) -> Record:
    """A minute of training on the world, whose entropy bound is known."""
    corpus, recipe = load_corpus("world"), plan("world", "causal", "smoke" if settings.tiny else "laptop")
    texts, valid = corpus.train.texts, corpus.valid.texts[:100] if settings.tiny else corpus.valid.texts
    judged = Corpus(corpus.name, corpus.train, Split(valid))
    tokenizer = train_tokenizer(texts, recipe.vocab_size, exact=False, kind="world")
    config = recipe.config.replace(vocab_size=tokenizer.vocab_size)
    one = _Candidate(
        OURS,
        lambda: new_language_model(config, 0),
        config,
        config.max_len,
        recipe.settings.replace(n_steps=TINY_STEPS) if settings.tiny else recipe.settings,
        None if settings.tiny else 60.0,
    )

    def judge(model: nn.Module) -> float:
        assert isinstance(model, LanguageModel)
        return evaluate_language_model(model, tokenizer, valid[:200]).nats_per_token

    model, record = _trained(one, causal_objective(tokenizer, texts, config.max_len), judge, settings)
    assert isinstance(model, LanguageModel)
    found = evaluate_split(model, tokenizer, judged, "valid")
    assert isinstance(found.score, LanguageModelScore) and found.entropy_bound is not None
    nats, floor = found.score.nats_per_token, found.entropy_bound
    return {
        "kind": "speedrun",
        "unit": "token",
        "n_valid": found.score.n_tokens,
        **record,
        "nats": nats,
        "floor": floor,
        "above_floor": nats / floor - 1,
    }


def _trained(
    one: _Candidate, objective: Objective, look: Callable[[nn.Module], float], settings: BenchSettings
) -> tuple[nn.Module, Record]:
    """A trained model and the record of its training, with the curve of its quality."""
    how = one.settings
    if one.seconds is not None:
        how, _ = steps_within(MARGIN * one.seconds, one.make().to(settings.device), objective, how)
    model = one.make().to(settings.device)
    clock = _Clock(settings.device)
    due = {1 + round(i * (how.n_steps - 1) / N_LOOKS) for i in range(N_LOOKS + 1)}
    curve: list[dict[str, float]] = []

    def on_step(step: int, model: nn.Module) -> None:
        if step in due:
            clock.stop()
            curve.append({"step": step, "seconds": clock.seconds, "nats": look(model)})
            clock.start()

    clock.start()
    train(model, objective, how, on_step=on_step, progress=settings.progress, label=one.name)
    clock.stop()
    return model, {
        "config": one.config.to_dict(),
        "settings": how.to_dict(),
        "n_params": count_parameters(model),
        "precision": choose_precision(how.precision, settings.device),
        "threads": torch.get_num_threads(),
        "seconds": clock.seconds,
        "n_steps": how.n_steps,
        "curve": curve,
    }


class _Clock:
    """Seconds between start and stop, added up."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.seconds = 0.0
        self._since = 0.0

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def start(self) -> None:
        self._wait()
        self._since = time.perf_counter()

    def stop(self) -> None:
        self._wait()
        self.seconds += time.perf_counter() - self._since


def _counted(train_ids: Tensor, valid_ids: Tensor) -> dict[str, Any]:
    """Loss of interpolated Witten-Bell n-gram models on all of the validation text."""
    shift = 4  # ids below the characters mark beginning and end
    fitted, judged = ([(ids + shift).tolist()] for ids in (train_ids, valid_ids))
    vocab_size = int(max(train_ids.max(), valid_ids.max())) + 1 + shift
    model = NGramModel(max(ORDERS), vocab_size).fit(fitted)
    nats = {str(order): model.nats_per_token(judged, order=order) for order in ORDERS}
    return {"nats_by_order": nats, "nats": min(nats.values())}
