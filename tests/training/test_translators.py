"""Translators from pairs to figures: objective, padding, resuming, plans, evaluation, experiments."""

import json
import math
import random
import re

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tinytx.model.config import TransformerConfig
from tinytx.model.encoder_decoder import Translator
from tinytx.text.pairs import PairCorpus, Pairs
from tinytx.training.beam import Search
from tinytx.training.bleu import evaluate_translator, pair_nats
from tinytx.training.checkpoint import load, load_tokenizer
from tinytx.training.evaluate import evaluate
from tinytx.training.fit import fit
from tinytx.training.loop import TrainingInterrupted
from tinytx.training.objectives import TranslationObjective
from tinytx.training.recipes import PAIR_KINDS, Recipe, plan
from tinytx.training.translate import translate

TRANSLATIONS = {
    "red": "rouge", "book": "livre", "the": "le", "sees": "voit", "cat": "chat", "a": "un", "dog": "chien",
    "eats": "mange", "small": "petit", "and": "et",
}  # fmt: skip
QUICK = {"n_steps": 6, "checkpoint_every": 2, "precision": "fp32"}
MARKS = {"bos_id": 2, "eos_id": 3, "pad_id": 0}


def make_pairs(n, seed):
    rng = random.Random(seed)
    sources = [" ".join(rng.choices(list(TRANSLATIONS), k=rng.randint(1, 6))) for _ in range(n)]
    return Pairs(tuple(sources), tuple(" ".join(TRANSLATIONS[w] for w in s.split()) for s in sources))


@pytest.fixture(scope="module")
def pairs():
    return PairCorpus("toy", make_pairs(150, 1), make_pairs(24, 2), make_pairs(20, 3))


def quick(pairs, **settings):
    settings = {"training_changes": QUICK, "report": lambda line: None} | settings
    return train_translator(pairs, budget="smoke", device="cpu", **settings)


def random_objective(smoothing=0.0, seed=0):
    rng = random.Random(seed)
    sides = [[[rng.randint(7, 19) for _ in range(rng.randint(1, 6))] for _ in range(11)] for _ in range(2)]
    return TranslationObjective(*sides, max_len=9, label_smoothing=smoothing, **MARKS), sides


def tiny(**changes):
    config = TransformerConfig(vocab_size=20, d_model=12, n_heads=3, n_layers=1, d_ff=8, max_len=9)
    return Translator(config.replace(**changes)).double().eval()


def test_the_loss_is_that_of_torch_over_all_real_target_positions():
    objective, (sources, targets) = random_objective(0.1)
    model = tiny(tie_embeddings=True)
    scored, wanted = [], []
    for source, target in zip(sources, targets, strict=True):  # one by one, without any padding
        scored.append(model(torch.tensor([[*source, 3]]), torch.tensor([[2, *target]]))[0])
        wanted += [*target, 3]
    its = nn.CrossEntropyLoss(label_smoothing=0.1)(torch.cat(scored), torch.tensor(wanted))
    assert_close(objective.loss(model, list(range(11))), its)
    assert objective.n_tokens == len(wanted) == objective.n_predictions(range(11))


def test_padding_has_no_effect_on_loss_and_gradient():
    objective, _ = random_objective(0.1)
    model = tiny()
    batch = list(range(11))
    together = objective.loss(model, batch)
    grads = torch.autograd.grad(together, list(model.parameters()))
    alone = sum(objective.loss(model, [i]) * objective.n_predictions([i]) for i in batch) / objective.n_tokens
    assert_close(together, alone)
    for mine, other in zip(grads, torch.autograd.grad(alone, list(model.parameters())), strict=True):
        assert_close(mine, other)


def test_pairs_that_are_too_long_are_left_out_and_counted():
    objective = TranslationObjective([[7] * 8, [7] * 9, [7]], [[8], [8], [8] * 9], max_len=9, **MARKS)
    assert objective.n_left_out == 2 and objective.n_tokens == 2
    with pytest.raises(ValueError, match="a pair of at most 8 pieces a side to learn from, got 1 pairs"):
        TranslationObjective([[7] * 9], [[8]], max_len=9, **MARKS)


def test_the_first_loss_is_that_of_a_guess(pairs):
    result = quick(pairs)
    assert abs(result.history.loss[0] - math.log(result.model.config.vocab_size)) < 0.5


