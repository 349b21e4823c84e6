"""Autoregressive generation: from next-token probabilities to text, many rows at once.

Shape letters: R rows, T tokens, V vocabulary.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from tinytx.batching import pad_batch
from tinytx.fast import laid_out, retain_memory
from tinytx.inference import eval_mode
from tinytx.kv_cache import Cache
from tinytx.settings import check_seed, check_whole, require
from tinytx.tokenizer import Tokenizer, warn_of_unknown
from tinytx.transformer import LanguageModel

DRAWABLE = "logits must have a finite maximum to be drawn from"


def check_vocabulary(model: Any, tokenizer: Tokenizer) -> None:
    """Raise ValueError unless a tokenizer and a model of any kind have vocabularies of one size."""
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(f"tokenizer must be a Tokenizer, got a {type(tokenizer).__name__}")
    got = f"{tokenizer.vocab_size} tokens and vocab_size={model.config.vocab_size}"
    fits = tokenizer.vocab_size == model.config.vocab_size
    require(fits, "tokenizer and model must have one vocabulary", got)


def unwritten_ids(tokenizer: Tokenizer | type[Tokenizer]) -> tuple[int, ...]:
    """The suppressed ids: special tokens that are no text and do not end one. Generation never draws them."""
    special = {getattr(tokenizer, f"{name}_id") for name in ("pad", "unk", "bos", "mask", "cls", "sep")}
    # In published tokenizers one id may have two uses.
    return tuple(sorted(special - {tokenizer.eos_id, *tokenizer.target_prefix}))


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn; ValueError for a setting outside its range.

    Parameters
    ----------
    max_new_tokens : int
        Most new tokens of each row.
    temperature, top_k, top_p
        See `next_token_probs`.
    seed : int
        Equal seeds give equal tokens. The global random state does not change.

    Examples
    --------
    >>> Sampling(temperature=0.0)
    Traceback (most recent call last):
    ValueError: temperature must be positive, between 1e-30 and 1e30, got 0.0
    """

    max_new_tokens: int = 50
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        top_k, top_p, temperature = self.top_k, self.top_p, self.temperature
        check_whole("max_new_tokens", self.max_new_tokens, 1)
        within = isinstance(temperature, Real) and 1e-30 < temperature < 1e30  # and its inverse, in float32
        require(within, "temperature must be positive, between 1e-30 and 1e30", repr(temperature))
        if top_k is not None:
            check_whole("top_k", top_k, 1)
        within = top_p is None or (isinstance(top_p, Real) and 0 < top_p <= 1)
        require(within, "top_p must lie in (0, 1], or None for no limit", repr(top_p))
        check_seed(self.seed)


SAMPLING = Sampling()


