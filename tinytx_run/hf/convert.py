"""Models to and from `transformers`: the same settings, weights and outputs under other names.

============  ====================  ==================================================
model         here                  what goes wrong silently
============  ====================  ==================================================
GPT-2         `LanguageModel`       weight matrices are transposed, queries, keys and values lie in one
Llama         `LanguageModel`       rotary positions pair number i of a head with number i + K/2
BERT          `MaskedLanguageModel` norms divide by ``sqrt(variance + 1e-12)``
RoBERTa       `MaskedLanguageModel` positions begin at the row after that of the padding id
BART, mBART   `Translator`          positions begin at row 2; logits have a bias that is no parameter
Marian        `Translator`          sinusoidal positions: all sines first, then all cosines
============  ====================  ==================================================

CamemBERT and XLM-R are RoBERTas; BARThez is an mBART.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_args

import torch
from torch import Tensor

from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.settings import require
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_run.hf.families import (
    DECODER_FIELDS,
    FAMILIES,
    GPT2_NAMES,
    LLAMA,
    LLAMA_NAMES,
    NO_IDS,
    NOT_PARAMETERS,
    ROBERTA_NAMES,
    Family,
    Model,
)
from tinytx_run.hf.folders import load_published, save_published
from tinytx_run.hf.tokenizer import PretrainedTokenizer
from tinytx_run.hf.weights import (
    ACTIVATIONS,
    Weights,
    add_biases,
    add_positions,
    expect,
    fill_theirs,
    fold_head_bias,
    fold_scale,
    interleaved,
    pair_rotary,
    permute,
    rotary_order,
    their_name,
)

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel


def config_from_transformers(given: PretrainedConfig) -> TransformerConfig:
    """Our settings of a model of theirs, without its weights; a ValueError names what has no counterpart."""
    kind = given.model_type
    require(kind in FAMILIES, f"model_type must be one of {', '.join(FAMILIES)}", repr(kind))
    family = FAMILIES[kind]
    expect(given, **family.expected)
    settings = {ours: getattr(given, theirs) for ours, theirs in family.fields.items()}
    if family.ours is Translator:
        expect(given, decoder_vocab_size=given.vocab_size)
        expect(given, **{theirs: settings[ours] for ours, theirs in DECODER_FIELDS.items()})
    if family.names is ROBERTA_NAMES:
        settings["position_offset"] = given.pad_token_id + 1
        settings["max_len"] -= settings["position_offset"]
    settings["d_ff"] = settings["d_ff"] or 4 * settings["d_model"]
    theirs, known = settings["activation"], ", ".join(ACTIVATIONS)
    require(theirs in ACTIVATIONS, f"the activation must be one of {known}", repr(theirs))
    settings["activation"] = ACTIVATIONS[theirs]
    if family.names is LLAMA_NAMES:
        expect(given, head_dim=settings["d_model"] // settings["n_heads"])
        grouped = settings["n_kv_heads"] != settings["n_heads"]
        settings["n_kv_heads"] = settings["n_kv_heads"] if grouped else None
        rope = given.rope_parameters
        expect(SimpleNamespace(**rope), rope_type="default")  # positions may not be scaled
        settings |= {"activation": LLAMA["activation"], "rotary_base": float(rope["rope_theta"])}
    return TransformerConfig(**{**family.settings, **settings})


def from_transformers(model: PreTrainedModel | str | os.PathLike[str]) -> Model:
    """Build our model that computes the same as one of `transformers`, with the same weights.

    Parameters
    ----------
    model : transformers.PreTrainedModel, path or str
        A model of a class in `FAMILIES`, a folder that its ``save_pretrained`` wrote, or the name of a
        published one, such as "camembert-base", which is downloaded unless it was before.

    Returns
    -------
    LanguageModel, MaskedLanguageModel or Translator
        In evaluation mode; weights are copied.

    Notes
    -----
    Outputs are equal at real tokens, with padding on the right. Our dropout has one rate where theirs has
    several.
    """
    classes = {name: family.classes for name, family in FAMILIES.items()}
    theirs = load_published(model, classes) if isinstance(model, str | os.PathLike) else model
    family = FAMILIES.get(getattr(theirs.config, "model_type", ""))
    if family is None or type(theirs).__name__ not in family.classes:
        known = ", ".join(name for names in classes.values() for name in names)
        raise TypeError(f"model must be one of {known}, got a {type(theirs).__name__}")
    config, state = config_from_transformers(theirs.config), theirs.state_dict()
    if family.ours is Translator:
        state["final_logits_bias"] = state["final_logits_bias"][0]  # (1, V) there
        ours: Model = Translator(config.replace(head_bias=bool(state["final_logits_bias"].any())))
    elif family.ours is MaskedLanguageModel:
        ours = MaskedLanguageModel(config, next_sentence="cls.seq_relationship.weight" in state)
    else:
        ours, state = LanguageModel(config), _split_qkv(state)
    weights = {name: state[their_name(family.names, name)] for name, _ in ours.named_parameters()}
    if config.positions == "sinusoidal":
        weights = permute(weights, interleaved(config.d_model))
    if config.positions == "rotary":
        weights = pair_rotary(weights, rotary_order(config.head_dim))
    ours.load_state_dict(weights, strict=False)  # tied weights have one name, tables that are computed none
    return ours.to(theirs.dtype).eval()


def to_transformers(model: Model, **settings: Any) -> PreTrainedModel:
    """Build the model of `transformers` that computes the same, with the same weights.

    Parameters
    ----------
    model : LanguageModel, MaskedLanguageModel or Translator
        A causal language model with pre-norm becomes a GPT-2, or a Llama where `norm_kind` is "rms"; a masked
        one with post-norm, a norm on its embeddings and a transform, a BERT, or a RoBERTa where
        `position_offset` is not 0; a translator a BART or mBART with a norm on its embeddings, else a Marian.
    **settings
        More for its configuration, such as ``eos_token_id=3``.

    Returns
    -------
    transformers.PreTrainedModel
        In evaluation mode; weights are copied.

    Notes
    -----
    What they lack is written into what they have: sinusoidal positions into a table of learned ones, the
    scale of embeddings into the embeddings, missing biases as zeros, and the bias of a head that may have
    none into its weight matrix (`fold_head_bias`).
    """
    if not isinstance(model, Model):
        known = ", ".join(kind.__name__ for kind in get_args(Model))
        raise TypeError(f"model must be one of {known}, got a {type(model).__name__}")
    weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    expect(model.config, n_experts=1)
    if isinstance(model, LanguageModel) and model.config.norm_kind == "rms":
        return _to_llama(model.config, weights, settings).eval()
    expect(model.config, norm_kind="layer", kv_heads=model.config.n_heads)
    ours, known = model.config.activation, sorted({*ACTIVATIONS.values()})
    rule = f"activation must be one of {', '.join(known)} to have a counterpart"
    require(ours in known, rule, repr(ours))
    if isinstance(model, LanguageModel):
        theirs = _to_gpt2(model, weights, settings)
    elif isinstance(model, MaskedLanguageModel):
        theirs = _to_encoder(model, weights, settings)
    else:
        theirs = _to_translator(model, weights, settings)
    return theirs.eval()


def save_transformers(
    model: Model, folder: str | os.PathLike[str], tokenizer: Tokenizer | None = None, **settings: Any
) -> None:
    """Write a model as a folder that ``AutoModel.from_pretrained`` loads: ``config.json`` and safetensors.

    Parameters
    ----------
    model, settings
        As in `to_transformers`.
    folder : path
        New or empty.
    tokenizer : Tokenizer, optional
        Its special ids are written into the configuration; the files of a published one are written, too.
    """
    ids = {}
    if tokenizer is not None:
        ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_id") for name in ("pad", "bos", "eos")}
        if isinstance(model, Translator):
            ids["decoder_start_token_id"] = tokenizer.bos_id
    save_published(to_transformers(model, **{**ids, **settings}), folder)
    if isinstance(tokenizer, PretrainedTokenizer):
        tokenizer.save_inner(Path(folder))


def _build(
    kind: str, family: Family, config: TransformerConfig, weights: Weights, settings: Mapping[str, Any]
) -> Any:
    """A model of theirs with the sizes of a configuration of ours, and weights, under our names."""
    import transformers

    model_class: Any = getattr(transformers, kind)
    sizes = {theirs: getattr(config, ours) for ours, theirs in family.fields.items()}
    sizes[family.fields["activation"]] = next(
        theirs for theirs, ours in ACTIVATIONS.items() if ours == config.activation.replace("swiglu", "silu")
    )
    theirs = model_class(model_class.config_class(**{**sizes, **settings}))
    theirs.to(next(iter(weights.values())).dtype)
    state = {their_name(family.names, name): tensor for name, tensor in weights.items()}
    fill_theirs(theirs, _join_qkv(state) if family.names is GPT2_NAMES else state, NOT_PARAMETERS)
    return theirs


def _to_gpt2(model: LanguageModel, weights: Weights, settings: Mapping[str, Any]) -> Any:
    config = model.config
    expect(config, causal=True, norm="first", n_segments=0, embed_norm=False)
    add_positions(config, weights, "body")
    add_biases(model, weights)
    if config.scale_embeddings:
        fold_scale(config, weights)
    if (bias := weights.get("head.bias")) is not None:
        if bias.any():
            fold_head_bias(weights)
        else:
            del weights["head.bias"]
    own = {"embd_pdrop": config.dropout, "attn_pdrop": config.dropout, **_of_decoder(weights)}
    return _build("GPT2LMHeadModel", FAMILIES["gpt2"], config, weights, {**own, **settings})


def _to_llama(config: TransformerConfig, weights: Weights, settings: Mapping[str, Any]) -> Any:
    own = {name: value for name, value in LLAMA.items() if name != "scale_embeddings"}
    expect(config, n_segments=0, embed_norm=False, lm_bias=False, **own)
    if config.scale_embeddings:
        fold_scale(config, weights)
    weights = pair_rotary(weights, torch.argsort(rotary_order(config.head_dim)))
    own = {"rope_theta": config.rotary_base, **_of_decoder(weights)}
    return _build("LlamaForCausalLM", FAMILIES["llama"], config, weights, {**own, **settings})


def _of_decoder(weights: Weights) -> dict[str, Any]:
    return {"tie_word_embeddings": "head.weight" not in weights, "bos_token_id": None, "eos_token_id": None}


def _to_encoder(model: MaskedLanguageModel, weights: Weights, settings: Mapping[str, Any]) -> Any:
    config, offset = model.config, model.config.position_offset
    expect(config, norm="last", embed_norm=True, tie_embeddings=True, scale_embeddings=False)
    expect(model, transform=True)
    add_positions(config, weights, "body", offset)
    add_biases(model, weights)
    embed = weights["body.token_embed.weight"]
    weights.setdefault("head.output.bias", embed.new_zeros(config.vocab_size))
    weights.setdefault("body.segment_embed.weight", embed.new_zeros(1, config.d_model))
    own = {
        "attention_probs_dropout_prob": config.dropout,
        "max_position_embeddings": config.max_len + offset,
        "type_vocab_size": max(config.n_segments, 1),
    }
    if offset:
        expect(config, activation="gelu")
        one_head = model.next_head is None
        require(one_head, "next_sentence must be False where position_offset is not 0", "True")
        own["pad_token_id"] = pad_id = settings.get("pad_token_id", offset - 1)
        fits = pad_id == offset - 1  # as positions are counted from it there
        require(fits, f"pad_token_id must be {offset - 1}, position_offset - 1", pad_id)
    family = FAMILIES["roberta" if offset else "bert"]
    kind = family.classes[0] if model.next_head is None else "BertForPreTraining"
    return _build(kind, family, config, weights, {**own, **settings})


def _to_translator(model: Translator, weights: Weights, settings: Mapping[str, Any]) -> Any:
    config = model.config
    if config.embed_norm:
        family = FAMILIES["bart" if config.norm == "last" else "mbart"]
    else:
        expect(config, positions="sinusoidal", norm="last")
        family = FAMILIES["marian"]
    expect(config, tie_embeddings=True, norm_eps=1e-5)
    if config.embed_norm:
        for half in ("encoder", "decoder"):
            add_positions(config, weights, half, family.settings["position_offset"])
    add_biases(model, weights)
    bias = weights.pop("head.bias", None)
    if not config.embed_norm:
        weights = permute(weights, torch.argsort(interleaved(config.d_model)))
    own = {
        **{theirs: getattr(config, ours) for ours, theirs in DECODER_FIELDS.items()},
        "attention_dropout": config.dropout,
        "activation_dropout": config.dropout,
        **NO_IDS,
    }
    theirs = _build(family.classes[0], family, config, weights, {**own, **settings})
    if bias is not None:
        theirs.final_logits_bias.copy_(bias)
    return theirs


def _upright(state: Mapping[str, Tensor]) -> Weights:
    """Weights of a GPT-2 with their matrices transposed, as `torch.nn.Linear` has them; and back."""
    turned = tuple(f"{module}.weight" for module in ("c_attn", "c_proj", "c_fc"))
    return {name: tensor.T if name.endswith(turned) else tensor for name, tensor in state.items()}


def _split_qkv(state: Mapping[str, Tensor]) -> Weights:
    """Weights of a GPT-2 with upright matrices, and queries, keys and values apart."""
    state = _upright(state)
    for name in [name for name in state if ".c_attn." in name]:
        for part, chunk in zip("qkv", state.pop(name).chunk(3), strict=True):  # (D, D) or (D,) each
            state[name.replace("c_attn", part)] = chunk
    return state


def _join_qkv(state: Weights) -> Weights:
    """Undo `_split_qkv`."""
    for name in [name for name in state if ".attn.q." in name]:
        parts = [state.pop(name.replace(".attn.q.", f".attn.{part}.")) for part in "qkv"]
        state[name.replace(".attn.q.", ".attn.c_attn.")] = torch.cat(parts)  # (3 D, D) or (3 D,)
    return _upright(state)
