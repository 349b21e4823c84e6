"""The explorer of sampling: temperature, then top-k and top-p, then what is left is made to sum to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import traitlets

from tinytx.text.tokenizer import Tokenizer
from tinytx.training.generate import unwritten_ids
from tinytx.world.world import World
from tinytx_course.widgets.base import Explorer, between, fixed
from tinytx_course.widgets.continuations import model_and_tokenizer
from tinytx_course.widgets.drawing import Stages, draws, entropy_in_bits, stages
from tinytx_course.widgets.picture import SOFT, WARN, Picture, blues

BEGINNINGS = ("Bonjour les amis,", "Le livre", "C'est", "Le roman est")
MOST_DRAWS, N_ROWS = 10_000, 12
_MOST_NUMBERS = 24_000
_END = "(the end)"


class SamplingExplorer(Explorer):
    """See `sampling`."""

    kind = "sampling"
    title = "How the next token is drawn"

    contexts = traitlets.List(traitlets.Unicode()).tag(sync=True)
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    logits = traitlets.Bytes().tag(sync=True)
    truth: traitlets.List = traitlets.List().tag(sync=True)
    context = traitlets.Int(0).tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)
    top_k = traitlets.Int(1).tag(sync=True)
    top_p = traitlets.Float(1.0).tag(sync=True)
    n_draws = traitlets.Int(0).tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)

    @traitlets.validate("context")
    def _check_context(self, proposal: Any) -> int:
        return between(proposal, 0, len(self.contexts) - 1)

    @traitlets.validate("temperature")
    def _check_temperature(self, proposal: Any) -> float:
        return between(proposal, 0.1, 5.0)

    @traitlets.validate("top_k")
    def _check_top_k(self, proposal: Any) -> int:
        return between(proposal, 1, len(self.tokens))

    @traitlets.validate("top_p")
    def _check_top_p(self, proposal: Any) -> float:
        return between(proposal, 0.01, 1.0)

    @traitlets.validate("n_draws")
    def _check_n_draws(self, proposal: Any) -> int:
        return between(proposal, 0, MOST_DRAWS)

    @traitlets.validate("seed")
    def _check_seed(self, proposal: Any) -> int:
        return between(proposal, 0, 9999)

    def stages(self) -> Stages:
        """Return the distribution of the chosen context at every stage."""
        logits = np.frombuffer(self.logits, np.float32).reshape(len(self.contexts), -1).astype(float)
        return stages(logits[self.context], self.temperature, self.top_k, self.top_p)

    def world_probs(self) -> np.ndarray | None:
        """Return the true chance of each token, of shape (V,); None where the language is not known."""
        if not self.truth:
            return None
        chances = np.zeros(len(self.tokens))
        pairs = self.truth[self.context]
        chances[pairs[0::2]] = pairs[1::2]
        return chances

    def counts(self) -> np.ndarray:
        """Return how often each token was drawn, of shape (V,)."""
        return np.bincount(draws(self.stages(), self.n_draws, self.seed), minlength=len(self.tokens))

    def describe(self) -> str:
        """Say the settings, what is cut, what is left, how uncertain it is, and what was drawn."""
        found, truth = self.stages(), self.world_probs()
        n_left, n_possible = int(found.left.sum()), int((found.model > 0).sum())
        k = str(self.top_k) if self.top_k < len(self.tokens) else "off"
        p = fixed(self.top_p, 2) if self.top_p < 1 else "off"
        bits = [fixed(entropy_in_bits(shares), 2) for shares in (found.model, found.final)]
        are = "is" if n_left == 1 else "are"
        text = (
            f"After “{self.contexts[self.context]}”: temperature {fixed(self.temperature, 2)}, top-k {k}, "
            f"top-p {p}. Of {n_possible} tokens top-k cuts {found.by_top_k.sum()} and top-p "
            f"{found.by_top_p.sum()}: {n_left} {are} left, which held "
            f"{_percent(found.heated[found.left].sum())} and {are} scaled to 100%. "
            f"Entropy: {bits[0]} bits as the model says, {bits[1]} as drawn"
        )
        best = int(found.order[0])
        text += f", {fixed(entropy_in_bits(truth), 2)} in the world" if truth is not None else ""
        text += f". Most probable: “{self.tokens[best]}” {_percent(found.final[best])}"
        if truth is not None:
            outside = _percent(found.final[truth == 0].sum())
            text += f", in the world {_percent(truth[best])}. "
            text += f"The world never says {outside} of what is drawn"
        return text + ". " + self._draws_in_words(found)

    def _draws_in_words(self, found: Stages) -> str:
        if not self.n_draws:
            return "Nothing was drawn yet."
        drawn = draws(found, self.n_draws, self.seed)
        counts = np.bincount(drawn, minlength=len(self.tokens))
        most = [token for token in found.order[:N_ROWS] if counts[token]][:3]
        often = ", ".join(f"“{self.tokens[token]}” {counts[token]}" for token in most)
        last = self.tokens[drawn[-1]]
        return f"{self.n_draws} drawn: {often or 'none of those shown'}; the last was “{last}”."

    def picture(self) -> Picture:
        """Draw a row a token, a column a stage; what is cut is hatched."""
        found, truth, counts = self.stages(), self.world_probs(), self.counts()
        rows = [token for token in found.order[:N_ROWS] if found.model[token] > 0]
        left, wide, step, high = 120, 128, 126, 22
        picture = Picture(760, 84 + high * (len(rows) + 1))
        picture.text(12, 14, f"{self.contexts[self.context]} …", bold=True)
        columns = {
            "model": found.model, f"÷ {fixed(self.temperature, 2)}, cut": found.heated,
            "sums to 1": found.final, f"{self.n_draws} drawn": counts / max(1, self.n_draws),
        } | ({} if truth is None else {"the world": truth})  # fmt: skip
        most = max(float(shares[rows].max()) for shares in columns.values())
        full = next(scale for scale in (0.25, 0.5, 1.0) if most <= scale + 1e-9)
        for place, (name, shares) in enumerate(columns.items()):
            x = left + place * step
            picture.text(x, 42, name, color=SOFT)
            for i, token in enumerate(rows):
                y, width = 56 + high * i, (wide - 56) * shares[token] / full
                if place in (1, 2) and not found.left[token]:
                    picture.hatch(x, y, wide - 56, high - 6)
                    picture.text(x + wide - 51, y + 8, "cut", size=11, color=WARN)
                    continue
                picture.rect(x, y, width, high - 6, fill=blues(0.6))
                words = str(counts[token]) if place == 3 else _percent(shares[token])
                words = "never" if place == 4 and not shares[token] else words
                picture.text(x + width + 5, y + 8, words, size=11, color=SOFT)
        for i, token in enumerate(rows):
            picture.text(left - 10, 64 + high * i, self.tokens[token][:14], anchor="rm")
        words = f"a bar over the whole width is {_percent(full)}; {int(found.left.sum())} tokens are left"
        picture.text(left, 68 + high * len(rows), words, color=SOFT)
        return picture


def _percent(share: float) -> str:
    return f"{fixed(100 * float(share), 1)}%"


def sampling(
    source: Any = None,
    tokenizer: Tokenizer | None = None,
    beginnings: Sequence[str] = BEGINNINGS,
    *,
    world: World | None = None,
    context: int = 0,
    temperature: float = 1.5,
    top_k: int | None = 10,
    top_p: float | None = 0.8,
    n_draws: int = 10,
    seed: int = 0,
) -> SamplingExplorer:
    """Follow the next token from the logits to the draw, beside what the world itself would say.

    Parameters
    ----------
    source : LanguageModel or PretrainResult, optional
        Its next piece is drawn. Without it the world plays the perfect model, in whole words: then the
        temperature and the cuts alone part it from the truth.
    tokenizer : Tokenizer, optional
        Of the model; a PretrainResult has its own.
    beginnings : sequence of str
        Texts to choose among, written as people write.
    world : World, optional
        The language that the model has learned; without it nothing is compared. Without a model, ``World()``.
    context : int
        Which beginning is shown first.
    temperature : float
        0.1 to 5.
    top_k, top_p : see `tinytx.training.next_token_probs`
    n_draws : int
        Draws shown at first, up to 10000.
    seed : int
        0 to 9999. Equal seeds draw alike.

    Returns
    -------
    SamplingExplorer
        Its `stages`, `world_probs` and `counts` hold the numbers as they stand.

    Raises
    ------
    TypeError
        If a model comes without a tokenizer.
    ValueError
        If a number is out of range, a beginning is none of the world, or vocabulary times beginnings is too
        large for a page.

    Examples
    --------
    >>> explorer = sampling(beginnings=["Bonjour"], temperature=0.5, top_k=None, top_p=None)
    >>> explorer.tokens, explorer.world_probs().round(2), explorer.stages().final.round(2)
    (['les', 'à'], array([0.67, 0.33]), array([0.8, 0.2]))
    """
    texts = [beginnings] if isinstance(beginnings, str) else list(beginnings)
    if not texts:
        raise ValueError("beginnings must hold at least one text, got none")
    truth: np.ndarray | None
    if source is None:
        tokens, logits, truth = _of_world(world or World(), texts)
    else:
        tokens, logits, truth = _of_model(*model_and_tokenizer(source, tokenizer), texts, world)
    if logits.size > _MOST_NUMBERS:
        raise ValueError(
            f"a page holds at most {_MOST_NUMBERS} numbers, "
            f"got {len(texts)} beginnings of {len(tokens)} tokens"
        )
    return SamplingExplorer(
        contexts=texts,
        tokens=tokens,
        logits=logits.astype(np.float32).tobytes(),
        truth=[] if truth is None else [_sparse(chances) for chances in truth],
        context=context,
        temperature=temperature,
        top_k=len(tokens) if top_k is None else min(top_k, len(tokens)),
        top_p=1.0 if top_p is None else top_p,
        n_draws=n_draws,
        seed=seed,
    )


def _of_world(world: World, texts: list[str]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Words that may follow some beginning, their logits and their chances."""
    following = [world.next_word(world.split(text)) for text in texts]
    words = list(dict.fromkeys(word for chances in following for word in chances))
    truth = np.array([[chances.get(word, 0.0) for word in words] for chances in following])
    with np.errstate(divide="ignore"):
        return [word or _END for word in words], np.log(truth), truth


