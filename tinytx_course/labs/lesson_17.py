"""Lesson 17, looking inside: exact answers to compare probes with, heads and hidden states replaced, pairs of
reviews that differ in one word.

Shape letters: B rows, T tokens, D model width, H heads, K head width, N positions, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.model.attention import record_attention
from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import LanguageModel, Transformer, record_hidden_states
from tinytx.text.batching import pad_batch
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.inference import eval_mode
from tinytx.training.recipes import WORLD_MODEL, plan
from tinytx.world.automaton import Forward
from tinytx.world.checker import FrenchForms
from tinytx.world.lexicon import GENRES, Lexicon
from tinytx.world.reviews import Review
from tinytx.world.world import World

EXPECTED = 0.5  # a form is awaited where its kind has at least this probability
LEAST_EFFECT = 1.0  # nats by which the two reviews of a pair must differ in the exact language
END = (".", "!")
PERIODS, UNSEEN_PERIOD = (5, 11), 12  # of repeated rows: in training, and in the test


def as_large() -> dict[str, Any]:
    """Arguments of `fit` that give every budget the tokens and layers of the laptop's: words are whole."""
    recipe = plan("world", "causal", "laptop")
    return {"vocab_size": recipe.vocab_size, "model_changes": {"n_layers": recipe.config.n_layers}}


# What a probe could know


@dataclass(frozen=True)
class Exact:
    """A hidden variable at N positions of some reviews, as the exact language knows it.

    Attributes
    ----------
    classes : tuple of str
    posterior : ndarray of shape (N, C)
        P(class | all words up to the position); rows sum to 1.
    drawn : ndarray of shape (N,)
        The class that the review was written with, a draw from the posterior.
    review, row : ndarray of shape (N,)
        The number of the review, and of the word among those of all reviews, see `hidden_after_words`.
    """

    classes: tuple[str, ...]
    posterior: np.ndarray
    drawn: np.ndarray
    review: np.ndarray
    row: np.ndarray


class WordForms:
    """Groups of the world's words as indicator matrices of shape (V + 1, 2); the last row is the end.

    Attributes
    ----------
    gender : ndarray
        Adjectives and participles that are masculine only, and feminine only.
    polarity : ndarray
        Adjectives of blame, and of praise.
    """

    def __init__(self, world: World) -> None:
        lexicon = Lexicon()
        self.forms = FrenchForms(lexicon)
        self.sign: dict[str, int] = {}
        for row in lexicon.adjectives:
            stem = row["masculine"]
            plural = stem + "s" if row["masculine_plural"] == "." else row["masculine_plural"]
            for form in (stem, row["feminine"], plural, row["feminine"] + "s"):
                self.sign.setdefault(form, {"-": 0, "+": 1}.get(row["polarity"], -1))
        self.gender = self._indicators(world, self._gender)
        self.polarity = self._indicators(world, lambda word: self.sign.get(word, -1))

    def shape(self, word: str) -> tuple[tuple[str, str, str], ...]:
        """Genders, numbers and places of an adjective, or genders and numbers of a noun; sorted."""
        nouns = ((gender, number, "") for gender, number in self.forms.nouns.get(word, ()))
        return tuple(sorted(self.forms.adjectives.get(word, nouns)))

    def _gender(self, word: str) -> int:
        shapes = [*self.forms.adjectives.get(word, ()), *self.forms.participles.get(word, ())]
        genders = {shape[0] for shape in shapes}
        return "mf".index(genders.pop()) if len(genders) == 1 else -1

    @staticmethod
    def _indicators(world: World, group_of) -> np.ndarray:
        groups = np.array([*map(group_of, world.vocabulary), -1])
        return (groups[:, None] == np.arange(2)).astype(float)


