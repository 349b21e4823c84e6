"""Training of every kind: equal calls give equal bytes, in one piece or in two, and mistakes are named."""

import functools
import itertools
import json
import time
from dataclasses import fields, replace
from unittest.mock import Mock, patch

import numpy as np
import pytest
import torch

from tests.tinytx_run.interrupted import Killed, folder_bytes, in_step, press_ctrl_c
from tinytx.beam import Search
from tinytx.encoder_decoder import Translator
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.masking import Masking
from tinytx.settings import TrainingSettings
from tinytx_run import finetune as tuning
from tinytx_run import training
from tinytx_run.bleu import Seen, evaluate_translator
from tinytx_run.checkpoint import Checkpoint, load, save
from tinytx_run.corpora import Corpus, Split
from tinytx_run.distributed import train
from tinytx_run.evaluate import evaluate, evaluate_split
from tinytx_run.finetune import (
    PROBE_RATE,
    PUBLISHED_EPOCHS,
    PUBLISHED_RATE,
    class_objective,
    epoch_ends,
    finetune,
)
from tinytx_run.pairs import PairCorpus, Pairs
from tinytx_run.pretrain import (
    causal_objective,
    corpus_objective,
    new_language_model,
    objective_for,
    pretrain,
    train_tokenizer,
    train_translator,
)
from tinytx_run.recipes import WARMUP_SHARE, plan, plan_finetuning
from tinytx_run.runs import find_run, read_training
from tinytx_run.splits import TextHashes
from tinytx_run.training import RunOptions, fingerprint, steps_within, weights_fingerprint

QUICK = {"n_steps": 6, "checkpoint_every": 2, "precision": "fp32"}
TINY = {"d_model": 12, "n_heads": 3, "n_layers": 2, "max_len": 24, "dropout": 0.2}
SHORT = {"n_steps": 14, "checkpoint_every": 5, "tokens_per_batch": 200}
TASKS = ("causal", "masked", "masked+nsp", "hybrid", "translation", "classification")
TRANSLATIONS = {
    "red": "rouge", "book": "livre", "the": "le", "sees": "voit", "cat": "chat", "a": "un", "dog": "chien",
}  # fmt: skip


def kill():
    raise Killed


OPTIONS = {field.name for field in fields(RunOptions)}


def quick(*given, train=pretrain, **settings):
    settings = {"budget": "smoke", "training_changes": QUICK, "report": lambda line: None} | settings
    options = {name: settings.pop(name) for name in OPTIONS & settings.keys()}
    return train(*given, options=RunOptions(device="cpu", **options), **settings)


@pytest.fixture(scope="module")
def pairs():
    sources = [f"{a} {b} {c}" for a in TRANSLATIONS for b in TRANSLATIONS for c in ("cat", "dog", "book")]
    targets = [" ".join(TRANSLATIONS[word] for word in source.split()) for source in sources]
    held_out = [Pairs(tuple(sources[i::9]), tuple(targets[i::9])) for i in (0, 1)]
    return PairCorpus("toy", Pairs(tuple(sources), tuple(targets)), *held_out)


@pytest.fixture(scope="module")
def pretrained(corpus):
    return quick(corpus, model_changes=TINY, training_changes=SHORT, seed=2)


@pytest.fixture(scope="module")
def call(corpus, pairs, pretrained):
    """Train for one of the tasks."""

    def call(task, precision="fp32", **settings):
        settings = {"seed": 1, "training_changes": SHORT | {"precision": precision}} | settings
        if task == "classification":
            changes = {"precision": precision, "tokens_per_batch": SHORT["tokens_per_batch"]}
            settings |= {"n_epochs": 4, "training_changes": changes}
            return quick(pretrained, corpus, train=finetune, **settings)
        if task == "translation":
            return quick(pairs, train=train_translator, model_changes=TINY, search=None, **settings)
        return quick(corpus, objective=task, model_changes=TINY, **settings)

    return call


