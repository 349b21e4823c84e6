"""Choosing next tokens: temperature, top-k, top-p, and sampling a text piece by piece."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tinytx.model import Classifier, LanguageModel, MaskedLanguageModel, Translator
from tinytx.text import Tokenizer


def _check_sampling(temperature: float, top_k: int | None, top_p: float | None) -> None:
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
    _check_sampling(temperature, top_k, top_p)
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


@torch.no_grad()
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
) -> list[int]:
    """Sample ids one by one until ``eos_id`` (kept) or ``max_new_tokens``.

    A prefix longer than the model can read loses its beginning, not its end. The global random state is
    left alone.

    Returns
    -------
    list of int
        The new ids only.
    """
    _check_sampling(temperature, top_k, top_p)
    if not prefix_ids:
        raise ValueError("generation needs at least one id to start from, got an empty prefix")
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    max_len = model.config.max_len
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    was_training = model.training
    model.eval()
    ids = list(prefix_ids)
    for _ in range(max_new_tokens):
        logits = model(torch.tensor([ids[-max_len:]], device=device))[0, -1].float().cpu()  # (V,)
        logits[list(forbidden_ids)] = -torch.inf
        probs = next_token_probs(logits, temperature, top_k, top_p)
        ids.append(int(torch.multinomial(probs, 1, generator=generator)))
        if ids[-1] == eos_id:
            break
    model.train(was_training)
    return ids[len(prefix_ids) :]


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
