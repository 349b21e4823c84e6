"""The same weights give the same outputs in `transformers` and here, in both directions, for every family."""

import pytest
import torch
import transformers

from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.counting import count_parameters
from tinytx.encoder_decoder import Translator
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.transformer import LanguageModel
from tinytx_run.hf.convert import (
    config_from_transformers,
    from_transformers,
    save_transformers,
    to_transformers,
)
from tinytx_run.hf.families import BERT, FAMILIES, GPT2, LLAMA

V, D, H, LAYERS, F, MAX_LEN = 13, 10, 5, 3, 7, 11
PAD = 1
SIZES = {"vocab_size": V, "d_model": D, "n_heads": H, "n_layers": LAYERS, "d_ff": F, "max_len": MAX_LEN}
IDS = torch.randint(2, V, (2, 9), generator=torch.Generator().manual_seed(1))
IDS[1, 6:] = PAD
REAL = IDS != PAD
TARGETS = torch.randint(2, V, (2, 7), generator=torch.Generator().manual_seed(2))
SEGMENTS = torch.tensor([[0] * 4 + [1] * 5, [0] * 7 + [1] * 2])

MARKS = {"pad_token_id": PAD, "bos_token_id": 0, "eos_token_id": 2}
GPT2_SIZES = {"vocab_size": V, "n_embd": D, "n_layer": 2, "n_head": 2, "n_positions": MAX_LEN, "n_inner": F}
LLAMA_SIZES = {
    "vocab_size": V,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "max_position_embeddings": MAX_LEN,
    "intermediate_size": F,
}
BERT_SIZES = {
    "vocab_size": V,
    "hidden_size": D,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": F,
    "max_position_embeddings": 12,
}
BART_SIZES = {
    "vocab_size": V,
    "d_model": D,
    "max_position_embeddings": MAX_LEN,
    **{f"{half}_{name}": value for half in ("encoder", "decoder")
       for name, value in (("layers", 2), ("attention_heads", 2), ("ffn_dim", F))},
    **MARKS,
    "decoder_start_token_id": 2,
}  # fmt: skip

# name: class of the model, fields of its configuration
THEIRS = {
    "GPT-2": ("GPT2LMHeadModel", GPT2_SIZES),
    "GPT-2, untied, ReLU": (
        "GPT2LMHeadModel", {**GPT2_SIZES, "tie_word_embeddings": False, "activation_function": "relu"}
    ),
    "Llama": ("LlamaForCausalLM", LLAMA_SIZES),
    "Llama, tied, one head of keys": (
        "LlamaForCausalLM",
        {**LLAMA_SIZES, "hidden_size": 30, "num_attention_heads": 5, "num_key_value_heads": 1,
         "tie_word_embeddings": True, "rope_theta": 50.0, "rms_norm_eps": 0.1},
    ),
    "Llama, all heads of keys": ("LlamaForCausalLM", {**LLAMA_SIZES, "num_key_value_heads": None}),
    "BERT": ("BertForMaskedLM", BERT_SIZES),
    "BERT, next sentence": ("BertForPreTraining", {**BERT_SIZES, "hidden_act": "gelu_new"}),
    "RoBERTa": ("RobertaForMaskedLM", {**BERT_SIZES, **MARKS}),
    "CamemBERT": ("CamembertForMaskedLM", {**BERT_SIZES, **MARKS, "type_vocab_size": 1}),
    "XLM-R": ("XLMRobertaForMaskedLM", {**BERT_SIZES, **MARKS, "layer_norm_eps": 1e-5}),
    "BART": ("BartForConditionalGeneration", BART_SIZES),
    "mBART": ("MBartForConditionalGeneration", {**BART_SIZES, "scale_embedding": True}),
    "BARThez": ("MBartForConditionalGeneration", BART_SIZES),
    "Marian": (
        "MarianMTModel",
        {**BART_SIZES, "scale_embedding": True, "activation_function": "swish", "decoder_start_token_id": 1},
    ),
}  # fmt: skip