@pytest.fixture(scope="module")
def whole(call, tmp_path_factory):
    """Train for one of the tasks in one piece, once for all tests; gives the result and its folder."""

    @functools.cache
    def whole(task, precision="fp32"):
        folder = tmp_path_factory.mktemp(task) / "whole"
        return call(task, precision, out=folder), folder

    return whole


@pytest.mark.parametrize(
    ("task", "precision"), [*[(task, "fp32") for task in TASKS], ("translation", "bf16")]
)
def test_equal_calls_give_equal_bytes_killed_or_not(tmp_path, call, whole, task, precision):
    result, folder = whole(task, precision)
    wanted = folder_bytes(folder)
    with pytest.raises(Killed), in_step(8, kill):
        call(task, precision, out=tmp_path / "parts")
    parts = call(task, precision, out=tmp_path / "parts", resume=True)
    assert folder_bytes(tmp_path / "parts") == wanted
    torch.testing.assert_close(parts.model.state_dict(), result.model.state_dict(), rtol=0, atol=0)
    assert parts.history == result.history and parts.data == result.data
    again = call(task, precision, out=tmp_path / "parts", resume=True)  # finished: it is only read
    assert again.history == result.history and again.evaluation == result.evaluation
    other = call(task, precision, seed=7)
    assert other.path is None and other.history != result.history


@pytest.mark.parametrize("task", TASKS)
def test_the_result_is_what_lies_in_the_folder(corpus, pairs, whole, task):
    result, folder = whole(task)
    found = load(folder)
    model, tokenizer = found.with_tokenizer()
    assert found.class_names == result.class_names == (("0", "1") if task == "classification" else None)
    learned = pairs.train.sources if task == "translation" else corpus.train.texts
    assert found.learned == result.learned and found.learned[0] == TextHashes.of(learned)
    torch.testing.assert_close(model.state_dict(), result.model.state_dict(), rtol=0, atol=0)
    assert tokenizer.to_bytes() == result.tokenizer.to_bytes()
    if task == "translation":
        assert model.head.weight is model.encoder.token_embed.weight is model.decoder.token_embed.weight
        assert result.evaluation is None
    else:
        known = (found.class_names, found.learned) if task == "classification" else ()
        assert evaluate_split(model, tokenizer, corpus, result.evaluation.split, *known) == result.evaluation
    answer = json.loads(json.dumps(result.to_dict()))
    assert answer["n_steps"] == result.history.step[-1] and answer["path"] == str(folder)
    if task.startswith("masked"):
        assert isinstance(model, MaskedLanguageModel) and bool(model.next_head) == task.endswith("nsp")


def test_a_table_is_pretrained_on_without_its_labels(tmp_path, corpus):
    rows = [f"{text},{label}" for label, text in enumerate(corpus.train.texts)]
    (tmp_path / "many.csv").write_text("\n".join(["text,label", *rows, "le chat qui voit,"]))
    result = quick(tmp_path / "many.csv", model_changes=TINY, training_changes=SHORT)
    found = evaluate(result, tmp_path / "many.csv", split="all")
    assert found.score.n_texts == len(rows) + 1 and found.seen.n_seen > 0.8 * len(rows)


def test_a_run_resumes_with_its_own_request_only(tmp_path, corpus):
    run = tmp_path / "run"
    run.mkdir()  # an empty folder starts afresh
    betas = {"training_changes": QUICK | {"betas": (0.9, 0.95)}}
    quick(corpus, out=run, resume=True, **betas)
    quick(corpus, out=run, resume=True, **betas)
    fewer = Corpus("toy", Split(corpus.train.texts[1:]), corpus.valid)
    for data, change, words in (
        (corpus, {"seed": 1}, "seed was 0, now 1"),
        (corpus, {"vocab_size": 25}, "vocab_size was None, now 25"),
        (corpus, {"model_changes": {"n_layers": 2}}, r"model\.n_layers was None, now 2"),
        (fewer, {}, "training texts was"),
    ):
        with pytest.raises(ValueError, match=f"cannot resume: {words}"):
            quick(data, out=run, resume=True, **betas | change)


