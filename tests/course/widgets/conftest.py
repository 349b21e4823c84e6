"""The JavaScript of the explorers, run under node on the state of a Python explorer."""

import base64
import json
import shutil
import subprocess

import pytest

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
console.log(JSON.stringify(answers, (_, value) => (ArrayBuffer.isView(value) ? [...value] : value)));
"""


@pytest.fixture
def node(tmp_path):
    """Return ``run(kind, expression, *explorers)``: the value of a JavaScript expression for each explorer.

    The expression knows the module as `js` and the shared state as `get`.
    """
    program = shutil.which("node")
    if program is None:
        pytest.skip("needs node: the JavaScript cannot be run without it")

    def run(kind, expression, *explorers):
        def packed(value):
            return {"float32": base64.b64encode(value).decode()} if isinstance(value, bytes) else value

        states = [{k: packed(v) for k, v in explorer.shared().items()} for explorer in explorers] or [{}]
        module = tmp_path / f"{kind}.mjs"
        module.write_text(module_source(kind), encoding="utf-8")
        script = tmp_path / "run.mjs"
        text = _RUN.replace("MODULE", json.dumps(module.as_uri())).replace("STATES", json.dumps(states))
        script.write_text(text.replace("EXPRESSION", expression), encoding="utf-8")
        done = subprocess.run([program, str(script)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    return run
