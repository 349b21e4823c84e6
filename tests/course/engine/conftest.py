"""The engine of the page, run in node next to tinytx itself."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch

import tinytx as tx
from tests.tinytx.against_torch import shaken
from tinytx_course.engine.node import node_program, run_in_node
from tinytx_course.engine.tables import world_tables


@pytest.fixture(scope="session")
def engine():
    """Return ``run(body, *cases)``: what JavaScript answers in each case, as (tensors by name, value)."""
    if node_program() is None:
        pytest.skip("needs node: the JavaScript cannot be run without it")

    def run(body, *cases):
        answers = run_in_node(body, *cases)
        return [({name: torch.from_numpy(x) for name, x in found.items()}, value) for found, value in answers]

    return run


@pytest.fixture(scope="session")
def tables(world):
    """The language as the page reads it."""
    return {"world": np.frombuffer(world_tables(world), np.uint8)}


@contextmanager
def default_dtype(dtype):
    """New tensors, tables of positions included, have this type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def twin(seed=0, dtype=torch.float64, **fields):
    """A small model of tinytx with random weights, in which all sizes differ."""
    sizes = {"vocab_size": 11, "d_model": 6, "n_heads": 3, "n_layers": 2, "d_ff": 7, "max_len": 8}
    torch.manual_seed(seed)
    with default_dtype(dtype):
        return shaken(tx.LanguageModel(tx.TransformerConfig(**{**sizes, **fields})), by=0.2)


def case(model, ids, kernels=None, **facts):
    """What JavaScript needs to compute with the same model and ids, (B, T)."""
    state = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    kernels = kernels or ("float64" if next(model.parameters()).dtype == torch.float64 else "float32")
    facts = {"config": model.config.to_dict(), "sizes": list(ids.shape), "kernels": kernels, **facts}
    return facts, {**state, "ids": ids.int().numpy()}


KINDS = {"float64": torch.float64, "float32": torch.float32, "wasm": torch.float32}  # of kernels
