// The run in a thread of its own, so that the page answers while the model learns. A page from disk cannot
// load a worker by its address: it is made of the text of this bundle.

import { Run } from "./run.js";
import { readState, writeState } from "./state.js";
import { fastKernels } from "./wasm.js";
import { World } from "./world.js";

const AT_ONCE = 30; // milliseconds of training between two looks at what the page asks
// Of the steps that are shown
const GROWTH = 1.3;
const FIRST_MOMENT = 5;
const MOST_APART = 50;

// In the page: a worker from the text of a script that defines ENGINE.
export function workerFrom(script) {
  const address = URL.createObjectURL(
    new Blob([script, "\nENGINE.serve(self);"], { type: "text/javascript" }),
  );
  const worker = new Worker(address);
  URL.revokeObjectURL(address);
  return worker;
}

// The same where the browser starts no worker: it learns in the thread of the page, some milliseconds at a
// time.
export function withoutWorker() {
  const page = {
    postMessage: (data) => setTimeout(() => inside.onmessage({ data })),
    terminate() {
      page.postMessage({ ask: "pause" });
      page.onmessage = null;
    }, // after what was asked before
  };
  const inside = { postMessage: (data) => setTimeout(() => page.onmessage?.({ data })) };
  serve(inside);
  return page;
}

// The steps at which a run is judged and shown: close at first, later not too far apart.
export function isMoment(step) {
  let at = FIRST_MOMENT;
  while (at < step) at = Math.min(Math.ceil(at * GROWTH), at + MOST_APART);
  return at === step;
}

// In the worker. Each message is { ask, ... } and is answered by { told, ... }; what fails: "error".
//   start   { tables, wasm, seed, changes, words }   a new run from the bytes of the world's tables and of
//           kernels.wasm
//   train   { steps, until }   go on for so many steps, or until a step, at most to the end of the schedule;
//           "step" after each of them, with the seconds spent and the steps of the schedule, which may follow
//           them, "shown" at moments and at the end, "done" last
//   pause
//   change  { changes, mark }   what can be changed while it learns: see Run.change; "changed" with the step,
//           the mark, the held-out loss before it and the steps of the schedule, or "refused" with the part of
//           the configuration that was to change, as it is
//   show    a moment: see Run.moment
//   save, open { bytes }
export function serve(scope) {
  let run;
  let about;
  let wanted = 0; // the step up to which it is to learn
  let going = false;
  let at = 0; // the time up to which what was spent is counted
  const tell = (told, more = {}) => scope.postMessage({ told, ...more });
  const isDue = () => !run.finished && run.step < wanted; // the schedule may change while it learns
  const show = () => tell("shown", run.moment(about.words, about.seed + run.step));
  const schedule = () => ({ nSteps: run.training.settings.n_steps });

  function learn() {
    for (const until = performance.now() + AT_ONCE; isDue() && performance.now() < until; ) {
      const learned = run.advance();
      const before = at;
      at = performance.now();
      run.spend((at - before) / 1000);
      tell("step", { ...learned, ...schedule(), spent: run.spent });
      if (isMoment(run.step) || run.finished) show();
    }
    going = isDue();
    if (going) setTimeout(learn);
    else tell("done", { step: run.step, finished: run.finished });
  }

  const answers = {
    async start({ tables, wasm, seed, changes, words }) {
      wanted = 0;
      about = { seed, words };
      run = new Run(new World(tables), await fastKernels(wasm), seed, changes);
      const { config, kernels } = run.model;
      tell("started", { config, settings: run.training.settings, fast: !!kernels.wasm });
    },
    train({ steps = Infinity, until = Infinity }) {
      wanted = Math.min(run.step + steps, until);
      if (going) return;
      at = performance.now();
      learn();
    },
    pause() {
      wanted = run.step;
    },
    change({ changes, mark }) {
      try {
        const before = mark && run.evaluate().loss;
        run.change(changes);
        tell("changed", { step: run.step, mark, before, ...schedule() });
      } catch ({ message }) {
        const names = Object.keys(changes.config ?? {});
        tell("refused", {
          message,
          config: Object.fromEntries(names.map((name) => [name, run.model.config[name]])),
        });
      }
    },
    show,
    save() {
      tell("saved", { bytes: writeState(run.model, { words: run.world.words, step: run.step }) });
    },
    open({ bytes }) {
      const { model, description } = readState(bytes, run.model.kernels);
      run.open(model);
      wanted = 0;
      tell("opened", {
        config: model.config,
        switches: model.switches,
        trained: description.step ?? null,
      });
    },
  };

  async function answer({ ask, ...more }) {
    try {
      if (!(ask in answers))
        throw new Error(`a message must ask for one of ${Object.keys(answers).join(", ")}, got ${ask}`);
      if (!run && ask !== "start") throw new Error(`a run must be started first, got ${ask}`);
      await answers[ask](more);
    } catch (error) {
      tell("error", { ask, message: error.message });
    }
  }

  let last = Promise.resolve(); // one message after the other, though a start takes a while
  scope.onmessage = ({ data }) => {
    last = last.then(() => answer(data));
  };
}
