"""Autoregressive generation: from next-token probabilities to text, many rows at once.

Shape letters: R rows, T tokens, V vocabulary.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tinytx.batching import pad_batch
from tinytx.encoder_decoder import Translator
from tinytx.fast import retain_memory
from tinytx.inference import eval_mode
from tinytx.kv_cache import IncrementalDecoder, is_as_built
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.settings import check_seed
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import Classifier, LanguageModel

Model = LanguageModel | MaskedLanguageModel | Classifier | Translator


def check_vocabulary(model: Model, tokenizer: Tokenizer) -> None:
    """Raise ValueError unless tokenizer and model have vocabularies of one size."""
    if tokenizer.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"tokenizer and model must have one vocabulary, got {tokenizer.vocab_size} tokens "
            f"and vocab_size={model.config.vocab_size}"
        )


def unwritten_ids(tokenizer: Tokenizer | type[Tokenizer]) -> tuple[int, ...]:
    """The suppressed ids: special tokens that are no text and do not end one. Generation never draws them."""
    special = {tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.mask_id}
    special |= {tokenizer.cls_id, tokenizer.sep_id}
    return tuple(sorted(special - {tokenizer.eos_id}))  # in published tokenizers one id may have two uses


def check_sampling(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Raise ValueError for values that `next_token_probs` does not allow."""
    if not 1e-30 < temperature < 1e30:  # float32 has neither 0 nor infinity there
        raise ValueError(f"temperature must be positive, between 1e-30 and 1e30, got {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1, or None for no limit, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must lie in (0, 1], or None for no limit, got {top_p}")


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
    check_sampling(temperature, top_k, top_p)
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


