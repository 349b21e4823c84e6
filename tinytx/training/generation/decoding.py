"""Carrying on a text piece by piece."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from tinytx.model import Classifier, LanguageModel, MaskedLanguageModel, Translator
from tinytx.text import Tokenizer
from tinytx.training.generation.continuing import continue_rows
from tinytx.training.generation.sampling import next_token_probs

__all__ = [
    "Generation",
    "able_to_generate",
    "generate",
    "generate_ids",
    "next_token_probs",
    "unwritten_ids",
    "written",
]


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