def test_seconds_are_timed_once_stored_and_followed_after_resuming(tmp_path, corpus, monkeypatch):
    timed, lines = Mock(return_value=(5, 1.9)), []
    monkeypatch.setattr(training, "steps_within", timed)
    ask = {"budget": 2.0, "out": tmp_path / "run", "training_changes": {}, "report": lines.append}
    first = quick(corpus, **ask)
    assert lines[0].endswith("about 2 s") and first.recipe.settings.n_steps == 5
    stored = read_training(find_run(tmp_path / "run", True))["plan"]
    assert stored["recipe"]["settings"]["n_steps"] == 5
    again = quick(corpus, resume=True, **ask)
    assert again.recipe == first.recipe and again.history == first.history
    assert timed.call_args.args[0] == 2.0
    timed.assert_called_once()


def test_seconds_of_fine_tuning_are_filled_with_whole_epochs(pretrained, corpus, monkeypatch):
    usual = tuned(pretrained, corpus, n_epochs=4)
    learning, _ = class_objective(pretrained.tokenizer, corpus.train, pretrained.model.config)
    ends = epoch_ends(learning, usual.recipe.settings, 4)
    between, lines = (ends[2] + ends[3]) // 2, []
    monkeypatch.setattr(tuning, "steps_within", lambda seconds, *how, **more: (between, seconds))
    for to_score, n_epochs in ((0.0, 3), (0.4, 2), (4.0, 1)):  # after each epoch, and once to measure it
        monkeypatch.setattr(tuning, "seconds_to_score", lambda model, scored, s=to_score: s)
        recipe = tuned(pretrained, corpus, n_epochs=None, budget=5.0, report=lines.append).recipe
        assert (recipe.n_epochs, recipe.settings.n_steps) == (n_epochs, ends[n_epochs - 1])
        total = 5 * ends[n_epochs - 1] / between + n_epochs * to_score
        assert lines[0].endswith(f", about {total:.0f} s")
        lines.clear()


@pytest.mark.parametrize("settings", [{"n_epochs": 10**11}, {"n_epochs": None, "budget": 5.0}])
def test_many_epochs_are_planned_by_the_batches_of_one(pretrained, corpus, monkeypatch, settings):
    lines, kind = [], tuning.ClassificationObjective
    monkeypatch.setattr(tuning, "seconds_to_score", lambda model, scored: 0.0)
    monkeypatch.setattr(tuning, "steps_within", lambda *how, **more: (300, 5.0))
    monkeypatch.setattr(training, "train", Mock(side_effect=Killed))
    drawing = patch.object(kind, "epoch_batches", autospec=True, side_effect=kind.epoch_batches)
    with drawing as drawn, pytest.raises(Killed):
        tuned(pretrained, corpus, n_labels=8, report=lines.append, **settings)
    assert {call.kwargs["epoch"] for call in drawn.call_args_list} == {0} and drawn.call_count <= 3
    names = ", ".join(corpus.class_names)
    assert lines[1] == f"8 labelled texts of 2 classes ({names}), {settings['n_epochs'] or 300} epochs"


def test_all_epochs_have_as_many_batches(pretrained, corpus):
    learning, _ = class_objective(pretrained.tokenizer, corpus.train, pretrained.model.config)
    settings = TrainingSettings(n_steps=1, tokens_per_batch=64)
    how = {"seed": settings.seed, "tokens_per_batch": settings.tokens_per_batch}
    counts = [len(learning.epoch_batches(epoch=epoch, **how)) for epoch in range(20)]
    assert list(itertools.accumulate(counts)) == list(epoch_ends(learning, settings, 20))


