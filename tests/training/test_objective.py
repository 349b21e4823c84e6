"""Learning to fill blanks: rows and segments, masks anew each epoch, only drawn places at the output."""

import pytest
import torch
import torch.nn.functional as F

from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.text.corpora import Corpus, Split
from tinytx.training.checkpoint import load, save
from tinytx.training.fit import fit
from tinytx.training.loop import train
from tinytx.training.masking import Masking
from tinytx.training.objectives import MaskedObjective
from tinytx.training.settings import TrainingSettings

QUICK = {"n_steps": 30, "checkpoint_every": 10, "precision": "fp32"}


def objective(corpus, tokenizer, max_len=24, **masking):
    return MaskedObjective(tokenizer, corpus.train.texts, max_len=max_len, masking=Masking(**masking))


def all_batches(learning, seed=0, epoch=0):
    batches = learning.epoch_batches(seed=seed, epoch=epoch, tokens_per_batch=200)
    return [learning.batch(indices) for indices in batches]


def test_rows_are_texts_between_marks_and_nothing_is_lost(corpus, tokenizer):
    learning = objective(corpus, tokenizer)
    found = []
    for inputs, labels, segments, follows in all_batches(learning):
        assert segments is None and follows is None
        original = torch.where(labels == -100, inputs, labels)
        for row in original.tolist():
            ids = [one for one in row if one != tokenizer.pad_id]
            assert ids[0] == tokenizer.cls_id and ids[-1] == tokenizer.sep_id and len(ids) <= 24
            found += ids[1:-1]
    wanted = [one for ids in tokenizer.encode_batch(corpus.train.texts) for one in ids]
    assert sorted(found) == sorted(wanted)


def test_masks_change_from_epoch_to_epoch_and_depend_on_seed_and_epoch_alone(corpus, tokenizer):
    learning = objective(corpus, tokenizer)
    seen = {}
    for seed, epoch in [(0, 0), (0, 1), (1, 0), (0, 0)]:
        learning.epoch_batches(seed=seed, epoch=epoch, tokens_per_batch=200)
        labels = learning.batch(range(20))[1]
        if (seed, epoch) in seen:
            assert torch.equal(seen[seed, epoch], labels)
        seen[seed, epoch] = labels
    assert not torch.equal(seen[0, 0], seen[0, 1]) and not torch.equal(seen[0, 0], seen[1, 0])
    other = objective(corpus, tokenizer)
    other.epoch_batches(seed=0, epoch=1, tokens_per_batch=999)
    assert torch.equal(other.batch(range(20))[1], seen[0, 1])


def test_pairs_stand_between_marks_with_a_segment_each(corpus, tokenizer):
    learning = objective(corpus, tokenizer, next_sentence=True)
    answers = []
    for inputs, labels, segments, follows in all_batches(learning):
        original = torch.where(labels == -100, inputs, labels)
        answers += follows.tolist()
        for row, segment in zip(original.tolist(), segments.tolist(), strict=True):
            ids = [one for one in row if one != tokenizer.pad_id]
            first = ids.index(tokenizer.sep_id)
            assert (ids[0], ids[-1]) == (tokenizer.cls_id, tokenizer.sep_id)
            assert ids.count(tokenizer.sep_id) == 2
            assert segment[: len(ids)] == [0] * (first + 1) + [1] * (len(ids) - first - 1)
            assert not any(segment[len(ids) :])
    assert 0.3 < sum(answers) / len(answers) < 0.7


@pytest.mark.parametrize("next_sentence", [False, True])
def test_only_drawn_places_reach_the_output_layer(corpus, tokenizer, config, next_sentence):
    learning = objective(corpus, tokenizer, next_sentence=next_sentence)
    model = MaskedLanguageModel(config.replace(n_segments=2), next_sentence=next_sentence)
    rows = []
    model.head.output.register_forward_hook(lambda module, inputs, output: rows.append(inputs[0].shape))
    batches = learning.epoch_batches(seed=0, epoch=0, tokens_per_batch=300)
    for indices in batches[:5]:
        learning.loss(model, indices)
        labels = learning.batch(indices)[1]
        assert rows.pop() == ((labels != -100).sum(), config.d_model) and not rows
        assert 0 < (labels != -100).sum() < 0.4 * labels.numel()


def test_the_loss_is_that_of_all_logits_at_drawn_places(corpus, tokenizer, config):
    learning = objective(corpus, tokenizer, next_sentence=True)
    model = MaskedLanguageModel(config.replace(n_segments=2), next_sentence=True)
    indices = list(range(9))
    inputs, labels, segments, follows = learning.batch(indices)
    real = inputs != tokenizer.pad_id
    expected = F.cross_entropy(model(inputs, real, segments).flatten(0, 1), labels.flatten().long())
    expected += F.cross_entropy(model.follows(inputs, real, segments), follows)
    torch.testing.assert_close(learning.loss(model, indices), expected)


