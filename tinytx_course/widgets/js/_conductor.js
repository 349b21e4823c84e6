// Conducts the runs of the playground: asks them what the reader wants, and turns what they tell into the
// state of the explorer.

// Milliseconds between two pictures of a run that learns; of a file
const REPAINT = 150;
const MAX_BYTES = 2e8;

export class Conductor {
  constructor(ui) {
    Object.assign(this, {
      ui,
      runs: { first: null, second: null },
      playing: false,
      following: false,
      timer: 0,
    });
    ui.signal.addEventListener("abort", () => {
      clearTimeout(this.timer);
      this.each((run) => run.end());
    });
    for (const key of [...Object.keys(SETTINGS), "seconds"])
      ui.model.on(`change:${key}`, () => this.switched(key));
    ui.model.on("change:moment", () => this.each((_, key) => this.publish(key)));
    this.restart("first");
  }

  each(act) {
    Object.entries(this.runs).forEach(([key, run]) => {
      if (run) act(run, key);
    });
  }
  get busy() {
    return Object.values(this.runs).some((run) => run?.busy);
  }
  say(text) {
    this.ui.save("notice", text);
  }
  later() {
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      this.ui.redraw();
    }, REPAINT);
  }

  // Set controls without doing what they stand for.
  follow(values) {
    this.following = true;
    this.ui.set(values);
    this.following = false;
  }

  publish(key) {
    const { history, settings, goal } = this.runs[key];
    const found = facts(history, settings, this.ui.get("moment"), this.ui.get("words").length + 1);
    this.ui.save(key, goal ? { ...found, goal: { ...goal } } : found);
  }

  // What the reader does.

  restart(key, settings = settingsOf(this.ui.get)) {
    const hear = (message, run) => {
      if (!this.ui.signal.aborted && this.runs[key] === run) this[`on_${message.told}`](message, run, key);
    };
    this.runs[key] ??= new Trainer(hear);
    Object.assign(this.runs[key], { goal: null, busy: false });
    this.runs[key].start(settings, this.ui.get("words"));
  }

  train(run, more = {}) {
    run.busy = true;
    run.ask("train", more);
  }

  // All go on; but run A waits until run B was judged at its step.
  goOn(more) {
    const { second } = this.runs;
    const goal = second?.goal;
    if (goal && !("ended" in goal)) this.train(second, { until: goal.step, ...more });
    else this.each((run) => this.train(run, more));
  }

  play() {
    this.playing = true;
    this.say("");
    this.ui.set("moment", -1);
    this.goOn();
    this.ui.redraw();
  }

  pause() {
    this.playing = false;
    this.each((run) => run.ask("pause"));
    this.ui.redraw();
  }

  step() {
    this.ui.set("moment", -1);
    this.goOn({ steps: 1 });
  }

  reset() {
    this.playing = false;
    this.drop();
    this.ui.set({ guess: -1, moment: -1 });
    this.say("");
    this.restart("first");
  }

  // A switch was changed: from the next step on, or in a new run.
  switched(key) {
    if (this.following) return;
    const { first } = this.runs;
    const { history, settings } = first;
    const value = this.ui.get(key);
    if (!(SETTINGS[key]?.live ?? key === "seconds") || history.step === 0) {
      this.playing = false;
      this.drop();
      this.restart("first");
      return;
    }
    settings[key] = value;
    first.ask("change", { changes: liveChange(key, settings), mark: SETTINGS[key]?.says(value) });
    first.ask("show");
  }

  // The second run: the settings of the first but for one, and as many steps as its schedule has by now, up to
  // the one where the first was judged last.
  second() {
    const { ui, runs } = this;
    this.pause();
    this.drop();
    const { n_steps } = runs.first.settings;
    const settings = { ...settingsOf(ui.get), n_steps, seconds: 0 };
    const key = ui.get("change");
    const { step, above } = runs.first.history.at(n_steps);
    this.restart("second", { ...settings, [key]: otherValue(key, settings[key]) });
    runs.second.goal = { step, above: finite(above), guess: ui.get("guess") };
    ui.set("moment", -1);
    this.playing = true;
    this.goOn();
  }

  drop() {
    this.runs.second?.end();
    this.runs.second = null;
    this.ui.save("second", {});
  }

  async open(file) {
    this.pause();
    this.drop();
    try {
      if (file.size > MAX_BYTES)
        throw new Error(
          `a saved state must have at most ${grouped(MAX_BYTES)} bytes, got ${grouped(file.size)}`,
        );
      this.runs.first.ask("open", { bytes: new Uint8Array(await file.arrayBuffer()) });
    } catch (problem) {
      this.say(`The file was not opened: ${problem.message}.`);
    }
  }

  // What a run tells: see worker.js.

  on_started({ fast }, run) {
    run.fast = fast;
    this.later();
  }

  on_step(step, run) {
    run.history.note(step);
    run.settings.n_steps = step.nSteps;
    this.later();
  }

  on_shown(moment, run, key) {
    run.history.show(moment);
    if (run.goal?.step === moment.step && !("ended" in run.goal)) {
      run.goal.ended = finite(moment.above);
      this.ui.set("guess", -1); // another run needs another prediction
    }
    this.publish(key);
  }

  on_done({ step, finished }, run, key) {
    const { goal } = run;
    run.busy = false;
    // not at every step it is judged by itself
    if (goal?.step === step && !("ended" in goal)) run.ask("show");
    if (!this.busy && (goal?.step === step || finished)) this.playing = false;
    this.publish(key);
  }

  on_changed({ step, mark, before, nSteps }, { history, settings }) {
    settings.n_steps = nSteps;
    if (mark) history.marks.push({ step, text: mark, before });
    this.later();
  }

  on_refused({ message, config }, run) {
    Object.assign(run.settings, config);
    this.follow(config);
    this.say(`The switch was not changed: ${message}.`);
  }

  on_saved({ bytes }, { history, settings }) {
    const link = h("a", {
      href: URL.createObjectURL(new Blob([bytes])),
      download: `tinytx-step-${history.step}.safetensors`,
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    const isPlain = settings.scale && settings.residual && !settings.norm_on_wrong_axis;
    this.say(
      `Saved after step ${grouped(history.step)}; ${isPlain ? "tx.load opens the file" : "this page opens the file, tx.load does not: it knows no model with such a part switched off"}.`,
    );
  }

  on_opened({ config, switches, trained }, run) {
    run.history = new History();
    this.ui.set("first", {});
    this.follow(controlsOf(config, switches));
    run.settings = settingsOf(this.ui.get);
    run.ask("show");
    this.say(
      `Opened a model${trained === null ? "" : ` that had learned for ${counted(trained, "step")}`}; it goes on from there, with a schedule that begins anew.`,
    );
  }

  on_error({ ask, message }, run) {
    Object.assign(run, { busy: false, goal: null });
    this.playing &&= this.busy;
    const what =
      { open: "The file was not opened", start: "The run did not start" }[ask] ?? "The run has ended";
    this.say(`${what}: ${message}.`);
  }
}
