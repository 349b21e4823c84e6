"""The task of two questions: what one head cannot do, whatever its weights, and where its bound lies."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from tinytx_course.labs.lesson_04 import BACK, N_POSITIONS, all_rows, answers_to, examine


def test_all_rows_are_there_and_pairs_are_balanced_at_every_position():
    bits = all_rows()
    assert bits.unique(dim=0).shape == (256, N_POSITIONS)
    right = answers_to(bits)
    for t in range(N_POSITIONS):
        assert torch.equal(right[:, t, 0], bits[:, t - BACK[0]])
        assert torch.equal(right[:, t, 1], bits[:, t - BACK[1]])
        assert (2 * right[:, t, 0] + right[:, t, 1]).bincount().tolist() == [64] * 4


class AnyHead(torch.nn.Module):
    """One head with weights drawn for each row, whatever computes them; two values, and a linear readout."""

    def __init__(self, width, size):
        super().__init__()
        self.size = size
        self.value, self.readout = torch.nn.Embedding(2, width), torch.nn.Linear(width, 2)

    def forward(self, bits):
        scores = self.size * torch.randn(len(bits), N_POSITIONS, N_POSITIONS, dtype=torch.float64)
        return self.readout(scores.softmax(-1) @ self.value(bits))


@given(
    seed=st.integers(0, 10**6), width=st.sampled_from([1, 2, 7, 40]), size=st.sampled_from([0.3, 3.0, 30.0])
)
def test_one_head_never_gives_all_four_pairs_whatever_its_weights(seed, width, size):
    torch.manual_seed(seed)
    exam = examine(AnyHead(width, size).double())  # so that rounding does not bend the segment
    assert exam.pairs_given <= 3
    assert exam.right <= 0.75


class ByHand(torch.nn.Module):
    """Weights on the two positions asked about, set by hand, and a cut for each answer."""

    def __init__(self, shares, cuts):
        super().__init__()
        self.shares, self.cuts = shares, cuts

    def forward(self, bits):
        lam = sum(share * bits.roll(back, dims=1) for share, back in zip(self.shares, BACK, strict=True))
        return torch.stack([lam - cut for cut in self.cuts], dim=-1)


def test_three_quarters_are_reached_by_hand():
    exam = examine(ByHand(shares=(2 / 3, 1 / 3), cuts=(1 / 2, 1 / 6)))
    assert (exam.right, exam.pairs_given) == (0.75, 3)
