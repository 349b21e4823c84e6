"""Each operation, forward and backward, against torch: random shapes, three kinds of kernels."""

import hashlib

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from tests.course.engine.conftest import KINDS
from tinytx.positions import alibi_bias
from tinytx_course.building import wasm

N_QUICK, N_SLOW = 200, 3_000
NEAR = {"float64": 1e-11, "float32": 1e-5, "wasm": 1e-5}

RUN = """
const k = (globalThis.known ??= {})[one.kernels] ??= await kernelsFor(one.kernels);
k.clear();
const put = (name) => {
  const { shape, data } = tensors.get(name), tensor = k.empty(...shape);
  tensor.data.set(data);
  return tensor;
};
const out = () => put("out"), part = (name) => put(name).part(...one.parts[name]);
const done = (result, name = "out") => answer(name, result);
const ids = tensors.get("ids")?.data, op = one.op;
if (op.includes("imes")) {
  const c = out();
  k[op](c.part(...one.parts.out), part("a"), part("b"), one.add);
  done(c);
} else if (op === "add" || op === "addRow" || op === "sumRows") {
  const c = out();
  k[op](c, put("x"), one.step);
  done(c);
} else if (op === "gather" || op === "scatter") {
  const c = out();
  k[op](c, put("x"), ids, one.factor);
  done(c);
} else if (op === "layerNorm") {
  const c = out(), x = put("x"), w = put("weight"), b = one.bias ? put("bias") : null;
  const stats = k.empty(x.nRows, 2);
  k.layerNorm(c, stats, x, w, b, one.eps);
  done(c);
  const dx = out(), dw = put("dw"), db = one.bias ? put("db") : undefined;
  k.layerNormBackward(dx, dw, db, put("dOut"), stats, x, w);
  done(dx, "dx");
  done(dw, "dw");
  if (db) done(db, "db");
} else if (op === "activate") {
  const c = out(), x = put("x"), dx = out();
  k.activate(c, x, one.activation);
  done(c);
  k.activateBackward(dx, put("dOut"), x, one.activation);
  done(dx, "dx");
} else if (op === "softmax") {
  const w = put("x"), dw = put("dOut");
  if (one.scores) k.scoreRows(w, one.factor, one.slope, one.causal);
  k.softmax(w);
  done(w);
  k.softmaxBackward(dw, w, one.factor);
  done(dw, "dx");
} else if (op === "crossEntropy") {
  const x = put("x"), loss = k.crossEntropy(x, ids, -100);
  done(x, "dx");
  return loss;
} else if (op === "adamw") {
  const w = put("x"), m = put("m"), v = put("v");
  k.adamw(w, put("g"), m, v, one);
  for (const [name, tensor] of Object.entries({ out: w, m, v })) done(tensor, name);
}
"""


def product(rng, draw, size):
    """One of the three products, of parts of larger matrices, alone or added to what is there."""
    op = rng.choice(["times", "timesTransposed", "transposedTimes"])
    m, k, n = size(), size(), size()
    shapes = {"a": (k, m) if op == "transposedTimes" else (m, k), "out": (m, n)}
    shapes["b"] = (n, k) if op == "timesTransposed" else (k, n)
    arrays, parts, views = {}, {}, {}
    for name, (rows, columns) in shapes.items():
        row, column = (int(x) for x in rng.integers(0, 4, size=2))
        arrays[name] = draw(row + rows, column + columns + int(rng.integers(0, 3)))
        parts[name] = [row, column, rows, columns]
        views[name] = torch.from_numpy(arrays[name]).double()[row:, column : column + columns]
    a, b = (views["a"].T if op == "transposedTimes" else views["a"]), views["b"]
    add = bool(rng.integers(2))
    expected = torch.from_numpy(arrays["out"]).double().clone()
    row, column, *_ = parts["out"]
    result = a @ (b.T if op == "timesTransposed" else b)
    expected[row:, column : column + n] = result + (views["out"] if add else 0)
    return {"op": op, "parts": parts, "add": add}, arrays, {"out": expected}


