"""Published models are read where they lie, and nothing is fetched that was not allowed."""

import pytest
import torch
import transformers

from tinytx.hf.convert import from_transformers
from tinytx_course.labs.lesson_16 import published_source


def write_model(folder):
    config = transformers.GPT2Config(vocab_size=13, n_embd=10, n_layer=1, n_head=5, n_positions=7)
    model = transformers.GPT2LMHeadModel(config).eval()
    model.save_pretrained(folder)
    return model


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
def test_a_folder_of_the_data_is_found_and_its_weights_give_the_same_outputs(nowhere, name):
    theirs = write_model(nowhere / "data" / "models" / name)
    ids = torch.tensor([[1, 5, 12]])
    with torch.no_grad():
        got, due = from_transformers(published_source(name))(ids), theirs(ids).logits
    torch.testing.assert_close(got, due, atol=1e-5, rtol=1e-5)


def test_a_cached_model_is_found_only_with_its_weights(nowhere):
    snapshot = nowhere / "cache" / "models--gpt2" / "snapshots" / "0"
    refs = nowhere / "cache" / "models--gpt2" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("0")
    write_model(snapshot)
    assert published_source("gpt2") == str(snapshot)
    (snapshot / "model.safetensors").unlink()
    assert published_source("gpt2") is None
