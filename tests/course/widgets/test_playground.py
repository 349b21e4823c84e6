"""The playground: its settings are the recipe of the engine; words and outcomes follow from its numbers."""

import math

import numpy as np

import tinytx_course as course
from tests.course.widgets.conftest import changed
from tinytx_course.engine.node import run_in_node
from tinytx_course.museum.faults import FAULTS

DEFAULT = course.widgets.playground
SETTINGS = "js.settingsOf(get)"


def reached(explorer, **more):
    """The numbers of a run with the settings of an explorer."""
    settings = {
        name: value for name, value in explorer.state().items() if name not in ("first", "second", "words")
    }
    tops = [[[3, 0.25], [0, 0.5]]]
    numbers = {
        "step": 30,
        "tokens": 30_000,
        "spent": 12.3,
        "loss": 2.5,
        "shown": 24,
        "held_out": 2.4,
        "bound": 1.6,
    }
    text = {"text": ["L'", "affaire", "est", "belles", "."], "n_allowed": 3, "tops": tops, "marks": []}
    return {**numbers, "above": 0.5, "settings": settings, **text, **more}


def test_what_is_usual_is_the_recipe_of_the_engine(node):
    ((usual, named, odd),) = node(
        "playground", f"[js.changesOf({SETTINGS}), js.SETTINGS, js.unusual({SETTINGS})]", DEFAULT()
    )
    ((_, (recipe, model)),) = run_in_node(
        "return [RECIPE, new LanguageModel({ ...RECIPE.config, vocab_size: 9 }).config];", ({}, {})
    )
    config = usual["config"]
    assert config.items() <= model.items() and config["d_ff"] == recipe["config"]["d_ff"]
    assert {name: usual["settings"][name] for name in ("lr", "n_steps")} == {
        name: recipe["settings"][name] for name in ("lr", "n_steps")
    }
    assert usual["settings"]["warmup"] == 0.1 and usual["settings"]["seconds"] == 60
    assert usual["tokensPerBatch"] == recipe["tokensPerBatch"] and all(usual["switches"].values())
    assert not any(usual["faults"].values()) and odd == ""
    state = DEFAULT().state()
    assert all(state[name] == its["usual"] for name, its in named.items())
    assert {name for name, its in named.items() if its.get("isFault")} <= set(FAULTS)


def test_each_switch_changes_what_the_worker_is_told_and_is_said(node):
    expression = f"""Object.keys(js.SETTINGS).map((key) => {{
      const s = {SETTINGS}, before = JSON.stringify(js.changesOf(s));
      const other = {{ ...s, [key]: js.otherValue(key, s[key]) }}, twice = js.otherValue(key, other[key]);
      return [key, before !== JSON.stringify(js.changesOf(other)), js.unusual(other), twice === s[key],
        js.SETTINGS[key].live ? js.liveChange(key, other) : null]; }})"""
    (rows,) = node("playground", expression, DEFAULT())
    for key, changed_, said, back, live in rows:
        assert (changed_ and back) or key == "seed"
        assert said, key
        if live is not None:
            assert len(str(live)) > 10
    assert {row[0]: row[2] for row in rows}["causal"] == "mask off"


def test_the_history_thins_losses_out_and_remembers_moments(node):
    losses = np.random.default_rng(0).normal(2, 0.1, size=3000).tolist()
    expression = f"""(() => {{ const history = new js.History(), losses = {losses};
      losses.forEach((loss, i) => history.note({{ step: i + 1, tokens: 9 * i, loss }}));
      history.note({{ step: 3001, tokens: 1, loss: NaN }});
      for (const step of [0, 5, 50, 50]) history.show({{ step, loss: step, n: history.moments.length }});
      const at = [-1, 0, 7, 50, 99].map((step) => history.at(step).step);
      history.marks.push({{ step: 50, before: 9 }}, {{ step: 60, before: NaN }});
      return [history.losses, history.moments.length, at, history.curve]; }})()"""
    ((found, n_moments, at, curve),) = node("playground", expression)
    assert sum(one["n"] for one in found) == 3000 and len(found) < 400
    mean = sum(one["n"] * one["loss"] for one in found) / 3000
    assert math.isclose(mean, np.mean(losses), rel_tol=1e-9)
    assert n_moments == 3 and at == [50, 0, 5, 50, 50]
    points = [(point["step"], point["loss"]) for point in curve]
    assert points == [(0, 0), (5, 5), (50, 9), (50, 50)]  # 9: before a switch


def test_ticks_of_losses_lie_apart_and_off_the_words_below_them(node):
    low, high, pixel = math.log(0.016), math.log(8), 0.034
    (ticks,) = node("playground", f"js.ticksOf({low}, {high}, {pixel})", {})
    heights, losses = zip(*sorted(ticks), strict=True)
    assert min(np.diff(heights)) >= 13 * pixel and heights[0] > low + 22 * pixel
    assert losses[-3:] == (1, 2, 5) and 0.05 in losses


