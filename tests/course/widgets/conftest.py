"""The JavaScript of the explorers, run in node on the state of a Python explorer."""

import base64
import json
import subprocess

import pytest
import torch

import tinytx as tx
from tinytx.tokenizer import Tokenizer
from tinytx_course.engine.node import node_program
from tinytx_course.engine.shipped import shipped_model
from tinytx_course.widgets.assets import module_source

_RUN = """
import * as js from MODULE;
const states = STATES;
const answers = states.map((state) => {
  const values = Object.fromEntries(Object.entries(state).map(([name, value]) => {
    if (value === null || typeof value !== "object" || !("float32" in value)) return [name, value];
    return [name, new DataView(Uint8Array.from(Buffer.from(value.float32, "base64")).buffer)];
  }));
  const get = (name) => js.floats(values[name]);
  return (EXPRESSION);
});
console.log(JSON.stringify(answers, (_, value) => {
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


def _packed(value):
    return {"float32": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


@pytest.fixture(scope="session")
def node(tmp_path_factory):
    """Return ``run(kind, expression, *states)``: the value of a JavaScript expression for each state.

    The expression knows the module as `js` and the state, that of an explorer or a dict, as `get`.
    """
    program = node_program()
    if program is None:
        pytest.skip("needs node: the JavaScript cannot be run without it")
    folder = tmp_path_factory.mktemp("node")

    def run(kind, expression, *states):
        known = [state if isinstance(state, dict) else state.state() for state in states] or [{}]
        packed = [{name: _packed(value) for name, value in state.items()} for state in known]
        module, script = folder / f"{kind}.mjs", folder / "run.mjs"
        module.write_text(module_source(kind), encoding="utf-8")
        text = _RUN.replace("MODULE", json.dumps(module.as_uri())).replace("STATES", json.dumps(packed))
        script.write_text(text.replace("EXPRESSION", expression), encoding="utf-8")
        done = subprocess.run([program, str(script)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def describe(node):
    """Return ``run(*explorers)``: what the page says about the state of each."""
    return lambda *explorers: node(explorers[0].kind, "js.describe(get)", *explorers)


@pytest.fixture(scope="session")
def world():
    return tx.World()


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
def bilingual(world):
    """An untrained translator, and its tokenizer of both languages."""
    texts = [text for pair in world.pairs(300, seed=0) for text in pair]
    tokenizer = Tokenizer.train(texts, vocab_size=200)
    torch.manual_seed(0)
    config = tx.PRESETS["tiny"].replace(vocab_size=tokenizer.vocab_size, head_bias=True)
    return tx.Translator(config).eval(), tokenizer


@pytest.fixture(scope="session")
def reader(world):
    """An untrained model with large weights in its head, so that it has favourites, and its tokenizer."""
    tokenizer = Tokenizer.train([" ".join(one.words) for one in world.reviews(300, seed=0)], vocab_size=200)
    torch.manual_seed(0)
    model = tx.LanguageModel(tx.PRESETS["tiny"].replace(vocab_size=tokenizer.vocab_size)).eval()
    with torch.no_grad():
        model.head.weight.mul_(30)
    return model, tokenizer