def exact_variables(world: World, forms: WordForms, reviews: Sequence[Review]) -> dict[str, Exact]:
    """Polarity and genre after each word of some reviews, and the gender where an agreeing form is awaited.

    The gender is that of the next word, given that it is an adjective or participle that shows its gender,
    at positions where such a word follows and has a probability of `EXPECTED` or more.
    """
    genres = np.array([[book.genre == genre for genre in GENRES] for book in world.books], dtype=float)
    parts: dict[str, list[tuple[np.ndarray, int, int, int]]] = {"polarity": [], "genre": [], "gender": []}
    row = -1
    for number, review in enumerate(reviews):
        states = world.automaton.prefixes(review.words)[1:]  # after each word
        hidden = np.stack([state.hidden for state in states])  # (W, 2, sentences, books)
        polarity, genre = hidden.sum(axis=(2, 3)), hidden.sum(axis=(1, 2)) @ genres
        mass = world.automaton.next_words(states) @ forms.gender  # (W, 2)
        for place in range(len(states)):
            row += 1
            parts["polarity"].append((polarity[place], review.label, number, row))
            parts["genre"].append((genre[place], GENRES.index(review.genre), number, row))
            following = world.automaton.word_ids[review.words[place + 1]] if place + 1 < len(states) else -1
            if mass[place].sum() >= EXPECTED and forms.gender[following].any():
                gender = int(forms.gender[following].argmax())
                parts["gender"].append((mass[place] / mass[place].sum(), gender, number, row))
    classes = {"polarity": ("blame", "praise"), "genre": GENRES, "gender": ("masculine", "feminine")}
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


