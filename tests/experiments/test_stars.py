"""Star ratings: soft labels by hand, and a linear reader that tells good from bad."""

import numpy as np
import pytest
import torch

from experiments.transfer_data import ReviewSources
from experiments.transfer_encoders import LinearStars, StarsObjective, shares_below
from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import Classifier


def test_shares_are_balanced_and_rise_with_stars():
    stars = [0.5, 3, 3, 4, 5, 5, 5]
    shares = shares_below(stars)
    assert shares.mean() == pytest.approx(0.5)
    by_hand = [(sum(b < a for b in stars) + 0.5 * sum(b == a for b in stars)) / 7 for a in stars]
    assert shares.tolist() == pytest.approx(by_hand)


def test_loss_is_the_cross_entropy_against_the_shares():
    torch.manual_seed(0)
    config = TransformerConfig(vocab_size=11, d_model=6, n_heads=2, n_layers=1, d_ff=5, max_len=7)
    model = Classifier(config).eval()
    learning = StarsObjective([[7, 8], [9, 10, 7], [8]], [1.0, 5.0, 3.0], pad_id=0)
    shares = torch.tensor([1 / 6, 5 / 6, 1 / 2])
    log_probs = learning.logits(model, [0, 1, 2]).log_softmax(dim=1)
    expected = -(shares * log_probs[:, 1] + (1 - shares) * log_probs[:, 0]).mean()
    torch.testing.assert_close(learning.loss(model, [0, 1, 2]), expected)


def test_a_linear_reader_of_stars_tells_the_reviews_of_the_task_apart(data_dir, reviews):
    foretold = LinearStars(ReviewSources(data_dir).rated)(reviews.train.texts)
    assert foretold.shape == (120, 1)
    assert np.mean((foretold[:, 0] > 0) == np.asarray(reviews.train.labels)) > 0.9