def test_a_large_corpus_is_announced_before_its_tokenizer_is_trained(corpus, monkeypatch):
    lines = []
    monkeypatch.setattr("tinytx_run.pretrain.train_tokenizer", Mock(side_effect=Killed))
    for limit in (10**9, 1_000):
        monkeypatch.setattr(training, "LONG_TO_READ", limit)
        with pytest.raises(Killed):
            quick(corpus, report=lines.append)
    n_characters = sum(len(text) for split in corpus.splits.values() for text in split.texts)
    assert len(lines) == 1 and lines[0].startswith(f"toy: {n_characters:,} characters are cut")


def test_an_interrupt_while_steps_are_timed_says_so(tokenizer, corpus, config):
    objective = causal_objective(tokenizer, corpus.train.texts, config.max_len)
    loss = objective.loss
    objective.loss = lambda model, rows: (press_ctrl_c(), loss(model, rows))[1]
    with pytest.raises(KeyboardInterrupt, match="while steps were timed, before training began"):
        steps_within(2.0, new_language_model(config, 0), objective, plan("world", "causal", "smoke").settings)


def test_numbers_of_numpy_are_stored_as_those_of_python(tmp_path, pretrained, corpus):
    how = {"out": tmp_path / "run", "seed": np.int64(1), "n_labels": np.int64(20), "n_epochs": np.int32(1)}
    settings = {"precision": "fp32", "lr": np.float32(1e-3), "checkpoint_every": np.int64(2)}
    first = tuned(pretrained, corpus, training_changes=settings, **how)
    again = tuned(pretrained, corpus, training_changes=settings, resume=True, **how)
    assert weights_fingerprint(first.model) == weights_fingerprint(again.model)


def test_steps_within_plans_no_more_than_fits(tokenizer, corpus, config):
    """Steps that sleep for 50 ms: no machine, however busy, can plan more than the rest of the time holds."""
    objective = causal_objective(tokenizer, corpus.train.texts, config.max_len)

    class Slow:
        epoch_batches = staticmethod(objective.epoch_batches)

        @staticmethod
        def loss(model, indices):
            time.sleep(0.05)
            return objective.loss(model, indices)

    recipe = plan("world", "causal", "smoke")
    model = new_language_model(config, 0)
    before = weights_fingerprint(model)
    n_steps, expected = steps_within(2.0, model, Slow(), recipe.settings)
    assert 1 <= n_steps <= (2.0 - 10 * 0.05) / 0.05 and weights_fingerprint(model) == before
    assert expected / n_steps >= 0.05


def test_the_tokenizer_sees_the_training_split_only(corpus, pairs):
    result = quick(Corpus("toy", corpus.train, Split(("ŷŷŷ ẑẑẑ",))))
    assert result.tokenizer.unk_id in result.tokenizer.encode("ŷ")
    strange = PairCorpus("toy", pairs.train, Pairs(("ẑ",), ("ŷ",)))
    tokenizer = quick(strange, train=train_translator, search=None).tokenizer
    assert tokenizer.unk_id in tokenizer.encode("ẑ")
    assert tokenizer.unk_id not in tokenizer.encode("cat chat")


def test_a_vocabulary_is_adapted_unless_it_was_asked_for(corpus):
    texts = corpus.train.texts
    assert 20 < train_tokenizer(texts, 600, exact=False).vocab_size < 600
    assert train_tokenizer(texts, 5, exact=False).vocab_size > 5
    assert quick(corpus, vocab_size=27).model.config.vocab_size == 27


def test_changes_replace_the_numbers_of_the_budget(corpus):
    changes = {"d_model": 20, "n_heads": 5, "dropout": 0.1}
    result = quick(corpus, model_changes=changes)
    config = result.model.config
    assert (config.d_model, config.n_heads, config.d_ff, config.dropout) == (20, 5, 80, 0.1)
    assert result.recipe.settings.n_steps == 6


def test_what_was_asked_for_holds_whatever_the_length(pretrained, corpus):
    asked = {"warmup_steps": 0, "log_every": 3, "checkpoint_every": 7, "decay_steps": 2}
    asked["tokens_per_batch"] = 64
    settings = tuned(pretrained, corpus, training_changes=asked).recipe.settings
    assert {name: getattr(settings, name) for name in asked} == asked
    timed = quick(corpus, budget=0.2, training_changes={"warmup_steps": 1}).recipe.settings
    assert timed.warmup_steps == 1
    timed = quick(corpus, budget=0.2, training_changes={}).recipe.settings
    assert timed.warmup_steps == int(WARMUP_SHARE * timed.n_steps)
    assert timed.lr == plan("reviews", "causal", 0.2).settings.lr


