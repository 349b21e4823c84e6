"""The run of the page that trains in a worker of Chromium: from a page on the disk, without a network."""

import json

import numpy as np
import pytest
import torch

import tinytx as tx
from tinytx_course.engine import training_parts

PAGE = """<!doctype html><meta charset="utf-8"><title>worker</title>
<script type="text/plain" id="engine">SCRIPT</script>
<script>
const script = document.getElementById("engine").textContent;
const ENGINE = new Function(`${script}; return ENGINE;`)();
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const files = { tables: bytes("TABLES"), wasm: bytes("WASM") };
const worker = ENGINE.workerFrom(script), heard = [];
worker.onmessage = ({ data }) => heard.push(data);
worker.onerror = (error) => heard.push({ told: "error", message: error.message });
const ask = (ask, more) => worker.postMessage({ ask, ...more });
async function until(told) { // take what was heard up to the first of these
  for (;;) {
    const at = heard.findIndex((message) => message.told === told || message.told === "error");
    if (at >= 0) return heard.splice(0, at + 1);
    await new Promise((go) => setTimeout(go, 5));
  }
}
</script>"""
START = "ask('start', { ...files, seed: 4, changes: CHANGES, words: ['Ce', 'roman'] });"
CHANGES = {"config": {"d_model": 16, "n_heads": 2, "n_layers": 1}, "settings": {"n_steps": 12}}


@pytest.fixture
def trainer(page, tmp_path):
    """The page, opened from the disk, and a function that evaluates a script in it."""
    parts = training_parts(tx.World())
    text = (
        PAGE.replace("SCRIPT", parts["script"])
        .replace("WASM", parts["wasm"])
        .replace("TABLES", parts["tables"])
    )
    (tmp_path / "worker.html").write_text(text, encoding="utf-8")
    page.open((tmp_path / "worker.html").as_uri())
    yield lambda script: page.evaluate(
        f"(async () => {{ {script} }})()".replace("CHANGES", json.dumps(CHANGES))
    )
    assert page.outside() == []


def of_kind(kind, messages):
    return [one for one in messages if one["told"] == kind]


def test_a_run_pauses_steps_and_repeats_with_its_seed(trainer):
    (started,) = trainer(f"{START} return until('started');")
    assert started["told"] == "started" and started["fast"] and started["config"]["d_model"] == 16
    *steps, done = trainer("ask('train', { steps: 3 }); return until('done');")
    assert [one["step"] for one in steps] == [1, 2, 3] and done == {
        "told": "done",
        "step": 3,
        "finished": False,
    }
    *more, done = trainer("ask('train', {}); ask('pause'); ask('train', {}); return until('done');")
    while done["step"] < 12:
        found = trainer("return until('done');")
        more, done = more + found[:-1], found[-1]
    again = trainer(f"{START} ask('train', {{}}); return until('done');")
    for kind in ("step", "shown"):
        assert of_kind(kind, again) == of_kind(kind, steps + more)
    assert [one["step"] for one in of_kind("shown", again)] == [5, 7, 10, 12]
    assert len(of_kind("step", again)) == 12


def test_a_saved_state_is_opened_by_tinytx_and_again_by_the_page(trainer, tmp_path):
    found = trainer(
        f"""{START} ask('train', {{}}); await until('done');
        ask('show'); const before = (await until('shown')).at(-1);
        ask('save'); const saved = (await until('saved')).at(-1).bytes;
        ask('open', {{ bytes: saved }}); const opened = (await until('opened')).at(-1);
        ask('show'); const after = (await until('shown')).at(-1);
        const bad = [];
        for (const bytes of [saved.slice(0, -4), new Uint8Array(3)]) {{
          ask('open', {{ bytes }}); bad.push((await until('opened')).at(-1));
        }}
        ask('sing'); bad.push((await until('opened')).at(-1));
        return {{ before, opened, after, bad, saved: [...saved] }};"""
    )
    same = ("loss", "bound", "above", "attention")
    assert [found["before"][key] for key in same] == [found["after"][key] for key in same]
    assert found["opened"]["trained"] == 12 and found["after"]["step"] == 0
    assert [one["told"] for one in found["bad"]] == ["error"] * 3
    assert all("got" in one["message"] for one in found["bad"])
    (tmp_path / "saved.safetensors").write_bytes(bytes(found["saved"]))
    model, world = tx.load(tmp_path / "saved.safetensors").model, tx.World()
    ids = torch.tensor([[0, *(world.automaton.word_ids[word] + 1 for word in ("Ce", "roman"))]])
    with torch.no_grad(), tx.record_attention(model) as weights:
        model(ids)
    seen = [float(found["after"]["attention"][0][str(i)]) for i in range(18)]
    np.testing.assert_allclose(seen, weights["body.blocks.0.attn"].flatten(), rtol=1e-5, atol=1e-5)