def draw(
    logits: Tensor, generator: torch.Generator, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Sample one token a row, (R,) on the CPU, from (R, V); with ``top_k=1`` take the first of the best."""
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
    """Continue some prefixes token by token, each until ``eos_id`` (included) or ``max_new_tokens``.

    All rows grow by one id a step; a row with a longer prefix takes the next id from its prefix while others
    already sample, so nothing is padded. A row that has ended leaves the batch. Of a row longer than
    ``max_len`` the model reads the end. The global random state does not change.

    Parameters
    ----------
    model : LanguageModel
        A causal one.
    prefixes : sequence of R sequences of int
        None empty.
    eos_id : int
    forbidden_ids : sequence of int
        Never drawn.
    max_new_tokens : int
        Of each row.
    temperature, top_k, top_p : see `next_token_probs`
    seed : int
        Equal seeds give equal ids.
    cached : bool
        True uses a KV cache; False computes all keys and values anew at each step.

    Returns
    -------
    list of R lists of int
        The new ids only.
    """
    check_sampling(temperature, top_k, top_p)
    if not all(prefixes):
        raise ValueError("generation needs at least one id to start from, got an empty prefix")
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    check_seed(seed)
    low, high = min(map(min, prefixes)), max(map(max, prefixes))
    if low < 0 or high >= model.config.vocab_size:
        raise ValueError(f"ids must lie in 0..{model.config.vocab_size - 1}, got {low} to {high}")
    retain_memory()
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([len(prefix) for prefix in prefixes])
    new_ids: list[list[int]] = [[] for _ in prefixes]
    active = torch.arange(len(prefixes))  # (R,): the rows that still grow, as in what follows
    padded = pad_batch(prefixes, 0)  # (R, longest)
    ids = padded[:, : int(lengths.min())]  # (R, T)
    with eval_mode(model) as device:
        scores = _Scores(model, lengths, max_new_tokens, cached)
        forbidden = torch.tensor(sorted(forbidden_ids), dtype=torch.long, device=device)
        while len(active):
            logits = scores.after(ids.to(device)).index_fill_(1, forbidden, -torch.inf)  # (R, V)
            drawn = draw(logits, generator, temperature, top_k, top_p)  # (R,)
            n_ids = ids.shape[1]
            samples = lengths <= n_ids  # (R,): whose prefix is read to its end
            if n_ids < padded.shape[1]:
                drawn = drawn.where(samples, padded[:, n_ids])
            ids = torch.cat([ids, drawn[:, None]], dim=1)
            ended = samples & ((drawn == eos_id) | (n_ids + 1 - lengths >= max_new_tokens))
            if ended.any():
                for row in ended.nonzero()[:, 0].tolist():
                    new_ids[active[row]] = ids[row, lengths[row] :].tolist()
                (remaining,) = torch.nonzero(~ended, as_tuple=True)
                active, ids, padded, lengths = (each[remaining] for each in (active, ids, padded, lengths))
                scores.select(remaining.to(device))
    return new_ids


class _Scores:
    """Logits of the next token of growing rows, from a KV cache up to the length that the model reads."""

    def __init__(self, model: LanguageModel, lengths: Tensor, max_new_tokens: int, cached: bool) -> None:
        self._model = model
        self._decoder: IncrementalDecoder | None = None
        self._max_len = min(model.config.max_len, int(lengths.max()) + max_new_tokens)
        several = self._max_len - int(lengths.min()) > 1  # for a single token a cache does not pay
        if cached and several and is_as_built(model):
            self._decoder = IncrementalDecoder(
                model.body, model.head, n_rows=len(lengths), max_len=self._max_len
            )

    def after(self, ids: Tensor) -> Tensor:
        """Logits (R, V) of the token after each row (R, T)."""
        if self._decoder is None or ids.shape[1] > self._max_len:
            self._decoder = None  # positions shift: nothing in the cache is valid any more
            return self._model.head(self._model.body(ids[:, -self._model.config.max_len :])[:, -1])
        if not self._decoder.length and len(ids) > 1 and (ids == ids[0]).all():  # read a common prefix once
            logits = self._decoder.read(ids[:1])
            self._decoder.select(ids.new_zeros(len(ids)))
            return logits.repeat(len(ids), 1)
        return self._decoder.read(ids[:, self._decoder.length :])

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the cache."""
        if self._decoder is not None and len(rows):
            self._decoder.select(rows)


def generate_ids(
    model: LanguageModel,
    prefix_ids: Sequence[int],
    *,
    eos_id: int,
    forbidden_ids: Sequence[int] = (),
    max_new_tokens: int = 50,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    cached: bool = True,
) -> list[int]:
    """Continue one prefix: the new ids. Parameters as in `continue_rows`."""
    return continue_rows(
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
    )[0]


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
    model: Model,
    tokenizer: Tokenizer,
    prompt: str = "",
    *,
    max_new_tokens: int = 50,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
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
    max_new_tokens, temperature, top_k, top_p, seed : see `continue_rows`
    """
    return generate_many(
        model,
        tokenizer,
        prompt,
        n=1,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
    )[0]


def generate_many(
    model: Model,
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
    """Sample n independent continuations of one prompt, as one batch; other parameters as in `generate`."""
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    causal_model = able_to_generate(model)
    check_vocabulary(causal_model, tokenizer)
    prompt_ids = tokenizer.encode(prompt)
    rows = continue_rows(
        causal_model,
        [[tokenizer.bos_id, *prompt_ids]] * n,
        eos_id=tokenizer.eos_id,
        forbidden_ids=unwritten_ids(tokenizer),
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
    )
    start, generations = tokenizer.decode(prompt_ids), []
    for new_ids in rows:
        # Decoding the new ids alone would lose the space in front of them.
        whole = tokenizer.decode(prompt_ids + new_ids)
        continuation = whole[len(start) :] if whole.startswith(start) else tokenizer.decode(new_ids)
        finished = new_ids[-1] == tokenizer.eos_id
        generations.append(Generation(prompt, continuation, tuple(new_ids), finished))
    return generations


def able_to_generate(model: Model) -> LanguageModel:
    """The model itself; raise ValueError unless it is an autoregressive language model."""
    if not isinstance(model, LanguageModel):
        raise ValueError(f"generation needs a language model, got a {type(model).__name__}")
    if not model.config.causal:
        raise ValueError("generation needs a causal model, got one with causal=False")
    return model
