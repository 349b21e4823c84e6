"""BERT and RoBERTa, of which CamemBERT is one: a `MaskedLanguageModel` with the norm last.

What goes wrong silently: RoBERTa counts places from the row after that of its padding, the head has a
transform of its own, and BERT divides by ``sqrt(variance + 1e-12)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tinytx.hf import weights as equivalents
from tinytx.hf.weights import (
    THEIR_ACTIVATION,
    Names,
    expect,
    fill_ours,
    fill_theirs,
    our_activation,
    weights_of,
)
from tinytx.model.config import TransformerConfig
from tinytx.model.masked_lm import MaskedLanguageModel

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

# What makes a `MaskedLanguageModel` a BERT; sizes are free.
BERT: dict[str, Any] = {
    "causal": False,
    "norm": "last",
    "positions": "learned",
    "bias": True,
    "tie_embeddings": True,
    "scale_embeddings": False,
    "embed_norm": True,
}
_BLOCK = {
    "attn.q_proj": "attention.self.query",
    "attn.k_proj": "attention.self.key",
    "attn.v_proj": "attention.self.value",
    "attn.out_proj": "attention.output.dense",
    "attn_norm": "attention.output.LayerNorm",
    "ff.up_proj": "intermediate.dense",
    "ff.down_proj": "output.dense",
    "ff_norm": "output.LayerNorm",
}


def _names(body: str, head: Mapping[str, str]) -> Names:
    embeddings = {
        "body.token_embed": f"{body}.embeddings.word_embeddings",
        "body.pos_embed.table": f"{body}.embeddings.position_embeddings.weight",
        "body.segment_embed": f"{body}.embeddings.token_type_embeddings",
        "body.embed_norm": f"{body}.embeddings.LayerNorm",
    }
    return Names({**embeddings, **head}, {"body.blocks": (f"{body}.encoder.layer", _BLOCK)})


_BERT_NAMES = _names(
    "bert",
    {
        "head.dense.0": "cls.predictions.transform.dense",
        "head.norm": "cls.predictions.transform.LayerNorm",
        "head.output.bias": "cls.predictions.bias",
        "next_head.pooler": "bert.pooler.dense",
        "next_head.output": "cls.seq_relationship",
    },
)
_ROBERTA_NAMES = _names(
    "roberta",
    {"head.dense.0": "lm_head.dense", "head.norm": "lm_head.layer_norm", "head.output.bias": "lm_head.bias"},
)


def config_of(given: PretrainedConfig) -> TransformerConfig:
    """Our settings of a model with such a configuration."""
    expect(given, is_decoder=False, tie_word_embeddings=True)
    offset = 0
    if given.model_type != "bert":
        expect(given, hidden_act="gelu")  # the head knows no other
        offset = given.pad_token_id + 1
    return TransformerConfig(
        vocab_size=given.vocab_size,
        d_model=given.hidden_size,
        n_heads=given.num_attention_heads,
        n_layers=given.num_hidden_layers,
        d_ff=given.intermediate_size,
        max_len=given.max_position_embeddings - offset,
        position_offset=offset,
        activation=our_activation(given.hidden_act),
        dropout=given.hidden_dropout_prob,
        n_segments=given.type_vocab_size,
        norm_eps=given.layer_norm_eps,
        **BERT,
    )


def read(theirs: PreTrainedModel) -> MaskedLanguageModel:
    """Our model with the weights of theirs."""
    state = theirs.state_dict()
    names = _BERT_NAMES if theirs.config.model_type == "bert" else _ROBERTA_NAMES
    ours = MaskedLanguageModel(config_of(theirs.config), next_sentence="cls.seq_relationship.weight" in state)
    fill_ours(ours, names.take(ours, state))
    return ours


def write(model: MaskedLanguageModel, settings: Mapping[str, Any]) -> PreTrainedModel:
    """Their model with the weights of ours: a RoBERTa where rows stand before the first position."""
    import transformers

    config, offset = model.config, model.config.position_offset
    expect(config, norm="last", embed_norm=True, tie_embeddings=True, scale_embeddings=False)
    if not model.transform:
        raise ValueError("transform must be True to have a counterpart, got transform=False")
    weights = weights_of(model)
    equivalents.write_positions(config, weights, "body", offset)
    equivalents.write_biases(model, weights)
    embed = weights["body.token_embed.weight"]
    weights.setdefault("head.output.bias", embed.new_zeros(config.vocab_size))
    weights.setdefault("body.segment_embed.weight", embed.new_zeros(1, config.d_model))
    with_next = model.next_head is not None
    kind = "Roberta" if offset else "Bert"
    if offset:
        expect(config, activation="gelu")
        if with_next:
            raise ValueError("next_sentence must be False where position_offset is not 0, got True")
        settings = {**settings, "pad_token_id": offset - 1}
    config_class: Any = getattr(transformers, f"{kind}Config")
    model_class: Any = getattr(transformers, f"{kind}For{'PreTraining' if with_next else 'MaskedLM'}")
    theirs = model_class(config_class(**_their_settings(config), **settings))
    theirs.to(embed.dtype)
    fill_theirs(theirs, (_ROBERTA_NAMES if offset else _BERT_NAMES).give(weights))
    return theirs


def _their_settings(config: TransformerConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.d_ff,
        "hidden_act": THEIR_ACTIVATION[config.activation],
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout,
        "max_position_embeddings": config.max_len + config.position_offset,
        "type_vocab_size": max(config.n_segments, 1),
        "layer_norm_eps": config.norm_eps,
    }
