"""The language of a world as one file of tables for the page, some 100 kB: see world.js, which reads it.

Most of the states of the network are alike: they write the same words with the same probabilities, and go to
states in the same order. Each such block of arcs is stored once, and each row of probabilities (one for each
book) once. Probabilities that differ by less than 1e-12 count as equal.
"""

from __future__ import annotations

import json

import numpy as np
from safetensors.numpy import save

from tinytx_course.engine.gloss import word_by_word
from tinytx_course.engine.shipped import METADATA
from tinyworld.reviews import NO_SPACE_BEFORE
from tinyworld.world import World

DIGITS = 12


def world_tables(world: World) -> bytes:
    """Write the network of a world and the distribution of what is hidden as one safetensors file.

    Returns
    -------
    bytes
        ``value`` (n,) and ``row`` (R, G): the distinct rows of probabilities, one column a book, as places in
        ``value``; ``arc`` (A, 3): word, row, and target less the lowest target, block after block; ``block``
        (n + 1,): where each block begins; ``state`` (Q, 2): block and lowest target. In the metadata: words,
        English for each of them, plan, entries and ends.
    """
    network, plan = world.automaton.network, world.plan
    _, place, index = np.unique(network.weight.round(DIGITS), return_index=True, return_inverse=True)
    rows, row = np.unique(index.reshape(network.weight.shape), axis=0, return_inverse=True)
    blocks: dict[bytes, int] = {}
    arcs, begins, states = [], [0], []
    for start, end in zip(network.first[:-1], network.first[1:], strict=True):
        target = network.target[start:end]
        lowest = target.min(initial=network.first.size) if end > start else 0
        arc = np.stack([network.word[start:end], row.ravel()[start:end], target - lowest], axis=1)
        key = arc.astype("<u2").tobytes()
        if key not in blocks:
            blocks[key] = len(blocks)
            arcs.append(arc)
            begins.append(begins[-1] + len(arc))
        states.append((blocks[key], lowest))
    whole = {"row": rows, "arc": np.concatenate(arcs), "block": begins, "state": states}
    tensors = {name: _as_uint16(name, np.asarray(numbers)) for name, numbers in whole.items()}
    metadata = {
        "words": world.vocabulary,
        "english": [word_by_word([word])[0] for word in world.vocabulary if world.language == "fr"],
        "glued": sorted(NO_SPACE_BEFORE[world.language]),
        "n_books": network.n_books,
        "entries": network.entries,
        "ends": network.ends,
        "stop": plan.stop.tolist(),
        "sentences": {str(count): chance for count, chance in plan.sentences.items()},
        "polarity": plan.polarity_given_label().tolist(),
        "openers": {key: dict(plan.openers[key]) for key in ("first", "same", "turn")},
    }
    return save(
        {"value": network.weight.ravel()[place], **tensors},
        {METADATA: json.dumps(metadata, ensure_ascii=False)},
    )


def _as_uint16(name: str, numbers: np.ndarray) -> np.ndarray:
    if numbers.max() >= 2**16:
        raise ValueError(f"{name} must be below {2**16}, got {numbers.max()}")
    return numbers.astype(np.uint16)
