"""The models of the ladder differ in how they mix tokens, and in nothing else."""

import pytest
import torch
from torch.testing import assert_close

from tinytx.counting import count_parameters
from tinytx_course.labs.ladder import (
    MIXERS,
    LadderRecipe,
    build_model,
    nats_per_token,
    next_token_loss,
    train_model,
)

ROWS = [[2, 5, 6, 7, 3], [2, 8, 3], [2, 9, 5, 11, 6, 7, 3]]


@pytest.mark.parametrize("kind", MIXERS)
def test_future_tokens_move_no_past_logit_and_every_layer_hears_the_past(kind):
    model = build_model(kind, vocab_size=13, max_len=11)
    ids = torch.randint(13, (2, 7))
    changed = ids.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 13
    assert_close(model(ids)[:, :4], model(changed)[:, :4])
    moved = (model(ids) - model(changed)).abs().amax(dim=-1)
    assert (moved[:, 4:] > 0).all()


def test_all_kinds_have_nearly_the_same_number_of_parameters():
    counts = {kind: count_parameters(build_model(kind, 13, 11)) for kind in MIXERS}
    assert max(counts.values()) - min(counts.values()) < 0.01 * min(counts.values()), counts
    with pytest.raises(ValueError, match="got 'LSTM'"):
        build_model("LSTM", 13, 11)


@pytest.mark.parametrize("kind", MIXERS)
def test_a_model_learns_its_rows_by_heart_and_seeds_repeat(kind):
    recipe = LadderRecipe(lr=1e-2, n_steps=60, tokens_per_batch=30)
    losses = []
    for _ in range(2):
        model = build_model(kind, 13, 11, seed=1)
        losses.append(train_model(model, ROWS, recipe, pad_id=0, seed=1))
    assert losses[0] == losses[1] and len(losses[0]) == 60
    assert losses[0][-1] < 0.5 < 2 < losses[0][0]


def test_the_loss_is_that_of_all_tokens_one_by_one():
    model = build_model("GRU", 13, 11)
    nats = [-model(torch.tensor([row[:-1]]))[0].log_softmax(-1)[range(len(row) - 1), row[1:]] for row in ROWS]
    expected = torch.cat(nats).mean().item()
    assert nats_per_token(model, ROWS, pad_id=0) == pytest.approx(expected, rel=1e-5)
    assert next_token_loss(model, ROWS, 0).item() == pytest.approx(expected, rel=1e-5)