def fit_probe(
    x: Tensor, labels: Tensor, n_classes: int, *, decay: float = 1e-3, n_iter: int = 40
) -> nn.Module:
    """A linear classifier of hidden states, softmax(x W + b): fitted by L-BFGS on standardised features.

    Parameters
    ----------
    x : Tensor of shape (N, D)
    labels : Tensor of shape (N,)
    decay : float
        Weight of the squared weights in the loss.

    References
    ----------
    .. [1] Alain and Bengio, arXiv 1610.01644, section 3.
    """
    norm, linear = nn.BatchNorm1d(x.shape[1], affine=False, momentum=None), nn.Linear(x.shape[1], n_classes)
    z = norm(x)  # in training its statistics are those of x, and `eval` holds on to them
    nn.init.zeros_(linear.weight)
    nn.init.zeros_(linear.bias)
    optimizer = torch.optim.LBFGS(linear.parameters(), max_iter=n_iter, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(linear(z), labels) + decay * linear.weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return nn.Sequential(norm, linear).eval()


def divergence(posterior: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """KL divergence in nats of each row: the expected cross-entropy of q minus that of the posterior.

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
    body : Transformer
    values : mapping from (layer, head) to Tensor broadcastable to (B, T, K), or float
        What takes the place of the head's output, before `out_proj`; 0.0 ablates it.
    """
    n_heads = body.config.n_heads
    for layer, head in values:
        if not (0 <= layer < len(body.blocks) and 0 <= head < n_heads):
            shape = f"layers 0..{len(body.blocks) - 1} and heads 0..{n_heads - 1}"
            raise ValueError(f"a head must be (layer, head) within {shape}, got {(layer, head)}")

    def hook(layer: int):
        def replace(module: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
            context = inputs[0].unflatten(-1, (n_heads, -1)).clone()  # (B, T, H, K)
            for (at, head), value in values.items():
                if at == layer:
                    context[:, :, head] = value
            return (context.flatten(2),)

        return replace

    with ExitStack() as hooks:
        for layer in {layer for layer, _ in values}:
            block: Any = body.blocks[layer]
            hooks.enter_context(block.attn.out_proj.register_forward_pre_hook(hook(layer)))
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


@contextmanager
def hidden_replaced(body: Transformer, level: int, value: Tensor, where: Tensor) -> Iterator[None]:
    """Patch the hidden states of a level of `record_hidden_states`, at the positions `where` is True.

    Parameters
    ----------
    body : Transformer
    level : int
        0 = the embeddings, n_layers = after the last block and the final norm.
    value : Tensor of shape (B, T, D)
    where : Tensor of shape (B, T), bool
    """
    if not 0 <= level <= len(body.blocks):
        raise ValueError(f"level must lie in 0..{len(body.blocks)}, got {level}")

    def patched(x: Tensor) -> Tensor:
        return torch.where(where[:, :, None], value, x)

    if level == 0:
        hook = body.blocks[0].register_forward_pre_hook(lambda module, args: (patched(args[0]), *args[1:]))
    else:
        module = body.final_norm if level == len(body.blocks) else body.blocks[level - 1]
        hook = module.register_forward_hook(lambda module, args, output: patched(output))
    with hook:
        yield


# Two reviews that differ in one word


@dataclass(frozen=True)
class Pair:
    """The beginnings of two reviews that differ in one word, up to where its effect is measured.

    Attributes
    ----------
    first, second : tuple of str
    changed : int
        The number of the word in which they differ.
    exact : tuple of float
        The exact log-odds of the two groups of words at the next position, after `first` and `second`.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    changed: int
    exact: tuple[float, float]


def one_word_pairs(
    world: World,
    forms: WordForms,
    tokenizer: Tokenizer,
    reviews: Sequence[Review],
    kind: str,
    *,
    seed: int = 0,
) -> list[Pair]:
    """At most one pair a review.

    Parameters
    ----------
    kind : {"polarity", "gender"}
        "polarity" exchanges an adjective of the first sentence for one of the other polarity and waits for a
        polar adjective in a later one; "gender" exchanges a noun for one of the other gender and waits for a
        form that agrees with it, in the same sentence.
    """
    if kind not in ("polarity", "gender"):
        raise ValueError(f"kind must be 'polarity' or 'gender', got {kind!r}")
    groups = getattr(forms, kind)
    rng = np.random.default_rng(seed)
    odds, found = _Odds(world, tokenizer, groups), []
    for review in reviews:
        words = review.words
        before = world.automaton.prefixes(words)
        awaited = (world.automaton.next_words(before[1:]) @ groups).sum(axis=1) >= EXPECTED
        sentence = np.cumsum([0, *(word in END for word in words[:-1])])
        stops = np.flatnonzero(awaited & (sentence > 0)) if kind == "polarity" else np.flatnonzero(awaited)
        for stop in stops[:1].tolist():
            own = 0 if kind == "polarity" else sentence[stop]
            for changed in rng.permutation(np.flatnonzero(sentence[:stop] == own)).tolist():
                others = _others(forms, tokenizer, words[changed], kind)
                pair = odds.pair(words[: stop + 1], changed, rng.permutation(others)[:5].tolist(), before)
                if pair is not None and (kind == "gender" or np.isfinite(pair.exact).all()):
                    found.append(pair)
                    break
    return found


def _others(forms: WordForms, tokenizer: Tokenizer, word: str, kind: str) -> list[str]:
    """Words of the other polarity or gender, equal in all else, with as many tokens."""
    if kind == "polarity":
        table, shape = forms.sign, forms.shape(word)
        fits = [w for w, sign in table.items() if sign == 1 - table.get(word, 2) and forms.shape(w) == shape]
    else:
        nouns = forms.forms.nouns
        other = [("fm"[gender == "f"], number) for gender, number in nouns.get(word, ())]
        fits = [w for w, shapes in nouns.items() if len(other) == 1 and shapes == other]
    n_pieces = len(tokenizer.word_pieces(word))
    return [w for w in fits if len(tokenizer.word_pieces(w)) == n_pieces]


class _Odds:
    """Exact log-odds of two groups of words after a prefix; NaN where neither, or no review, is possible."""

    def __init__(self, world: World, tokenizer: Tokenizer, groups: np.ndarray) -> None:
        self.automaton, self.tokens = world.automaton, group_tokens(world, tokenizer, groups)
        first = np.array([tokenizer.word_pieces(word)[0] for word in world.vocabulary])
        ends = np.zeros((1, 2))
        self.groups = np.concatenate([self.tokens.numpy()[first], ends])  # as the tokens tell them apart

    def pair(
        self, words: Sequence[str], changed: int, others: Sequence[str], before: Sequence[Forward]
    ) -> Pair | None:
        """The pair with the first other word that fits and matters; `before` are the states of `words`."""
        own = self._of(before[len(words)])
        for other in others:
            state = self.automaton.read([other, *words[changed + 1 :]], before[changed])
            two = (own, tuple(words)), (self._of(state), (*words[:changed], other, *words[changed + 1 :]))
            (b, second), (a, first) = sorted(two, key=lambda one: one[0])  # so that the effect is positive
            if a - b >= LEAST_EFFECT:  # not where one of the two is NaN, or both are certain of the same
                return Pair(first, second, changed, (a, b))
        return None

    def _of(self, state: Forward) -> float:
        if not state.total > 0:
            return float("nan")
        zero, one = self.automaton.next_words([state])[0] @ self.groups
        with np.errstate(divide="ignore"):
            return float(np.log(one) - np.log(zero)) if zero + one >= EXPECTED else float("nan")


def group_tokens(world: World, tokenizer: Tokenizer, groups: np.ndarray) -> Tensor:
    """Which tokens begin words of one of two groups only: (vocab_size, 2), bool."""
    starts = torch.zeros(tokenizer.vocab_size, 3)
    for word, row in zip(world.vocabulary, groups, strict=False):
        column = int(row.argmax()) if row.any() else 2
        starts[tokenizer.word_pieces(word)[0], column] = 1
    only = starts.sum(dim=1) == 1
    return (starts[:, :2] > 0) & only[:, None]


class PairRuns:
    """A model that reads pairs of beginnings; effects in nats of log-odds, one number a pair.

    Parameters
    ----------
    model : LanguageModel
    tokenizer : Tokenizer
    pairs : sequence of P Pairs
    tokens : Tensor of shape (vocab_size, 2), bool
        See `group_tokens`.

    Attributes
    ----------
    whole : ndarray of shape (P,)
        Log-odds after the first review minus those after the second: what a patch can move at most.
    roles : dict from str to Tensor of shape (P, T), bool
        Positions of the changed word, of the words after it in its sentence, of later sentences, and the
        last position.
    """

    def __init__(
        self, model: LanguageModel, tokenizer: Tokenizer, pairs: Sequence[Pair], tokens: Tensor
    ) -> None:
        self.model, self._groups = model, tokens
        self._rows, ends = [], []
        for side in ("first", "second"):
            pieces = [[tokenizer.word_pieces(word) for word in getattr(pair, side)] for pair in pairs]
            rows = [[tokenizer.bos_id, *(one for word in words for one in word)] for words in pieces]
            ends = [np.cumsum([0, *(len(word) for word in words)]) for words in pieces]
            self._rows.append(pad_batch(rows, tokenizer.pad_id))
        self.last = torch.tensor([int(end[-1]) for end in ends])  # (P,)
        self.roles = self._roles(pairs, ends)
        with record_hidden_states(model.body) as levels, record_heads(model.body) as heads:
            first = self._log_odds(self._rows[0])
        self.levels, self.heads = levels, heads  # of the first review
        with record_attention(model.body) as recorded:
            self.second = self._log_odds(self._rows[1])
        self.attention = torch.cat([weights[None] for weights in recorded.values()])  # (L, P, H, T, T)
        self.whole = first - self.second

    def _roles(self, pairs: Sequence[Pair], ends: Sequence[np.ndarray]) -> dict[str, Tensor]:
        names = ("changed word", "rest of its sentence", "later sentences", "last word")
        roles = {name: torch.zeros(self._rows[0].shape, dtype=torch.bool) for name in names}
        for row, (pair, end) in enumerate(zip(pairs, ends, strict=True)):
            words, role = pair.second, names[0]
            for place in range(pair.changed, len(words)):
                name = names[3] if place == len(words) - 1 else role
                roles[name][row, end[place] + 1 : end[place + 1] + 1] = True
                role = names[2] if role == names[2] or words[place] in END else names[1]
        return roles

    def _log_odds(self, rows: Tensor) -> np.ndarray:
        with eval_mode(self.model):
            logits = self.model(rows)[torch.arange(len(rows)), self.last].double()  # (P, V)
        zero, one = (logits[:, column].logsumexp(dim=1) for column in self._groups.T)
        return (one - zero).numpy()

    def patch_hidden(self, level: int, where: Tensor) -> np.ndarray:
        """Effect of hidden states of the first review within the run of the second; shape (P,)."""
        with hidden_replaced(self.model.body, level, self.levels[level], where):
            return self._log_odds(self._rows[1]) - self.second

    def patch_head(self, layer: int, head: int) -> np.ndarray:
        """Effect of the outputs of one head in the first review within the run of the second; shape (P,)."""
        with heads_replaced(self.model.body, {(layer, head): self.heads[layer][:, :, head]}):
            return self._log_odds(self._rows[1]) - self.second

    def effects(self) -> np.ndarray:
        """`patch_head` of every head, (L, H, P)."""
        config = self.model.config
        return np.array(
            [[self.patch_head(n, h) for h in range(config.n_heads)] for n in range(config.n_layers)]
        )

    def attention_to_change(self) -> np.ndarray:
        """Attention of the last position to the changed word, in the second review; shape (L, H, P)."""
        rows = torch.arange(len(self.last))
        weights = self.attention[:, rows, :, self.last]  # (P, L, H, T)
        changed = self.roles["changed word"][:, None, None]  # (P, 1, 1, T)
        return (weights * changed).sum(dim=-1).permute(1, 2, 0).double().numpy()


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
    sizes: dict[str, Any] = {
        "vocab_size": 16,
        "d_model": 64,
        "n_heads": 4,
        "d_ff": 64,
        "max_len": 2 * UNSEEN_PERIOD,
    }
    return TransformerConfig(**sizes, n_layers=n_layers, **WORLD_MODEL)


def train_on_repeats(
    config: TransformerConfig, n_steps: int, *, seed: int = 0, lr: float = 1e-2
) -> LanguageModel:
    """A language model trained on fresh `repeated_rows` of `max_len` tokens, 32 at a step."""
    torch.manual_seed(seed)
    model, rng = LanguageModel(config), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=0.0)
    for step in range(1, n_steps + 1):
        optimizer.param_groups[0]["lr"] = lr * min(
            1.0, 8 * step / n_steps, (n_steps - step + 1) / (0.3 * n_steps)
        )
        rows, _ = repeated_rows(32, config.max_len, config.vocab_size, PERIODS, rng)
        loss = model.loss(rows[:, :-1], rows[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def induction_scores(model: LanguageModel, period: int, *, n_rows: int = 200, seed: int = 1) -> Tensor:
    """Mean attention from each token of a second copy to what followed it in the first: shape (L, H)."""
    rng = torch.Generator().manual_seed(seed)
    rows, _ = repeated_rows(n_rows, 2 * period, model.config.vocab_size, (period, period), rng)
    with eval_mode(model), record_attention(model) as recorded:
        model(rows)
    queries = torch.arange(period, 2 * period)
    return torch.stack([w[:, :, queries, queries - period + 1].mean(dim=(0, 2)) for w in recorded.values()])


def copy_nats(
    model: LanguageModel, period: int, *, n_rows: int = 200, seed: int = 1
) -> tuple[np.ndarray, ...]:
    """Nats per token in the first copy and in the second, each without its first token: (n_rows,) each."""
    rng = torch.Generator().manual_seed(seed)
    rows, _ = repeated_rows(n_rows, 2 * period, model.config.vocab_size, (period, period), rng)
    with eval_mode(model):
        logits = model(rows[:, :-1]).transpose(1, 2)  # (B, V, T)
        nats = F.cross_entropy(logits, rows[:, 1:], reduction="none").double().numpy()  # (B, T)
    return nats[:, : period - 1].mean(axis=1), nats[:, period:].mean(axis=1)