def test_a_batch_in_which_nothing_was_drawn_teaches_nothing(tokenizer, config):
    learning = MaskedObjective(tokenizer, ["le"], max_len=24, masking=Masking(p=1e-9))
    model = MaskedLanguageModel(config)
    loss = learning.loss(model, [0])
    loss.backward()
    assert loss.item() == 0
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_whole_words_are_hidden_together(corpus, tokenizer):
    learning = objective(corpus, tokenizer, whole_words=True, p=0.5)
    n_parted = 0
    for inputs, labels, _, _ in all_batches(learning):
        original = torch.where(labels == -100, inputs, labels)
        for row, label in zip(original.tolist(), labels.tolist(), strict=True):
            for place in range(2, len(row)):  # a window may begin within a word
                inside = row[place] > tokenizer.sep_id and not tokenizer.piece(row[place]).startswith("▁")
                if inside:
                    n_parted += 1
                    assert (label[place] == -100) == (label[place - 1] == -100)
    assert n_parted > 100


def test_one_batch_is_learned_by_heart(tokenizer, config):
    texts = ["le chat mange", "la belle voit un chien", "un petit chien"]
    learning = MaskedObjective(tokenizer, texts, max_len=24, masking=Masking(p=0.3))
    model = MaskedLanguageModel(config.replace(tie_embeddings=True))
    settings = TrainingSettings(n_steps=120, lr=1e-2, precision="fp32", log_every=10)
    history = train(model, learning, settings, progress=False)
    assert history.loss[0] > 2.5 and min(history.loss[-3:]) < 0.5 * history.loss[0]


@pytest.mark.parametrize("name", ["masked", "masked+nsp"])
def test_a_run_goes_on_to_the_same_bytes_and_its_model_can_be_loaded_and_fine_tuned(corpus, tmp_path, name):
    class Stop(Exception):
        pass

    def stop(step, model):
        if step == 14:
            raise Stop

    asked = {
        "objective": name,
        "budget": "smoke",
        "training_changes": QUICK | {"tokens_per_batch": 600},
        "device": "cpu",
        "report": lambda line: None,
    }
    whole = pretrain(corpus, out=tmp_path / "whole", **asked)
    with pytest.raises(Stop):
        pretrain(corpus, out=tmp_path / "run", on_step=stop, **asked)
    pretrain(corpus, out=tmp_path / "run", resume=True, **asked)
    files = [file for file in sorted((tmp_path / "whole").rglob("*")) if file.is_file()]
    for file in files:
        assert file.read_bytes() == (tmp_path / "run" / file.relative_to(tmp_path / "whole")).read_bytes()
    again = load(tmp_path / "run")
    assert isinstance(again, MaskedLanguageModel) and (again.next_head is not None) == (name == "masked+nsp")
    torch.testing.assert_close(again.state_dict(), whole.model.state_dict(), rtol=0, atol=0)
    tuned = finetune(
        tmp_path / "run", corpus, budget="smoke", n_labels=20, device="cpu", report=lambda line: None
    )
    assert not tuned.model.config.causal and 0 <= tuned.score.accuracy <= 1


def test_masking_can_be_changed_for_masked_models_only(corpus, tmp_path):
    asked = {"budget": "smoke", "training_changes": {"n_steps": 2}, "report": lambda line: None}
    changes = {"p": 0.3, "whole_words": True, "transform": False}
    result = pretrain(corpus, objective="masked", masking_changes=changes, out=tmp_path / "a", **asked)
    assert result.recipe.masking == Masking(**changes) and not load(tmp_path / "a").transform
    with pytest.raises(ValueError, match="only a masked model is masked, got p for a causal one"):
        pretrain(corpus, masking_changes={"p": 0.3}, **asked)


def test_long_texts_are_read_in_windows(tokenizer):
    text = " ".join(["chat", "le", "chien"] * 20)
    learning = MaskedObjective(tokenizer, [text], max_len=9, masking=Masking())
    batches = learning.epoch_batches(seed=0, epoch=0, tokens_per_batch=100)
    lengths = [(learning.batch([i])[0] != 0).sum().item() for batch in batches for i in batch]
    assert max(lengths) == 9 and sum(lengths) - 2 * len(lengths) == len(tokenizer.encode(text))


def test_impossible_requests_are_refused(tokenizer):
    with pytest.raises(ValueError, match="at least one text to learn from, got none"):
        MaskedObjective(tokenizer, [""], max_len=9, masking=Masking())
    with pytest.raises(ValueError, match="max_len must leave room for text between the marks, got 2"):
        MaskedObjective(tokenizer, ["le"], max_len=2, masking=Masking())


def test_a_saved_model_with_its_kind_comes_back(tmp_path, config, tokenizer):
    for transform, next_sentence in ((True, False), (False, True)):
        kind = {"transform": transform, "next_sentence": next_sentence}
        model = MaskedLanguageModel(config.replace(tie_embeddings=True, n_segments=2), **kind).eval()
        save(model, tmp_path / f"{transform}", tokenizer)
        again = load(tmp_path / f"{transform}")
        ids = torch.randint(7, config.vocab_size, (2, 5))
        torch.testing.assert_close(again(ids), model(ids), rtol=0, atol=0)
        assert again.head.output.weight is again.body.token_embed.weight


def test_a_corpus_of_single_words_makes_no_pairs():
    lonely = Corpus("toy", Split(("le", "la") * 9), Split(("le",)))
    with pytest.raises(ValueError, match="at least one text to learn from"):
        pretrain(lonely, objective="masked+nsp", budget="smoke", report=lambda line: None)