def test_a_small_translator_learns(pairs):
    changes = {"n_steps": 120, "precision": "fp32", "lr": 1e-2, "warmup_steps": 20, "tokens_per_batch": 512}
    result = quick(pairs, train=train_translator, training_changes=changes)
    assert result.evaluation.score.chrf > 90 and result.evaluation.nats_per_token < 0.5
    assert isinstance(result.model, Translator)


def test_a_translator_is_evaluated_by_the_search_that_was_asked_for(pairs):
    search = Search(beam_size=4, length_penalty=0.0)
    result = quick(pairs, train=train_translator, search=search)
    own = {"split": "valid", "search": search}
    assert result.evaluation == evaluate_translator(result.model, result.tokenizer, pairs, **own)
    greedy = evaluate_translator(result.model, result.tokenizer, pairs, split="valid")
    assert result.evaluation.translations != greedy.translations


def tuned(start, corpus, **settings):
    changes = {"tokens_per_batch": 512, "lr": 1e-2} | settings.pop("training_changes", {})
    return quick(start, corpus, train=finetune, training_changes=changes, **{"n_epochs": 3} | settings)


def test_an_easy_class_is_learned_and_the_pretrained_model_stays_as_it_was(pretrained, corpus):
    before = weights_fingerprint(pretrained.model.body)
    result = tuned(pretrained, corpus, n_epochs=25, training_changes={"tokens_per_batch": 256, "lr": 3e-3})
    assert weights_fingerprint(pretrained.model.body) == before
    assert result.evaluation.score.accuracy >= 0.9
    assert len(result.accuracy_by_epoch) == 25
    assert result.evaluation.split == "test" and result.evaluation.score.n == 20
    assert result.evaluation.score.accuracy == result.accuracy_by_epoch[-1]  # the last epoch is reported


def test_a_pretrained_body_is_copied_and_a_fresh_one_is_new(pretrained, corpus):
    still = {"training_changes": {"lr": 1e-12}, "n_epochs": 1}
    copied = tuned(pretrained, corpus, **still)
    fresh = tuned(pretrained, corpus, body="fresh", **still)
    given = pretrained.model.body.state_dict()
    torch.testing.assert_close(copied.model.body.state_dict(), given, atol=1e-6, rtol=0)
    assert not torch.equal(fresh.model.body.token_embed.weight, given["token_embed.weight"])
    assert copied.learned == 2 * pretrained.learned and fresh.learned == pretrained.learned
    assert copied.evaluation.seen == Seen.of(copied.learned, corpus.test.texts)
    assert fresh.model.config == copied.model.config and fresh.data["fresh"]
    # The same labels in the same order: only the body differs.
    torch.testing.assert_close(fresh.model.head.weight, copied.model.head.weight, atol=1e-6, rtol=0)


def test_a_frozen_body_keeps_every_weight_while_the_head_learns(tmp_path, pretrained, corpus):
    probe = tuned(pretrained, corpus, body="frozen", n_epochs=10, out=tmp_path / "out")
    assert weights_fingerprint(probe.model.body) == weights_fingerprint(pretrained.model.body)
    assert probe.history.loss[-1] < probe.history.loss[0]
    assert all(parameter.requires_grad for parameter in probe.model.parameters())
    usual, probing = (
        quick(pretrained, corpus, train=finetune, body=body, training_changes={})
        for body in ("pretrained", "frozen")
    )
    assert probing.recipe.settings.lr == PROBE_RATE * usual.recipe.settings.lr
    with pytest.raises(ValueError, match="cannot resume: frozen was True, now False"):
        tuned(pretrained, corpus, n_epochs=10, out=tmp_path / "out", resume=True)


