"""Token by token: the scores that reading the whole row gives, for every kind of model and in any order."""

import pytest
import torch
from torch.testing import assert_close

from tinytx.model.config import TransformerConfig
from tinytx.model.encoder_decoder import Translator
from tinytx.model.kv_cache import Sources, Stepper
from tinytx.model.transformer import LanguageModel

N, K, S, T = 3, 2, 5, 7
KINDS = ["sinusoidal", "learned", "rotary", "alibi", "none"]


def make_config(**changes):
    sizes = {"vocab_size": 11, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 5, "max_len": 9}
    return TransformerConfig(**sizes | changes)


def shaken(model):
    """Biases and norms that are not what they start with, so that each is seen to be used."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


@pytest.mark.parametrize("n_rows", [1, 4])
@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("positions", KINDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@torch.no_grad()
def test_a_language_model_read_in_steps(positions, norm, n_rows, dtype, tolerance):
    model = shaken(LanguageModel(make_config(positions=positions, norm=norm)).to(dtype))
    ids = torch.randint(11, (n_rows, 9))
    whole = model(ids)
    for start in (1, 4):  # of a prompt, read at once
        stepper = Stepper(model.body, model.head, n_rows=n_rows, max_len=9)
        assert_close(stepper.read(ids[:, :start]), whole[:, start - 1], rtol=tolerance, atol=tolerance)
        for t in range(start, 9):
            assert stepper.length == t
            assert_close(stepper.read(ids[:, t : t + 1]), whole[:, t], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "changes",
    [
        {"bias": False},
        {"tie_embeddings": True, "scale_embeddings": False},
        {"activation": "relu", "embed_norm": True, "n_segments": 2},
        {"activation": "silu", "positions": "learned", "position_offset": 2},
        {"activation": "gelu-tanh", "norm_eps": 0.1, "head_bias": False},
    ],
)
@torch.no_grad()
def test_every_setting_is_followed(changes):
    model = shaken(LanguageModel(make_config(**changes)).double())
    ids = torch.randint(11, (2, 6))
    stepper = Stepper(model.body, model.head, n_rows=2, max_len=6)
    stepped = torch.stack([stepper.read(ids[:, t : t + 1]) for t in range(6)], dim=1)
    assert_close(stepped, model(ids), rtol=0, atol=1e-10)


@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("positions", KINDS)
@torch.no_grad()
def test_a_decoder_read_in_steps(norm, positions):
    model = shaken(Translator(make_config(norm=norm, positions=positions)).double())
    src_ids, tgt_ids = torch.randint(11, (N, S)), torch.randint(11, (N * K, T))
    real = torch.arange(S) < torch.tensor([[5], [3], [1]])
    sources = Sources(model.encode(src_ids, real), real, K)
    stepper = Stepper(model.decoder, model.head, n_rows=N * K, max_len=T, sources=sources)
    whole = model(src_ids.repeat_interleave(K, 0), tgt_ids, real.repeat_interleave(K, 0))
    for t in range(T):
        assert_close(stepper.read(tgt_ids[:, t : t + 1]), whole[:, t])


@torch.no_grad()
def test_a_source_of_which_nothing_may_be_seen():
    model = shaken(Translator(make_config()).double())
    memory, real = torch.randn(2, S, 12, dtype=torch.double), torch.tensor([[True] * S, [False] * S])
    stepper = Stepper(model.decoder, model.head, n_rows=2, max_len=T, sources=Sources(memory, real))
    ids = torch.randint(11, (2, 1))
    assert_close(stepper.read(ids), model.decode(ids, memory, real)[:, 0])


@torch.no_grad()
def test_rows_go_on_in_another_order_and_sources_may_leave():
    model = shaken(Translator(make_config()).double())
    memory = model.encode(torch.randint(11, (N, S)))
    real = torch.arange(S) < torch.tensor([[5], [2], [3]])
    tgt_ids = torch.randint(11, (N * K, 3))
    sources = Sources(memory, real, K)
    stepper = Stepper(model.decoder, model.head, n_rows=N * K, max_len=9, sources=sources)
    stepper.read(tgt_ids)
    # Source 0 swaps its rows, source 1 leaves, source 2 goes on with one of its rows twice.
    rows = torch.tensor([1, 0, 5, 5])
    stepper.select(rows)
    new_ids = torch.randint(11, (4, 1))
    longer = torch.cat([tgt_ids[rows], new_ids], dim=1)
    left = [0, 0, 2, 2]
    assert_close(stepper.read(new_ids), model.decode(longer, memory[left], real[left])[:, -1])


def test_a_decoder_needs_sources():
    model = Translator(make_config())
    with pytest.raises(ValueError, match="sources must be given for a decoder"):
        Stepper(model.decoder, model.head, n_rows=1, max_len=5)
