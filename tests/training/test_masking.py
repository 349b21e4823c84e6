"""Which tokens are hidden, and what stands in their places: BERT's 15 %, 80, 10 and 10."""

import pytest
import torch

from tinytx.training.masking import Masking, mask_tokens

RULE = {"mask_id": 4, "special_ids": (0, 1, 2), "vocab_size": 30}
IDS = torch.randint(5, 30, (200, 500), generator=torch.Generator().manual_seed(3))
IDS[:, 0] = 2
IDS[:, -3:] = 0


def masked(seed=0, **changes):
    return mask_tokens(IDS, **{**RULE, **changes}, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("p", [0.15, 0.4])
def test_shares_are_those_of_the_paper(p):
    inputs, labels = masked(p=p)
    drawn = labels != -100
    n = IDS.numel() - 4 * 200

    def share_is(found, of, expected):
        spread = (expected * (1 - expected) / of) ** 0.5
        assert abs(found / of - expected) < 5 * spread

    share_is(drawn.sum().item(), n, p)
    n_drawn = drawn.sum().item()
    share_is((inputs[drawn] == 4).sum().item(), n_drawn, 0.8)
    # One exchanged token in 26 becomes itself again.
    changed = (inputs != IDS) & (inputs != 4)
    share_is(changed.sum().item(), n_drawn, 0.1 * 25 / 26)


def test_labels_hold_the_original_where_drawn_and_nothing_else_moves():
    before = IDS.clone()
    inputs, labels = masked()
    drawn = labels != -100
    assert (labels[drawn] == IDS[drawn]).all() and (inputs[~drawn] == IDS[~drawn]).all()
    assert (before == IDS).all()


def test_special_tokens_are_neither_drawn_nor_put_in():
    inputs, labels = masked(p=0.9)
    special = torch.isin(IDS, torch.tensor([0, 1, 2, 4]))
    assert (labels[special] == -100).all()
    assert not torch.isin(inputs[~special], torch.tensor([0, 1, 2])).any()


def test_whole_words_are_drawn_with_all_their_pieces():
    words = (torch.rand(IDS.shape, generator=torch.Generator().manual_seed(1)) < 0.4).flatten().cumsum(0)
    inputs, labels = masked(words=words.view(IDS.shape))
    drawn, ordinary = (labels != -100).flatten(), ~torch.isin(IDS, torch.tensor([0, 2])).flatten()
    n_pieces = torch.bincount(words[ordinary])
    n_drawn = torch.bincount(words[ordinary & drawn], minlength=len(n_pieces))
    assert ((n_drawn == 0) | (n_drawn == n_pieces)).all()
    assert abs((n_drawn > 0).sum() / (n_pieces > 0).sum() - 0.15) < 0.01
    assert (n_pieces > 1).sum() > 1000


def test_equal_generators_draw_alike_and_others_do_not():
    assert all(torch.equal(a, b) for a, b in zip(masked(1), masked(1), strict=True))
    assert not torch.equal(masked(1)[1], masked(2)[1])


def test_impossible_requests_are_refused():
    with pytest.raises(ValueError, match="p must lie between 0 and 1, got 1.5"):
        Masking(p=1.5)
    with pytest.raises(ValueError, match="must leave ids that are not special, got vocab_size=3"):
        mask_tokens(IDS, mask_id=2, special_ids=(0, 1), vocab_size=3)
