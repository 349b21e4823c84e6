"""Which positions hold: a game that needs the order of words, and language models trained short, tested long.

In the game eight different words are drawn, one of them _mais_, and the model must name the word directly
before it. The language models are trained on snippets of 16 words, and predict the first eight words of new
reviews after more and more of other reviews. Each cell runs on one thread. B rows, T positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import tinytx as tx
from experiments.harness import Conclusions, Record, Records, Settings

CODES = ("none", "sinusoidal", "learned", "rotary", "alibi")
KINDS: Mapping[str, tuple[str, ...]] = {"game": ("one number", *CODES), "language": CODES}
N_STEPS: Mapping[str, Mapping[str, int]] = {
    "laptop": {"game": 1_500, "language": 2_000},
    "smoke": {"game": 3, "language": 3},
}
LENGTHS = (8, 16)  # words of a game; no model has met sixteen
GAME = tx.TransformerConfig(
    vocab_size=21, d_model=32, n_heads=2, n_layers=1, d_ff=32, max_len=16, causal=False
)
BEFORE = (0, 4, 8, 16, 24, 32, 48, 64, 96)  # words of other reviews


class OneNumber(nn.Module):
    """Positions as the index divided by the length, times a learned direction."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.direction = nn.Parameter(torch.randn(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Add its position to each row of x, (B, T, D)."""
        return x + torch.linspace(0, 1, x.shape[1])[:, None] * self.direction


