"""Published models are read where they lie, and nothing is fetched that was not allowed."""

import pytest
import torch
import transformers

import tinytx as tx
from tests.tinytx_run.hf.test_folders import make_camembert, make_gpt2, make_marian
from tinytx_course.labs.lesson_16 import answer, published_source
from tinytx_run.hf.convert import from_transformers
from tinytx_run.hf.tokenizer import published_tokenizer


def write_model(folder):
    config = transformers.GPT2Config(vocab_size=13, n_embd=10, n_layer=1, n_head=5, n_positions=7)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """Neither data nor a cache, and a network that must not be asked."""
    monkeypatch.setenv("TINYTX_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return tmp_path


def test_what_lies_nowhere_is_not_fetched_unless_the_environment_allows_it(nowhere, monkeypatch):
    assert published_source("gpt2") is None
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert published_source("gpt2") is None
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert published_source("gpt2") == "gpt2"


@pytest.mark.parametrize("name", ["gpt2", "Helsinki-NLP/opus-mt-en-fr"])
def test_a_folder_of_the_data_is_found(nowhere, name):
    folder = nowhere / "data" / "models" / name
    write_model(folder)
    assert published_source(name) == str(folder)


def test_a_cached_model_is_found_only_with_its_weights(nowhere):
    snapshot = nowhere / "cache" / "models--gpt2" / "snapshots" / "0"
    refs = nowhere / "cache" / "models--gpt2" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("0")
    write_model(snapshot)
    assert published_source("gpt2") == str(snapshot)
    (snapshot / "model.safetensors").unlink()
    assert published_source("gpt2") is None


def test_a_blank_is_filled_as_in_transformers(tmp_path):
    folder = make_camembert(tmp_path)
    theirs = transformers.CamembertForMaskedLM.from_pretrained(folder).eval()
    inner = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    ids = inner("le petit<mask> mange", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        best = theirs(ids).logits[ids == inner.mask_token_id][0].topk(3).indices.tolist()
    due = [inner.decode([one], skip_special_tokens=True).strip() for one in best]
    found = answer(from_transformers(folder), published_tokenizer(folder), "le petit ___ mange")
    assert found == ", ".join(due)


def test_a_prompt_is_continued_or_translated(tmp_path):
    for make in (make_gpt2, make_marian):
        folder = tmp_path / make.__name__
        folder.mkdir()
        make(folder)
        model, tokenizer = from_transformers(folder), published_tokenizer(folder)
        found = answer(model, tokenizer, "le petit chat")
        if make is make_gpt2:
            assert found.startswith("le petit chat") and len(found) > len("le petit chat")
        else:
            assert found == str(tx.translate(model, tokenizer, ["le petit chat"])[0])