@torch.no_grad()
def _of_model(
    model: Any, tokenizer: Tokenizer, texts: list[str], world: World | None
) -> tuple[list[str], np.ndarray, np.ndarray | None]:
    """Pieces, their logits after each beginning, and their true chances where the world is given."""
    written = [" ".join(world.split(text)) if world else text for text in texts]
    rows = [[tokenizer.bos_id, *tokenizer.encode(text)] for text in written]
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    limit = model.config.max_len
    found = [model(torch.tensor([row[-limit:]], device=device))[0, -1].float().cpu() for row in rows]
    model.train(was_training)
    logits = torch.stack(found)
    logits[:, list(unwritten_ids(tokenizer))] = -torch.inf
    tokens = [_END if i == tokenizer.eos_id else tokenizer.piece(i) for i in range(tokenizer.vocab_size)]
    exactly = world.through(tokenizer) if world else None
    return tokens, logits.numpy(), np.array([exactly.next_token(row) for row in rows]) if exactly else None


def _sparse(chances: np.ndarray) -> list[float]:
    """Return place and chance of what is possible, one after the other; six digits make a page small."""
    pairs = [(int(i), max(round(float(chances[i]), 6), 1e-6)) for i in np.flatnonzero(chances)]
    return [number for pair in pairs for number in pair]
