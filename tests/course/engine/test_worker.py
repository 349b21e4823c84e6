"""The worker of the page that trains: what it does when the page asks for something while it learns."""

import numpy as np
import pytest

from tinytx_course.engine.bundle import FOLDER

# A clock of its own lets it learn two steps before it hears the page again.
SERVE = """
let clock = 0, hear;
performance.now = () => (clock += 10);
const page = { postMessage: (data) => hear(data) };
const ask = (ask, more) => page.onmessage({ data: { ask, ...more } });
const until = (name, also = () => {}) => new Promise((go) => {
  hear = (data) => { also(data); if ([name, "error"].includes(data.told)) go(data); };
});
serve(page);
const sizes = { d_model: 8, n_heads: 2, n_layers: 1, d_ff: 8 };
const tables = tensors.get("world").data, wasm = tensors.get("wasm").data;
const start = (settings) => ask("start", { tables, wasm, seed: 0, words: ["Le"],
  changes: { settings, tokensPerBatch: 128, config: sizes } });
"""


@pytest.fixture(scope="module")
def files(tables):
    return tables | {"wasm": np.frombuffer((FOLDER / "kernels.wasm").read_bytes(), np.uint8)}


@pytest.fixture
def served(engine, files):
    """Return ``run(body, *facts)``: for each what a body, which may ask a worker, returns."""
    return lambda body, *facts: [value for _, value in engine(SERVE + body, *((one, files) for one in facts))]


CHANGE = """
const rates = [];
start({ n_steps: one.from });
ask("train");
const done = await until("done", ({ told, step, lr }) => {
  if (told !== "step") return;
  rates.push(lr);
  if (step === one.at) ask("change", { changes: { settings: { n_steps: one.to } } });
});
return { ...done, rates };
"""


def test_a_schedule_that_changes_while_it_learns_ends_where_the_new_one_does(served):
    shorter, longer = served(CHANGE, {"from": 9, "at": 6, "to": 3}, {"from": 6, "at": 4, "to": 9})
    assert shorter["step"] in (6, 7) and shorter["finished"] and min(shorter["rates"]) >= 0
    assert longer["step"] == 9 and longer["finished"] and len(longer["rates"]) == 9


def test_after_the_schedule_the_rate_stays_as_at_its_end(served):
    body = "return [3, 9].map((step) => lrAt({ ...DEFAULT_SETTINGS, n_steps: 3, decay: one.decay }, step));"
    for last, later in served(body, {"decay": "linear"}, {"decay": "cosine"}):
        assert last == later > 0


def test_it_learns_for_so_many_steps_or_until_one(served):
    body = """
    start({ n_steps: 9 });
    ask("train", { steps: 2 });
    const two = await until("done");
    ask("train", { until: 5 });
    return [two, await until("done")];
    """
    ((two, five),) = served(body, {})
    assert [two["step"], five["step"]] == [2, 5] and not five["finished"]


def test_pauses_take_no_time_of_a_schedule_in_seconds(served):
    body = """
    start({ seconds: 1 });
    ask("train", { steps: 5 });
    const five = await until("done"), rates = [];
    clock += 60_000;
    ask("train");
    const ended = await until("done", ({ told, lr }) => { if (told === "step") rates.push(lr); });
    return [five, ended, rates];
    """
    ((five, ended, rates),) = served(body, {})
    assert five["step"] == 5 and not five["finished"]
    assert ended["finished"] and 20 < ended["step"] < 100 and len(rates) == ended["step"] - 5
    assert 0 <= rates[-1] < 0.1 * max(rates)


def test_a_change_that_is_refused_is_told_with_what_stays_as_it_is(served):
    body = """
    start({ n_steps: 9 });
    ask("show");
    ask("change", { changes: { config: { n_heads: 4 } }, mark: "4 heads" });
    ask("change", { changes: { config: { n_heads: 3 } }, mark: "3 heads" });
    const told = [];
    await until("refused", (data) => told.push(data));
    return told;
    """
    ((_, shown, changed, refused),) = served(body, {})
    assert changed == {"told": "changed", "step": 0, "mark": "4 heads", "nSteps": 9, "before": shown["loss"]}
    assert refused["config"] == {"n_heads": 4} and "divide d_model=8, got 3" in refused["message"]


def test_a_model_that_is_opened_has_read_nothing_and_its_own_shape(served):
    body = """
    start({ n_steps: 9 });
    ask("train", { steps: 1 });
    await until("done");
    const { words } = new World(tables), config = { ...sizes, d_model: 4, vocab_size: words.length + 1 };
    const other = new LanguageModel({ ...config, max_len: 128, positions: "alibi" }, new Kernels());
    ask("open", { bytes: writeState(other, { words }) });
    const opened = await until("opened"), steps = [];
    ask("train", { steps: 1 });
    await until("done", (data) => { if (data.told === "step") steps.push(data); });
    return [opened, steps];
    """
    ((opened, [step]),) = served(body, {})
    assert opened["config"]["d_model"] == 4 and 0 < step["tokens"] <= 128


def test_without_a_worker_a_run_that_is_dropped_learns_no_more(served):
    body = """
    const inside = withoutWorker();
    Object.assign(page, { onmessage: ({ data }) => inside.postMessage(data) });
    start({ n_steps: 30 });
    ask("train");
    return new Promise((go) => {
      inside.onmessage = ({ data: { step } }) => {
        if (step !== 2) return;
        inside.terminate();
        inside.onmessage = ({ data }) => { if (data.told === "done") go(data.step); };
      };
    });
    """
    assert served(body, {})[0] < 30
