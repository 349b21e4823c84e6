"""Torch's modules with our weights: equal to ours, masks of the opposite sign, what is refused."""

import pytest
import torch
from torch.testing import assert_close

from tinytx.model.attention import MultiHeadAttention
from tinytx.model.config import TransformerConfig
from tinytx.model.encoder_decoder import Translator
from tinytx_course.labs.lesson_11 import TorchTranslator, torch_attention

CONFIG = TransformerConfig(
    vocab_size=11, d_model=6, n_heads=3, n_layers=2, d_ff=5, max_len=13, tie_embeddings=True
)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("norm", ["first", "last"])
def test_the_twin_gives_what_ours_gives(norm):
    ours = Translator(CONFIG.replace(norm=norm)).double().eval()
    with torch.no_grad():
        for parameter in ours.parameters():  # biases of zero would hide one that is not copied
            parameter.add_(torch.randn_like(parameter) * 0.3)
    src_ids, tgt_ids = torch.randint(1, 11, (3, 7)), torch.randint(1, 11, (3, 5))
    real = torch.arange(7) < torch.tensor([[7], [4], [1]])
    theirs = TorchTranslator(ours)
    assert_close(theirs(src_ids, tgt_ids, real), ours(src_ids, tgt_ids, real), rtol=0, atol=1e-9)
    with torch.no_grad():
        ours.encoder.token_embed.weight.mul_(2)
    assert not torch.equal(theirs.matrix, ours.head.weight)  # a copy: the twin stays as it was


def test_attention_has_the_opposite_sign_of_masks():
    ours = MultiHeadAttention(d_model=6, n_heads=3)
    x, memory = torch.randn(2, 3, 6), torch.randn(2, 5, 6)
    mask = torch.rand(3, 5) < 0.5
    mask[:, 0] = True
    output, _ = torch_attention(ours)(x, memory, memory, attn_mask=~mask)
    assert_close(output, ours(x, memory, mask))


@pytest.mark.parametrize("changes", [{"tie_embeddings": False}, {"positions": "rotary"}])
def test_what_torch_has_not_is_refused(changes):
    with pytest.raises(ValueError, match="needs tie_embeddings=True and positions='sinusoidal', got"):
        TorchTranslator(Translator(CONFIG.replace(**changes)))