def sums(rng, draw, size):
    op, step, n = rng.choice(["add", "addRow", "sumRows"]), int(rng.integers(0, 4)), size()
    rows = size() if op == "add" or step == 0 else step * size()
    x = draw(rows, n) if op != "addRow" else draw(max(step, 1), n)
    out = draw(*((max(step, 1), n) if op == "sumRows" else (rows, n)))
    wide, long = (torch.from_numpy(array).double() for array in (x, out))
    if op == "sumRows":
        expected = long + wide.view(-1, max(step, 1), n).sum(0)
    else:
        expected = long + (wide if op == "add" else wide.repeat(rows // len(wide), 1))
    return {"op": op, "step": step}, {"x": x, "out": out}, {"out": expected}


def tables(rng, draw, size):
    op, vocab_size, n, width = rng.choice(["gather", "scatter"]), size(), size(), size()
    ids, factor = rng.integers(0, vocab_size, size=n).astype(np.int32), float(rng.normal())
    table, rows = draw(vocab_size, width), draw(n, width)
    if op == "gather":
        expected = factor * torch.from_numpy(table).double()[ids]
        return {"op": op, "factor": factor}, {"x": table, "out": rows, "ids": ids}, {"out": expected}
    added = factor * torch.from_numpy(rows).double()
    expected = torch.from_numpy(table).double().index_add(0, torch.from_numpy(ids).long(), added)
    return {"op": op, "factor": factor}, {"x": rows, "out": table, "ids": ids}, {"out": expected}


def norms(rng, draw, size):
    rows, n, bias, eps = size(), size() + 1, bool(rng.integers(2)), float(rng.choice([1e-5, 0.1]))
    arrays = {name: draw(rows, n) for name in ("x", "dOut", "out")}
    arrays |= {name: draw(n) for name in ("weight", "bias", "dw", "db")}
    # far from equal in a row: a norm of nearly equal numbers loses their digits
    arrays["x"] = (0.4 * arrays["x"] + 2 * rng.permutation(n)).astype(arrays["x"].dtype)
    x, w, b = (torch.from_numpy(arrays[name]).double().requires_grad_() for name in ("x", "weight", "bias"))
    y = F.layer_norm(x, (n,), w, b if bias else None, eps)
    y.backward(torch.from_numpy(arrays["dOut"]).double())
    expected = {"out": y.detach(), "dx": x.grad, "dw": w.grad + torch.from_numpy(arrays["dw"])}
    if bias:
        expected["db"] = b.grad + torch.from_numpy(arrays["db"])
    return {"op": "layerNorm", "bias": bias, "eps": eps}, arrays, expected


def activations(rng, draw, size):
    kind, shape = str(rng.choice(["relu", "gelu"])), (size(), size())
    arrays = {"x": 3 * draw(*shape), "dOut": draw(*shape), "out": draw(*shape)}
    x = torch.from_numpy(arrays["x"]).double().requires_grad_()
    y = {"relu": F.relu, "gelu": F.gelu}[kind](x)
    y.backward(torch.from_numpy(arrays["dOut"]).double())
    return {"op": "activate", "activation": kind}, arrays, {"out": y.detach(), "dx": x.grad}


def softmaxes(rng, draw, size):
    """Plain softmax, or the attention weights of one head, with ALiBi or not, causal or not."""
    n, scores, causal, alibi = size(), bool(rng.integers(2)), bool(rng.integers(2)), bool(rng.integers(2))
    shape, factor = (n if scores else size(), n), float(rng.uniform(0.1, 2))
    arrays = {"x": 4 * draw(*shape), "dOut": draw(*shape)}
    x = torch.from_numpy(arrays["x"]).double().requires_grad_()
    slope, added, mask = 0.0, 0.0, torch.ones(shape, dtype=torch.bool)
    if scores:
        slope = 2.0**-8 if alibi else 0.0
        added = alibi_bias(1, n)[0].double() if alibi else 0.0
        mask = mask.tril() if causal else mask
    weights = (factor * x + added if scores else x).masked_fill(~mask, -torch.inf).softmax(-1)
    weights.backward(torch.from_numpy(arrays["dOut"]).double())
    grad = x.grad if scores else factor * x.grad
    facts = {"op": "softmax", "scores": scores, "causal": causal, "slope": slope, "factor": factor}
    return facts, arrays, {"out": weights.detach(), "dx": grad}


def losses(rng, draw, size):
    n, vocab_size = size(), size()
    targets = rng.integers(0, vocab_size, size=n).astype(np.int32)
    targets[1:][rng.random(n - 1) < 0.3] = -100
    arrays = {"x": 4 * draw(n, vocab_size), "ids": targets}
    x = torch.from_numpy(arrays["x"]).double().requires_grad_()
    loss = F.cross_entropy(x, torch.from_numpy(targets).long(), ignore_index=-100)
    loss.backward()
    return {"op": "crossEntropy"}, arrays, {"value": loss.detach(), "dx": x.grad}


def updates(rng, draw, size):
    shape = (size(), size())
    arrays = {"x": draw(*shape), "g": draw(*shape), "m": 0.1 * draw(*shape), "v": draw(*shape) ** 2}
    facts = {"op": "adamw", "lr": float(rng.uniform(0, 0.1)), "decay": float(rng.choice([0.0, 0.1]))}
    facts |= {"step": int(rng.integers(1, 50)), "factor": float(rng.uniform(0.1, 1))}
    facts |= {"betas": [0.9, 0.98], "eps": 1e-8}
    weight = torch.nn.Parameter(torch.from_numpy(arrays["x"]).double().clone())
    optimizer = torch.optim.AdamW([weight], lr=facts["lr"], betas=facts["betas"], weight_decay=facts["decay"])
    state = {"exp_avg": arrays["m"], "exp_avg_sq": arrays["v"]}
    optimizer.state[weight] = {name: torch.from_numpy(x).double().clone() for name, x in state.items()}
    optimizer.state[weight]["step"] = torch.tensor(float(facts["step"] - 1))
    weight.grad = facts["factor"] * torch.from_numpy(arrays["g"]).double()
    optimizer.step()
    after = optimizer.state[weight]
    expected = {"out": weight.detach(), "m": after["exp_avg"], "v": after["exp_avg_sq"]}
    return facts, arrays, expected


OPERATIONS = (product, sums, tables, norms, activations, softmaxes, losses, updates, product)


def drawn(number):
    """Case `number`: the operation and its kernels in turn, shapes and numbers by chance."""
    rng, kernels = np.random.default_rng(number), list(KINDS)[number % 3]
    dtype = np.float64 if kernels == "float64" else np.float32

    def size():
        return int(rng.integers(1, 22) if rng.random() < 0.95 else rng.integers(100, 300))

    facts, arrays, expected = OPERATIONS[number // 3 % len(OPERATIONS)](
        rng, lambda *shape: rng.normal(size=shape).astype(dtype), size
    )
    return ({"kernels": kernels, **facts, "op": str(facts["op"])}, arrays), expected


def compare(engine, numbers):
    cases = [drawn(number) for number in numbers]
    answers = engine(RUN, *(one for one, _ in cases))
    for number, ((facts, _), expected), (answer, value) in zip(numbers, cases, answers, strict=True):
        near = NEAR[facts["kernels"]]
        for name, tensor in expected.items():
            got = torch.tensor(value, dtype=torch.float64) if name == "value" else answer[name]
            # of sums of many numbers the last digits of the largest count
            atol = near * max(1.0, tensor.abs().max().item())
            where = f"case {number}, {facts}, {name}: "
            assert_close(got.double(), tensor, rtol=near, atol=atol, msg=lambda text, at=where: at + text)


def test_operations_on_random_shapes_are_those_of_torch(engine):
    compare(engine, range(N_QUICK))


@pytest.mark.proof
@pytest.mark.parametrize("first", range(N_QUICK, N_SLOW, 700))
def test_three_thousand_cases(engine, first):
    compare(engine, range(first, first + 700))


def test_the_fast_kernels_are_those_of_webassembly_and_fall_back_where_it_is_missing(engine):
    body = (
        "return [!!(await kernelsFor('wasm')).wasm, (await fastKernels(new Uint8Array(9))).constructor.name];"
    )
    assert engine(body, ({}, {}))[0][1] == [True, "Kernels"]


def test_the_committed_webassembly_comes_from_its_source(tmp_path):
    content = wasm.TARGET.read_bytes()
    assert content.endswith(hashlib.sha256(wasm.SOURCE.read_bytes()).hexdigest().encode()), (
        "run `make engine`"
    )
    if wasm.compiler().is_file():  # for authors; others have no compiler
        assert wasm.compiled(tmp_path) == content