def train(
    model: tx.LanguageModel, draw: Callable[[], tuple[Tensor, Tensor]], lr: float, n_steps: int
) -> tx.LanguageModel:
    """Train on fresh batches of inputs and targets, (B, T) each."""
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, n_steps)
    for _ in range(n_steps):
        inputs, targets = draw()
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def draw_games(n: int, n_words: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw games, no word twice, 0 for _mais_; the target of its position is the word before it."""
    shuffled = torch.rand(n, 20, generator=generator).argsort(dim=1)
    token_ids = 1 + shuffled[:, :n_words]  # (n, T)
    at = torch.randint(1, n_words, (n,), generator=generator)
    rows = torch.arange(n)
    targets = torch.full_like(token_ids, -100)  # (n, T); -100: no target here
    targets[rows, at] = token_ids[rows, at - 1]
    token_ids[rows, at] = 0
    return token_ids, targets


def train_player(kind: str, seed: int, n_steps: int) -> tx.LanguageModel:
    """Train a model of both sides on games of eight words."""
    torch.manual_seed(seed)
    added = kind == "one number"
    model = tx.LanguageModel(GAME.replace(positions="none" if added else kind))
    if added:
        model.body.pos_embed = OneNumber(GAME.d_model)
    games = torch.Generator().manual_seed(seed)
    return train(model, lambda: draw_games(64, 8, games), 5e-3, n_steps)


@torch.no_grad()
def right_answers(model: tx.LanguageModel, n_words: int, n: int = 2000) -> float:
    """The share of n new games that were solved."""
    token_ids, targets = draw_games(n, n_words, torch.Generator().manual_seed(99))
    guesses = model(token_ids).argmax(dim=-1)  # (n, T)
    return (guesses == targets).any(dim=1).float().mean().item()


class Reviews(NamedTuple):
    """Words in one row, 0 between reviews; the tested reviews' starts in it, and their bound."""

    train_row: Tensor
    test_row: Tensor
    starts: Tensor
    bound: float
    vocab_size: int


@cache
def reviews() -> Reviews:
    """8,000 reviews to train on, 125 to test, which have 20 others before them."""
    world = tx.World()
    numbers = {None: 0} | {word: i for i, word in enumerate(world.vocabulary, start=1)}
    rows = []
    new = world.reviews(145, seed=2)
    for texts in (world.reviews(8_000, seed=1), new):
        words = [word for review in texts for word in (None, *review.words)]
        rows.append(torch.tensor([numbers[word] for word in words]))
    starts = (rows[1] == 0).nonzero()[20:, 0]
    bound = -sum(world.automaton.read(one.words[:8]).log_prob for one in new[20:]) / (125 * 8)
    return Reviews(rows[0], rows[1], starts, bound, len(numbers))


def train_reader(kind: str, seed: int, n_steps: int) -> tx.LanguageModel:
    """Train a causal model on snippets of 16 words, sixteen a step."""
    row, vocab_size = reviews().train_row, reviews().vocab_size
    torch.manual_seed(seed)
    model = tx.LanguageModel(
        tx.TransformerConfig(
            vocab_size=vocab_size, d_model=32, n_heads=4, n_layers=1, d_ff=64, max_len=112,
            tie_embeddings=True,
        ).replace(positions=kind)
    )  # fmt: skip
    generator = torch.Generator().manual_seed(seed)

    def draw() -> tuple[Tensor, Tensor]:
        first = torch.randint(len(row) - 16, (16, 1), generator=generator)
        token_ids = row[first + torch.arange(17)]  # (16, 17): 16 and the next
        return token_ids[:, :-1], token_ids[:, 1:]

    return train(model, draw, 1e-2, n_steps)


@torch.no_grad()
def loss_on_first_eight(model: tx.LanguageModel, n_before: int) -> float:
    """Nats a word on the first eight words of the tested reviews, after so many words of others."""
    token_ids = reviews().test_row[reviews().starts[:, None] + torch.arange(-n_before, 9)]
    hidden = model.body(token_ids[:, :-1])[:, -8:]  # (125, 8, D)
    return F.cross_entropy(model.head(hidden).flatten(0, 1), token_ids[:, -8:].flatten()).item()


@torch.no_grad()
def far_shares(model: tx.LanguageModel) -> Tensor:
    """Share of attention further back than 15 words, of the last eight of 104 words, (H,)."""
    far = torch.arange(104)[:, None] - torch.arange(104) > 15  # (T, T)
    with tx.record_attention(model) as recorded:
        model(reviews().test_row[reviews().starts[:50, None] + torch.arange(-96, 8)])
    far_weights = (recorded["body.blocks.0.attn"] * far)[:, :, -8:]  # (B, H, 8, T)
    return far_weights.sum(dim=-1).mean(dim=(0, 2))


def positions(settings: Settings) -> pd.DataFrame:
    """Train each kind on both tasks; see `table`."""
    steps = N_STEPS[settings.check_budget(*N_STEPS)]
    n_steps = {task: settings.longer * n for task, n in steps.items()}
    cells = [(task, kind, seed) for task in KINDS for seed, kind in product(settings.seeds(), KINDS[task])]
    records = settings.measured(
        "positions",
        [(*cell, n_steps[cell[0]]) for cell in cells],
        lambda task, kind, seed, n: f"{task}/{kind}/seed {seed}",
        lambda task, kind, seed, n: {"n_steps": n},
        measure,
        n_threads=1,
    )
    return table(records)


def measure(task: str, kind: str, seed: int, n_steps: int) -> Record:
    """One cell: shares of right answers, or losses after so many words, with where attention went."""
    facts = {"task": task, "kind": kind, "seed": seed, "n_steps": n_steps}
    if task == "game":
        model = train_player(kind, seed, n_steps)
        return facts | {f"right {n}": round(right_answers(model, n), 4) for n in LENGTHS}
    model = train_reader(kind, seed, n_steps)
    losses = [round(loss_on_first_eight(model, n), 4) for n in BEFORE]
    return {
        **facts,
        **{"before": list(BEFORE), "losses": losses, "bound": reviews().bound},
        "far": [round(share, 4) for share in far_shares(model).tolist()],
    }


def conclusions(records: Records) -> Conclusions:
    """Sentences of lesson 03, and whether these records bear them out, seeds taken together."""
    data = pd.DataFrame(records.values())
    right = data[data["task"] == "game"].groupby("kind")[["right 8", "right 16"]].mean()
    short, long = right["right 8"], right["right 16"]
    readers = [one for one in records.values() if one["task"] == "language"]
    by_kind = pd.DataFrame(readers).groupby("kind")["losses"]
    means = {kind: np.mean(losses.tolist(), axis=0) for kind, losses in by_kind}
    loss = pd.DataFrame(means, index=readers[0]["before"])
    rise, outside = loss.loc[96] - loss.loc[0], loss.loc[32] - loss.loc[8]
    added, turned = ["sinusoidal", "learned"], short["rotary"] - long["rotary"]
    behind = (loss["none"] - loss.min(axis=1))[[0, 4, 8]]
    fails = rise["rotary"] > rise[added].min() > 0.5
    return {
        "without positions a model of both sides stays at the bag": abs(short["none"] - 1 / 7) < 0.03,
        "one number between 0 and 1 solves the game of one length": short["one number"] > 0.95,
        "what it learned does not carry over to sixteen words": long["one number"] < 0.8,
        "sinusoidal and learned positions solve the game of eight": (short[added] > 0.95).all(),
        "of sixteen words they know the positions met in training": (long[added] < 0.6).all(),
        "rotary positions are as good with sixteen words as with eight": abs(turned) < 0.05,
        "ALiBi ends at about one half": 0.4 < short["alibi"] < 0.55,
        "within the trained length no positions cost at most 0.15 nats": behind.max() < 0.15,
        "learned and sinusoidal positions jump beyond it": (outside[added] > 0.5).all(),
        "rotary positions hold at 32 words before, and fail at 96 like these": outside["rotary"] < 0.5
        and fails,
        "ALiBi holds": rise["alibi"] < 0.15 and rise.idxmin() == "alibi",
    }


def table(records: Records) -> pd.DataFrame:
    """Mean, lowest and highest value over seeds.

    Returns
    -------
    DataFrame
        Columns `task`, `kind`, `measure`, ``n`` seeds, ``mean``, ``min``, ``max``: shares of right answers in
        games of so many words, and nats per word after so many words of other reviews.
    """
    rows = []
    for one in records.values():
        values = {f"right, {n} words": one.get(f"right {n}") for n in LENGTHS}
        if one["task"] == "language":
            values = {f"loss after {n}": loss for n, loss in zip(one["before"], one["losses"], strict=True)}
        rows += [(one["task"], one["kind"], name, value) for name, value in values.items()]
    by = ["task", "kind", "measure"]
    found = pd.DataFrame(rows, columns=[*by, "value"]).groupby(by, sort=False)["value"]
    return found.agg(n="size", mean="mean", min="min", max="max").reset_index()
