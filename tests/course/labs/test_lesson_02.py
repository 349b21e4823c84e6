"""The training loop of lesson 02."""

import torch
from torch.testing import assert_close

from tinytx_course.labs import lesson_02 as lab


def test_a_model_learns_what_is_to_be_learned():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(3, 5), torch.nn.Linear(5, 3))
    ids = torch.tensor([[0, 1, 2, 0]])
    losses = lab.train(model, lambda: (ids, torch.tensor([[1, 2, 0, -100]])), n_steps=100, lr=0.1)
    assert losses[0] > 0.8 and losses[-1] < 0.1
    assert_close(model(ids).argmax(dim=-1)[:, :3], torch.tensor([[1, 2, 0]]))
