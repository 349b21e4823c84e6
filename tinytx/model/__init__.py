"""The transformer. Knows nothing of text: token ids come in, vectors and scores go out.

config       settings, checked; presets by name
masks        who may look at whom
positions    order told by vectors that are added: sinusoidal, learned
rotary       order told by turning queries and keys
alibi        order told by lowering the scores of what is far away
attention    attention, written out and fused
multihead    attention with many heads
blocks       attention and feed-forward with their norms
body         embeddings, positions and a stack of blocks
transformer  a body with a head: language model, classifier
masked       a body that fills blanks, with BERT's heads
decoder      a stack of blocks that also looks at another sequence
cache        keys and values kept from token to token
stepper      reading token by token; fewrows: linear maps of a few rows; asbuilt: is a model as configured?
interop/     weights to and from the transformers package, family by family
dropout      dropout that costs little on a CPU
translator   encoder and decoder together
terms        rows and tables of a count
counting     how many parameters, by closed form and by counting
costs        operations and memory, by closed form: cost_terms, costs; layer_costs for single layers
meters       operations and kept memory, by counting; dependence: who waits for whom
baselines    recurrent and convolutional layers to compare with
diagnosis    what somebody got wrong who counts them differently, by its list of misconceptions
"""

from tinytx.model.alibi import AlibiPositions, alibi_bias, alibi_slopes
from tinytx.model.attention import attention, attention_weights, fused_attention
from tinytx.model.baselines import ConvolutionLayer, GRULayer, RecurrentLayer
from tinytx.model.blocks import Block, BlockTrace, FeedForward
from tinytx.model.body import Trace, TransformerBody
from tinytx.model.config import PRESETS, TransformerConfig
from tinytx.model.costs import CostTable, cost_table
from tinytx.model.counting import (
    ParameterRow,
    ParameterTable,
    build_empty,
    count_parameters,
    parameter_table,
)
from tinytx.model.decoder import DecoderBlock, DecoderBlockTrace, DecoderTrace, TransformerDecoder
from tinytx.model.diagnosis import Diagnosis, diagnose_count
from tinytx.model.layer_costs import LayerCost, layer_cost
from tinytx.model.masked import MaskedHead, MaskedLanguageModel, NextSentenceHead
from tinytx.model.masks import causal_mask, combine_masks, over_keys, padding_mask
from tinytx.model.multihead import AttentionTrace, MultiHeadAttention
from tinytx.model.positions import (
    LearnedPositions,
    SinusoidalPositions,
    shift_matrix,
    sinusoidal_positions,
)
from tinytx.model.rotary import RotaryPositions, rotate_by_position
from tinytx.model.transformer import Classifier, LanguageModel, pool
from tinytx.model.translator import Translator, TranslatorTrace

__all__ = [
    "PRESETS",
    "AlibiPositions",
    "AttentionTrace",
    "Block",
    "BlockTrace",
    "Classifier",
    "ConvolutionLayer",
    "CostTable",
    "DecoderBlock",
    "DecoderBlockTrace",
    "DecoderTrace",
    "Diagnosis",
    "FeedForward",
    "GRULayer",
    "LanguageModel",
    "LayerCost",
    "LearnedPositions",
    "MaskedHead",
    "MaskedLanguageModel",
    "MultiHeadAttention",
    "NextSentenceHead",
    "ParameterRow",
    "ParameterTable",
    "RecurrentLayer",
    "RotaryPositions",
    "SinusoidalPositions",
    "Trace",
    "TransformerBody",
    "TransformerConfig",
    "TransformerDecoder",
    "Translator",
    "TranslatorTrace",
    "alibi_bias",
    "alibi_slopes",
    "attention",
    "attention_weights",
    "build_empty",
    "causal_mask",
    "combine_masks",
    "cost_table",
    "count_parameters",
    "diagnose_count",
    "fused_attention",
    "layer_cost",
    "over_keys",
    "padding_mask",
    "parameter_table",
    "pool",
    "rotate_by_position",
    "shift_matrix",
    "sinusoidal_positions",
]
