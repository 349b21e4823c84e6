"""The one shipped model: a language model of the world with eight bits a weight, read by Python and by pages.

Each matrix is stored as whole numbers from -127 to 127, with one scale for each row:

.. math:: W_{ij} \\approx s_i \\, n_{ij}, \\qquad s_i = \\max_j |W_{ij}| / 127

so no weight moves by more than half a step, s_i / 2. Vectors stay float32. `tinytx_course.building.shipped`
trains and writes the model; shipped.json states its loss, its data and the commit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load, save

from tinytx.config import TransformerConfig
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel

FOLDER = Path(__file__).parent
WEIGHTS, FACTS = "shipped.safetensors", "shipped.json"
RECORDED = "recorded.json"  # a whole run of the page that trains: see tinytx_course.building.recorded
LARGEST = 127
SCALE, TOKENIZER = ".scale", "tokenizer.model"  # ends the name of a matrix's scales; holds the tokenizer
METADATA = "tinytx"  # one key, as safetensors does not fix the order of several


@dataclass(frozen=True, eq=False)
class Shipped:
    """The shipped model.

    Attributes
    ----------
    model : LanguageModel
        In evaluation mode, in float32.
    tokenizer : Tokenizer
    facts : dict
        What shipped.json states: loss before and after rounding, entropy bound, recipe, commit.
    """

    model: LanguageModel
    tokenizer: Tokenizer
    facts: dict[str, Any]


def quantise(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Round a matrix to eight bits.

    Parameters
    ----------
    matrix : ndarray of shape (R, C)

    Returns
    -------
    numbers : ndarray of shape (R, C), int8
        From -127 to 127.
    scale : ndarray of shape (R,), float32
        ``scale[:, None] * numbers`` is within ``scale / 2`` of the matrix.

    Examples
    --------
    >>> numbers, scale = quantise(np.array([[0.5, -1.27, 0.0]], dtype=np.float32))
    >>> numbers.tolist(), scale.tolist()
    ([[50, -127, 0]], [0.009999999776482582])
    """
    largest = np.abs(matrix).max(axis=1)
    scale = np.where(largest > 0, largest / LARGEST, 1.0).astype(np.float32)
    return np.clip(np.rint(matrix / scale[:, None]), -LARGEST, LARGEST).astype(np.int8), scale


def shipped_bytes(model: LanguageModel, tokenizer: Tokenizer) -> bytes:
    """Write a language model with eight bits a weight, and its tokenizer, as one safetensors file."""
    tensors: dict[str, np.ndarray] = {TOKENIZER: np.frombuffer(tokenizer.to_bytes(), np.uint8)}
    for name, parameter in model.named_parameters():  # a tied matrix once
        values = parameter.detach().cpu().float().numpy()
        if values.ndim == 2:
            tensors[name], tensors[name + SCALE] = quantise(values)
        else:
            tensors[name] = values
    return save(tensors, {METADATA: json.dumps({"config": model.config.to_dict()})})


def read_shipped(content: bytes) -> tuple[LanguageModel, Tokenizer]:
    """Read what `shipped_bytes` wrote."""
    tensors = load(content)
    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][METADATA])
    model = LanguageModel(TransformerConfig.from_dict(metadata["config"]))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = tensors[name].astype(np.float32)
            if name + SCALE in tensors:
                values *= tensors[name + SCALE][:, None]
            parameter.copy_(torch.from_numpy(values))
    return model.eval(), Tokenizer.from_bytes(tensors[TOKENIZER].tobytes())


def shipped_model() -> Shipped:
    """Read the model that comes with the course; each call gives a model of its own.

    Examples
    --------
    >>> import tinytx as tx
    >>> shipped = shipped_model()
    >>> tx.count_parameters(shipped.model)
    649856
    """
    facts = json.loads((FOLDER / FACTS).read_text(encoding="utf-8"))
    return Shipped(*read_shipped(_content()), facts)


@cache
def _content() -> bytes:
    return (FOLDER / WEIGHTS).read_bytes()
