"""What the curve of fine-tuning looks at: some texts of every class, however the split is sorted."""

import pytest
import torch

from tinytx.model.config import TransformerConfig
from tinytx.model.transformer import Classifier
from tinytx.text.corpora import Split, load_corpus
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.evaluate import count_correct
from tinytx.training.recipes import EpochScoring

WORDS = ("livre", "roman", "page", "fin", "style", "auteur")


@pytest.fixture(scope="module")
def pieces():
    return Tokenizer.train(load_corpus("world").train.texts[:300], vocab_size=300)


@pytest.fixture(scope="module")
def split():
    texts = tuple(f"{first} {second}" for first in WORDS for second in WORDS)
    return Split(texts, (0,) * 18 + (1,) * 18)  # sorted by class


@pytest.fixture(scope="module")
def says_one(pieces):
    """A classifier that says class 1 whatever it reads."""
    torch.manual_seed(0)
    model = Classifier(
        TransformerConfig(vocab_size=pieces.vocab_size, d_model=8, n_heads=2, n_layers=1, d_ff=8)
    )
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter.zero_()
        model.head.bias[1] = 1.0
    return model.eval()


@pytest.mark.parametrize(("n_scored", "n"), [(6, 6), (7, 7), (None, 36), (100, 36)])
def test_the_curve_sees_every_class(pieces, split, says_one, n_scored, n):
    scoring = EpochScoring(pieces, split, says_one.config, n_scored)
    looked = scoring.after([3, 5])
    assert looked(4, says_one) is None
    found = looked(5, says_one)
    assert (found["epoch"], found["n"]) == (2, n)
    assert abs(found["accuracy"] - 0.5) <= 0.5 / n
    assert scoring.score(says_one).correct == 18 == count_correct(says_one, scoring._whole)