def test_long_texts_are_cut_and_counted_on_the_valid_split_where_there_is_no_test_split(pretrained, corpus):
    long = Split((" ".join(["le chat mange"] * 60), "un chien", "la chat"), (1, 0, 1))
    lines = []
    result = tuned(pretrained, Corpus("toy", long, long), report=lines.append)
    assert (result.data["n_cut_in_training"], result.evaluation.score.n_cut) == (1, 1)
    assert result.evaluation.split == "valid" and result.evaluation.score.n == 3
    assert "1 of 3 texts exceed 24 tokens and lose their end" in lines[2]


def test_weights_order_and_labelled_texts_each_follow_the_seed(pretrained, corpus, monkeypatch):
    """Whichever of them forgot the seed, the others would still make two runs differ."""
    met = []

    def noted(model, learning, settings, **how):
        weights, own, orders = model.head.weight.tolist(), learning.epoch_batches, []
        learning.epoch_batches = lambda **given: orders.append(own(**given)) or orders[-1]
        history = train(model, learning, settings, **how)
        met.append((weights, orders[0], learning._rows.flat.tolist()))
        return history

    monkeypatch.setattr(training, "train", noted)
    for seed in (1, 2):
        tuned(pretrained, corpus, n_labels=20, n_epochs=1, seed=seed)
        quick(corpus, model_changes=TINY, seed=seed)
    (weights, _, texts), pretraining, (other_weights, _, other_texts), other = met
    assert weights != other_weights and texts != other_texts
    assert pretraining[0] != other[0] and pretraining[1] != other[1]


def test_a_classifier_takes_the_dropout_of_its_recipe(pretrained, corpus):
    start = quick(corpus, model_changes=TINY | {"dropout": 0.0})
    result = tuned(start, corpus, n_epochs=1)
    expected = plan_finetuning("reviews", "smoke").dropout
    assert start.model.config.dropout == 0 < expected == result.model.config.dropout
    assert result.model.dropout.p == result.model.body.dropout.p == expected
    changed = tuned(start, corpus, n_epochs=1, model_changes={"dropout": 0.35})
    assert changed.model.dropout.p == changed.model.body.dropout.p == 0.35


def test_a_published_body_learns_at_a_small_rate_for_few_epochs(tmp_path, pretrained, corpus, monkeypatch):
    path = save(pretrained.model, tmp_path / "lm", pretrained.tokenizer)
    few = replace(corpus, train=corpus.train.take(range(8)))

    def recipe(body):
        return quick(path, few, train=finetune, body=body, budget="study", training_changes={}).recipe

    usual, probe = recipe("pretrained"), recipe("frozen")
    monkeypatch.setattr(tuning, "is_published", lambda start: True)
    published = recipe("pretrained")
    assert (published.settings.lr, published.n_epochs) == (PUBLISHED_RATE, PUBLISHED_EPOCHS)
    assert usual.settings.lr > published.settings.lr and usual.n_epochs > published.n_epochs
    assert recipe("fresh").settings.lr == usual.settings.lr and recipe("frozen") == probe


def test_few_labels_of_the_world_are_learned_in_small_batches_with_the_budget_of_a_gpu(pretrained, corpus):
    world = replace(corpus, name="world", train=corpus.train.take(range(8)))

    def settings(**how):
        result = quick(pretrained, world, train=finetune, n_epochs=1, training_changes={}, **how)
        return result.recipe.settings.replace(n_steps=1, warmup_steps=0)

    assert settings(budget="gpu", n_labels=4) == settings(budget="study", n_labels=4)
    assert settings(budget="gpu").tokens_per_batch == 16_384


@pytest.mark.parametrize("causal", [True, False])
def test_texts_are_framed_as_the_body_was_pretrained(corpus, tokenizer, config, causal):
    learning, _ = class_objective(tokenizer, corpus.valid, config.replace(causal=causal))
    before, after = ([tokenizer.bos_id], []) if causal else ([tokenizer.cls_id], [tokenizer.sep_id])
    for n, text in enumerate(corpus.valid.texts):
        row = [*before, *tokenizer.encode(text)[: config.max_len - len(before + after)], *after]
        assert learning._rows.rows([n]).tolist() == [row]


