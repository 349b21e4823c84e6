"""The JavaScript of the explorers, run in node on the state of a Python explorer."""

import numpy as np
import pytest
import torch

import tinytx as tx
from tinytx.tokenizer import Tokenizer
from tinytx_course.engine.node import node_program, run_in_node
from tinytx_course.engine.shipped import shipped_model
from tinytx_course.widgets.assets import module_source

_RUN = """
const js = await import(one.module), values = { ...one.state };
for (const [name, { data }] of tensors) values[name] = new DataView(data.slice().buffer);
const get = (name) => js.floats(values[name]);
return JSON.parse(JSON.stringify((EXPRESSION) ?? null, (_, value) => {
  if (ArrayBuffer.isView(value)) return [...value];
  return typeof value === "bigint" ? String(value) : value;
}));
"""


def close(values, expected, **tolerances):
    """Assert that what JavaScript computed is a tensor, shape by shape."""
    actual = torch.tensor(values, dtype=expected.dtype).view(expected.shape)
    torch.testing.assert_close(actual, expected, **tolerances)


def changed(explorer, **state):
    """Return the explorer after a reader has changed its state."""
    for name, value in state.items():
        setattr(explorer, name, value)
    return explorer


@pytest.fixture(scope="session")
def node(tmp_path_factory):
    """Return ``run(kind, expression, *states)``: the value of a JavaScript expression for each state.

    The expression knows the module as `js` and the state, that of an explorer or a dict, as `get`.
    """
    if node_program() is None:
        pytest.skip("needs node: the JavaScript cannot be run without it")
    folder = tmp_path_factory.mktemp("node")

    def run(kind, expression, *states):
        module, cases = folder / f"{kind}.mjs", []
        module.write_text(module_source(kind), encoding="utf-8")
        for one in states or [{}]:
            state = one if isinstance(one, dict) else one.state()
            arrays = {name: np.frombuffer(x, np.uint8) for name, x in state.items() if isinstance(x, bytes)}
            plain = {name: value for name, value in state.items() if name not in arrays}
            cases.append(({"module": module.as_uri(), "state": plain}, arrays))
        body = _RUN.replace("EXPRESSION", expression)
        return [value for _, value in run_in_node(body, *cases, engine=False)]

    return run


@pytest.fixture(scope="session")
def describe(node):
    """Return ``run(*explorers)``: what the page says about the state of each."""
    return lambda *explorers: node(explorers[0].kind, "js.describe(get)", *explorers)


UNWRITTEN = [0, 1, 2, 4, 5, 6]  # ids of special tokens that no text holds


class Live:
    """The shipped model as torch runs it, and the language through its tokenizer."""

    def __init__(self, world):
        shipped = shipped_model()
        self.world, self.model, self.tokenizer = world, shipped.model, shipped.tokenizer
        self.exactly = world.through(self.tokenizer)

    def ids(self, text):
        return [self.tokenizer.bos_id, *self.tokenizer.encode(" ".join(self.world.split(text)))]

    @torch.no_grad()
    def logits(self, ids):
        """Of the next token after each, (T, V), -inf where it cannot be written."""
        return self.model(torch.tensor([ids]))[0].double().index_fill(1, torch.tensor(UNWRITTEN), -torch.inf)


@pytest.fixture(scope="session")
def live(world):
    return Live(world)


@pytest.fixture(scope="session")
def tokenizer(world):
    """One of both languages."""
    return Tokenizer.train([text for pair in world.pairs(300, seed=0) for text in pair], vocab_size=200)


@pytest.fixture(scope="module")
def translator(tokenizer):
    """An untrained one, which a module may change."""
    torch.manual_seed(0)
    config = tx.PRESETS["tiny"].replace(vocab_size=tokenizer.vocab_size, head_bias=True)
    return tx.Translator(config).eval()


@pytest.fixture(scope="session")
def reader(world):
    """An untrained model with large weights in its head, so that it has favourites, and its tokenizer."""
    tokenizer = Tokenizer.train([" ".join(one.words) for one in world.reviews(300, seed=0)], vocab_size=200)
    torch.manual_seed(0)
    model = tx.LanguageModel(tx.PRESETS["tiny"].replace(vocab_size=tokenizer.vocab_size)).eval()
    with torch.no_grad():
        model.head.weight.mul_(30)
    return model, tokenizer
