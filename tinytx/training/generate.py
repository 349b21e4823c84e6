"""From next-token probabilities to text: temperature, top-k, top-p, and continuing many rows at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tinytx.model.encoder_decoder import Translator
from tinytx.model.kv_cache import IncrementalDecoder, is_as_built
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.transformer import Classifier, LanguageModel
from tinytx.text.batching import pad_batch
from tinytx.text.tokenizer import SPACE_MARK, Tokenizer


def check_sampling(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Refuse settings that `next_token_probs` cannot follow."""
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1, or None for no limit, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must lie in (0, 1], or None for no limit, got {top_p}")


def next_token_probs(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Distribution that the next token is drawn from.

    The logits are divided by the temperature and turned into probabilities; then only the ``top_k``
    largest stay; then only the smallest set of most probable tokens whose probability reaches
    ``top_p`` (the token that crosses stays); what is left is scaled to sum to 1.

    Parameters
    ----------
    logits : Tensor of shape (..., V)
        Scores before the softmax; ``-inf`` forbids a token.
    temperature : float
        Positive; below 1 sharpens, above 1 flattens.
    top_k : int or None
        Number of tokens kept; None keeps all.
    top_p : float or None
        Probability to be reached, in (0, 1]; None keeps all.

    Returns
    -------
    Tensor of shape (..., V)
        Probabilities; each row sums to 1.

    Notes
    -----
    ``top_p`` counts probability before top-k took any away: with both, the stricter one decides. Some
    libraries scale the ``top_k`` to sum to 1 first and so keep fewer.

    References
    ----------
    Holtzman et al., The Curious Case of Neural Text Degeneration, arXiv:1904.09751, section 3.1 (top-p).

    Examples
    --------
    >>> logits = torch.tensor([0.5, 0.3, 0.2]).log()
    >>> [round(p, 3) for p in next_token_probs(logits, top_k=2).tolist()]
    [0.625, 0.375, 0.0]
    >>> [round(p, 3) for p in next_token_probs(logits, top_p=0.6).tolist()]
    [0.625, 0.375, 0.0]
    """
    check_sampling(temperature, top_k, top_p)
    probs = torch.softmax(logits.float() / temperature, dim=-1)
    if top_k is None and top_p in (None, 1.0):
        return probs
    ordered, order = probs.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        ordered[..., top_k:] = 0
    if top_p is not None and top_p < 1:
        before = ordered.double().cumsum(dim=-1) - ordered  # probability of all that stand in front
        ordered[before >= top_p] = 0
    ordered /= ordered.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter_(-1, order, ordered)


def draw(
    logits: Tensor,
    generator: torch.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Draw one token a row from `next_token_probs`; parameters as there.

    Parameters
    ----------
    logits : Tensor of shape (R, V)
    generator : torch.Generator
        On the CPU. Where only one token is left to be drawn, nothing is drawn.

    Returns
    -------
    Tensor of shape (R,), on the CPU
        Of several best, ``top_k=1`` takes the first.
    """
    if top_k == 1:
        best, ids = logits.max(dim=-1)
        if not best.isfinite().all():
            raise ValueError("logits must have a finite maximum to be drawn from, got none")
        return ids.cpu()
    probs = next_token_probs(logits.float().cpu(), temperature, top_k, top_p)
    return torch.multinomial(probs, 1, generator=generator)[:, 0]


@torch.inference_mode()
def continue_rows(
    model: LanguageModel,
    prefixes: Sequence[Sequence[int]],
    *,
    eos_id: int,
    forbidden_ids: Sequence[int] = (),
    max_new_tokens: int = 50,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    cached: bool = True,
) -> list[list[int]]:
    """Carry on some prefixes, id by id, each until ``eos_id`` (kept) or ``max_new_tokens``.

    All rows grow by one id a step: one whose prefix is longer takes its own ids while others begin to write
    already, so that nothing is padded. A row that has ended leaves. What is longer than the model can read
    loses its beginning, not its end. The global random state is left alone.

    Parameters
    ----------
    model : LanguageModel
        A causal one; put into evaluation mode meanwhile.
    prefixes : sequence of sequences of int
        None empty.
    eos_id : int
    forbidden_ids : sequence of int
        Never written.
    max_new_tokens : int
        Of each row.
    temperature, top_k, top_p : see `next_token_probs`
    seed : int
        Equal seeds give equal ids.
    cached : bool
        Keep keys and values of what is read already; False computes them anew at each step.

    Returns
    -------
    list of lists of int
        The new ids only.
    """
    check_sampling(temperature, top_k, top_p)
    if not all(prefixes):
        raise ValueError("generation needs at least one id to start from, got an empty prefix")
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    low, high = min(map(min, prefixes)), max(map(max, prefixes))
    if low < 0 or high >= model.config.vocab_size:
        raise ValueError(f"ids must lie in 0..{model.config.vocab_size - 1}, got {low} to {high}")
    was_training = model.training
    scores = _Scores(model.eval(), prefixes, max_new_tokens, cached)
    generator = torch.Generator().manual_seed(seed)
    forbidden = torch.tensor(sorted(forbidden_ids), dtype=torch.long, device=scores.device)
    rows = _Rows(prefixes, max_new_tokens, eos_id)
    while len(rows.going):
        logits = scores.after(rows.ids).index_fill_(1, forbidden, -torch.inf)  # (R, V)
        left = rows.grow(draw(logits, generator, temperature, top_k, top_p))
        if left is not None:
            scores.select(left)
    model.train(was_training)
    return rows.new_ids


class _Rows:
    """Ids of the rows that go on, and what those that have ended wrote."""

    def __init__(self, prefixes: Sequence[Sequence[int]], max_new_tokens: int, eos_id: int) -> None:
        self.new_ids: list[list[int]] = [[] for _ in prefixes]
        self.going = torch.arange(len(prefixes))
        self._lengths = torch.tensor([len(one) for one in prefixes])
        first, longest = int(self._lengths.min()), int(self._lengths.max())
        self._given = torch.tensor([[*one, *[0] * (longest - len(one))] for one in prefixes])  # (R, longest)
        self.ids = self._given[:, :first]  # (R, T)
        self._most, self._eos_id = max_new_tokens, eos_id

    def grow(self, drawn: Tensor) -> Tensor | None:
        """Add an id to each row; return which rows go on, (R',), or None where all do."""
        n_ids = self.ids.shape[1]
        writes = self._lengths <= n_ids  # (R,)
        if n_ids < self._given.shape[1]:
            drawn = drawn.where(writes, self._given[:, n_ids])
        self.ids = torch.cat([self.ids, drawn[:, None]], dim=1)
        ended = writes & ((drawn == self._eos_id) | (n_ids + 1 - self._lengths >= self._most))
        if not ended.any():
            return None
        for row in ended.nonzero()[:, 0].tolist():
            self.new_ids[self.going[row]] = self.ids[row, self._lengths[row] :].tolist()
        (left,) = torch.nonzero(~ended, as_tuple=True)
        self.going, self.ids, self._given, self._lengths = (
            each[left] for each in (self.going, self.ids, self._given, self._lengths)
        )
        return left


class _Scores:
    """Scores of what may follow rows that grow, from kept keys and values as far as the model reads."""

    def __init__(
        self, model: LanguageModel, prefixes: Sequence[Sequence[int]], max_new_tokens: int, cached: bool
    ) -> None:
        self._model = model
        self.device = next(model.parameters()).device
        self._most = min(model.config.max_len, max(map(len, prefixes)) + max_new_tokens)
        repaid = self._most - min(map(len, prefixes)) > 1  # laying out weights for a single token is not
        self._stepper: IncrementalDecoder | None = None
        if cached and repaid and is_as_built(model):
            self._stepper = IncrementalDecoder(
                model.body, model.head, n_rows=len(prefixes), max_len=self._most
            )

    def after(self, ids: Tensor) -> Tensor:
        """Scores (R, V) of what may follow each row (R, T)."""
        ids = ids.to(self.device)
        if self._stepper is None or ids.shape[1] > self._most:  # places shift: nothing that is kept holds
            self._stepper = None
            return self._model.head(self._model.body(ids[:, -self._model.config.max_len :])[:, -1])
        if not self._stepper.length and len(ids) > 1 and (ids == ids[0]).all():  # read once what is common
            logits = self._stepper.read(ids[:1])
            self._stepper.select(torch.zeros(len(ids), dtype=torch.long, device=self.device))
            return logits.repeat(len(ids), 1)
        return self._stepper.read(ids[:, self._stepper.length :])

    def select(self, rows: Tensor) -> None:
        """Go on with these rows."""
        if self._stepper is not None and len(rows):
            self._stepper.select(rows.to(self.device))


@dataclass(frozen=True)
class Generation:
    """A prompt carried on by a model; ``str()`` gives prompt and continuation."""

    prompt: str
    continuation: str
    token_ids: tuple[int, ...]
    finished: bool

    def __str__(self) -> str:
        return self.prompt + self.continuation

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them, and the whole text."""
        return {**dataclasses.asdict(self), "token_ids": list(self.token_ids), "text": str(self)}


def generate_ids(
    model: LanguageModel,
    prefix_ids: list[int],
    *,
    eos_id: int,
    forbidden_ids: tuple[int, ...] = (),
    max_new_tokens: int = 50,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    cached: bool = True,
) -> list[int]:
    """Sample ids one by one until ``eos_id`` (kept) or ``max_new_tokens``.

    Parameters as in `continue_rows`, which does so for many prefixes side by side.

    Returns
    -------
    list of int
        The new ids only.
    """
    (new_ids,) = continue_rows(
        model,
        [prefix_ids],
        eos_id=eos_id,
        forbidden_ids=forbidden_ids,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        cached=cached,
    )
    return new_ids


def generate(
    model: LanguageModel | MaskedLanguageModel | Classifier | Translator,
    tokenizer: Tokenizer,
    prompt: str = "",
    *,
    max_new_tokens: int = 50,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
) -> Generation:
    """Carry on a prompt by sampling.

    Parameters
    ----------
    model : LanguageModel
        A causal one; another kind of model is refused.
    tokenizer : Tokenizer
        The one it was trained with.
    prompt : str
        Text to carry on; empty starts a new text. Characters that the tokenizer has never seen are read as
        unknown and stand unchanged in the answer.
    max_new_tokens : int
        Pieces at most.
    temperature, top_k, top_p : see `next_token_probs`
    seed : int
        Equal seeds give equal texts.

    Returns
    -------
    Generation
        Prompt, continuation, the new ids, and whether the model ended the text itself.
    """
    prompt_ids = tokenizer.encode(prompt)
    new_ids = generate_ids(
        able_to_generate(model),
        [tokenizer.bos_id, *prompt_ids],
        eos_id=tokenizer.eos_id,
        forbidden_ids=unwritten_ids(tokenizer),
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
    )
    return written(tokenizer, prompt, prompt_ids, new_ids)


def able_to_generate(model: LanguageModel | MaskedLanguageModel | Classifier | Translator) -> LanguageModel:
    """The model itself; one that cannot write text from left to right is refused."""
    if not isinstance(model, LanguageModel):
        raise ValueError(f"generation needs a language model, got a {type(model).__name__}")
    if not model.config.causal:
        raise ValueError("generation needs a causal model, got one that reads both ways")
    return model


def unwritten_ids(tokenizer: Tokenizer | type[Tokenizer]) -> tuple[int, ...]:
    """The ids that stand for no text and do not end one: generation forbids them."""
    specials = {tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.mask_id}
    specials |= {tokenizer.cls_id, tokenizer.sep_id}
    return tuple(sorted(specials - {tokenizer.eos_id}))  # published tokenizers have marks that serve twice


def written(tokenizer: Tokenizer, prompt: str, prompt_ids: list[int], new_ids: list[int]) -> Generation:
    """What new ids say after a prompt."""
    start = tokenizer.decode(prompt_ids)
    whole = tokenizer.decode(prompt_ids + new_ids)
    # Decoding the new ids alone would lose the space in front of them.
    continuation = whole[len(start) :] if whole.startswith(start) else tokenizer.decode(new_ids)
    return Generation(prompt, continuation, tuple(new_ids), new_ids[-1] == tokenizer.eos_id)


def generate_many(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompt: str = "",
    *,
    n: int,
    max_new_tokens: int = 100,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
) -> list[Generation]:
    """Carry on one prompt n times, all of them side by side: far faster than one after the other.

    What all begin with is read once.

    Parameters
    ----------
    model : LanguageModel
        A causal one; another kind of model is refused.
    tokenizer : Tokenizer
        The one it was trained with.
    prompt : str
        Text to carry on; empty starts new texts.
    n : int
        Number of continuations, drawn independently.
    max_new_tokens : int
        Pieces at most, each.
    temperature, top_k, top_p : see `next_token_probs`
    seed : int
        Equal seeds give equal texts; they are not those that `generate` draws.

    Returns
    -------
    list of n Generation

    See Also
    --------
    tinytx.training.generate.generate : one continuation.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    prompt_ids = tokenizer.encode(prompt)
    new_ids = continue_rows(
        able_to_generate(model),
        [[tokenizer.bos_id, *prompt_ids]] * n,
        eos_id=tokenizer.eos_id,
        forbidden_ids=unwritten_ids(tokenizer),
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
    )
    return [written(tokenizer, prompt, prompt_ids, ids) for ids in new_ids]


@torch.no_grad()
def next_word_probs(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prefix: Sequence[str],
    words: Sequence[str],
    *,
    rows_per_batch: int = 256,
) -> np.ndarray:
    """Probability that a model gives to each of some words as the next whole word.

    Parameters
    ----------
    model : LanguageModel
        A causal one.
    tokenizer : Tokenizer
        The one it was trained with.
    prefix : sequence of str
        Words of the text so far; may be empty.
    words : sequence of N str
        Each not empty, without a space.
    rows_per_batch : int
        Changes memory and speed, not the result.

    Returns
    -------
    ndarray of shape (N + 1,), float64
        In the order of `words`; the last is the chance that the text ends here. What is missing to 1 went to
        words that are not among them.

    Raises
    ------
    ValueError
        If prefix and word are longer than the model can read.
    """
    check_vocabulary(model, tokenizer)
    start = [tokenizer.bos_id, *(one for word in prefix for one in tokenizer.word_pieces(word))]
    pieces = [tokenizer.word_pieces(word) for word in words]
    longest = len(start) + max(map(len, pieces), default=0)
    if longest > model.config.max_len:
        raise ValueError(
            f"prefix and word must be at most {model.config.max_len} pieces long, the model's max_len, "
            f"got {longest}"
        )
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    here = model(torch.tensor([start], device=device))[0, -1].double().log_softmax(dim=-1)  # (V,)
    begins = _begins_a_word(tokenizer).to(device)
    chances = []
    for at in range(0, len(pieces), rows_per_batch):
        rows = pieces[at : at + rows_per_batch]
        inputs = pad_batch([[*start, *row] for row in rows], tokenizer.pad_id).to(device)
        hidden = model.body(inputs)[:, len(start) - 1 :]  # (B, longest word + 1, D)
        log_probs = model.head(hidden).double().log_softmax(dim=-1)  # (B, longest word + 1, V)
        chances.append(_whole_words(log_probs, rows, begins, tokenizer.pad_id))
    model.train(was_training)
    return torch.cat([*chances, here[tokenizer.eos_id : tokenizer.eos_id + 1]]).exp().cpu().numpy()


def _whole_words(log_probs: Tensor, rows: Sequence[Sequence[int]], begins: Tensor, pad_id: int) -> Tensor:
    """Log-probability of each row of pieces, and that it is a whole word; shape (B,)."""
    device = log_probs.device
    targets = pad_batch(rows, pad_id).to(device)  # (B, L)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    taken = log_probs[:, :-1].gather(-1, targets[..., None])[..., 0]  # (B, L)
    real = torch.arange(targets.shape[1], device=device) < lengths[:, None]
    after = log_probs[torch.arange(len(rows), device=device), lengths]  # (B, V)
    ends = after.masked_fill(~begins, -torch.inf).logsumexp(dim=-1)
    return taken.masked_fill(~real, 0.0).sum(dim=-1) + ends


def _begins_a_word(tokenizer: Tokenizer) -> Tensor:
    """Which ids show that the word before them is whole; shape (V,), bool."""
    ids = range(tokenizer.vocab_size)
    return torch.tensor(
        [one == tokenizer.eos_id or tokenizer.piece(one).startswith(SPACE_MARK) for one in ids]
    )


def check_vocabulary(model: LanguageModel | MaskedLanguageModel | Classifier, tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer that makes other ids than the model knows."""
    if tokenizer.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"tokenizer and model must have one vocabulary, got {tokenizer.vocab_size} pieces "
            f"and vocab_size={model.config.vocab_size}"
        )
