"""No model computes with a tensor of the CPU where its weights are elsewhere; no other device is needed."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tinytx import fast
from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.transformer import LanguageModel

SIZES = {"vocab_size": 23, "d_model": 12, "n_heads": 6, "n_layers": 1, "d_ff": 14, "max_len": 11}
ELSEWHERE = "meta"  # weights without numbers: operations know the device of each operand, and refuse two
VARIANTS = [
    *({"positions": kind} for kind in ("sinusoidal", "learned", "rotary", "alibi", "none")),
    *({"causal": causal, "norm": norm} for causal in (True, False) for norm in ("first", "last")),
    {"activation": "swiglu", "norm_kind": "rms", "n_kv_heads": 2, "positions": "rotary"},
    {"dropout": 0.5, "tie_embeddings": True, "embed_norm": True},
]
KINDS = (LanguageModel, MaskedLanguageModel, Classifier, Translator)


def ids(n):
    return torch.zeros(3, n, dtype=torch.long, device=ELSEWHERE)


@pytest.mark.parametrize("fused", [(), (ELSEWHERE,)], ids=["formula", "fused"])
@pytest.mark.parametrize(
    ("kind", "padded"), [(LanguageModel, False), *((kind, True) for kind in KINDS)], ids=str
)
@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_forward_and_backward_stay_where_the_weights_are(monkeypatch, kind, changes, padded, fused):
    monkeypatch.setattr(fast, "FUSED", fused)
    if kind is MaskedLanguageModel:
        changes = changes | {"causal": False}
    config = TransformerConfig(**SIZES).replace(**changes)
    model = (kind(config, 3) if kind is Classifier else kind(config)).to(ELSEWHERE)
    with FakeTensorMode(allow_non_fake_inputs=True):
        mask = torch.ones(3, 7, dtype=torch.bool, device=ELSEWHERE) if padded else None
        output = model(ids(7), ids(5), mask) if kind is Translator else model(ids(7), mask)
        output.sum().backward()
    assert output.device.type == ELSEWHERE


def test_a_tensor_that_stays_behind_is_found():
    model = LanguageModel(TransformerConfig(**SIZES)).to(ELSEWHERE)
    with FakeTensorMode(allow_non_fake_inputs=True), pytest.raises(RuntimeError, match="same device"):
        model(ids(7), torch.ones(3, 7, dtype=torch.bool))
