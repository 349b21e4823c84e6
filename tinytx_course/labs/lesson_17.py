"""Lesson 17, looking inside: exact answers to compare probes with, parts of a run replaced, induction.

Shape letters: B rows, T tokens, D model width, H heads, K head width, N positions, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.attention import record_attention
from tinytx.batching import pad_batch
from tinytx.config import TransformerConfig
from tinytx.inference import eval_mode
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel, Transformer, record_hidden_states
from tinytx_run.recipes import WORLD_MODEL, plan
from tinyworld.checker import FrenchForms
from tinyworld.lexicon import GENRES, Lexicon, adjective_forms
from tinyworld.reviews import Review
from tinyworld.world import World

EXPECTED = 0.5  # a form is awaited where its kind has at least this probability
PENALTIES = (1e-3, 1e-2, 1e-1)  # of a probe
AWAITED = {"gender": ("masculine", "feminine"), "number": ("singular", "plural")}
PERIODS, UNSEEN_PERIOD = (5, 11), 12  # of repeated rows: in training, and in the test


def as_large() -> dict[str, Any]:
    """Arguments of `pretrain` that give every budget tokens and layers of the laptop's: words are whole."""
    recipe = plan("world", "causal", "laptop")
    return {"vocab_size": recipe.vocab_size, "model_changes": {"n_layers": recipe.config.n_layers}}


# What a probe could know


@dataclass(frozen=True)
class Exact:
    """A hidden variable at N positions of some reviews, as the exact language knows it."""

    classes: tuple[str, ...]  # C of them
    posterior: np.ndarray  # (N, C), P(class | all words up to the position)
    drawn: np.ndarray  # (N,), the class that the review was written with, a draw from the posterior
    review: np.ndarray  # (N,), the number of the review
    row: np.ndarray  # (N,), the number of the word among those of all reviews, see `hidden_after_words`


class WordForms:
    """Groups of the world's words as indicator matrices of shape (V + 1, 2); the last row is the end.

    Attributes
    ----------
    gender : ndarray
        Adjectives and participles that are masculine only, and feminine only.
    number : ndarray
        Adjectives, participles and verbs of the third person: singular only, and plural only.
    polarity : ndarray
        Adjectives of blame, and of praise.
    """

    def __init__(self, world: World) -> None:
        lexicon = Lexicon()
        self.forms = FrenchForms(lexicon)
        self.sign: dict[str, int] = {}
        for row in lexicon.adjectives:
            for form in adjective_forms(row).values():
                self.sign.setdefault(form, {"-": 0, "+": 1}.get(row["polarity"], -1))
        self.gender = self._indicators(world, lambda word: self._only("mf", self._agreeing(word, 0)))
        self.number = self._indicators(world, lambda word: self._only(["sg", "pl"], self._numbers(word)))
        self.polarity = self._indicators(world, lambda word: self.sign.get(word, -1))

    def shape(self, word: str) -> tuple[tuple[str, str, str], ...]:
        """Genders, numbers and places of an adjective, or genders and numbers of a noun; sorted."""
        nouns = ((gender, number, "") for gender, number in self.forms.nouns.get(word, ()))
        return tuple(sorted(self.forms.adjectives.get(word, nouns)))

    def _agreeing(self, word: str, feature: int) -> set[str]:
        """Genders (feature 0) or numbers (1) of an adjective or participle."""
        shapes = [*self.forms.adjectives.get(word, ()), *self.forms.participles.get(word, ())]
        return {shape[feature] for shape in shapes}

    def _numbers(self, word: str) -> set[str]:
        third = {verb[1:] for verb in self.forms.verbs.get(word, ()) if verb.startswith("3")}
        return third | self._agreeing(word, 1)

    @staticmethod
    def _only(names: Sequence[str], found: set[str]) -> int:
        """The place of the one name that is found, or -1."""
        return names.index(next(iter(found))) if len(found) == 1 else -1

    @staticmethod
    def _indicators(world: World, group_of) -> np.ndarray:
        groups = np.array([*map(group_of, world.vocabulary), -1])
        return (groups[:, None] == np.arange(2)).astype(float)


def exact_variables(world: World, forms: WordForms, reviews: Sequence[Review]) -> dict[str, Exact]:
    """Polarity and genre after each word of some reviews; gender and number where a form must agree.

    The gender is that of the next word, given that it is a form that shows its gender, at positions where
    such a form follows and has a probability of `EXPECTED` or more; the number likewise. See `WordForms`.
    """
    genres = np.array([[book.genre == genre for genre in GENRES] for book in world.books], dtype=float)
    classes = {"polarity": ("blame", "praise"), "genre": GENRES, **AWAITED}
    parts: dict[str, list[tuple[np.ndarray, int, int, int]]] = {name: [] for name in classes}
    row = -1
    for number, review in enumerate(reviews):
        states = world.automaton.prefixes(review.words)[1:]  # after each word
        hidden = np.stack([state.hidden for state in states])  # (W, 2, sentences, books)
        polarity, genre = hidden.sum(axis=(2, 3)), hidden.sum(axis=(1, 2)) @ genres
        following = world.automaton.next_words(states)  # (W, V + 1)
        mass = {name: following @ getattr(forms, name) for name in AWAITED}  # (W, 2) each
        for place in range(len(states)):
            row += 1
            parts["polarity"].append((polarity[place], review.label, number, row))
            parts["genre"].append((genre[place], GENRES.index(review.genre), number, row))
            word = world.automaton.word_ids[review.words[place + 1]] if place + 1 < len(states) else -1
            for name in AWAITED:
                awaited, shown = mass[name][place], getattr(forms, name)[word]
                if awaited.sum() >= EXPECTED and shown.any():
                    parts[name].append((awaited / awaited.sum(), int(shown.argmax()), number, row))
    return {
        name: Exact(classes[name], *map(np.array, zip(*rows, strict=True))) for name, rows in parts.items()
    }


