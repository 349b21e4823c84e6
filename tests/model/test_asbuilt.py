"""Models that are what their configuration says, and models that something was done to."""

import pytest
from torch import nn

from tinytx.model.config import TransformerConfig
from tinytx.model.encoder_decoder import Translator
from tinytx.model.kv_cache import is_as_built
from tinytx.model.positions import RotaryPositions
from tinytx.model.transformer import Classifier, LanguageModel

CONFIG = TransformerConfig(vocab_size=7, d_model=6, n_heads=3, n_layers=2, d_ff=5, max_len=9)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])
@pytest.mark.parametrize("kind", [LanguageModel, Translator])
def test_models_are_as_built_with_any_weights(kind, positions):
    model = kind(CONFIG.replace(positions=positions))
    assert is_as_built(model) and is_as_built(model.double().train())


def swap(model):
    model.body.blocks[1].attn.positions = RotaryPositions(9, 2)


def leave_out(model):
    del model.body.blocks[1]


def put_in(model):
    model.body.pos_embed = nn.Identity()


def hook(model):
    model.body.blocks[0].ff.register_forward_hook(lambda module, given, made: made * 0)


def replace_forward(model):
    model.body.final_norm.forward = lambda x: x


@pytest.mark.parametrize("change", [swap, leave_out, put_in, hook, replace_forward])
def test_what_was_changed_is_noticed(change):
    model = LanguageModel(CONFIG)
    change(model)
    assert not is_as_built(model)


def test_other_kinds_are_not():
    class Other(LanguageModel):
        pass

    assert not is_as_built(Other(CONFIG)) and not is_as_built(Classifier(CONFIG))
