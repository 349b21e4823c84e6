"""The game of two questions: what one head cannot do, for any weights, and what two can."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tinytx.model.counting import count_parameters
from tinytx_course.labs.lesson_04 import BACK, N_PLACES, Asker, all_rows, answers_to, examine, train_asker


def test_all_rows_are_there_and_pairs_are_balanced_at_every_place():
    bits = all_rows()
    assert bits.unique(dim=0).shape == (256, N_PLACES)
    right = answers_to(bits)
    for t in range(N_PLACES):
        assert torch.equal(right[:, t, 0], bits[:, t - BACK[0]])
        assert torch.equal(right[:, t, 1], bits[:, t - BACK[1]])
        assert (2 * right[:, t, 0] + right[:, t, 1]).bincount().tolist() == [64] * 4


@given(
    seed=st.integers(0, 10**6),
    width=st.sampled_from([1, 2, 7, 40]),
    size=st.sampled_from([0.3, 3.0, 30.0]),
)
def test_one_head_never_gives_all_four_pairs_whatever_its_weights(seed, width, size):
    torch.manual_seed(seed)
    model = Asker(width, n_heads=1).double()  # so that rounding does not bend the segment
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(size * torch.randn_like(parameter))
    exam = examine(model)
    assert exam.pairs_given <= 3
    assert exam.right <= 0.75


class ByHand(torch.nn.Module):
    """Weights on the two places asked about, given by hand, and a cut for each answer."""

    def __init__(self, shares, cuts):
        super().__init__()
        self.shares, self.cuts = shares, cuts

    def forward(self, bits):
        lam = sum(share * bits.roll(back, dims=1) for share, back in zip(self.shares, BACK, strict=True))
        return torch.stack([lam - cut for cut in self.cuts], dim=-1)


def test_three_quarters_are_reached_by_hand():
    exam = examine(ByHand(shares=(2 / 3, 1 / 3), cuts=(1 / 2, 1 / 6)))
    assert (exam.right, exam.pairs_given) == (0.75, 3)


def test_heads_are_cut_from_the_same_parameters():
    assert count_parameters(Asker(16, 1)) == count_parameters(Asker(16, 2))


@pytest.mark.proof
def test_two_heads_learn_what_one_cannot_and_a_hidden_layer_helps_the_one():
    assert examine(train_asker(0, 400, width=16, n_heads=2)).right > 0.9
    assert examine(train_asker(0, 400, width=16, n_heads=1)).right <= 0.75
    assert examine(train_asker(1, 400, width=16, n_heads=1, hidden=32)).pairs_given == 4


def test_equal_seeds_give_equal_models():
    first, second, other = (train_asker(seed, 3, width=4, n_heads=2) for seed in (5, 5, 6))
    assert torch.equal(first(all_rows()), second(all_rows()))
    assert not torch.equal(first(all_rows()), other(all_rows()))