def hidden_after_words(model: LanguageModel, tokenizer: Tokenizer, reviews: Sequence[Review]) -> list[Tensor]:
    """Hidden states of each level at the last token of each word: n_layers + 1 Tensors of shape (W, D).

    W counts the words of all reviews, one review after the other.
    """
    pieces = [[tokenizer.word_pieces(word) for word in review.words] for review in reviews]
    rows = [[tokenizer.bos_id, *(one for word in words for one in word)] for words in pieces]
    ends = [np.cumsum([len(word) for word in words]) for words in pieces]  # after the start mark
    review = torch.repeat_interleave(torch.tensor([len(one) for one in ends]))
    with eval_mode(model) as device, record_hidden_states(model.body) as levels:
        model.body(pad_batch(rows, tokenizer.pad_id).to(device))
    return [level[review, torch.as_tensor(np.concatenate(ends))].float().cpu() for level in levels]


def fit_probe(x: Tensor, labels: Tensor, n_classes: int, penalty: float | None = None) -> nn.Module:
    """A linear classifier of hidden states, softmax(x W + b): fitted by L-BFGS on standardised features.

    Parameters
    ----------
    x : Tensor of shape (N, D)
        Rows of one review stand together.
    labels : Tensor of shape (N,)
    penalty : float, optional
        On the squares of W; by default that of `PENALTIES` with the lowest loss on the last third of the
        rows, after a fit to the others.

    References
    ----------
    .. [1] Alain and Bengio, arXiv 1610.01644, section 3.
    """
    if penalty is None:
        n, losses = 2 * len(x) // 3, {}
        for one in PENALTIES:
            probe = fit_probe(x[:n], labels[:n], n_classes, one)
            losses[one] = F.cross_entropy(probe(x[n:]), labels[n:]).item()
        penalty = min(losses, key=losses.__getitem__)
    norm, linear = nn.BatchNorm1d(x.shape[1], affine=False, momentum=None), nn.Linear(x.shape[1], n_classes)
    z = norm(x)  # in training its statistics are those of x, and `eval` holds on to them
    nn.init.zeros_(linear.weight)
    nn.init.zeros_(linear.bias)
    optimizer = torch.optim.LBFGS(linear.parameters(), max_iter=40, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(linear(z), labels) + penalty * linear.weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return nn.Sequential(norm, linear).eval()


def divergence(posterior: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """KL divergence in nats of each row of q: its expected cross-entropy minus that of the posterior.

    Examples
    --------
    >>> divergence(np.array([[0.5, 0.5], [1.0, 0.0]]), np.log([[0.5, 0.5], [0.25, 0.75]])).round(3).tolist()
    [0.0, 1.386]
    """
    log_p = np.log(np.where(posterior > 0, posterior, 1.0))
    return (posterior * (log_p - log_q)).sum(axis=1)


def by_review(values: np.ndarray, review: np.ndarray) -> np.ndarray:
    """Mean of the values of each review: positions of one review are no independent sample."""
    _, number = np.unique(review, return_inverse=True)
    return np.bincount(number, weights=values) / np.bincount(number)


def probe_excess(
    train: tuple[Tensor, Exact], test: tuple[Tensor, Exact], labels: np.ndarray | None = None
) -> np.ndarray:
    """Nats by which a probe misses the exact posterior, one number a review of the test.

    Parameters
    ----------
    train, test : tuple of Tensor of shape (N, D) and Exact
    labels : ndarray of shape (N,), optional
        Learned in place of the classes drawn, such as a shuffled copy of them.
    """
    (x, known), (x_test, asked) = train, test
    drawn = known.drawn if labels is None else labels
    probe = fit_probe(x, torch.as_tensor(drawn), len(known.classes))
    with torch.no_grad():
        log_q = probe(x_test).log_softmax(-1).double().numpy()
    return by_review(divergence(asked.posterior, log_q), asked.review)


def prior_excess(train: Exact, test: Exact) -> np.ndarray:
    """The same for a guess by the frequencies of the training classes, which reads nothing."""
    counts = np.bincount(train.drawn, minlength=len(train.classes)) + 1.0
    return by_review(divergence(test.posterior, np.log(counts / counts.sum())[None]), test.review)


# Heads and hidden states replaced


@contextmanager
def heads_replaced(body: Transformer, values: Mapping[tuple[int, int], Tensor | float]) -> Iterator[None]:
    """Replace the outputs of some heads while the ordinary forward of a transformer runs.

    Parameters
    ----------
    values : mapping from (layer, head) to Tensor broadcastable to (B, T, K), or float
        What takes the place of the head's output, before `out_proj`; 0.0 ablates it.
    """
    n_heads = body.config.n_heads
    for layer, head in values:
        if not (0 <= layer < len(body.blocks) and 0 <= head < n_heads):
            shape = f"layers 0..{len(body.blocks) - 1} and heads 0..{n_heads - 1}"
            raise ValueError(f"a head must be (layer, head) within {shape}, got {(layer, head)}")

    def replace(layer: int, module: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        context = inputs[0].unflatten(-1, (n_heads, -1)).clone()  # (B, T, H, K)
        for (at, head), value in values.items():
            if at == layer:
                context[:, :, head] = value
        return (context.flatten(2),)

    with ExitStack() as hooks:
        for layer in {layer for layer, _ in values}:
            block: Any = body.blocks[layer]
            hooks.enter_context(block.attn.out_proj.register_forward_pre_hook(partial(replace, layer)))
        yield


@contextmanager
def record_heads(body: Transformer) -> Iterator[list[Tensor]]:
    """Collect the outputs of all heads, before `out_proj`: one Tensor of shape (B, T, H, K) a layer."""
    recorded: list[Tensor] = []
    n_heads = body.config.n_heads
    with ExitStack() as hooks:
        blocks: Any = body.blocks
        for block in blocks:
            hook = block.attn.out_proj.register_forward_pre_hook(
                lambda module, inputs: recorded.append(inputs[0].unflatten(-1, (n_heads, -1)))
            )
            hooks.enter_context(hook)
        yield recorded


# Induction


def repeated_rows(
    n_rows: int, seq_len: int, vocab_size: int, periods: tuple[int, int], rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Random rows that repeat: a block of different tokens, again and again; each row has its own period.

    Returns
    -------
    rows : Tensor of shape (n_rows, seq_len)
    period : Tensor of shape (n_rows,)
        Drawn from `periods`, both ends included.
    """
    period = torch.randint(periods[0], periods[1] + 1, (n_rows,), generator=rng)
    blocks = torch.rand(n_rows, vocab_size, generator=rng).argsort(dim=1)  # a permutation in each row
    return blocks.gather(1, torch.arange(seq_len) % period[:, None]), period


def repeats_config(n_layers: int = 2) -> TransformerConfig:
    """A small model of repeated rows, built like that of the world."""
    sizes: dict[str, Any] = {"vocab_size": 16, "d_model": 64, "n_heads": 4, "d_ff": 64}
    sizes["max_len"] = 2 * UNSEEN_PERIOD
    return TransformerConfig(**sizes, n_layers=n_layers, **WORLD_MODEL)


def train_on_repeats(config: TransformerConfig, n_steps: int, *, seed: int = 0) -> LanguageModel:
    """A language model trained on fresh `repeated_rows` of `max_len` tokens, 32 at a step."""
    lr = 1e-2
    torch.manual_seed(seed)
    model, rng = LanguageModel(config), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=0.0)
    for step in range(1, n_steps + 1):
        share = min(1.0, 8 * step / n_steps, (n_steps - step + 1) / (0.3 * n_steps))
        optimizer.param_groups[0]["lr"] = lr * share
        rows, _ = repeated_rows(32, config.max_len, config.vocab_size, PERIODS, rng)
        loss = model.loss(rows[:, :-1], rows[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def _two_copies(model: LanguageModel, period: int, n_rows: int) -> Tensor:
    rng = torch.Generator().manual_seed(1)
    return repeated_rows(n_rows, 2 * period, model.config.vocab_size, (period, period), rng)[0]


def induction_scores(model: LanguageModel, period: int, *, n_rows: int = 200) -> Tensor:
    """Mean attention from each token of a second copy to what followed it in the first: shape (L, H)."""
    rows = _two_copies(model, period, n_rows)
    with eval_mode(model), record_attention(model) as recorded:
        model(rows)
    queries = torch.arange(period, 2 * period)
    return torch.stack([w[:, :, queries, queries - period + 1].mean(dim=(0, 2)) for w in recorded.values()])


def copy_nats(model: LanguageModel, period: int, *, n_rows: int = 200) -> tuple[np.ndarray, ...]:
    """Nats per token in the first copy and in the second, each without its first token: (n_rows,) each."""
    rows = _two_copies(model, period, n_rows)
    with eval_mode(model):
        logits = model(rows[:, :-1]).transpose(1, 2)  # (B, V, T)
        nats = F.cross_entropy(logits, rows[:, 1:], reduction="none").double().numpy()  # (B, T)
    return nats[:, : period - 1].mean(axis=1), nats[:, period:].mean(axis=1)
