"""Files of tensors: what the page writes, the library reads, and back; torn files are named."""

import numpy as np
import pytest
from safetensors.numpy import load, save

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