def test_equal_seeds_give_equal_folders_and_the_result_is_what_lies_there(tmp_path, pairs):
    results = [quick(pairs, seed=5, out=tmp_path / name) for name in ("a", "b")]
    for file in sorted((tmp_path / "a").rglob("*")):
        if file.is_file():
            assert file.read_bytes() == (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_bytes()
    again, tokenizer = load(tmp_path / "a"), load_tokenizer(tmp_path / "a")
    assert isinstance(again, Translator)
    assert_close(again.state_dict(), results[0].model.state_dict(), rtol=0, atol=0)
    assert again.head.weight is again.encoder.token_embed.weight is again.decoder.token_embed.weight
    evaluation = evaluate_translator(again, tokenizer, pairs, split="valid")
    assert evaluation.to_dict() == results[0].evaluation.to_dict()
    assert json.loads(json.dumps(results[0].to_dict()))["kind"] == "translator"


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_an_interrupted_run_goes_on_to_the_same_bytes(tmp_path, pairs, optimizer):
    changes = QUICK | {"optimizer": optimizer}
    settings = {"training_changes": changes, "model_changes": {"dropout": 0.2}, "search": None}
    quick(pairs, out=tmp_path / "whole", **settings)

    def stop(step, model):
        if step == 3:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(TrainingInterrupted):
        quick(pairs, out=tmp_path / "parts", on_step=stop, **settings)
    quick(pairs, out=tmp_path / "parts", resume=True, **settings)
    files = sorted(path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*.*"))
    assert len(files) > 5
    for file in files:
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "parts" / file).read_bytes(), file
    finished = quick(pairs, out=tmp_path / "parts", resume=True, **settings)
    assert len(finished.history.loss) == len(finished.history.step)
    with pytest.raises(ValueError, match="another seed: it began with 0, now 1"):
        quick(pairs, out=tmp_path / "parts", resume=True, seed=1, **settings)


def test_a_small_model_learns_to_translate(pairs):
    changes = {"n_steps": 250, "precision": "fp32", "lr": 1e-2, "warmup_steps": 20, "tokens_per_batch": 512}
    result = quick(pairs, training_changes=changes)
    assert result.evaluation.score.bleu > 90
    assert result.evaluation.nats_per_token < 0.5


def test_seconds_are_planned_and_stored(tmp_path, pairs):
    lines = []
    first = quick(pairs, training_changes={}, out=tmp_path / "run", report=lines.append)
    assert first.recipe.settings.n_steps > 10
    timed = train_translator(pairs, budget=1.5, out=tmp_path / "timed", device="cpu", report=lines.append)
    assert re.search(r"about \d+ s$", lines[-1])
    stored = json.loads((tmp_path / "timed" / "plan.json").read_text())
    assert TranslationRecipe.from_dict(stored["recipe"]) == timed.recipe


def test_a_checkpoint_is_evaluated_by_its_kind(tmp_path, pairs):
    quick(pairs, out=tmp_path / "run")
    few = Pairs(("It is a novel.",), ("C'est un roman.",))
    world = PairCorpus("world", few, few)
    found = evaluate(tmp_path / "run", world, device="cpu")
    assert found.split == "valid" and found.grammar.n_errors > 0 and found.score.n == len(found.translations)
    assert "grammar errors" in str(found)
    from tinytx.text.corpora import Corpus, Split

    with pytest.raises(ValueError, match="a translator is evaluated on pairs"):
        evaluate(tmp_path / "run", Corpus("x", Split(("a",)), Split(("b",))), device="cpu")
    with pytest.raises(ValueError, match="split must be one of train, valid, got .all."):
        evaluate(tmp_path / "run", world, split="all", device="cpu")


def test_several_references_of_a_source_are_used_together(pairs):
    result = quick(pairs, search=None)
    twice = Pairs(("the cat", "the cat", "a dog"), ("le chat", "ce chat", "un chien"))
    found = evaluate_translator(result.model, result.tokenizer, PairCorpus("two", pairs.train, twice))
    assert found.split == "valid" and found.score.n == 3 and found.all_references.n == 2
    assert found.translations[0] == found.translations[1]
    assert "nrefs:var" in found.all_references.signature
    alone = evaluate_translator(result.model, result.tokenizer, pairs, split="test")
    assert alone.all_references is None or len(set(pairs.test.sources)) < len(pairs.test)


def test_held_out_loss_is_that_of_single_pairs(pairs):
    result = quick(pairs, search=None)
    model, tokenizer = result.model, result.tokenizer
    total = n = 0.0
    for source, target in zip(pairs.valid.sources, pairs.valid.targets, strict=True):
        src_ids = torch.tensor([[*tokenizer.encode(source), 3]])
        ids = [2, *tokenizer.encode(target), 3]
        log_probs = model(src_ids, torch.tensor([ids[:-1]])).log_softmax(-1)[0]
        total -= log_probs[range(len(ids) - 1), ids[1:]].sum().item()
        n += len(ids) - 1
    assert pair_nats(model, tokenizer, pairs.valid) == pytest.approx(total / n, rel=1e-4)


def test_the_tokenizer_serves_both_sides_and_sees_training_pairs_only(pairs):
    strange = PairCorpus("toy", pairs.train, Pairs(("ẑ",), ("ŷ",)))
    tokenizer = joint_tokenizer(strange, 800, exact=False)
    assert tokenizer.unk_id in tokenizer.encode("ẑ")
    assert tokenizer.unk_id not in tokenizer.encode("cat chat")


@pytest.mark.parametrize("kind", PAIR_KINDS)
def test_every_recipe_can_be_stored(kind):
    for budget in ("smoke", "laptop", "study", "gpu"):
        recipe = plan_translation(kind, budget, seed=3)
        assert TranslationRecipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe
    with pytest.raises(ValueError, match="kind of pairs must be one of"):
        plan_translation("novels")


def test_beams_are_at_least_as_probable_as_greed(pairs):
    result = quick(pairs, search=None)
    greedy = translate(result.model, result.tokenizer, pairs.valid.sources)
    wide = Search(beam_size=5, length_penalty=0.0)
    beams = translate(result.model, result.tokenizer, pairs.valid.sources, search=wide)
    better = sum(a.log_prob >= b.log_prob - 1e-6 for a, b in zip(beams, greedy, strict=True))
    assert better >= 0.9 * len(beams)  # not always: a beam may lose the greedy one on the way