def next_token_probs(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Distribution that the next token is sampled from.

    Parameters
    ----------
    logits : Tensor of shape (..., V)
        Scores before the softmax; ``-inf`` forbids a token.
    temperature : float
        The logits are divided by it: below 1 sharpens, above 1 flattens.
    top_k : int or None
        Only so many most probable tokens stay; None keeps all.
    top_p : float or None
        Only the smallest set of most probable tokens stays whose probability reaches it, in (0, 1]; the token
        that crosses is one of them. None keeps all.

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
    Sampling(temperature=temperature, top_k=top_k, top_p=top_p)  # refuses what lies outside its range
    require(logits.amax(dim=-1).isfinite().all(), DRAWABLE, "none")
    probs = torch.softmax(logits.float() / temperature, dim=-1)
    if top_k is None and top_p in (None, 1.0):
        return probs
    ordered, order = probs.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        ordered[..., top_k:] = 0
    if top_p is not None and top_p < 1:
        before = ordered.double().cumsum(dim=-1) - ordered  # probability of all more probable tokens
        ordered[before >= top_p] = 0
    ordered /= ordered.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter_(-1, order, ordered)


def draw(logits: Tensor, generator: torch.Generator, sampling: Sampling) -> Tensor:
    """Sample one token a row, (R,) on the CPU, from (R, V); with ``top_k=1`` take the first of the best."""
    if sampling.top_k == 1:
        best, ids = logits.max(dim=-1)
        ids = ids.where(best.isfinite(), -1).cpu()  # the one wait for a GPU
        require((ids >= 0).all(), DRAWABLE, "none")
        return ids
    probs = next_token_probs(logits.float().cpu(), sampling.temperature, sampling.top_k, sampling.top_p)
    return torch.multinomial(probs, 1, generator=generator)[:, 0]


@torch.inference_mode()
def continue_rows(
    model: LanguageModel,
    prefixes: Sequence[Sequence[int]],
    sampling: Sampling = SAMPLING,
    *,
    eos_id: int,
    forbidden_ids: Sequence[int] = (),
    cached: bool = True,
) -> list[list[int]]:
    """Continue some prefixes token by token, each until ``eos_id`` (included) or ``max_new_tokens``.

    All rows grow by one id a step; a row with a longer prefix takes the next id from its prefix while others
    already sample, so nothing is padded. A row that has ended leaves the batch. Of a row longer than
    ``max_len`` the model reads the end.

    Parameters
    ----------
    model : LanguageModel
        A causal one.
    prefixes : sequence of R sequences of int
        None empty.
    forbidden_ids : sequence of int
        Never drawn.
    cached : bool
        True uses a KV cache; False computes all keys and values anew at each step.

    Returns
    -------
    list of R lists of int
        The new ids only.
    """
    got = "an empty prefix" if prefixes else "no prefix"
    require(prefixes and all(prefixes), "generation needs at least one id to start from", got)
    low, high, size = min(map(min, prefixes)), max(map(max, prefixes)), model.config.vocab_size
    require(low >= 0 and high < size, f"ids must lie in 0..{size - 1}", f"{low} to {high}")
    retain_memory()
    generator = torch.Generator().manual_seed(sampling.seed)
    lengths = torch.tensor([len(prefix) for prefix in prefixes])
    new_ids: list[list[int]] = [[] for _ in prefixes]
    active = torch.arange(len(prefixes))  # (R,): the rows that still grow, as in what follows
    padded = pad_batch(prefixes, 0)  # (R, longest)
    ids = padded[:, : int(lengths.min())]  # (R, T)
    max_len = min(model.config.max_len, int(lengths.max()) + sampling.max_new_tokens)
    several = cached and max_len - ids.shape[1] > 1  # of one token neither cache nor layout is worth it
    cache = Cache(model.config.n_layers, max_len) if several else None
    layout = laid_out(model, len(prefixes)) if several else nullcontext()
    with eval_mode(model) as device, layout:
        forbidden = torch.tensor(sorted(forbidden_ids), dtype=torch.long, device=device)
        while len(active):
            if ids.shape[1] > max_len:
                cache = None  # positions shift: nothing in the cache is valid any more
            logits = _next_logits(model, ids.to(device), cache)  # (R, V)
            logits = logits.index_fill_(1, forbidden, -torch.inf) if len(forbidden) else logits
            drawn = draw(logits, generator, sampling)  # (R,)
            n_ids = ids.shape[1]
            samples = lengths <= n_ids  # (R,): whose prefix is read to its end
            if n_ids < padded.shape[1]:
                drawn = drawn.where(samples, padded[:, n_ids])
            ids = torch.cat([ids, drawn[:, None]], dim=1)
            ended = samples & ((drawn == eos_id) | (n_ids + 1 - lengths >= sampling.max_new_tokens))
            if ended.any():
                for row in ended.nonzero()[:, 0].tolist():
                    new_ids[active[row]] = ids[row, lengths[row] :].tolist()
                (remaining,) = torch.nonzero(~ended, as_tuple=True)
                active, ids, padded, lengths = (each[remaining] for each in (active, ids, padded, lengths))
                if cache is not None:
                    cache.select(remaining.to(device))
    return new_ids


def _next_logits(model: LanguageModel, ids: Tensor, cache: Cache | None) -> Tensor:
    """Logits (R, V) of the token after each row (R, T), of which the model reads what is not cached."""
    common = cache is not None and not cache.length and bool((ids == ids[0]).all())
    if cache is None:
        new_ids = ids[:, -model.config.max_len :]
    else:
        new_ids = ids[:1] if common else ids[:, cache.length :]  # read a common prefix once
    logits: Tensor = model.head(model.body(new_ids, cache=cache)[:, -1])
    if cache is not None and common:
        cache.select(ids.new_zeros(len(ids)))
        logits = logits.repeat(len(ids), 1)
    return logits


@dataclass(frozen=True)
class Generation:
    """A prompt and its continuation by a model; ``str()`` gives both."""

    prompt: str
    continuation: str
    token_ids: tuple[int, ...]  # the new ones
    finished: bool  # whether the model ended the text itself

    def __str__(self) -> str:
        return self.prompt + self.continuation

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them, and the whole text."""
        return {**dataclasses.asdict(self), "token_ids": list(self.token_ids), "text": str(self)}


def generate(
    model: LanguageModel, tokenizer: Tokenizer, prompt: str = "", sampling: Sampling = SAMPLING
) -> Generation:
    """Continue a prompt by sampling.

    Parameters
    ----------
    model : LanguageModel
        A causal one; any other kind raises ValueError.
    tokenizer : Tokenizer
        The one that the model was trained with.
    prompt : str
        Empty starts a new text. The model reads characters that the tokenizer does not know as unknown;
        in the answer they are unchanged.
    sampling : Sampling
        How many tokens at most, and how each is drawn.

    Returns
    -------
    Generation
        Prompt and continuation; `str` gives the whole text.

    Examples
    --------
    A model that has read two texts again and again knows them by heart:

    >>> import tinytx as tx
    >>> from tinytx_run.corpora import Corpus, Split
    >>> texts = Split(("le chat dort", "un chien mange"))
    >>> run = tx.pretrain(Corpus("two", texts, texts), budget="smoke", training_changes={"n_steps": 60})
    1 layers of width 32, ...; 60 steps of ...
    >>> print(generate(run.model, run.tokenizer, "le chat", Sampling(top_k=1)))
    le chat dort
    """
    return generate_many(model, tokenizer, prompt, sampling, n=1)[0]


def generate_many(
    model: LanguageModel, tokenizer: Tokenizer, prompt: str = "", sampling: Sampling = SAMPLING, *, n: int
) -> list[Generation]:
    """Sample n independent continuations of one prompt, as one batch; other parameters as in `generate`."""
    check_whole("n", n, 1)
    if not isinstance(model, LanguageModel):
        raise ValueError(f"generation needs a language model, got a {type(model).__name__}")
    require(model.config.causal, "generation needs a causal model", "one with causal=False")
    check_vocabulary(model, tokenizer)
    warn_of_unknown(tokenizer, [prompt], "the prompt")
    prompt_ids = tokenizer.encode(prompt)
    if (n_ids := len(prompt_ids) + 1) > model.config.max_len:
        words = f"the prompt has {n_ids} tokens, of which the model reads the last {model.config.max_len}"
        warnings.warn(words, stacklevel=2)
    rows = continue_rows(
        model,
        [[tokenizer.bos_id, *prompt_ids]] * n,
        sampling,
        eos_id=tokenizer.eos_id,
        forbidden_ids=unwritten_ids(tokenizer),
    )
    start, generations = tokenizer.decode(prompt_ids), []
    for new_ids in rows:
        # Decoding the new ids alone would lose the space in front of them.
        whole = tokenizer.decode(prompt_ids + new_ids)
        continuation = whole[len(start) :] if whole.startswith(start) else tokenizer.decode(new_ids)
        finished = new_ids[-1] == tokenizer.eos_id
        generations.append(Generation(prompt, continuation, tuple(new_ids), finished))
    return generations
