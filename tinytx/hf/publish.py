"""Models that others have published: their tokenizers, and ours written as theirs are."""

from __future__ import annotations

import os
from pathlib import Path

from tinytx.hf.convert import save_transformers
from tinytx.hf.folders import read
from tinytx.hf.tokenizer import PretrainedTokenizer
from tinytx.model.encoder_decoder import Translator
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.transformer import LanguageModel
from tinytx.text.tokenizer import Tokenizer


def published_tokenizer(source: str | os.PathLike[str]) -> PretrainedTokenizer:
    """The tokenizer in a folder of `transformers`, or of a published model, by its name.

    Raises
    ------
    ValueError
        If it cannot be found, fetched or read, or does not fit the model beside it.
    """
    config, inner = read(source, "AutoConfig"), read(source, "AutoTokenizer")
    start = config.decoder_start_token_id if config.is_encoder_decoder else None
    try:
        return PretrainedTokenizer(inner, n_ids=config.vocab_size, start_id=start)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error


def export(
    model: LanguageModel | MaskedLanguageModel | Translator,
    folder: str | os.PathLike[str],
    tokenizer: Tokenizer,
) -> Path:
    """Write a model as a folder that ``AutoModel.from_pretrained`` loads, with the ids of its marks.

    Parameters
    ----------
    model : LanguageModel, MaskedLanguageModel or Translator
        With settings that have a counterpart there, see `tinytx.hf.convert.to_transformers`.
    folder : path
        New or empty.
    tokenizer : Tokenizer
        A published one is written too; one of ours stays as it is, a sentencepiece model of its own kind.
    """
    marks = {f"{name}_token_id": getattr(tokenizer, f"{name}_id") for name in ("pad", "bos", "eos")}
    if isinstance(model, Translator):
        marks["decoder_start_token_id"] = tokenizer.bos_id
    save_transformers(model, folder, **marks)
    if isinstance(tokenizer, PretrainedTokenizer):
        tokenizer.save_inner(Path(folder))
    return Path(folder)
