"""Files of tensors, and a model as one: from the page to the library and back; bad files are named."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save
from safetensors.torch import save_file
from torch.testing import assert_close

import tinytx as tx
from tests.course.engine.conftest import twin
from tests.course.engine.test_model import some_ids

TENSORS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([-128, 0, 127], dtype=np.int8),
    "c": np.array([[1e300, -0.5]]),
    "d": np.array([7, 65535], dtype=np.uint16),
    "e": np.array([9, 255, 1], dtype=np.uint8),
}


def test_the_page_reads_and_writes_what_the_library_reads(engine):
    body = """const { metadata, tensors: read } = readTensors(tensors.get("file").data);
      const shapes = [...read].map(([name, { shape }]) => [name, shape]);
      return [[...writeTensors(read, metadata)], metadata, shapes];"""
    given = np.frombuffer(save(TENSORS, {"format": "ü"}), np.uint8)
    written, metadata, shapes = engine(body, ({}, {"file": given}))[0][1]
    assert metadata == {"format": "ü"}
    assert dict(shapes) == {name: list(array.shape) for name, array in TENSORS.items()}
    back = load(bytes(written))
    for name, array in TENSORS.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)


def headed(header):
    return len(header).to_bytes(8, "little") + header.encode() + bytes(8)


HEADERS = ["null", "[]", "7", '{"a":1}', '{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}']


@pytest.mark.parametrize("content", [*(save(TENSORS)[:n] for n in (0, 5, 40, -1)), *map(headed, HEADERS)])
def test_a_torn_file_and_a_header_of_another_kind_are_named(engine, content):
    body = "try { readTensors(tensors.get('file').data); } catch (error) { return error.message; }"
    message = engine(body, ({}, {"file": np.frombuffer(content, np.uint8)}))[0][1]
    assert message.startswith("a file of tensors must be whole")


WRITE = """
const lm = initialise(new LanguageModel(one.config, await kernelsFor("wasm"), one.switches), 3);
answer("logits", lm.forward(tensors.get("ids").data, ...one.sizes));
const bytes = writeState(lm, { words: ["é"], step: 7 });
answer("file", { shape: [bytes.length], data: bytes });
const { description } = readState(bytes);
return [description.words, description.step];
"""
READ = """
const { model: lm, description } = readState(tensors.get("file").data, await kernelsFor("wasm"));
answer("logits", lm.forward(tensors.get("ids").data, ...one.sizes));
"""
MODELS = [{}, {"tie_embeddings": True, "positions": "learned"}, {"norm": "last", "bias": False, "n_heads": 2}]


def facts_of(model, ids, **more):
    return {"config": model.config.to_dict(), "sizes": list(ids.shape), **more}


@pytest.mark.parametrize("fields", MODELS)
def test_a_file_of_the_page_is_opened_by_the_library_and_the_other_way_round(engine, tmp_path, fields):
    model = twin(dtype=torch.float32, **fields)
    ids, file = some_ids(model), tmp_path / "page.safetensors"
    given = {"ids": ids.int().numpy()}
    ((answer, told),) = engine(WRITE, (facts_of(model, ids), given))
    file.write_bytes(answer["file"].numpy().tobytes())
    loaded = tx.load(file).model
    assert loaded.config == model.config and told == [["é"], 7]
    with torch.no_grad():
        assert_close(answer["logits"], loaded(ids), rtol=1e-5, atol=1e-5)
    content = tx.save(model, tmp_path / "ours.safetensors").read_bytes()
    ((answer, _),) = engine(READ, (facts_of(model, ids), given | {"file": np.frombuffer(content, np.uint8)}))
    with torch.no_grad():
        assert_close(answer["logits"], model(ids), rtol=1e-5, atol=1e-5)


def spoilt(model, tmp_path):
    """Bytes of files that are no model for the page, each with a word of what is wrong."""
    whole = tx.save(model, tmp_path / "whole.safetensors").read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    description = json.loads(header["__metadata__"]["tinytx"])

    def described(**changes):
        name = tmp_path / "changed.safetensors"
        text = json.dumps({**description, **changes}) if changes else "{"
        save_file(dict(model.state_dict()), name, {"tinytx": text})
        return name.read_bytes()

    save_file({"x": torch.zeros(2)}, tmp_path / "foreign.safetensors")
    other = described(config={**description["config"], "d_ff": 9})
    return {
        "torn": (whole[:-5], "before that of"),
        "foreign": ((tmp_path / "foreign.safetensors").read_bytes(), "does not describe"),
        "no JSON": (described(), "JSON"),
        "another size": (other, "(9,6)"),
        "another kind": (described(kind="translator"), "translator"),
        "another version": (described(version=2), "version 2"),
    }


def test_bad_files_are_named_in_one_sentence_by_page_and_library(engine, tmp_path):
    model = twin(dtype=torch.float32)
    files = spoilt(model, tmp_path)
    body = "try { readState(tensors.get('file').data); } catch (error) { return error.message; }"
    cases = [({}, {"file": np.frombuffer(content, np.uint8)}) for content, _ in files.values()]
    for (name, (content, word)), (_, message) in zip(files.items(), engine(body, *cases), strict=True):
        assert message and word in message and "\n" not in message, (name, message)
        (tmp_path / "bad.safetensors").write_bytes(content)
        with pytest.raises(ValueError, match="bad.safetensors"):
            tx.load(tmp_path / "bad.safetensors")


def test_a_model_without_scale_is_for_the_page_alone(engine, tmp_path):
    model = twin(dtype=torch.float32)
    ids = some_ids(model)
    facts = facts_of(model, ids, switches={"scale": False})
    ((answer, _),) = engine(WRITE, (facts, {"ids": ids.int().numpy()}))
    ((again, _),) = engine(READ, (facts, {"file": answer["file"].numpy(), "ids": ids.int().numpy()}))
    assert_close(again["logits"], answer["logits"], rtol=0, atol=0)
    (tmp_path / "page.safetensors").write_bytes(answer["file"].numpy().tobytes())
    with pytest.raises(ValueError, match="without scale"):
        tx.load(tmp_path / "page.safetensors")


def test_one_file_holds_no_tokenizer(tmp_path):
    tokenizer = tx.Tokenizer.train(["le chat", "la table"] * 9, vocab_size=18)
    with pytest.raises(ValueError, match="tokenizer"):
        tx.save(twin(dtype=torch.float32), tmp_path / "one.safetensors", tokenizer)
