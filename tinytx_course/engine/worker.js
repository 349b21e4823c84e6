// The run in a thread of its own, so that the page answers while the model learns. A page from disk cannot load a
// worker by its address: it is made of the text of this bundle.

import { generator } from "./init.js";
import { Run } from "./run.js";
import { readState, writeState } from "./state.js";
import { fastKernels } from "./wasm.js";
import { World } from "./world.js";

const AT_ONCE = 30; // milliseconds of training between two looks at what the page asks

// In the page: a worker from the text of a script that defines ENGINE.
export function workerFrom(script) {
  const address = URL.createObjectURL(new Blob([script, "\nENGINE.serve(self);"], { type: "text/javascript" }));
  const worker = new Worker(address);
  URL.revokeObjectURL(address);
  return worker;
}

// In the worker. Each message is { ask, ... } and is answered by { told, ... }; what fails is told as "error".
//   start   { tables, wasm, seed, changes }   a new run from the bytes of the world's tables and of kernels.wasm
//   train   { steps }   go on for so many steps, without it to the end; "step" after each of them, "done" at the end
//   pause
//   judge, sample { beginning, seed, temperature }, look { words }, save, open { bytes }
export function serve(scope) {
  let run, goal = 0, going = false;
  const tell = (told, more = {}) => scope.postMessage({ told, ...more });

  function learn() {
    for (const until = performance.now() + AT_ONCE; run.step < goal && performance.now() < until;) {
      tell("step", run.advance());
    }
    going = run.step < goal;
    if (going) setTimeout(learn);
    else tell("done", { step: run.step });
  }

  const answers = {
    async start({ tables, wasm, seed, changes }) {
      goal = 0;
      run = new Run(new World(tables), await fastKernels(wasm), seed, changes);
      tell("started", { config: run.model.config, settings: run.training.settings, fast: !!run.model.kernels.wasm });
    },
    train({ steps = Infinity }) {
      goal = Math.min(run.training.settings.n_steps, run.step + steps);
      if (!going) learn();
    },
    pause() { goal = run.step; },
    judge() { tell("judged", run.evaluate()); },
    sample({ beginning, seed, temperature }) {
      tell("sampled", { step: run.step, words: run.sample(generator(seed), beginning, temperature) });
    },
    look({ words }) { tell("seen", { step: run.step, record: run.look(words) }); },
    save() { tell("saved", { bytes: writeState(run.model, { words: run.world.words, step: run.step }) }); },
    open({ bytes }) {
      run.open(readState(bytes, run.model.kernels).model);
      goal = 0;
      tell("opened", { config: run.model.config });
    },
  };

  async function answer({ ask, ...more }) {
    try {
      if (!(ask in answers)) throw new Error(`a message must ask for one of ${Object.keys(answers).join(", ")}, got ${ask}`);
      if (!run && ask !== "start") throw new Error(`a run must be started first, got ${ask}`);
      await answers[ask](more);
    } catch (error) {
      tell("error", { ask, message: error.message });
    }
  }

  let last = Promise.resolve(); // one message after the other, though a start takes a while
  scope.onmessage = ({ data }) => { last = last.then(() => answer(data)); };
}
