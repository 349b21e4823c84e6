"""The game of lesson 02: what its answers are, and how maps are compared with the known ones."""

import torch
from torch.testing import assert_close

from tinytx_course.labs import lesson_02 as lab


def test_the_known_maps_read_the_two_letters_of_each_answer():
    letters, pairs = lab.letter_game(7)
    two_back, first = (known @ letters.T.float() for known in lab.known_maps())
    read = (lab.N_LETTERS * two_back + first).T.long()
    assert torch.equal(read[:, lab.BACK :], pairs[:, lab.BACK :])
    assert (pairs[:, : lab.BACK] == lab.IGNORED).all()


def test_the_fit_of_the_known_maps_is_one_in_either_order():
    known = lab.known_maps()
    assert lab.fit(known) == ([0, 1], [1.0, 1.0]) and lab.fit(known.flip(0)) == ([1, 0], [1.0, 1.0])


def test_a_model_learns_what_is_to_be_learned():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(3, 5), torch.nn.Linear(5, 3))
    ids = torch.tensor([[0, 1, 2, 0]])
    losses = lab.train(model, lambda: (ids, torch.tensor([[1, 2, 0, -100]])), n_steps=100, lr=0.1)
    assert losses[0] > 0.8 and losses[-1] < 0.1
    assert_close(model(ids).argmax(dim=-1)[:, :3], torch.tensor([[1, 2, 0]]))
