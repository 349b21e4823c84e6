"""The KV cache: the logits that reading the whole row gives, for every model, in any order of rows."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.testing import assert_close

from tests.tinytx.against_torch import shaken
from tinytx.attention import record_attention
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.generate import Sampling, continue_rows
from tinytx.kv_cache import Cache, KeyValues
from tinytx.transformer import LanguageModel

N, S, T = 3, 5, 7
R, H, K = 5, 2, 3
POSITIONS = ["sinusoidal", "learned", "rotary", "alibi", "none"]


def make_config(**changes):
    sizes = {"vocab_size": 11, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 5, "max_len": 9}
    return TransformerConfig(**sizes | changes)


@pytest.mark.parametrize("splits", [[1] * 9, [4, 1, 1, 3]])
@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("changes", [{}, {"n_heads": 6, "n_kv_heads": 2}], ids=["heads", "grouped"])
@torch.no_grad()
def test_a_language_model_read_in_parts(positions, norm, splits, changes):
    model = shaken(LanguageModel(make_config(positions=positions, norm=norm, **changes)))
    ids = torch.randint(11, (4, 9))
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-5), (torch.bfloat16, 0.1)):
        model.to(dtype)
        cache = Cache(2, 9)
        read = torch.cat([model(part, cache=cache) for part in ids.split(splits, dim=1)], dim=1)
        assert_close(read, model(ids), rtol=tolerance, atol=tolerance)


GROUPED = {"n_heads": 6, "n_kv_heads": 2, "activation": "swiglu", "norm_kind": "rms", "n_experts": 3}


@pytest.mark.parametrize("changes", [{}, GROUPED])
@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])
@pytest.mark.parametrize("lengths", [(5, 3, 1), (5, 0, 5)])  # a source without any real token
@torch.no_grad()
def test_a_decoder_read_in_steps(norm, positions, lengths, changes):
    model = shaken(Translator(make_config(norm=norm, positions=positions, **changes)).double())
    memory, tgt_ids = torch.randn(N, S, 12, dtype=torch.double), torch.randint(11, (N, T))
    real, cache = torch.arange(S) < torch.tensor(lengths)[:, None], Cache(2, T)
    whole = model.decoder(tgt_ids, memory, None, real)
    for t in range(T):
        assert_close(model.decoder(tgt_ids[:, t : t + 1], memory, None, real, cache), whole[:, t : t + 1])


@torch.no_grad()
def test_keys_of_grouped_queries_are_stored_once_a_group_and_those_of_a_memory_are_computed_once():
    model = Translator(make_config(n_heads=6, n_kv_heads=2)).eval()
    memory, cache, calls = torch.randn(R, S, 12), Cache(2, 9), []
    model.decoder.blocks[1].cross_attn.k_proj.register_forward_hook(lambda *given: calls.append(1))
    for _ in range(3):
        model.decoder(torch.randint(11, (R, 1)), memory, cache=cache)
    assert [each.all()[0].shape for each in cache.own] == [(R, 2, 3, 2)] * 2
    assert [each.all()[0].shape for each in cache.memory] == [(R, 2, S, 2)] * 2
    assert len(calls) == 1


def test_what_is_equal_before_start_is_not_copied_and_a_gpu_waits_once_for_all_layers():
    new = torch.randn(3, 2, R, H, 4, K)  # of three layers
    new[:, :, :, :, :2] = new[:, :, :1, :, :2]  # all rows begin alike
    cache, unchanged = Cache(3, 5), []
    for own, layer in zip(cache.own, new, strict=True):
        own.append(*layer)
        unchanged.append(own.all()[0][:, :, :2])
        unchanged[-1][:] = 7.0  # what is equal may be anything
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        cache.select(torch.tensor([1, 1, 4, 3, 0]), start=2)
    assert {one.key: one.count for one in seen.key_averages()}["aten::nonzero"] == 1
    for own, layer, begun in zip(cache.own, new, unchanged, strict=True):
        assert_close(torch.stack(own.all())[:, :, :, 2:], layer[:, [1, 1, 4, 3, 0], :, 2:])
        assert (begun == 7.0).all()


def test_what_a_cache_cannot_hold_is_refused():
    ids, stored, new = torch.zeros(1, 2, dtype=torch.long), KeyValues(7), torch.randn(2, R, H, 4, K)
    with pytest.raises(ValueError, match="an empty one"):
        stored.all()
    stored.append(*new)
    with pytest.raises(ValueError, match="max_len=7 tokens, got 8"):
        stored.append(*new)
    assert stored.length == 4
    with pytest.raises(ValueError, match="causal=False"):
        LanguageModel(make_config(causal=False))(ids, cache=Cache(2, 9))
    with pytest.raises(ValueError, match="padding_mask"):
        LanguageModel(make_config())(ids, ids == 0, cache=Cache(2, 9))
    model, cache = LanguageModel(make_config(positions="none")).eval(), Cache(2, 99)
    with torch.no_grad():
        model(ids.expand(1, 2).repeat(1, 4), cache=cache)
        with pytest.raises(ValueError, match="max_len=9 token ids, got 10"):
            model(ids, cache=cache)


def test_generation_runs_the_modules_that_train():
    """So a hook sees every new token, its answer counts, and what is recorded is what was computed."""
    model, sampling = shaken(LanguageModel(make_config())), Sampling(max_new_tokens=5, top_k=1)
    prefixes, seen = [[2, 7, 8], [2, 9, 4]], []
    before = continue_rows(model, prefixes, sampling, eos_id=-1)
    hook = model.body.blocks[1].register_forward_hook(lambda block, x, y: seen.append(y.shape[1]))
    with record_attention(model) as recorded:
        assert continue_rows(model, prefixes, sampling, eos_id=-1) == before
    assert seen == [3, 1, 1, 1, 1]
    assert [weights.shape[2:] for weights in recorded.values()] == [(1, 7)] * 2
    hook.remove()
    model.body.blocks[1].ff.register_forward_hook(lambda ff, x, y: -3 * y)
    changed = [continue_rows(model, prefixes, sampling, eos_id=-1, cached=c) for c in (True, False)]
    assert changed[0] == changed[1] != before
