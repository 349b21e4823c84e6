"""What a recipe of pretraining asks for: a model with new weights, and what it is to learn."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tinytx.model import LanguageModel, MaskedLanguageModel, TransformerConfig
from tinytx.text import Tokenizer
from tinytx.training.budgets import Recipe
from tinytx.training.masked.objective import MaskedObjective
from tinytx.training.objectives import CausalObjective


def new_model(recipe: Recipe, seed: int) -> LanguageModel | MaskedLanguageModel:
    """The model of a recipe with first weights drawn from ``seed``; the global random state is left alone."""
    if recipe.masking is None:
        return new_language_model(recipe.config, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MaskedLanguageModel(
            recipe.config, transform=recipe.masking.transform, next_sentence=recipe.masking.next_sentence
        )


def new_language_model(config: TransformerConfig, seed: int) -> LanguageModel:
    """A language model with first weights drawn from ``seed``; the global random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LanguageModel(config)


def objective_for(
    recipe: Recipe, tokenizer: Tokenizer, texts: Sequence[str]
) -> CausalObjective | MaskedObjective:
    """What the model of a recipe is to learn from some texts."""
    if recipe.masking is None:
        return causal_objective(tokenizer, texts, recipe.config.max_len)
    return MaskedObjective(tokenizer, texts, max_len=recipe.config.max_len, masking=recipe.masking)


def causal_objective(tokenizer: Tokenizer, texts: Sequence[str], max_len: int) -> CausalObjective:
    """Next-token prediction over all of some texts."""
    return CausalObjective(
        tokenizer.encode_batch(texts),
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
        pad_id=tokenizer.pad_id,
        max_len=max_len,
    )