def random_weights(model):
    """Every learned number random, biases and norms too: a weight in the wrong place shows."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randn_like(parameter) * 0.5)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
    return model.eval()


def build(name, **changes):
    kind, fields = THEIRS[name]
    model_class = getattr(transformers, kind)
    return random_weights(model_class(model_class.config_class(**{**fields, **changes})))


@torch.no_grad()
def outputs_of(theirs, segments=True):
    """Logits at real tokens, and what is said about next sentences."""
    if isinstance(theirs, transformers.GPT2LMHeadModel | transformers.LlamaForCausalLM):
        return theirs(input_ids=IDS, attention_mask=REAL.long()).logits[REAL], None
    if theirs.config.is_encoder_decoder:
        out = theirs(input_ids=IDS, attention_mask=REAL.long(), decoder_input_ids=TARGETS)
        return out.logits, None
    with_segments = {"token_type_ids": SEGMENTS} if theirs.config.type_vocab_size > 1 and segments else {}
    out = theirs(input_ids=IDS, attention_mask=REAL.long(), **with_segments)
    follows = getattr(out, "seq_relationship_logits", None)
    return (out.logits if follows is None else out.prediction_logits)[REAL], follows


@torch.no_grad()
def outputs_of_ours(model):
    if isinstance(model, Translator):
        return model(IDS, TARGETS, REAL), None
    if isinstance(model, LanguageModel):
        return model(IDS, REAL)[REAL], None
    segments = SEGMENTS if model.config.n_segments > 1 else None
    follows = None if model.next_head is None else model.follows(IDS, REAL, segments)
    return model(IDS, REAL, segments)[REAL], follows


@pytest.mark.parametrize("name", THEIRS)
def test_their_weights_give_the_same_outputs_here(name):
    theirs = build(name)
    model = from_transformers(theirs)
    assert not model.training
    torch.testing.assert_close(outputs_of_ours(model), outputs_of(theirs), atol=1e-5, rtol=0)
    n_learned = sum(p.numel() for p in theirs.parameters() if p.requires_grad)
    n_learned += getattr(theirs, "final_logits_bias", torch.empty(0)).numel()  # counts, but is no parameter
    assert count_parameters(model) == n_learned
    theirs, model = theirs.double(), from_transformers(theirs.double())
    exact = "Llama" not in name  # whose norms and positions are computed in float32 all the same
    torch.testing.assert_close(
        outputs_of_ours(model), outputs_of(theirs), atol=1e-9 if exact else 1e-5, rtol=0
    )


@pytest.mark.parametrize("name", THEIRS)
def test_there_and_back_nothing_changes(name):
    theirs = build(name)
    model = from_transformers(theirs)
    back = to_transformers(model)
    torch.testing.assert_close(outputs_of(back), outputs_of(theirs), atol=1e-5, rtol=0)
    again = from_transformers(back)
    assert again.config == model.config
    torch.testing.assert_close(again.state_dict(), model.state_dict(), rtol=0, atol=0)


def test_every_family_is_tested():
    built = {THEIRS[name][0] for name in THEIRS}
    assert built == {kind for family in FAMILIES.values() for kind in family.classes}


OURS = {
    "as `tinytx pretrain` makes it": (LanguageModel, {}),
    "tied, without any bias, learned": (
        LanguageModel,
        {"bias": False, "tie_embeddings": True, "positions": "learned"},
    ),
    "no positions, head without bias": (LanguageModel, {"positions": "none", "head_bias": False}),
    "a Llama": (LanguageModel, {**LLAMA, "d_model": 24, "n_heads": 6, "n_kv_heads": 2, "rotary_base": 50.0}),
    "a Llama, tied, embeddings scaled": (
        LanguageModel,
        {**LLAMA, "d_model": 20, "tie_embeddings": True, "scale_embeddings": True, "norm_eps": 0.1},
    ),
    "masked, sinusoidal, no segments": (MaskedLanguageModel, {**BERT, "positions": "sinusoidal"}),
    "masked, two segments": (MaskedLanguageModel, {**BERT, "n_segments": 2, "norm_eps": 1e-12}),
    "masked, no biases": (MaskedLanguageModel, {**BERT, "bias": False, "activation": "silu"}),
    "masked, RoBERTa": (MaskedLanguageModel, {**BERT, "n_segments": 1, "position_offset": PAD + 1}),
    "a translator with post-norm": (Translator, {"tie_embeddings": True, "norm": "last"}),
    "the translator of the paper": (Translator, {"tie_embeddings": True, "norm": "last", "bias": False}),
    "a translator with a norm on embeddings": (
        Translator,
        {"tie_embeddings": True, "embed_norm": True, "head_bias": True},
    ),
    "a BART": (Translator, {**FAMILIES["bart"].settings, "scale_embeddings": False}),
}


@pytest.mark.parametrize("name", OURS)
def test_our_models_give_the_same_outputs_there_and_as_a_folder(name, tmp_path):
    kind, changes = OURS[name]
    model = random_weights(kind(TransformerConfig(**{**SIZES, **changes})))
    theirs = to_transformers(model, pad_token_id=PAD)
    torch.testing.assert_close(outputs_of(theirs), outputs_of_ours(model), atol=1e-5, rtol=0)
    save_transformers(model, tmp_path / "folder", pad_token_id=PAD)
    assert {"config.json", "model.safetensors"} <= {path.name for path in (tmp_path / "folder").iterdir()}
    loaded = transformers.AutoModel.from_pretrained(tmp_path / "folder", local_files_only=True)
    bare = theirs.base_model.state_dict()
    found = loaded.state_dict()
    assert len(found.keys() & bare.keys()) >= len(bare) - 2  # the pooler that AutoModel adds is not ours
    for key in found.keys() & bare.keys():
        torch.testing.assert_close(found[key], bare[key], rtol=0, atol=0)
    again = from_transformers(tmp_path / "folder")
    torch.testing.assert_close(outputs_of_ours(again), outputs_of_ours(model), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", OURS)
def test_the_rate_of_dropout_goes_along(name):
    kind, changes = OURS[name]
    theirs = to_transformers(kind(TransformerConfig(**{**SIZES, **changes, "dropout": 0.3})))
    given = theirs.config.to_dict()
    rates = {key: rate for key, rate in given.items() if "dropout" in key or key.endswith("pdrop")}
    apart = {"classifier_dropout", "summary_first_dropout"}  # of heads that no model of ours has
    assert {rate for key, rate in rates.items() if key not in apart} == {0.3}


def test_a_bias_that_a_head_may_not_have_is_hidden_exactly():
    """In float64 nothing but rounding is left: the norm's output sums to zero, and a constant reads it."""
    model = random_weights(LanguageModel(TransformerConfig(**SIZES))).double()
    assert model.head.bias.abs().min() > 0
    torch.testing.assert_close(outputs_of(to_transformers(model)), outputs_of_ours(model), atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        (LanguageModel, {"norm": "last"}, "norm must be 'first' to have a counterpart, got 'last'"),
        (LanguageModel, {"causal": False}, "causal must be True"),
        (LanguageModel, {"positions": "rotary"}, "positions must be learned, sinusoidal or none"),
        (LanguageModel, {"n_segments": 2}, "n_segments must be 0"),
        (LanguageModel, {"activation": "swiglu"}, "activation must be one of gelu, .*, got 'swiglu'"),
        (LanguageModel, {"d_model": 12, "n_heads": 6, "n_kv_heads": 2}, "kv_heads must be 6 .*, got 2"),
        (LanguageModel, {"n_experts": 3}, "n_experts must be 1"),
        (LanguageModel, {**LLAMA, "d_model": 20, "activation": "silu"}, "activation must be 'swiglu'"),
        (LanguageModel, {**LLAMA, "d_model": 20, "bias": True}, "bias must be False"),
        (LanguageModel, {**LLAMA, "d_model": 20, "head_bias": True}, "lm_bias must be False"),
        (LanguageModel, {**LLAMA, "positions": "alibi"}, "positions must be 'rotary'"),
        (MaskedLanguageModel, {**BERT, "norm_kind": "rms"}, "norm_kind must be 'layer'"),
        (Translator, {"tie_embeddings": True, "n_experts": 2}, "n_experts must be 1"),
        (MaskedLanguageModel, {**BERT, "norm": "first"}, "norm must be 'last'"),
        (MaskedLanguageModel, {**BERT, "embed_norm": False}, "embed_norm must be True"),
        (MaskedLanguageModel, {**BERT, "positions": "alibi"}, "positions must be learned"),
        (MaskedLanguageModel, {**BERT, "tie_embeddings": False}, "tie_embeddings must be True"),
        (MaskedLanguageModel, {**BERT, "position_offset": 2, "activation": "relu"}, "must be 'gelu'"),
        (Translator, {"tie_embeddings": True}, "norm must be 'last'"),
        (Translator, {"norm": "last"}, "tie_embeddings must be True"),
        (Translator, {"tie_embeddings": True, "positions": "learned"}, "positions must be 'sinusoidal'"),
        (Translator, {"tie_embeddings": True, "norm": "last", "norm_eps": 0.5}, "norm_eps must be 1e-05"),
    ],
)
def test_settings_of_ours_without_a_counterpart_are_refused(kind, changes, words):
    with pytest.raises(ValueError, match=words):
        to_transformers(kind(TransformerConfig(**{**SIZES, **changes})))