def test_the_smallest_budget_learns_from_few_labels_of_a_large_corpus(pretrained, corpus, monkeypatch):
    monkeypatch.setattr(tuning, "SMOKE_LABELS", 7)
    assert tuned(pretrained, corpus, n_epochs=1).data["n_labels"] == 7
    assert tuned(pretrained, corpus, n_epochs=1, n_labels=11).data["n_labels"] == 11


def test_requests_that_make_no_sense_are_refused(pretrained, corpus, pairs, whole):
    plain, few = Corpus("plain", Split(("le chat",)), Split(("la",))), Split(("le", "la") * 9)
    single = Corpus("single", Split(("le", "la"), (0, 0)), Split(("le",), (0,)))
    huge = Corpus("huge", Split(("le", "la"), (0, 10**9)), Split(("le",), (0,)))
    (translator, _), half, none = whole("translation"), {"causal_share": 0.5}, {"causal_share": 0.0}
    for call, words in (
        (lambda: tuned(pretrained, corpus, n_labels=121), "n_labels .* got 121"),
        (lambda: tuned(pretrained, plain), "labels"),
        (lambda: tuned(pretrained, single), "at least 2 classes, .* got 1 among 2 texts of single"),
        (lambda: tuned(pretrained, huge), "got 1,000,000,001 among 2 texts of huge"),
        (lambda: tuned(pretrained, corpus, model_changes={"pooling": "max"}), "pooling"),
        (lambda: tuned(pretrained, corpus, body="new"), "body must be one of pretrained, .* got 'new'"),
        (lambda: tuned(pretrained, corpus, n_epochs=0), "n_epochs must be at least 1, got 0"),
        (lambda: tuned(pretrained, corpus, n_epochs=1.5), "n_epochs must be an integer, got 1.5"),
        (lambda: tuned(pretrained, corpus, n_labels=10.5), "n_labels must be an integer, got 10.5"),
        (lambda: quick(corpus, budget=[1]), r"budget must be one of .* got \[1\]"),
        (lambda: tuned(pretrained, corpus, n_epochs=2, budget=0.5), "n_epochs .* left out .* 2 and 0.5 s"),
        (lambda: quick(corpus, training_changes={"n_steps": 5}, budget=0.5), "n_steps .* left out .* 5 and"),
        (lambda: quick(corpus, model_changes={"vocab_size": 25}), "vocab_size must be given as such"),
        (lambda: quick(corpus, model_changes={"causal": False}), "causal must be True .* objective causal"),
        (lambda: tuned(pretrained, corpus, training_changes={"n_steps": 3}), "n_steps follows from n_epochs"),
        (lambda: tuned(pretrained, corpus, model_changes={"d_model": 8}), "got d_model"),
        (lambda: tuned(translator, corpus), "got a translator"),
        (lambda: tuned(Checkpoint(pretrained.model), corpus), "tokenizer .* got a LanguageModel alone"),
        (lambda: quick(corpus, objective="translation"), "'translation': train_translator"),
        (lambda: quick(corpus, train=train_translator), "of pairs is needed, got the texts of toy"),
        (lambda: quick(pairs), "of texts is needed, got the pairs of toy"),
        (lambda: quick(corpus, data_dir="data"), "data_dir must be left out .* got data"),
        (lambda: quick(corpus, masking_changes={"p": 0.3}), "only a masked model has masking"),
        (lambda: quick(corpus, objective="masked", masking_changes=half), "causal_share .* 0.5 for masked"),
        (lambda: quick(corpus, objective="hybrid", masking_changes=none), "causal_share .* 0.0 for hybrid"),
        (lambda: quick(corpus, vocab_size=5000), "vocab_size must be at most"),
        (lambda: quick(Corpus("toy", few, few), objective="masked+nsp"), "one text of two sentences"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="start must be .* got a LanguageModel"):
        tuned(pretrained.model, corpus)


def test_a_sharded_run_of_one_process_is_refused_before_anything_is_reported(corpus, monkeypatch):
    lines = []
    with pytest.raises(ValueError, match="shard needs several processes"):
        quick(corpus, shard=True, report=lines.append)
    assert lines == []
    monkeypatch.setattr(training, "require_processes", lambda shard: None)
    with pytest.raises(ValueError, match="a sharded model needs a budget by name, got 3 seconds"):
        quick(corpus, shard=True, budget=3)


PAIRS = Pairs(
    tuple(f"{a} {b}" for a in "abcdefg" for b in "hijklm"),
    tuple(f"{b}’{a}" for a in "abcdefg" for b in "hijklm"),
)


def test_a_translator_learns_with_the_smoothing_of_its_recipe_and_from_plain_targets(monkeypatch):
    trained = Mock(wraps=train)
    monkeypatch.setattr(training, "train", trained)
    result = quick(PairCorpus("toy", PAIRS, PAIRS), train=train_translator, search=None)
    tokenizer, learning = result.tokenizer, trained.call_args.args[1]
    assert learning.label_smoothing == result.recipe.label_smoothing == 0.1
    assert "’" not in "".join(map(tokenizer.piece, range(tokenizer.vocab_size)))
    assert tokenizer.unk_id not in learning.batch(range(9))[2]


def test_what_is_said_of_masking_reaches_model_and_objective(corpus):
    changes = {"p": 0.6, "whole_words": True, "transform": False}
    result = quick(corpus, objective="masked", masking_changes=changes)
    assert not result.model.transform and result.recipe.masking == Masking(**changes)
    learning = objective_for(result.recipe, result.tokenizer, corpus.train.texts)
    learning.epoch_batches(seed=0, epoch=0, tokens_per_batch=200)
    n_tokens = sum(map(len, result.tokenizer.encode_batch(corpus.train.texts)))
    assert 0.4 < learning.n_predictions(range(120)) / n_tokens < 0.8


def test_each_further_pass_reads_other_texts(corpus, tokenizer):
    data = replace(corpus, draw=lambda i: corpus.train.texts[i : i + 3])
    learning = corpus_objective(plan("text", "causal", "smoke").replace(vocab_size=30), tokenizer, data)
    for epoch in (0, 1, 2):
        learning.epoch_batches(seed=0, epoch=epoch, tokens_per_batch=200)
        read = [[i for i in row if i > 3] for row in learning.batch(range(3))[1].tolist()]
        if epoch:
            assert read == tokenizer.encode_batch(corpus.train.texts[epoch : epoch + 3])


def test_other_weights_are_another_start(tmp_path, corpus, pretrained):
    other = new_language_model(pretrained.model.config, 5)
    how = {"out": tmp_path / "run", "n_epochs": 1}
    tuned(pretrained, corpus, **how)
    tuned(Checkpoint(pretrained.model, pretrained.tokenizer), corpus, resume=True, **how)
    with pytest.raises(ValueError, match="cannot resume: the fingerprint of the weights of start was"):
        tuned(Checkpoint(other, pretrained.tokenizer), corpus, resume=True, **how)


def test_other_texts_or_weights_have_another_fingerprint():
    def named(*texts):
        return fingerprint(Corpus("some", Split(texts), Split(("a",))))

    assert len({named("x\ny"), named("x", "y"), named("x\\ny"), named("y", "x")}) == 4
    sides = [Pairs((x,), (y,)) for x, y in (("a\tb", "c"), ("a", "b\tc"), ("ab", "c"), ("a", "bc"))]
    assert len({fingerprint(PairCorpus("some", each, each)) for each in sides}) == 4
    body = torch.nn.Linear(3, 2)
    assert len({weights_fingerprint(body), weights_fingerprint(body.bfloat16())}) == 2
