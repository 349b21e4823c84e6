"""Windows of one long text: nothing is lost, nothing counted twice, nothing seen that comes later."""

import pytest
import torch
import torch.nn.functional as F

from benchmarks.speedrun import StreamObjective, stream_nats
from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import LanguageModel

N, V = 131, 7


@pytest.fixture(scope="module")
def ids():
    return torch.randint(V, (N,), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    return LanguageModel(
        TransformerConfig(vocab_size=V, d_model=12, n_heads=3, n_layers=2, d_ff=20, positions="rotary")
    ).eval()


class Previous(torch.nn.Module):
    """Knows nothing but the token before: its surprise does not depend on how the text is cut."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(V, V, generator=torch.Generator().manual_seed(2)))

    def forward(self, ids):
        return self.table[ids]


def test_a_pass_reads_no_place_twice_and_nearly_all(ids):
    objective = StreamObjective(ids, 8)
    for epoch in range(5):
        batches = objective.epoch_batches(seed=3, epoch=epoch, tokens_per_batch=24)
        starts = [start for batch in batches for start in batch]
        read = [place for start in starts for place in range(start, start + 8)]
        assert len(set(read)) == len(read) and max(read) < N - 1
        assert len(read) > N - 8 - 24 - 8
        assert {len(batch) for batch in batches} == {3}
    one, other = (objective.epoch_batches(seed=3, epoch=epoch, tokens_per_batch=24) for epoch in (0, 1))
    assert one == objective.epoch_batches(seed=3, epoch=0, tokens_per_batch=24) != other


def test_targets_are_the_next_tokens(ids):
    inputs, targets = StreamObjective(ids, 5).batch([0, 17])
    assert inputs.tolist() == [ids[0:5].tolist(), ids[17:22].tolist()]
    assert targets.tolist() == [ids[1:6].tolist(), ids[18:23].tolist()]


def test_the_loss_is_that_of_the_logits_and_its_parts_add_up(ids, model):
    objective = StreamObjective(ids, 11)
    batch = [3, 40, 71]
    inputs, targets = objective.batch(batch)
    expected = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    torch.testing.assert_close(objective.loss(model, batch), expected)
    torch.testing.assert_close(objective.loss(_OnlyLogits(model), batch), expected)
    parts = objective.loss(model, batch[:1], batch) + objective.loss(model, batch[1:], batch)
    torch.testing.assert_close(parts, expected)


class _OnlyLogits(torch.nn.Module):
    def __init__(self, model) -> None:
        super().__init__()
        self.inner = model

    def forward(self, ids):
        return self.inner(ids)


@pytest.mark.parametrize(("seq_len", "stride"), [(10, 10), (10, 5), (10, 3), (10, 1), (130, 130), (500, 7)])
def test_every_token_is_judged_once_however_the_text_is_cut(ids, seq_len, stride):
    bigram = Previous()
    expected = F.cross_entropy(bigram(ids[:-1]), ids[1:], reduction="none")
    found = stream_nats(bigram, ids, seq_len, stride=stride, rows_per_batch=4)
    torch.testing.assert_close(found, expected.detach())


def test_a_token_is_judged_with_as_much_before_it_as_promised(ids, model):
    seq_len, stride = 12, 5
    found = stream_nats(model, ids, seq_len, stride=stride)
    for place in (1, 11, 12, 60, 100):  # a window begins at a multiple of the stride
        first = 0 if place <= seq_len else stride * -((place - seq_len) // -stride)
        alone = model(ids[None, first:place])[0, -1].log_softmax(-1)[ids[place]]
        torch.testing.assert_close(found[place - 1], -alone.detach())
        assert place - first >= min(place, seq_len - stride)


def test_sizes_are_checked(ids):
    with pytest.raises(ValueError, match="seq_len must be from 1 to 65, half of the text, got 66"):
        StreamObjective(ids, 66)
    with pytest.raises(ValueError, match="stride must be from 1 to 8, the window, got 9"):
        stream_nats(Previous(), ids, 8, stride=9)
