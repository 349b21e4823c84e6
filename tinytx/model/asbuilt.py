"""Is a model still what its configuration says? Lessons put other modules in place of some."""

from __future__ import annotations

from functools import lru_cache

from torch import nn

from tinytx.model.config import TransformerConfig
from tinytx.model.counting import Head, build_empty
from tinytx.model.transformer import LanguageModel
from tinytx.model.translator import Translator


def is_as_built(model: nn.Module) -> bool:
    """Say whether a model computes what its configuration says, so that it may be computed in another way.

    Parameters
    ----------
    model : LanguageModel or Translator
        Any other model is not.

    Returns
    -------
    bool
        False if a module was added, left out or put in place of another, has a hook, or a ``forward`` of its
        own. Weights may be any.

    Examples
    --------
    >>> from tinytx.model.config import PRESETS
    >>> model = LanguageModel(PRESETS["tiny"])
    >>> is_as_built(model)
    True
    >>> model.body.blocks[0].ff_norm = nn.Identity()
    >>> is_as_built(model)
    False
    """
    if type(model) not in (LanguageModel, Translator):
        return False
    modules = dict(model.named_modules())
    head: Head = "lm" if type(model) is LanguageModel else "translation"
    if {name: type(each) for name, each in modules.items()} != _types(head, model.config):
        return False
    return not any(
        each._forward_hooks or each._forward_pre_hooks or "forward" in vars(each) for each in modules.values()
    )


@lru_cache(maxsize=16)
def _types(head: Head, config: TransformerConfig) -> dict[str, type[nn.Module]]:
    return {name: type(each) for name, each in build_empty(config, head).named_modules()}
