"""A model against a split: the right measure, the right texts, the exact floor."""

import numpy as np
import pytest

from tinytx.model.transformer import Classifier, LanguageModel
from tinytx.text.corpora import Corpus, Split
from tinytx.training.checkpoint import save
from tinytx.training.evaluate import (
    ClassifierScore,
    LanguageModelScore,
    evaluate_checkpoint,
    exact_nats,
    text_nats,
)


def test_the_kind_of_the_checkpoint_decides_what_is_measured(tmp_path, config, tokenizer, corpus):
    save(LanguageModel(config), tmp_path / "lm", tokenizer)
    save(Classifier(config), tmp_path / "classifier", tokenizer)
    language = evaluate_checkpoint(tmp_path / "lm", corpus, device="cpu")
    assert isinstance(language.score, LanguageModelScore) and language.split == "test"
    labels = evaluate_checkpoint(tmp_path / "classifier", corpus, split="all", device="cpu")
    assert isinstance(labels.score, ClassifierScore) and labels.score.n == 170
    without_test = Corpus("toy", corpus.train, corpus.valid)
    assert evaluate_checkpoint(tmp_path / "lm", without_test, device="cpu").split == "valid"
    plain = Corpus("plain", Split(("le chat",)), Split(("la",)))
    with pytest.raises(ValueError, match="texts with labels, got plain, which has none"):
        evaluate_checkpoint(tmp_path / "classifier", plain, device="cpu")
    with pytest.raises(ValueError, match="split must be all or one of train, valid, got 'test'"):
        evaluate_checkpoint(tmp_path / "lm", without_test, split="test", device="cpu")


def test_labels_that_the_classifier_does_not_know_are_refused(tmp_path, config, tokenizer):
    save(Classifier(config, n_classes=3), tmp_path / "classifier", tokenizer)
    unknown = Split(("le chat", "la table", "le"), (0, 3, 3))
    with pytest.raises(ValueError, match="labels must be from 0 to 2, .* got 3 2 times in toy"):
        evaluate_checkpoint(tmp_path / "classifier", Corpus("toy", unknown, unknown), device="cpu")
    known = Split(("le chat", "la table"), (0, 1))
    words = Corpus("toy", known, known, label_names=("bon", "mauvais"))
    with pytest.raises(
        ValueError, match="must have the 3 classes of the classifier, got bon, mauvais: name all"
    ):
        evaluate_checkpoint(tmp_path / "classifier", words, device="cpu")


def test_the_floor_is_known_for_the_world_only_and_no_model_is_below_it(config, corpus):
    from tinytx.text.tokenizer import Tokenizer
    from tinytx.world.world import World

    assert exact_nats(corpus, corpus.valid.texts) is None
    world = World()
    reviews = world.reviews(40, seed=5)
    texts = tuple(" ".join(review.words) for review in reviews)
    exact = exact_nats(Corpus("world", Split(texts), Split(texts)), texts)
    np.testing.assert_allclose(exact, [-world.log_prob(review.words) for review in reviews], rtol=1e-9)
    tokenizer = Tokenizer.train(texts, vocab_size=150)
    model = LanguageModel(config.replace(vocab_size=150, max_len=200))
    assert (text_nats(model, tokenizer, texts) > exact).all()
