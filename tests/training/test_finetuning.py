"""Fine-tuning: what is kept, what is new, and that nothing is selected on the reported split."""

import json
from collections import Counter

import pytest
import torch

from tinytx.text.corpora import Corpus, Split, label_subset
from tinytx.training.checkpoint import load, save
from tinytx.training.fit import PROBE_RATE, fit
from tinytx.training.tasks import weights_fingerprint


@pytest.fixture(scope="module")
def pretrained(corpus):
    return pretrain(corpus, budget="smoke", training_changes={"n_steps": 5}, device="cpu", seed=2)


def quick(pretrained, corpus, **settings):
    changes = {"n_epochs": 3, "tokens_per_batch": 512, "lr": 1e-2} | settings.pop("recipe_changes", {})
    return finetune(pretrained, corpus, budget="smoke", device="cpu", recipe_changes=changes, **settings)


def test_an_easy_task_is_learned_and_the_pretrained_model_stays_as_it_was(pretrained, corpus):
    before = weights_fingerprint(pretrained.model.body)
    result = quick(pretrained, corpus, recipe_changes={"n_epochs": 25, "tokens_per_batch": 256, "lr": 3e-3})
    assert weights_fingerprint(pretrained.model.body) == before
    assert result.score.accuracy >= 0.9
    assert len(result.accuracy_by_epoch) == 25
    assert result.split == "test" and result.score.n == 20


def test_the_last_epoch_is_reported_whatever_the_curve(pretrained, corpus):
    result = quick(pretrained, corpus)
    assert result.score.accuracy == result.accuracy_by_epoch[-1]


def test_without_a_test_split_the_valid_split_is_reported_and_named(pretrained, corpus):
    result = quick(pretrained, Corpus("toy", corpus.train, corpus.valid))
    assert result.split == "valid" and result.score.n == 30
    assert "valid split" in repr(result) and result.to_dict()["split"] == "valid"


def test_a_pretrained_body_is_kept_and_a_fresh_one_is_new(pretrained, corpus):
    still = {"lr": 1e-12, "n_epochs": 1}
    kept = quick(pretrained, corpus, recipe_changes=still)
    fresh = quick(pretrained, corpus, recipe_changes=still, fresh=True)
    given = pretrained.model.body.state_dict()
    torch.testing.assert_close(kept.model.body.state_dict(), given, atol=1e-6, rtol=0)
    assert not torch.equal(fresh.model.body.token_embed.weight, given["token_embed.weight"])
    assert fresh.model.config == kept.model.config
    assert fresh.tokenizer.to_bytes() == kept.tokenizer.to_bytes()
    # The same labels in the same order: only the body differs.
    torch.testing.assert_close(fresh.model.head.weight, kept.model.head.weight, atol=1e-6, rtol=0)


def test_a_frozen_body_keeps_every_weight_while_the_head_learns(pretrained, corpus):
    probe = quick(pretrained, corpus, frozen=True, recipe_changes={"n_epochs": 10})
    before = quick(pretrained, corpus, frozen=True, recipe_changes={"n_epochs": 1, "lr": 1e-12})
    assert weights_fingerprint(probe.model.body) == weights_fingerprint(pretrained.model.body)
    assert not torch.allclose(probe.model.head.weight, before.model.head.weight, atol=1e-3)
    assert probe.history.loss[-1] < probe.history.loss[0]
    assert all(parameter.requires_grad for parameter in probe.model.parameters())


def test_a_probe_takes_its_own_rate_unless_told_otherwise(pretrained, corpus):
    usual, probe = (
        finetune(pretrained, corpus, budget="smoke", device="cpu", frozen=frozen).recipe.lr
        for frozen in (False, True)
    )
    assert probe == PROBE_RATE * usual
    assert quick(pretrained, corpus, frozen=True).recipe.lr == 1e-2


def test_a_finished_probe_is_resumed_to_the_same_result(tmp_path, pretrained, corpus):
    first = quick(pretrained, corpus, frozen=True, out=tmp_path / "out")
    again = quick(pretrained, corpus, frozen=True, out=tmp_path / "out", resume=True)
    assert again.score == first.score
    with pytest.raises(ValueError, match="another frozen: it began with True, now False"):
        quick(pretrained, corpus, out=tmp_path / "out", resume=True)


def test_a_path_gives_what_the_model_in_memory_gives(tmp_path, pretrained, corpus):
    save(pretrained.model, tmp_path / "lm", pretrained.tokenizer)
    from_path = quick(tmp_path / "lm", corpus, out=tmp_path / "out")
    in_memory = quick(pretrained, corpus)
    assert from_path.score == in_memory.score
    torch.testing.assert_close(load(tmp_path / "out").state_dict(), in_memory.model.state_dict())


def test_resuming_a_finished_run_gives_the_same_result(tmp_path, pretrained, corpus):
    first = quick(pretrained, corpus, out=tmp_path / "out")
    again = quick(pretrained, corpus, out=tmp_path / "out", resume=True)
    assert again.score == first.score and again.accuracy_by_epoch == first.accuracy_by_epoch
    with pytest.raises(ValueError, match="another fresh: it began with False, now True"):
        quick(pretrained, corpus, out=tmp_path / "out", resume=True, fresh=True)


def test_long_texts_are_cut_counted_and_told(pretrained, corpus):
    long = Split((" ".join(["le chat mange"] * 60), "un chien", "la chat"), (1, 0, 1))
    lines = []
    result = quick(pretrained, Corpus("toy", long, long), report=lines.append)
    assert (result.n_cut, result.score.n_cut) == (1, 1)
    assert "1 of 3 texts exceed 128 ids and lose their end" in lines[1]
    assert "too long" in repr(result) and json.dumps(result.to_dict())


def test_a_subset_is_balanced_seeded_and_nested_in_nothing_else(corpus):
    subset = label_subset(corpus.train, 21, seed=3)
    counts = Counter(subset.labels)
    assert sorted(counts.values()) == [10, 11]
    assert subset == label_subset(corpus.train, 21, seed=3) != label_subset(corpus.train, 21, seed=4)
    pairs = set(zip(corpus.train.texts, corpus.train.labels, strict=True))
    assert set(zip(subset.texts, subset.labels, strict=True)) <= pairs


def test_impossible_requests_are_refused(pretrained, corpus):
    with pytest.raises(ValueError, match="n_labels must be from 1 to 120, .* got 121"):
        quick(pretrained, corpus, n_labels=121)
    plain = Corpus("plain", Split(("le chat",)), Split(("la",)))
    with pytest.raises(ValueError, match="labels"):
        quick(pretrained, plain)
    huge = Corpus("huge", Split(("le", "la"), (0, 10**9)), Split(("le",), (0,)))
    with pytest.raises(
        ValueError, match="labels must count up from 0, got the label 1000000000 among 2 texts"
    ):
        quick(pretrained, huge)
    with pytest.raises(ValueError, match="pooling must be one of"):
        quick(pretrained, corpus, pooling="max")
