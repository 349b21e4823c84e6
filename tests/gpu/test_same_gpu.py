"""What a GPU trains, resumes, writes, translates, adapts and converts is what the CPU does.

``python -m tests.elsewhere gpu`` runs these tests on a device that needs no GPU.
"""

import copy

import pytest
import torch
from torch.testing import assert_close

from tests.gpu.device import DEVICE, PRETENDED
from tests.tinytx.against_torch import shaken
from tests.tinytx_run.hf import test_convert as published
from tests.tinytx_run.interrupted import Killed
from tests.tinytx_run.two_processes import OBJECTIVES, SETTINGS, make, texts
from tinytx.attention import record_attention
from tinytx.beam import Search
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import Translator
from tinytx.fast import dropout
from tinytx.generate import Sampling, continue_rows, next_token_probs
from tinytx.loop import TrainingStep, train
from tinytx.lora import add_lora, merge_lora
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx.translate import translate_ids
from tinytx_run.checkpoint import load, save
from tinytx_run.evaluate import count_correct, fill_probs, text_nats
from tinytx_run.hf.convert import from_transformers, to_transformers
from tinytx_run.runs import Checkpoints

pytestmark = pytest.mark.gpu

# Numbers of the pretended device are those of the CPU: what stays on the wrong side shows in the first steps.
N_STEPS = 8 if PRETENDED else 20
HOW = SETTINGS.replace(n_steps=N_STEPS, log_every=1)
TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4}
CONFIG = TransformerConfig(vocab_size=30, d_model=12, n_heads=6, n_layers=2, d_ff=14, max_len=24)
VARIANTS = {
    **{kind: {"positions": kind} for kind in ("sinusoidal", "learned", "rotary", "alibi")},
    "llama": {"positions": "rotary", "n_kv_heads": 2, "activation": "swiglu", "norm_kind": "rms"},
    "post-norm": {"norm": "last"},
}
ROWS = [[2, 7, 11], [2], [2, 9, 9, 9, 13, 21, 8], [2, 28, 6, 17]]


def restless(model):
    """A model whose numbers are far from those of a new one: its choices are no ties."""
    return shaken(model).double()


def there(model):
    """A copy on the device."""
    return copy.deepcopy(model).to(DEVICE)


def losses(name, device, dtype=torch.float64, *, adapt=None, n_workers=0, **changes):
    """Those of all steps without dropout."""
    model, objective = make(name)
    if adapt:
        torch.manual_seed(0)
        adapt(model)
    model, settings = model.to(device, dtype), HOW.replace(**changes)
    step = TrainingStep(model, objective, settings)
    step.n_workers = n_workers
    return train(model, objective, settings, step=step, progress=False).loss


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_twenty_steps_have_the_losses_of_the_cpu(name, dtype):
    found, wanted = (losses(name, device, dtype) for device in (DEVICE, "cpu"))
    assert len(wanted) == len(set(wanted)) == N_STEPS
    assert found == pytest.approx(wanted, abs=TOLERANCE[dtype])


@pytest.mark.parametrize("name", ["causal", "masked+nsp", "translation"])
@pytest.mark.parametrize("n_workers", [1, 2])
def test_workers_change_no_loss(name, n_workers):
    assert losses(name, DEVICE, n_workers=n_workers) == pytest.approx(losses(name, "cpu"), abs=1e-8)


def test_losses_are_read_at_the_end_of_an_interval_and_are_its_mean():
    every, half = losses("causal", "cpu"), N_STEPS // 2
    means = [every[0], sum(every[1:half]) / (half - 1), sum(every[half:]) / half]
    assert losses("causal", DEVICE, log_every=half) == pytest.approx(means, abs=1e-8)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("places", [(DEVICE, DEVICE), ("cpu", DEVICE), (DEVICE, "cpu")], ids=str)
def test_a_killed_run_resumes_on_either_device_with_the_losses_of_a_whole_one(tmp_path, places, optimizer):
    def kill(step, model):
        if step == 7:
            raise Killed

    def run(folder, device, on_step=None):
        model, objective = make("causal")
        with Checkpoints(folder, {}).opened() as checkpoints:
            settings = HOW.replace(optimizer=optimizer)
            how = {"checkpoints": checkpoints, "on_step": on_step, "progress": False}
            return train(model.to(device), objective, settings, **how).loss

    first, second = places
    with pytest.raises(Killed):
        run(tmp_path / "run", first, kill)
    # Muon multiplies in bfloat16, where two devices round otherwise
    tolerance = 1e-8 if optimizer == "adamw" else 0.05
    assert run(tmp_path / "run", second) == pytest.approx(run(tmp_path / "whole", "cpu"), abs=tolerance)