def test_a_masked_head_without_transform_and_other_kinds_are_refused():
    with pytest.raises(ValueError, match="transform must be True"):
        to_transformers(MaskedLanguageModel(TransformerConfig(**SIZES, **BERT), transform=False))
    roberta = TransformerConfig(**SIZES, **BERT, position_offset=2)
    with pytest.raises(ValueError, match="next_sentence must be False"):
        to_transformers(MaskedLanguageModel(roberta, next_sentence=True))
    with pytest.raises(ValueError, match="pad_token_id must be 1, position_offset - 1, got 0"):
        to_transformers(MaskedLanguageModel(roberta), pad_token_id=0)
    with pytest.raises(TypeError, match="LanguageModel, MaskedLanguageModel, Translator, got a Classifier"):
        to_transformers(Classifier(TransformerConfig(**SIZES)))


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("GPT-2", {"scale_attn_weights": False}, "scale_attn_weights must be True"),
        ("GPT-2", {"activation_function": "mish"}, "activation must be one of gelu, .*, got 'mish'"),
        ("Llama", {"attention_bias": True}, "attention_bias must be False"),
        ("Llama", {"mlp_bias": True}, "mlp_bias must be False"),
        ("Llama", {"hidden_act": "gelu"}, "hidden_act must be 'silu'"),
        ("Llama", {"head_dim": 8}, "head_dim must be 4 to have a counterpart, got 8"),
        ("Llama", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}}, "'linear'"),
        ("Llama", {"rope_theta": 7.0, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, "got 'dynamic'"),
        ("BERT", {"tie_word_embeddings": False}, "tie_word_embeddings must be True"),
        ("BERT", {"is_decoder": True}, "is_decoder must be False"),
        ("BERT", {"position_embedding_type": "relative_key"}, "position_embedding_type must be 'absolute'"),
        ("RoBERTa", {"hidden_act": "relu"}, "hidden_act must be 'gelu'"),
        ("BART", {"decoder_layers": 1}, "decoder_layers must be 2 to have a counterpart, got 1"),
        ("Marian", {"decoder_ffn_dim": 3}, "decoder_ffn_dim must be 7"),
        ("GPT-2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx must be False"),
        ("GPT-2", {"add_cross_attention": True}, "add_cross_attention must be False"),
        ("Marian", {"share_encoder_decoder_embeddings": False}, "decoder_embeddings must be True"),
        ("BART", {"decoder_attention_heads": 5}, "decoder_attention_heads must be 2"),
    ],
)
def test_settings_of_theirs_without_a_counterpart_are_refused(name, changes, words):
    with pytest.raises(ValueError, match=words):
        from_transformers(build(name, **changes))