def test_what_was_learned_while_it_cheated_is_said_to_be_lost_only_afterwards(node):
    expression = """[[0.5, -0.1, -0.2], [0.5, -0.1, 1.6], [0.5, 0.4, 1.6], [0.5, -0.1, NaN]].map((all) => {
      const moments = all.map((above, i) => ({ step: 100 * i, above }));
      return js.relearning({ moments }, moments.at(-1)); })"""
    ((still, after, never, lost),) = node("playground", expression, {})
    assert after and not (still or never or lost)


def test_the_steps_at_which_a_switch_let_it_cheat_are_named(node):
    off, on = {"step": 230, "text": "mask off"}, {"step": 332, "text": "mask on"}
    norm = {"step": 500, "text": "not: norm over the positions"}
    calls = [[[off, on], 340], [[off, on], 331], [[on], 340], [[off, on, norm], 600]]
    (said,) = node("playground", f"{calls}.map((call) => js.cheatedWith(...call))", {})
    assert said[0].startswith("From step 230 to step 332 (mask off) it cheated")
    assert said[1] == "" and said[2].startswith("From the start to step 332 (mask off)")
    assert said[3].startswith("From the start to step 500 (norm over the positions)")


def test_the_finding_is_short_and_the_rest_is_folded(node):
    settings = {"causal": False, "scale": False, "residual": False, "norm": "last", "n_heads": 1}
    odd = changed(DEFAULT(), **settings)
    marks = ["mask off at step 9", "mask on at step 20"]
    both = changed(
        DEFAULT(), first=reached(DEFAULT(), relearns="yes", marks=marks), second=reached(odd, above=-0.25)
    )
    (said,) = node("playground", "js.describe(get)", both)
    finding, rest = said.split("\n")
    assert finding == (
        "Run A: step 30, 12 of 60 s, 50.0% above the bound. "
        "Run B (5 settings changed): step 30, 12 of 60 s, 25.0% below the bound: it is cheating."
    )
    assert "From step 9 to step 20 (mask off) it cheated" in rest and "mask off, scale off" in rest


# The conductor at work, with workers that only note what they are asked; run A has learned, and run B begun.
CONDUCTED = """(() => {
  const state = {}, listeners = {}, workers = [];
  globalThis.Worker = class {
    constructor() { this.asked = []; workers.push(this); }
    postMessage(data) { this.asked.push(data); }
    terminate() { this.ended = true; }
  };
  const ui = { get: (key) => state[key] ?? get(key), redraw() {}, signal: new AbortController().signal,
    set(key, value) {
      for (const [name, one] of Object.entries(value === undefined ? key : { [key]: value }))
        (state[name] = one), listeners[`change:${name}`]?.();
    },
    save(...one) { ui.set(...one); },
    model: { on(event, listen) { listeners[event] = listen; } } };
  const conduct = new js.Conductor(ui), { runs } = conduct;
  const tell = (run, told, more) => run.worker.onmessage({ data: { told, ...more } });
  const learn = (run, step) => tell(run, "step", { step, tokens: 9 * step, loss: 2, nSteps: 40 });
  const attention = [new Float32Array(11 ** 2)];
  const shown = { loss: 2, bound: 1, text: [], allowed: [], heads: 1, attention };
  const show = (run, step, above) => tell(run, "shown", { step, above, ...shown });
  const asks = (run) => run.worker.asked.map(({ ask }) => ask);
  tell(runs.first, "started");
  conduct.play();
  learn(runs.first, 8);
  show(runs.first, 8, 0.5);
  ui.set("guess", 0);
  conduct.second();
  const [a, b] = [runs.first, runs.second];
  tell(a, "done", { step: 8, finished: false });
  tell(b, "started");
  BODY
})()"""


def conducted(node, body, explorer=None):
    """What a body returns that knows `conduct`, its runs `a` and `b`, and `tell`, `learn` and `show`."""
    (value,) = node("playground", CONDUCTED.replace("BODY", body), explorer or DEFAULT())
    return value


def test_run_b_is_judged_at_the_step_of_run_a_though_it_is_no_regular_one(node):
    body = """learn(b, 8);
      tell(b, "done", { step: 8, finished: false });
      const asked = asks(b);
      show(b, 8, 0.3);
      tell(b, "done", { step: 8, finished: false });
      return [asked, asks(b), b.goal, conduct.playing];"""
    goal = {"step": 8, "above": 0.5, "guess": 0, "ended": 0.3}
    asked = ["start", "show", "train", "show"]
    assert conducted(node, body) == [asked, asked, goal, False]


def test_run_b_has_as_many_steps_as_the_schedule_of_run_a_by_now(node):
    (first, second) = conducted(node, "return [a, b].map(({ settings: s }) => [s.n_steps, s.seconds]);")
    assert first == [40, 60] and second == [40, 0]


