"""The loop: it learns, and it stops where it should; `tests/tinytx_run` kills, interrupts and resumes it."""

import math
import sys
from pathlib import Path
from statistics import fmean

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tinytx import inference
from tinytx.history import DivergenceError
from tinytx.loop import train
from tinytx.objectives import CausalObjective
from tinytx.settings import TrainingSettings, choose_device, choose_precision
from tinytx_run.checkpoint import load
from tinytx_run.pretrain import causal_objective, new_language_model
from tinytx_run.runs import Checkpoints

SETTINGS = TrainingSettings(
    n_steps=12,
    lr=1e-2,
    warmup_steps=3,
    tokens_per_batch=256,
    checkpoint_every=4,
    log_every=5,
    precision="fp32",
)


@pytest.fixture
def objective(tokenizer, corpus):
    return causal_objective(tokenizer, corpus.train.texts, 24)


def test_without_a_terminal_a_line_says_how_far_it_is_now_and_then(objective, config, monkeypatch, capsys):
    for disabled, pause, said in (("", 0.0, True), ("1", 0.0, False), ("", 1e9, False)):
        monkeypatch.setenv("TQDM_DISABLE", disabled)
        monkeypatch.setattr("tinytx.settings.PAUSE", pause)
        train(new_language_model(config, seed=3), objective, SETTINGS, label="pretraining")
        list(inference.shown([1, 2], "evaluation"))
        lines = capsys.readouterr().err.splitlines()
        assert ({"pretraining: 1 of 12", "evaluation: 1 of 2"} <= {*lines}) is said is bool(lines)


def test_watching_changes_nothing_and_training_leaves_the_global_random_state_alone(config, objective):
    def watch(step, model):
        assert not model.training
        torch.rand(3)  # a spectator that draws random numbers
        return {"noise": 1.0} if step % 4 == 0 else None

    weights, before = [], torch.get_rng_state()
    for on_step in (None, watch):
        model = new_language_model(config.replace(dropout=0.2), seed=1)
        history = train(model, objective, SETTINGS, on_step=on_step)
        weights.append(model.state_dict())
    torch.testing.assert_close(weights[0], weights[1], rtol=0, atol=0)
    assert [evaluation["step"] for evaluation in history.evaluations] == [4, 8, 12]
    assert torch.equal(before, torch.get_rng_state())


def test_gradients_are_on_again_though_what_ended_the_run_came_while_torch_had_them_off(config, objective):
    def lose(step, model):  # as a signal does, between two lines of an optimizer's step
        torch.set_grad_enabled(False)
        raise ChildProcessError("a worker was killed")

    with pytest.raises(ChildProcessError, match="a worker was killed"):
        train(new_language_model(config, seed=1), objective, SETTINGS, on_step=lose)
    assert torch.is_grad_enabled()


class Poisoned:
    """An objective whose loss is no number from a given call on."""

    def __init__(self, objective, bad_call):
        self.objective, self.bad_call, self.calls = objective, bad_call, 0

    def epoch_batches(self, **settings):
        return self.objective.epoch_batches(**settings)

    def loss(self, model, indices):
        self.calls += 1
        loss = self.objective.loss(model, indices)
        return loss * float("nan") if self.calls >= self.bad_call else loss


@pytest.mark.parametrize(
    ("bad_call", "words", "n_left"),
    [(6, "loss nan at step 6; .*step-000004", 1), (2, "at step 2; no checkpoint was written", 0)],
)
def test_a_loss_that_is_no_number_ends_the_run(tmp_path, config, objective, bad_call, words, n_left):
    model = new_language_model(config, seed=1)
    run = Checkpoints(tmp_path / "run", {}).opened()
    with pytest.raises(DivergenceError, match=words), run as checkpoints:
        train(model, Poisoned(objective, bad_call), SETTINGS, checkpoints=checkpoints)
    assert len(list(tmp_path.glob("run/step-*/model.json"))) == n_left == len(list(tmp_path.iterdir()))
    assert not model.training


