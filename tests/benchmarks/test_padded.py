"""Fine-tuning contestants: the same reading, the same sizes, padding as stated."""

import pytest
import torch
from torch.testing import assert_close

from benchmarks import reviews
from benchmarks.report import OURS
from benchmarks.reviews import (
    ReviewsCase,
    bert_padded,
    bert_padded_to_its_batch,
    our_contestant,
    same_model_padded,
)
from tinytx.hf.convert import BERT, to_transformers
from tinytx.model.config import TransformerConfig
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.transformer import Classifier

SIZES = {"vocab_size": 19, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 10, "max_len": 11}


@pytest.fixture
def case():
    config = TransformerConfig(**SIZES, **BERT, n_segments=2)
    rows = tuple(tuple(range(4, 4 + n)) for n in (3, 5, 11, 2, 7, 3, 4, 9))
    return ReviewsCase(config, rows, (0, 1, 0, 1, 1, 0, 1, 0), "fp32", torch.device("cpu"))


def test_bert_with_our_weights_has_our_vectors(case):
    torch.manual_seed(0)
    ours = MaskedLanguageModel(case.config).eval()
    theirs, _ = reviews._bert(case)
    theirs.bert.load_state_dict(to_transformers(ours).bert.state_dict(), strict=False)
    token_ids = torch.randint(4, 19, (2, 7))
    real = torch.arange(7) < torch.tensor([[7], [4]])
    with torch.no_grad():
        its = theirs.eval().bert(token_ids, attention_mask=real.long()).last_hidden_state
    assert_close(ours.body(token_ids, real)[real], its[real], atol=1e-5, rtol=1e-4)


def test_the_counts_differ_by_the_pooler_alone(case):
    (ours,) = our_contestant(case).values()
    (theirs,) = bert_padded_to_its_batch(case).values()
    d = case.config.d_model
    assert theirs.details["n_params"] - ours.details["n_params"] == d * d + d


def test_padding_shares_by_hand(case):
    # An eighth of the rows is the first, with 3 ids; a quarter are two, with 3 and 5.
    (same,) = same_model_padded(case).values()
    assert same.details["n_texts"] == 1
    assert same.details["padding_share"] == pytest.approx(1 - 3 / 11)
    (own,) = bert_padded_to_its_batch(case).values()
    assert own.details["padding_share"] == pytest.approx(1 - 8 / 10)


def test_the_plain_loop_reads_the_same_whatever_the_padding(case):
    torch.manual_seed(0)
    model = Classifier(case.config, 2, "first")
    state = {name: value.clone() for name, value in model.state_dict().items()}
    losses = []
    for width in (None, 11):
        model.load_state_dict(state)
        losses.append(reviews.plain_epoch(model, model, case, [[0, 1], [2, 3]], width=width, bf16=False)())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_all_learn(case):
    tasks = {**our_contestant(case), **same_model_padded(case), **bert_padded(case)}
    assert OURS in tasks and len(tasks) == 4
    for name, contestant in tasks.items():
        losses = [contestant.task() for _ in range(40)]
        assert sum(losses[-5:]) < sum(losses[:5]), name