def test_run_a_waits_until_run_b_was_judged_at_its_step(node):
    body = """const before = asks(a).length;
      learn(b, 5);
      conduct.pause();
      conduct.play();
      const on = b.worker.asked.at(-1);
      conduct.pause();
      conduct.step();
      const one = b.worker.asked.at(-1), waiting = asks(a).slice(before);
      show(b, 8, 0.3);
      conduct.play();
      return [on, one, waiting, asks(a).at(-1), b.worker.asked.at(-1)];"""
    on, one, waiting, after, freely = conducted(node, body)
    assert on == {"ask": "train", "until": 8} and one == {"ask": "train", "until": 8, "steps": 1}
    assert set(waiting) == {"pause"} and after == "train" and freely == {"ask": "train"}


def test_a_refused_switch_goes_back_and_it_learns_on(node):
    body = """conduct.drop();
      conduct.play();
      ui.set("n_heads", 16);
      tell(a, "refused", { message: "n_heads must divide d_model=8, got 16", config: { n_heads: 4 } });
      const after = [conduct.playing, conduct.busy, ui.get("n_heads"), a.settings.n_heads, ui.get("notice")];
      ui.set("n_heads", 2);
      tell(a, "changed", a.worker.asked.filter(({ ask }) => ask === "change").at(-1));
      return [after, a.history.marks.map(({ text }) => text)];"""
    after, marks = conducted(node, body)
    assert after == [True, True, 4, 4, "The switch was not changed: n_heads must divide d_model=8, got 16."]
    assert marks == ["2 heads"]


def test_a_switch_that_begins_anew_ends_run_b(node):
    body = """ui.set("norm", "last");
      tell(a, "started");
      return [b.worker.ended, !runs.second, ui.get("second"), conduct.playing, conduct.busy];"""
    assert conducted(node, body) == [True, True, {}, False, False]


def test_a_model_that_is_opened_has_its_own_settings_and_has_read_nothing(node):
    body = """const config = { causal: true, positions: "none", norm: "last", n_heads: 3, n_layers: 1 };
      const switches = { scale: true, residual: true, feature_norm: true };
      tell(a, "opened", { config, switches, trained: 5 });
      return [a.settings.n_heads, a.history.tokens];"""
    assert conducted(node, body) == [3, 0]


def test_every_state_is_said_in_numbers(describe):
    cheating = changed(DEFAULT(), causal=False, targets_not_shifted=True)
    lost = changed(DEFAULT(), lr=1.0)
    states = [
        changed(DEFAULT(), first=reached(DEFAULT()), notice="Saved."),
        changed(cheating, head=1, first=reached(cheating, above=-0.25, held_out=1.2)),
        changed(
            lost,
            first=reached(lost, above=None, loss=None, held_out=None, text=[], marks=["mask off at step 9"]),
        ),
        DEFAULT(),
    ]
    plain, below, broken, empty = describe(*states)
    assert plain.startswith("Saved. Run A: step 30, 12 of 60 s, 50.0% above the bound.\n")
    assert "30,000 tokens read, loss of its last batch 2.500 nats." in plain
    assert "after step 24: 2.400 nats a word, 50.0% above the bound of 1.600." in plain
    assert "It writes: “L'affaire est belles.”. The grammar allows 3 of 5 words." in plain
    assert "Block 0, head 0: “loué” attends most to “des”, 25%" in plain and "cheating" not in plain
    assert "25.0% below the bound of 1.600. Below the bound: it is cheating." in below
    assert "its targets are its inputs" in below and "without the mask" in below and "head 1" in below
    assert "no number any more" in broken and "It writes nothing." in broken
    assert "While it learned: mask off at step 9." in broken and empty.startswith("A new model")


def test_a_prediction_is_resolved_by_the_numbers_of_both_runs(describe):
    def compared(**more):
        goal = {"step": 24, "above": 0.5, **more}
        return changed(DEFAULT(), first=reached(DEFAULT()), second=reached(DEFAULT(), goal=goal))

    right, wrong, waiting = describe(
        compared(guess=0, ended=-0.25), compared(guess=3, ended=-0.25), compared(guess=0)
    )
    numbers = "after step 24 run A was 50.0% above the bound, run B 25.0% below the bound."
    assert f"✓ As you predicted, it falls below the bound: {numbers}" in right
    predicted = "✗ You predicted that it ends farther from the bound than run A"
    assert f"{predicted}; it falls below the bound: {numbers}" in wrong
    assert "predicted" not in waiting


def test_the_summary_says_what_the_page_reached():
    explorer = changed(DEFAULT(), first=reached(DEFAULT()), second=reached(DEFAULT(), above=-0.031))
    assert "Run A after step 24: 50.0% above the bound." in explorer.summary()
    assert "Run B after step 24: 3.1% below the bound." in explorer.summary()
    assert "no number" in changed(DEFAULT(), first=reached(DEFAULT(), above=None)).summary()
