"""Architectures of `transformers` with a counterpart here: their settings, and the names of their weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinytx.encoder_decoder import Translator
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.transformer import LanguageModel

Model = LanguageModel | MaskedLanguageModel | Translator

# The settings that make one of our models a GPT-2, a Llama, or a BERT; sizes are free.
GPT2: dict[str, Any] = {
    "causal": True,
    "norm": "first",
    "activation": "gelu-tanh",
    "positions": "learned",
    "bias": True,
    "tie_embeddings": True,
    "scale_embeddings": False,
    "head_bias": False,
}
LLAMA: dict[str, Any] = {
    "causal": True,
    "norm": "first",
    "norm_kind": "rms",
    "activation": "swiglu",
    "positions": "rotary",
    "bias": False,
    "scale_embeddings": False,
}
BERT: dict[str, Any] = {
    "causal": False,
    "norm": "last",
    "positions": "learned",
    "bias": True,
    "tie_embeddings": True,
    "scale_embeddings": False,
    "embed_norm": True,
}
_TRANSLATOR = {"bias": True, "tie_embeddings": True}
_LEARNED = {**_TRANSLATOR, "positions": "learned", "position_offset": 2, "embed_norm": True}
_SINUSOIDAL = {**_TRANSLATOR, "positions": "sinusoidal", "embed_norm": False}

# Our settings and theirs, in this order.
_FREE = ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len", "activation", "dropout")


def _fields(theirs: str, **more: str) -> dict[str, str]:
    return {**dict(zip(_FREE, theirs.split(), strict=True)), **more}


_GPT2_FIELDS = _fields(
    "vocab_size n_embd n_head n_layer n_inner n_positions activation_function resid_pdrop",
    norm_eps="layer_norm_epsilon",
    tie_embeddings="tie_word_embeddings",
)
_LLAMA_FIELDS = _fields(
    "vocab_size hidden_size num_attention_heads num_hidden_layers intermediate_size max_position_embeddings "
    "hidden_act attention_dropout",
    n_kv_heads="num_key_value_heads",
    norm_eps="rms_norm_eps",
    tie_embeddings="tie_word_embeddings",
)
_BERT_FIELDS = _fields(
    "vocab_size hidden_size num_attention_heads num_hidden_layers intermediate_size max_position_embeddings "
    "hidden_act hidden_dropout_prob",
    norm_eps="layer_norm_eps",
    n_segments="type_vocab_size",
)
_BART_FIELDS = _fields(
    "vocab_size d_model encoder_attention_heads encoder_layers encoder_ffn_dim max_position_embeddings "
    "activation_function dropout",
    scale_embeddings="scale_embedding",
)
DECODER_FIELDS = {
    "n_heads": "decoder_attention_heads",
    "n_layers": "decoder_layers",
    "d_ff": "decoder_ffn_dim",
}


def _inside(ours: str, theirs: str, modules: Mapping[str, str]) -> dict[str, str]:
    return {f"{ours}.{our}": f"{theirs}.{their}" for our, their in modules.items()}


# Our modules, or single weights, and theirs; a * is the number of a block.
GPT2_NAMES = {
    "body.token_embed": "transformer.wte",
    "body.pos_embed.table": "transformer.wpe.weight",
    "body.final_norm": "transformer.ln_f",
    "head": "lm_head",
    **_inside(
        "body.blocks.*",
        "transformer.h.*",
        {
            "attn_norm": "ln_1",
            **{f"attn.{part}_proj": f"attn.{part}" for part in "qkv"},
            "attn.out_proj": "attn.c_proj",
            "ff_norm": "ln_2",
            "ff.up_proj": "mlp.c_fc",
            "ff.down_proj": "mlp.c_proj",
        },
    ),
}
LLAMA_NAMES = {
    "body.token_embed": "model.embed_tokens",
    "body.final_norm": "model.norm",
    "head": "lm_head",
    **_inside(
        "body.blocks.*",
        "model.layers.*",
        {
            "attn_norm": "input_layernorm",
            **{f"attn.{part}_proj": f"self_attn.{part}_proj" for part in "qkv"},
            "attn.out_proj": "self_attn.o_proj",
            "ff_norm": "post_attention_layernorm",
            **{f"ff.{part}_proj": f"mlp.{part}_proj" for part in ("gate", "up", "down")},
        },
    ),
}
_BERT_BLOCK = {
    "attn.q_proj": "attention.self.query",
    "attn.k_proj": "attention.self.key",
    "attn.v_proj": "attention.self.value",
    "attn.out_proj": "attention.output.dense",
    "attn_norm": "attention.output.LayerNorm",
    "ff.up_proj": "intermediate.dense",
    "ff.down_proj": "output.dense",
    "ff_norm": "output.LayerNorm",
}
_BERT_EMBEDDINGS = {
    "token_embed": "word_embeddings",
    "pos_embed.table": "position_embeddings.weight",
    "segment_embed": "token_type_embeddings",
    "embed_norm": "LayerNorm",
}
_BERT_NAMES = {
    **_inside("body", "bert.embeddings", _BERT_EMBEDDINGS),
    **_inside("body.blocks.*", "bert.encoder.layer.*", _BERT_BLOCK),
    "head.dense.*": "cls.predictions.transform.dense",
    "head.norm": "cls.predictions.transform.LayerNorm",
    "head.output.bias": "cls.predictions.bias",
    "next_head.pooler": "bert.pooler.dense",
    "next_head.output": "cls.seq_relationship",
}
ROBERTA_NAMES = {
    **_inside("body", "roberta.embeddings", _BERT_EMBEDDINGS),
    **_inside("body.blocks.*", "roberta.encoder.layer.*", _BERT_BLOCK),
    "head.dense.*": "lm_head.dense",
    "head.norm": "lm_head.layer_norm",
    "head.output.bias": "lm_head.bias",
}
_BART_HALF = {
    "pos_embed.table": "embed_positions.weight",
    "embed_norm": "layernorm_embedding",
    "final_norm": "layer_norm",
    "blocks.*.attn_norm": "layers.*.self_attn_layer_norm",
    "blocks.*.ff.up_proj": "layers.*.fc1",
    "blocks.*.ff.down_proj": "layers.*.fc2",
    "blocks.*.ff_norm": "layers.*.final_layer_norm",
    **{
        f"blocks.*.{ours}.{part}_proj": f"layers.*.{theirs}.{part}_proj"
        for ours, theirs in (("attn", "self_attn"), ("cross_attn", "encoder_attn"))
        for part in ("q", "k", "v", "out")
    },
    "blocks.*.cross_norm": "layers.*.encoder_attn_layer_norm",
}
_BART_NAMES = {
    **_inside("encoder", "model.encoder", _BART_HALF),
    **_inside("decoder", "model.decoder", _BART_HALF),
    "encoder.token_embed": "model.shared",
    "head.bias": "final_logits_bias",
}
NOT_PARAMETERS = (
    "model.encoder.embed_positions.weight",
    "model.decoder.embed_positions.weight",
    "final_logits_bias",
)
# Ids in the configuration of a translator, whether or not the vocabulary has them, unless others are given.
NO_IDS = {"pad_token_id": 0, "decoder_start_token_id": 0} | dict.fromkeys(
    ("bos_token_id", "eos_token_id", "forced_eos_token_id")
)


@dataclass(frozen=True)
class Family:
    """One architecture of `transformers`, and our model that computes the same."""

    ours: type[Model]
    classes: tuple[str, ...]  # of theirs; the first one is written
    settings: Mapping[str, Any]  # of our model, the same in the whole family
    fields: Mapping[str, str]  # our settings that are free, to theirs
    names: Mapping[str, str]  # our weights, to theirs
    expected: Mapping[str, Any]  # settings of theirs that have no counterpart but this value


def _encoder(kind: str, names: Mapping[str, str], **expected: Any) -> Family:
    classes = (f"{kind}ForMaskedLM", "BertForPreTraining")[: 1 + (kind == "Bert")]
    own = {"is_decoder": False, "tie_word_embeddings": True, "position_embedding_type": "absolute"}
    return Family(MaskedLanguageModel, classes, BERT, _BERT_FIELDS, names, {**own, **expected})


def _translator(kind: str, norm: str, settings: Mapping[str, Any]) -> Family:
    expected = {"tie_word_embeddings": True, "share_encoder_decoder_embeddings": True}
    return Family(Translator, (kind,), {**settings, "norm": norm}, _BART_FIELDS, _BART_NAMES, expected)


# By `model_type` of a `config.json`.
FAMILIES: Mapping[str, Family] = {
    "gpt2": Family(
        LanguageModel,
        ("GPT2LMHeadModel",),
        GPT2,
        _GPT2_FIELDS,
        GPT2_NAMES,
        {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False},
    ),
    "llama": Family(
        LanguageModel,
        ("LlamaForCausalLM",),
        LLAMA,
        _LLAMA_FIELDS,
        LLAMA_NAMES,
        {"attention_bias": False, "mlp_bias": False, "hidden_act": "silu"},
    ),
    "bert": _encoder("Bert", _BERT_NAMES),
    "roberta": _encoder("Roberta", ROBERTA_NAMES, hidden_act="gelu"),  # the head knows no other
    "camembert": _encoder("Camembert", ROBERTA_NAMES, hidden_act="gelu"),
    "xlm-roberta": _encoder("XLMRoberta", ROBERTA_NAMES, hidden_act="gelu"),
    "bart": _translator("BartForConditionalGeneration", "last", _LEARNED),
    "mbart": _translator("MBartForConditionalGeneration", "first", _LEARNED),
    "marian": _translator("MarianMTModel", "last", _SINUSOIDAL),
}
