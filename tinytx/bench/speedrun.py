"""How good a model is after so many seconds: characters of Shakespeare, and the language with a known floor.

The clock runs while a model trains and stands still while it is judged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tinytx.bench.ceiling import Ceiling
from tinytx.bench.peers import TorchEncoder, n_params
from tinytx.bench.report import OURS, Record
from tinytx.bench.settings import BenchSettings
from tinytx.model import LanguageModel, TransformerConfig
from tinytx.text import NGramModel
from tinytx.text.corpora import Corpus, Split, load_corpus
from tinytx.text.downloads.reading import shakespeare_text
from tinytx.training.budgets import MUON, plan, steps_within
from tinytx.training.engine.loop import train
from tinytx.training.engine.timing import wait_for
from tinytx.training.evaluation import LanguageModelScore, evaluate_language_model
from tinytx.training.objectives import Objective
from tinytx.training.pretraining import train_tokenizer
from tinytx.training.scoring import evaluate_split
from tinytx.training.settings import TrainingSettings, choose_precision
from tinytx.training.streams import StreamObjective, stream_nats
from tinytx.training.tasks import causal_objective, new_language_model

PEER = "torch.nn.TransformerEncoder"
ORDERS = (2, 3, 4, 5, 6)  # of the counting models: one to five characters of context
MARGIN = 0.95  # of the time that is planned for: steps take longer now and then
N_LOOKS = 12
TINY_STEPS = 5
N_LOOKED_AT = 20_000  # validation characters that a look counts; the end counts all


@dataclass(frozen=True)
class _Contestant:
    """A model, how it learns, and for how long: seconds, or the number of steps of its settings."""

    name: str
    make: Callable[[], nn.Module]
    config: TransformerConfig
    seq_len: int
    settings: TrainingSettings
    seconds: float | None = None


def measure(settings: BenchSettings, ceiling: Ceiling) -> Iterator[tuple[str, Record]]:
    """Train on characters, ours and a peer by the published recipe for laptops; then on the world."""
    parts = shakespeare_text(settings.data_dir)
    characters = sorted(set("".join(parts)))
    number = {character: i for i, character in enumerate(characters)}
    train_ids, valid_ids = (torch.tensor([number[character] for character in part]) for part in parts)
    if settings.tiny:
        train_ids, valid_ids = train_ids[:5_000], valid_ids[:500]
    text = {"n_train": len(train_ids), "n_valid": len(valid_ids), "n_characters": len(characters)}
    yield "characters: counting models", {"kind": "counts", **text, **_counted(train_ids, valid_ids)}
    for one in contestants(len(characters), settings):
        yield f"characters: {one.name}", _on_characters(one, train_ids, valid_ids, text, settings)
    yield "world: tinytx", _on_world(settings)


def contestants(n_characters: int, settings: BenchSettings) -> list[_Contestant]:
    """Ours for three minutes, with Muon and with AdamW; a peer as nanoGPT is trained on laptops."""
    seconds = None if settings.tiny else 180.0
    # A wide batch, so that the optimizer is a small part of a step; ReLU, as GELU takes far longer here.
    ours = TransformerConfig(
        vocab_size=n_characters,
        d_model=128,
        n_heads=4,
        n_layers=4,
        d_ff=512,
        max_len=128,
        positions="rotary",
        activation="relu",
        bias=False,
    )
    fast = TrainingSettings(
        n_steps=TINY_STEPS,
        lr=1e-2,
        **MUON,
        tokens_per_batch=512 if settings.tiny else 4096,
    )
    usual = fast.replace(optimizer="adamw", lr=4e-3)
    # github.com/karpathy/nanoGPT, README, "I only have a macbook": its command, and the rates of the script.
    theirs = TransformerConfig(
        vocab_size=n_characters,
        d_model=128,
        n_heads=4,
        n_layers=4,
        d_ff=512,
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
        _Contestant(OURS, lambda: new_language_model(ours, 0), ours, 128, fast, seconds),
        _Contestant(f"{OURS}, AdamW", lambda: new_language_model(ours, 0), ours, 128, usual, seconds),
        _Contestant(f"{PEER}, 2,000 steps", peer, theirs, 64, published),
        _Contestant(f"{PEER}, as long", peer, theirs, 64, published, seconds),
    ]


def _on_characters(
    one: _Contestant,
    train_ids: torch.Tensor,
    valid_ids: torch.Tensor,
    text: Record,
    settings: BenchSettings,
) -> Record:
    objective = StreamObjective(train_ids, one.seq_len)

    def judge(model: nn.Module, ids: torch.Tensor, stride: int) -> float:
        nats = stream_nats(model, ids, one.seq_len, stride=stride, device=settings.device)
        return float(nats.mean())

    looked_at = valid_ids[:N_LOOKED_AT]
    model, record = _trained(
        one, objective, lambda model: judge(model, looked_at, one.seq_len // 2), settings
    )
    return {
        "kind": "speedrun",
        "unit": "character",
        **text,
        **record,
        "seq_len": one.seq_len,
        "nats": judge(model, valid_ids, one.seq_len // 2),
        "nats_side_by_side": judge(model, valid_ids, one.seq_len),
    }


def _on_world(settings: BenchSettings) -> Record:
    """A minute on the language whose probabilities are known."""
    corpus, recipe = load_corpus("world"), plan("world", "causal", "smoke" if settings.tiny else "laptop")
    texts, valid = corpus.train.texts, corpus.valid.texts[:100] if settings.tiny else corpus.valid.texts
    judged = Corpus(corpus.name, corpus.train, Split(valid))
    tokenizer = train_tokenizer(texts, recipe.vocab_size, exact=False, kind="world")
    config = recipe.config.replace(vocab_size=tokenizer.vocab_size)
    one = _Contestant(
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
    assert isinstance(found.score, LanguageModelScore) and found.floor is not None
    nats, floor = found.score.nats_per_token, found.floor
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
    one: _Contestant, objective: Objective, look: Callable[[nn.Module], float], settings: BenchSettings
) -> tuple[nn.Module, Record]:
    """A trained model, and what is kept of its training: above all, how good it was when."""
    how = one.settings
    if one.seconds is not None:
        how, _ = steps_within(MARGIN * one.seconds, lambda: one.make().to(settings.device), objective, how)
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
        "n_params": n_params(model),
        "precision": choose_precision(how.precision, settings.device),
        "threads": torch.get_num_threads(),
        "seconds": clock.seconds,
        "n_steps": how.n_steps,
        "curve": curve,
    }


class _Clock:
    """Seconds that went by between start and stop, as often as these are called."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.seconds = 0.0
        self._since = 0.0

    def start(self) -> None:
        wait_for(self._device)
        self._since = time.perf_counter()

    def stop(self) -> None:
        wait_for(self._device)
        self.seconds += time.perf_counter() - self._since


def _counted(train_ids: torch.Tensor, valid_ids: torch.Tensor) -> dict[str, Any]:
    """Interpolated counts (Witten-Bell) of every order, judged on all of the validation text."""
    shift = 4  # marks for beginning and end stand below the characters
    fitted, judged = ([(ids + shift).tolist()] for ids in (train_ids, valid_ids))
    vocab_size = int(max(train_ids.max(), valid_ids.max())) + 1 + shift
    model = NGramModel(max(ORDERS), vocab_size).fit(fitted)
    nats = {str(order): model.nats_per_token(judged, order=order) for order in ORDERS}
    return {"nats_by_order": nats, "nats": min(nats.values())}