def test_weights_that_are_not_finite_are_never_saved_nor_given_back(tmp_path, config, objective):
    """Each loss is finite; an update is not."""

    def overflow(step, model):
        if step == 8:
            model.body.final_norm.weight.data[0] = float("inf")

    model = new_language_model(config, seed=1)
    words = "body.final_norm.weight .* step 8 was not saved .*step-000004 stays usable"
    run = Checkpoints(tmp_path / "run", {}).opened()
    with pytest.raises(DivergenceError, match=words), run as checkpoints:
        train(model, objective, SETTINGS, checkpoints=checkpoints, on_step=overflow)
    (kept,) = tmp_path.glob("run/step-*")
    assert kept.name == "step-000004" and load(kept).model.body.final_norm.weight.isfinite().all()
    with pytest.raises(DivergenceError, match="got body.final_norm.weight after step 8"):
        train(new_language_model(config, 1), objective, SETTINGS.replace(n_steps=8), on_step=overflow)
    for name in ("lr", "clip_norm"):
        with pytest.raises(ValueError, match=f"{name} must be positive and finite, got inf"):
            SETTINGS.replace(**{name: float("inf")})


def test_a_gradient_that_is_no_number_is_named_with_its_length(config, objective):
    class Steep(Poisoned):
        def loss(self, model, indices):
            loss = self.objective.loss(model, indices)
            loss.register_hook(lambda grad: grad * float("inf"))
            return loss

    words = r"must be finite, got a gradient of length (inf|nan) and loss \d\.\d+ at step 1;"
    with pytest.raises(DivergenceError, match=words):
        train(new_language_model(config, seed=1), Steep(objective, 0), SETTINGS)


def test_the_rate_stays_until_the_decay_at_the_end():
    settings = TrainingSettings(
        n_steps=20, lr=0.5, warmup_steps=4, decay="linear", decay_steps=5, final_lr_fraction=0.0
    )
    assert [settings.lr_at(step) for step in (4, 10, 15)] == [0.5] * 3
    assert [settings.lr_at(step) for step in range(16, 21)] == pytest.approx([0.4, 0.3, 0.2, 0.1, 0.0])
    assert settings.to_dict()["decay_steps"] == 5 and "decay_steps" not in SETTINGS.to_dict()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_steps": 0}, "n_steps .* 1, got 0"),
        ({"n_steps": 1e3}, "n_steps must be an integer, got 1000.0"),
        ({"warmup_steps": 0.1}, "warmup_steps must be an integer, got 0.1"),
        ({"decay_steps": 2.0}, "decay_steps must be an integer, got 2.0"),
        ({"lr": float("nan")}, "lr .* got nan"),
        ({"warmup_steps": -1}, "warmup_steps .* got -1"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"precision": "fp16"}, "auto, fp32, bf16, got fp16"),
        ({"decay": "never"}, "cosine, linear, got never"),
        ({"decay_steps": 0}, "decay_steps .* 1, got 0"),
        ({"decay_steps": SETTINGS.n_steps}, "decay_steps .* after the warm-up, got"),
    ],
)
def test_settings_out_of_range_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        SETTINGS.replace(**change)


