"""Many continuations of one prompt at once."""

from __future__ import annotations

from tinytx.model import LanguageModel
from tinytx.text import Tokenizer
from tinytx.training.generation.continuing import continue_rows
from tinytx.training.generation.decoding import Generation, able_to_generate, unwritten_ids, written


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
    tinytx.training.generation.decoding.generate : one continuation.
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