def test_what_is_saved_on_one_device_is_loaded_on_the_other(tmp_path):
    model = restless(LanguageModel(CONFIG)).float()
    save(there(model), tmp_path / "there")
    assert_close(load(tmp_path / "there").model.state_dict(), model.state_dict(), rtol=0, atol=0)
    save(model, tmp_path / "here")
    loaded = load(tmp_path / "here", device=DEVICE).model
    assert next(loaded.parameters()).device.type == torch.device(DEVICE).type
    assert_close({k: v.cpu() for k, v in loaded.state_dict().items()}, model.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_cache_on_the_device_writes_what_the_cpu_writes_without_one(variant, cached):
    model = restless(LanguageModel(CONFIG.replace(**VARIANTS[variant])))
    sampling = Sampling(max_new_tokens=12, top_k=1)
    written = continue_rows(there(model), ROWS, sampling, eos_id=3, cached=cached)
    assert written == continue_rows(model, ROWS, sampling, eos_id=3, cached=False)


def test_equal_seeds_draw_equal_tokens_and_leave_the_random_state_alone():
    model, before = there(restless(LanguageModel(CONFIG))), torch.rand(3, device=DEVICE).cpu()
    torch.manual_seed(5)
    samplings = [Sampling(max_new_tokens=12, seed=seed) for seed in (1, 1, 2)]
    drawn = [continue_rows(model, ROWS, sampling, eos_id=3) for sampling in samplings]
    after = torch.rand(3, device=DEVICE).cpu()
    assert drawn[0] == drawn[1] != drawn[2]
    torch.manual_seed(5)
    assert_close(torch.rand(3, device=DEVICE).cpu(), after, rtol=0, atol=0)
    assert not torch.equal(before, after)


@pytest.mark.parametrize("limits", [{}, {"temperature": 0.3}, {"top_k": 4}, {"top_p": 0.6}], ids=str)
def test_the_next_token_has_the_same_probabilities(limits):
    logits = torch.randn(5, 30, dtype=torch.float64)
    assert_close(next_token_probs(logits.to(DEVICE), **limits).cpu(), next_token_probs(logits, **limits))


@pytest.mark.parametrize("beam_size", [1, 4])
def test_greedy_and_beam_search_find_the_translations_of_the_cpu(beam_size):
    model, search = restless(Translator(CONFIG)), Search(beam_size=beam_size)
    sources = [row[1:] or [8] for row in ROWS]
    found = translate_ids(there(model), sources, search=search)
    wanted = translate_ids(model, sources, search=search)
    assert [one.token_ids for one in found] == [one.token_ids for one in wanted]
    assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in wanted])


@pytest.mark.parametrize("name", ["causal", "classification", "translation"])
def test_lora_learns_the_same_and_merges_on_the_device(name):
    assert losses(name, DEVICE, adapt=add_lora) == pytest.approx(
        losses(name, "cpu", adapt=add_lora), abs=1e-8
    )
    model, ids = there(restless(LanguageModel(CONFIG))), torch.tensor([[2, 7, 11, 9]]).to(DEVICE)
    for layer in add_lora(model):
        torch.nn.init.normal_(layer.b)
    assert layer.a.device == layer.base.weight.device
    adapted = model(ids)
    merge_lora(model)
    assert_close(model(ids).cpu(), adapted.cpu())


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "BERT, next sentence", "RoBERTa", "BART", "Marian"])
def test_published_weights_compute_the_same_on_the_device_and_go_back(name, monkeypatch):
    theirs = published.build(name)
    wanted = published.outputs_of(theirs)
    model = from_transformers(theirs).to(DEVICE)
    back = published.outputs_of(to_transformers(model).cpu())
    for inputs in ("IDS", "TARGETS", "REAL", "SEGMENTS"):
        monkeypatch.setattr(published, inputs, getattr(published, inputs).to(DEVICE))
    for found in (published.outputs_of_ours(model), back):
        assert_close([x if x is None else x.cpu() for x in found], list(wanted), atol=1e-4, rtol=0)


def test_texts_classes_and_gaps_get_the_same_numbers():
    tokenizer = Tokenizer.train(texts(60), vocab_size=30)
    model = restless(LanguageModel(CONFIG))
    assert_close(text_nats(there(model), tokenizer, texts(9)), text_nats(model, tokenizer, texts(9)))
    masked = restless(MaskedLanguageModel(CONFIG.replace(causal=False)))
    ids = [tokenizer.cls_id, 7, tokenizer.mask_id, 9, tokenizer.sep_id]
    found, wanted = (fill_probs(each, tokenizer, ids, 2) for each in (there(masked), masked))
    assert_close(torch.as_tensor(found).cpu(), torch.as_tensor(wanted))
    classifier, objective = make("classification")
    classifier = restless(classifier)
    assert count_correct(there(classifier), objective) == count_correct(classifier, objective)


def test_recorded_attention_is_that_of_the_cpu():
    model, ids = restless(LanguageModel(CONFIG)), torch.tensor([[2, 7, 11], [2, 9, 0]])
    maps = []
    for each in (there(model), model):
        device = next(each.parameters()).device
        with record_attention(each) as recorded:
            each(ids.to(device), (ids > 0).to(device))
        maps.append({name: weights.detach().cpu() for name, weights in recorded.items()})
    assert len(maps[0]) == 2
    assert_close(*maps)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_model_in_half_precision_stays_close_to_one_in_double(dtype, positions):
    model = LanguageModel(CONFIG.replace(positions=positions)).double().eval()
    ids = torch.tensor([[2, 7, 11, 19, 5], [2, 9, 0, 0, 0]])
    half = there(model).to(dtype)
    logits = half(ids.to(DEVICE), (ids > 0).to(DEVICE))
    assert logits.dtype == dtype and logits.isfinite().all()
    assert_close(logits.double().cpu(), model(ids, ids > 0), rtol=0, atol=0.05)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_on_the_device_drops_its_share_and_keeps_the_mean(p):
    dropped = dropout(torch.ones(10_000).to(DEVICE), p).cpu()
    assert (dropped == 0).double().mean().item() == pytest.approx(p, abs=0.03)
    assert dropped.mean().item() == pytest.approx(1, abs=0.05)
