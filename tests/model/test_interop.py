"""The same weights give the same outputs in `transformers` and here, in both directions."""

import pytest
import torch

from tinytx.model import LanguageModel, MaskedLanguageModel, TransformerConfig
from tinytx.model.interop import BERT, from_transformers, to_transformers

transformers = pytest.importorskip("transformers", reason="the package transformers is not installed")

SIZES = {"vocab_size": 13, "d_model": 10, "n_heads": 5, "n_layers": 3, "d_ff": 7, "max_len": 11}
CONFIG = TransformerConfig(**SIZES, **BERT, n_segments=2, norm_eps=1e-12, dropout=0.1)
IDS = torch.randint(0, 13, (2, 9), generator=torch.Generator().manual_seed(1))
SEGMENTS = torch.tensor([[0] * 4 + [1] * 5, [0] * 7 + [1] * 2])
REAL = torch.tensor([[True] * 9, [True] * 6 + [False] * 3])


def random_weights(model):
    """Every number random, biases and norms too: a weight in the wrong place shows."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    return model.eval()


def outputs_of(theirs):
    with torch.no_grad():
        out = theirs(input_ids=IDS, attention_mask=REAL.long(), token_type_ids=SEGMENTS)
    follows = getattr(out, "seq_relationship_logits", None)
    return (out.logits if follows is None else out.prediction_logits)[REAL], follows


def outputs_of_ours(model):
    with torch.no_grad():
        follows = None if model.next_head is None else model.follows(IDS, REAL, SEGMENTS)
        return model(IDS, REAL, SEGMENTS)[REAL], follows


@pytest.mark.parametrize("next_sentence", [False, True])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_our_weights_give_the_same_outputs_there(next_sentence, activation):
    model = random_weights(
        MaskedLanguageModel(CONFIG.replace(activation=activation), next_sentence=next_sentence)
    )
    theirs = to_transformers(model)
    assert isinstance(theirs, transformers.BertForPreTraining) is next_sentence
    torch.testing.assert_close(outputs_of(theirs), outputs_of_ours(model), atol=1e-5, rtol=0)
    assert sum(p.numel() for p in theirs.parameters()) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("kind", ["BertForMaskedLM", "BertForPreTraining"])
def test_their_weights_give_the_same_outputs_here_from_memory_and_from_a_folder(kind, tmp_path):
    theirs = random_weights(
        getattr(transformers, kind)(
            transformers.BertConfig(
                vocab_size=13,
                hidden_size=10,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=9,
                max_position_embeddings=12,
            )
        )
    )
    model = from_transformers(theirs)
    torch.testing.assert_close(outputs_of_ours(model), outputs_of(theirs), atol=1e-5, rtol=0)
    theirs.save_pretrained(tmp_path)
    again = from_transformers(tmp_path)
    torch.testing.assert_close(again.state_dict(), model.state_dict(), rtol=0, atol=0)


def test_there_and_back_nothing_changes():
    model = random_weights(MaskedLanguageModel(CONFIG, next_sentence=True))
    again = from_transformers(to_transformers(model))
    assert again.config == model.config
    torch.testing.assert_close(again.state_dict(), model.state_dict(), rtol=0, atol=0)
    assert again.head.output.weight is again.body.token_embed.weight


def test_what_is_no_bert_is_refused(tmp_path):
    for change, words in (
        ({"norm": "first"}, "norm must be 'last' to be a BERT, got 'first'"),
        ({"positions": "sinusoidal"}, "positions must be 'learned'"),
        ({"n_segments": 0}, "n_segments must be 1 or more"),
    ):
        with pytest.raises(ValueError, match=words):
            to_transformers(MaskedLanguageModel(CONFIG.replace(**change)))
    with pytest.raises(ValueError, match="transform=False"):
        to_transformers(MaskedLanguageModel(CONFIG, transform=False))
    with pytest.raises(TypeError, match="must be a MaskedLanguageModel, got a LanguageModel"):
        to_transformers(LanguageModel(CONFIG))
    with pytest.raises(ValueError, match="an existing folder, got"):
        from_transformers(tmp_path / "nowhere")
    sizes = {"vocab_size": 11, "n_embd": 6, "n_layer": 1, "n_head": 3, "n_positions": 8}
    with pytest.raises(TypeError, match="got a GPT2LMHeadModel"):
        from_transformers(transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)))