def test_a_folder_in_half_precision_is_computed_in_single(tmp_path):
    build("GPT-2").half().save_pretrained(tmp_path)
    assert {parameter.dtype for parameter in from_transformers(tmp_path).parameters()} == {torch.float32}


def test_folders_of_other_models_are_refused_although_a_head_is_tied(tmp_path):
    for kind in ("GPT2ForTokenClassification", "GPT2Model"):
        getattr(transformers, kind)(transformers.GPT2Config(**GPT2_SIZES)).save_pretrained(tmp_path / kind)
    with pytest.raises(ValueError, match="must hold a GPT2LMHeadModel, got GPT2ForTokenClassification"):
        from_transformers(tmp_path / "GPT2ForTokenClassification")
    assert isinstance(from_transformers(tmp_path / "GPT2Model"), LanguageModel)


def test_other_models_are_refused():
    with pytest.raises(TypeError, match="must be one of GPT2LMHeadModel, .*, got a GPT2Model"):
        from_transformers(transformers.GPT2Model(transformers.GPT2Config(**GPT2_SIZES)))
    with pytest.raises(ValueError, match="model_type must be one of gpt2, .*, got 't5'"):
        config_from_transformers(transformers.T5Config())


def test_the_settings_of_gpt2_are_those_of_gpt2():
    assert from_transformers(build("GPT-2")).config == TransformerConfig(
        **{**SIZES, "n_layers": 2, "n_heads": 2}, **GPT2, dropout=0.1
    )
