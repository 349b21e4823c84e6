"""Kept keys and values: equal to reading the whole prefix again, rows in any order."""

import pytest
import torch
from torch.testing import assert_close

from tinytx.model import TransformerConfig, Translator
from tinytx.model.cache import KeyValues

N, K, S, T = 3, 2, 5, 7


@pytest.mark.parametrize("norm", ["first", "last"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])
def test_steps_give_what_the_whole_prefix_gives(norm, positions):
    config = TransformerConfig(
        vocab_size=11, d_model=12, n_heads=3, n_layers=2, d_ff=5, max_len=9, norm=norm, positions=positions
    )
    model = Translator(config).double().eval()
    src_ids = torch.randint(11, (N, S))
    real = torch.arange(S) < torch.tensor([[5], [3], [1]])
    tgt_ids = torch.randint(11, (N * K, T))
    memory = model.encode(src_ids, real)
    whole = model.decoder(
        tgt_ids, memory.repeat_interleave(K, 0), memory_padding_mask=real.repeat_interleave(K, 0)
    )
    cache = model.decoder.begin(memory, real, rows_per_source=K)
    for t in range(T):
        assert cache.length == t
        assert_close(model.decoder.step(tgt_ids[:, t : t + 1], cache)[:, 0], whole[:, t])


def test_rows_go_on_in_another_order_and_sources_may_leave():
    config = TransformerConfig(vocab_size=11, d_model=12, n_heads=3, n_layers=2, d_ff=5, max_len=9)
    model = Translator(config).double().eval()
    memory, real = model.encode(torch.randint(11, (N, S))), torch.ones(N, S, dtype=torch.bool)
    tgt_ids = torch.randint(11, (N * K, 3))
    cache = model.decoder.begin(memory, real, rows_per_source=K)
    for t in range(3):
        model.decoder.step(tgt_ids[:, t : t + 1], cache)
    # Source 0 swaps its rows, source 1 leaves, source 2 goes on with one of its rows twice.
    rows = torch.tensor([1, 0, 5, 5])
    cache.select(rows)
    new_ids = torch.randint(11, (4, 1))
    stepped = model.decoder.step(new_ids, cache)
    longer = torch.cat([tgt_ids[rows], new_ids], dim=1)
    whole = model.decoder(longer, memory[[0, 2]].repeat_interleave(K, 0))
    assert_close(stepped[:, 0], whole[:, -1])


def test_there_is_room_for_so_many_tokens_only():
    kept = KeyValues(1, 1, 2, 3, torch.zeros(1))
    for _ in range(3):
        kept.append(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 2))
    with pytest.raises(ValueError, match="at most max_len=3 tokens"):
        kept.append(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 2))