def test_device_and_precision_are_chosen_the_same_way_each_time():
    cpu = choose_device("cpu")
    features = torch.cpu.get_capabilities()
    fast = bool(features.get("amx_bf16") or features.get("avx512_bf16"))
    assert choose_precision("auto", cpu) == ("bf16" if fast else "fp32")
    assert choose_precision("fp32", cpu) == "fp32" and choose_precision("bf16", cpu) == "bf16"
    with pytest.raises(ValueError, match="device must be auto, cpu or cuda, got 'tpu'"):
        choose_device("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="got a machine without one"):
            choose_device("cuda")


def test_training_is_the_loop_written_out(config, objective):
    """Clipping that acts, two groups of AdamW, warm-up and cosine by their formulas, means as records."""
    how = {"n_steps": 7, "clip_norm": 0.3, "weight_decay": 0.3, "betas": (0.8, 0.9), "log_every": 3}
    ours, by_hand = (new_language_model(config, seed=3).double() for _ in range(2))
    history = train(ours, objective, SETTINGS.replace(**how))
    groups = [{"params": [], "weight_decay": decay} for decay in (0.3, 0.0)]
    for name, parameter in by_hand.named_parameters():
        groups[parameter.dim() != 2 or "embed" in name]["params"].append(parameter)
    adamw, losses, lengths = torch.optim.AdamW(groups, betas=(0.8, 0.9)), [], []
    batches = objective.epoch_batches(seed=0, epoch=0, tokens_per_batch=256)[:7]
    for step, batch in enumerate(batches, start=1):
        falling = 0.05 + 0.95 * (1 + math.cos(math.pi * (step - 3) / 4)) / 2
        for group in adamw.param_groups:
            group["lr"] = 1e-2 * (step / 3 if step <= 3 else falling)
        adamw.zero_grad()
        loss = objective.loss(by_hand, batch)
        loss.backward()
        lengths.append(nn.utils.clip_grad_norm_(by_hand.parameters(), 0.3).item())
        adamw.step()
        losses.append(loss.item())
    assert min(lengths) > 0.3
    assert_close(ours.state_dict(), by_hand.state_dict())
    means = [losses[0], fmean(losses[1:3]), fmean(losses[3:6]), losses[6]]
    assert history.loss == pytest.approx(means, rel=1e-5) and history.step == [1, 3, 6, 7]
    assert history.lr == [SETTINGS.replace(**how).lr_at(step) for step in history.step]


def test_dropout_is_drawn_by_the_seed(config, objective):
    class InOneOrder:
        loss = staticmethod(objective.loss)

        def epoch_batches(self, *, seed, epoch, tokens_per_batch):
            return objective.epoch_batches(seed=0, epoch=epoch, tokens_per_batch=tokens_per_batch)

    def losses(seed):
        model = new_language_model(config.replace(dropout=0.3), seed=1)
        return train(model, InOneOrder(), SETTINGS.replace(seed=seed)).loss

    assert losses(0) == losses(0) and losses(0)[1:] != losses(1)[1:]


def test_bf16_is_computed_in_bfloat16(config, objective):
    seen, model = [], new_language_model(config, seed=1)
    up_proj = model.body.blocks[0].ff.up_proj
    up_proj.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    train(model, objective, SETTINGS.replace(n_steps=1, warmup_steps=0, precision="bf16"))
    assert seen == [torch.bfloat16]


READ = "attention batching fast loop masks objectives optim positions settings tokenizer transformer"


@pytest.mark.parametrize(("precision", "dropout"), [("fp32", 0.0), ("bf16", 0.1)])
def test_one_step_from_text_to_update_runs_through_eleven_files_and_fifty_functions(
    root, corpus, tokenizer, config, precision, dropout
):
    """All that somebody meets who follows one training step of a causal language model."""
    model, entered = new_language_model(config.replace(dropout=dropout), seed=0), set()
    settings = SETTINGS.replace(n_steps=1, precision=precision)
    marks = {"bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id, "pad_id": tokenizer.pad_id}

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and not code.co_name.endswith("comp>") and code.co_name != "<genexpr>":
            entered.add((code.co_filename, code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        ids = [tokenizer.encode(text) for text in corpus.train.texts]
        objective = CausalObjective(ids, max_len=24, **marks)
        train(model, objective, settings)
    finally:
        sys.setprofile(before)
    packages = {"tinytx", "tinyworld", "tinytx_run", "tinytx_course"}
    inside = {(Path(file).relative_to(root), name) for file, name in entered if file.startswith(str(root))}
    ours = [(path, name) for path, name in inside if path.parts[0] in packages]
    assert {path.as_posix() for path, _ in ours} == {f"tinytx/{name}.py" for name in READ.split()}
    assert 40 < len(ours) <= 50, sorted(name for _, name in ours)


def test_the_core_knows_no_processes(root):
    for file in (root / "tinytx").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert "torch.distributed" not in text and "DistributedDataParallel" not in text
