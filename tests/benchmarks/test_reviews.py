"""Fine-tuning candidates: the same vectors, the same sizes, padding as stated."""

import pytest
import torch
from torch.testing import assert_close

from benchmarks.peers import HuggingFaceBert, plain_loop
from benchmarks.reviews import BERT, ReviewsCase, bert_candidates, our_candidate, same_model_candidate
from tinytx.classifier import Classifier
from tinytx.config import TransformerConfig
from tinytx.masked_lm import MaskedLanguageModel
from tinytx_run.hf.convert import to_transformers

SIZES = {"vocab_size": 19, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 10, "max_len": 11}


@pytest.fixture
def case():
    config = TransformerConfig(**SIZES, **BERT, n_segments=2)
    rows = tuple(tuple(range(4, 4 + n)) for n in (3, 5, 11, 2, 7, 3, 4, 9))
    return ReviewsCase(config, rows, (0, 1, 0, 1, 1, 0, 1, 0), "fp32", torch.device("cpu"))


def test_bert_with_our_weights_has_our_hidden_states(case):
    torch.manual_seed(0)
    ours = MaskedLanguageModel(case.config).eval()
    theirs = HuggingFaceBert(case.config).model.eval()
    theirs.bert.load_state_dict(to_transformers(ours).bert.state_dict(), strict=False)
    token_ids = torch.randint(4, 19, (2, 7))
    real = torch.arange(7) < torch.tensor([[7], [4]])
    with torch.no_grad():
        its = theirs.bert(token_ids, attention_mask=real.long()).last_hidden_state
    assert_close(ours.body(token_ids, real)[real], its[real], atol=1e-5, rtol=1e-4)


def test_sizes_and_padding_by_hand_and_all_learn(case):
    (ours,), (same,) = our_candidate(case).values(), same_model_candidate(case).values()
    own, one_length, as_it_comes = bert_candidates(case).values()
    d = case.config.d_model
    assert own.details["n_params"] - ours.details["n_params"] == d * d + d  # the pooler
    # An eighth of the rows is the first, with 3 ids; a quarter are two, with 3 and 5.
    assert same.details["n_texts"] == 1
    assert same.details["padding_share"] == pytest.approx(1 - 3 / 11)
    assert own.details["padding_share"] == pytest.approx(1 - 8 / 10)
    for candidate in (ours, same, own, one_length, as_it_comes):
        losses = [candidate.task() for _ in range(30)]
        assert sum(losses[-5:]) < sum(losses[:5]), candidate.details


def test_padding_changes_no_loss_of_the_plain_loop(case):
    model = Classifier(case.config, 2, "first")
    state = {name: value.clone() for name, value in model.state_dict().items()}
    losses = []
    for width in (7, 11):
        model.load_state_dict(state)
        ids = torch.zeros(2, width, dtype=torch.long)
        ids[0, :3], ids[1, :7] = torch.tensor(case.rows[0]), torch.tensor(case.rows[4])
        batches = [(ids, ids != 0, torch.tensor([0, 1]))]
        losses.append(plain_loop(model, batches, n_updates=3, lr=1e-2, bf16=False, fused=True)())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
