// The frame of an explorer: state, redrawing, summary, controls. Shared by all, imports nothing.

const CONTROLS = ".tx-head, .tx-invite, .tx-row"; // what stands above the sentence
// ask, and need neither a head nor a screen
const CARDS = new Set(["questions", "outcome", "parsons", "by_hand"]);

// Explorers out of view are drawn for the first time one a task, so that a page answers in between.
const waiting = [];
const drawNext = () => {
  try {
    waiting[0]();
  } finally {
    waiting.shift();
    if (waiting.length) setTimeout(drawNext);
  }
};
const inTurn = (act) => {
  if (waiting.push(act) === 1) setTimeout(drawNext);
};

// Turn build(ui) and describe(get) into what anywidget and our own host call; the style of a kind is limited
// to it. What describe returns up to a line break is shown and read aloud: the finding; the rest is folded.
// keep(get) names the traits that belong into the address of a page, and the values allowed: see _address.js.
export function explorer(kind, { build, describe, keep = () => ({}) }) {
  return {
    keep,
    render({ model, el }) {
      const leaving = new AbortController();
      build(frame(kind, model, el, describe, leaving.signal));
      return () => leaving.abort();
    },
  };
}

function frame(kind, model, el, describe, signal) {
  const status = h("p", { role: "status" });
  const words = h("p");
  const say = h("div.tx-say", status);
  const folded = h("details", h("summary", "In words"), words);
  const tip = h("div.tx-tip", { "aria-hidden": "true", hidden: true });
  const root = h("div.tx", { "data-kind": kind, role: "group", "aria-label": model.get("title") });
  el.append(root);
  const head = CARDS.has(kind) ? null : headOf(root, model.get("title"), signal);
  const painters = [];
  let asked = 0;
  let spoken;
  let due = null;
  let moving = 0;
  const get = (key) => floats(model.get(key));
  const draw = () => {
    asked = 0;
    if (signal.aborted) return;
    cancelAnimationFrame(moving); // what moved to an older state
    painters.forEach((act) => act());
    // While a key is held, or Play runs, the summary comes once a second, or a screen reader would be
    // flooded.
    clearTimeout(spoken);
    const now = performance.now();
    const [finding, rest] = describe(get).split("\n");
    const speak = () => {
      due = null;
      if (status.textContent !== finding) status.textContent = finding;
      words.textContent = rest ?? "";
      if (rest) say.append(folded);
      else folded.remove();
    };
    due ??= now + 1000;
    if (status.textContent) spoken = setTimeout(speak, clamp(due - now, 0, 150));
    else speak();
  };
  const drawFirst = () => {
    try {
      draw();
    } catch (problem) {
      el.remove(); // the page shows its text
      throw problem;
    }
  };
  const redraw = () => {
    if (!asked) asked = requestAnimationFrame(draw);
  };
  const ui = {
    model,
    root,
    signal,
    get,
    redraw,
    // set: while a gesture lasts; save: when it is done, one message to the kernel. Both take a trait and its
    // value, or an object of traits.
    set(key, value) {
      const values = typeof key === "string" ? { [key]: value } : key;
      for (const [name, one] of Object.entries(values)) model.set(name, one);
    },
    save(...change) {
      ui.set(...change);
      model.save_changes();
    },
    done() {
      model.save_changes();
    },
    get theme() {
      const ink = getComputedStyle(root).color.match(/\d+/g) ?? [0, 0, 0];
      return inkOn(ink.slice(0, 3).map(Number)) === "#fff" ? "light" : "dark";
    },
    // What parts may take up, in pixels.
    get width() {
      return (root.clientWidth || 640) - 30;
    },
    get large() {
      return root.matches(".present *, :fullscreen, .tx-full");
    }, // as in the style
    // Call act(share) with shares from 0 to 1 for so many milliseconds; only act(1) where motion is not
    // wanted. A second call ends the first, and so does a redraw: paint begins it again where something still
    // has to move.
    animate(ms, act) {
      cancelAnimationFrame(moving);
      if (motionless()) return act(1);
      const begun = performance.now();
      const go = (now) => {
        const share = clamp((now - begun) / ms, 0, 1);
        if (signal.aborted) return;
        act(share);
        if (share < 1) moving = requestAnimationFrame(go);
      };
      moving = requestAnimationFrame(go);
    },
    // Call act once what is shown has a width, and once a frame after any change of state, theme or width.
    paint(act) {
      painters.push(act);
    },
    show(...parts) {
      const all = [head, ...parts].flat(Infinity).filter((part) => part != null);
      const picture = all.findIndex((part) => !part.matches?.(CONTROLS));
      if (CARDS.has(kind) || picture < 0) all.push(say);
      else all.splice(picture, 0, say); // above the picture: in sight with it on every screen
      root.append(...all, tip);
      if (CARDS.has(kind)) return draw(); // the same at every width
      if (root.getBoundingClientRect().top > innerHeight) return;
      width = root.clientWidth;
      if (width) draw(); // what is seen at once is never seen undrawn
    },
    // A note beside the pointer; null takes it away. What it says must also be found without a pointer.
    tip(text, event) {
      tip.hidden = text == null;
      if (tip.hidden) return;
      tip.textContent = text;
      const box = root.getBoundingClientRect();
      const zoom = box.width / root.offsetWidth;
      const left = (event.clientX - box.left) / zoom;
      tip.style.left = `${clamp(left + 14, 0, Math.max(0, root.offsetWidth - tip.offsetWidth - 2))}px`;
      tip.style.top = `${(event.clientY - box.top) / zoom + root.scrollTop + 18}px`;
    },
    // The same for as long as the pointer is over an element: says(event) is the text.
    tips(element, says) {
      element.addEventListener("pointermove", (event) => ui.tip(says(event), event));
      element.addEventListener("pointerleave", () => ui.tip(null));
    },
    // Call go(across, down) for a pointer that is pressed over an element and moves.
    drag(element, go) {
      element.addEventListener("pointerdown", (event) => {
        element.setPointerCapture(event.pointerId);
        go(...placeIn(element, event));
      });
      element.addEventListener("pointermove", (event) => {
        if (event.buttons & 1) go(...placeIn(element, event));
      });
      element.addEventListener("pointerup", () => ui.done());
    },
    slider: (key, options) => slider(ui, key, options),
    toggle: (key, options) => toggle(ui, key, options),
    choice: (key, options) => choice(ui, key, options),
    picks: (key, options) => picks(ui, key, options),
    player: (options) => player(ui, options),
    steps: (key, options) => steps(ui, key, options),
  };
  model.on("change", redraw);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const themes = new MutationObserver(redraw);
  dark.addEventListener("change", redraw, { signal });
  themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  let width = 0;
  const sizes = new ResizeObserver(() => {
    if (root.clientWidth === width) return;
    if (width) redraw();
    else inTurn(drawFirst);
    width = root.clientWidth;
  });
  if (!CARDS.has(kind)) {
    sizes.observe(root);
    addEventListener("present", () => width || draw(), { signal }); // screens are fitted to what is drawn
  }
  signal.addEventListener("abort", () => {
    model.off("change", redraw);
    themes.disconnect();
    sizes.disconnect();
    clearTimeout(spoken);
  });
  return ui;
}

export const motionless = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// The name, and a button for the whole screen, where the style makes everything as large as fits.
function headOf(root, title, signal) {
  const button = h("button.tx-button.tx-screen", { "aria-pressed": "false" }, "⤢ Full screen");
  const isScreen = () => root.getRootNode().fullscreenElement === root; // the root may be a shadow's
  const isFull = () => isScreen() || root.classList.contains("tx-full");
  const say = () => {
    button.setAttribute("aria-pressed", isFull());
    button.textContent = isFull() ? "⤡ Leave full screen" : "⤢ Full screen";
  };
  const fill = (on) => {
    root.classList.toggle("tx-full", on);
    say();
  }; // a frame or a phone may not grant a screen
  button.addEventListener("click", async () => {
    if (isScreen()) return document.exitFullscreen();
    if (isFull()) return fill(false);
    try {
      await root.requestFullscreen();
    } catch {
      fill(true);
    }
  });
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && root.classList.contains("tx-full")) fill(false);
  });
  document.addEventListener("fullscreenchange", say, { signal });
  return h("div.tx-head", h("p.tx-called", { "aria-hidden": "true" }, title), button);
}

// A button that calls step() every so many milliseconds until it is pressed again or step returns false.
function player(ui, { label, every = 120, step }) {
  const button = h("button.tx-button.tx-play", { "aria-pressed": "false" });
  let timer = null;
  const stop = () => {
    if (timer !== null) ui.done();
    clearInterval(timer);
    timer = null;
    say();
  };
  const say = () => {
    button.setAttribute("aria-pressed", timer !== null);
    button.textContent = timer === null ? `▶ ${label}` : "❚❚ Pause";
  };
  button.addEventListener("click", () => {
    if (timer !== null) return stop();
    timer = setInterval(() => {
      if (step() === false) stop();
    }, every);
    say();
  });
  ui.signal.addEventListener("abort", () => clearInterval(timer));
  say();
  return button;
}

// Two buttons, one step back and one on, between `low` and `high`. Where a state is shown as another number,
// `at` is that; it and `high` are functions.
function steps(ui, key, { words, low = 0, high, at = () => ui.get(key), kind = ".tx-next" }) {
  const go = (by) => () => ui.save(key, clamp(at() + by, low, high()));
  const buttons = [pushButton(words[0], go(-1)), pushButton(words[1], go(1), kind)];
  ui.paint(() => {
    buttons[0].disabled = at() === low;
    buttons[1].disabled = at() === high();
  });
  return buttons;
}

// Controls that few need at first sight.
export const further = (words, ...parts) =>
  h("details.tx-further", h("summary", words), h("div.tx-row", parts));

// Controls are native inputs, so that keys, names and values come with them.

// to and from turn the place of the handle into the value of the state, as for a logarithmic scale; max may be a
// function, where it follows the rest of the state.
function slider(ui, key, { label, min, max, step = 1, format = String, to = (x) => x, from = (x) => x }) {
  const value = h("span.tx-value", { "aria-hidden": "true" });
  const input = h("input", {
    type: "range",
    min,
    max: max instanceof Function ? null : max,
    step,
    oninput: () => ui.set(key, to(+input.value)),
    onchange: () => ui.done(),
  });
  ui.paint(() => {
    const now = ui.get(key);
    if (max instanceof Function) input.max = max();
    input.value = from(now);
    value.textContent = format(now);
    input.setAttribute("aria-valuetext", format(now));
  });
  return h("div.tx-control", labelled(input, label), input, value);
}

function toggle(ui, key, { label }) {
  const input = h("input", { type: "checkbox", onchange: () => ui.save(key, input.checked) });
  ui.paint(() => {
    input.checked = ui.get(key);
  });
  return h("div.tx-control.tx-toggle", input, labelled(input, label));
}

// options: [value, words] pairs.
function choice(ui, key, { label, options }) {
  const name = uid();
  const inputs = options.map(([value]) =>
    h("input", { type: "radio", name, onchange: () => ui.save(key, value) }),
  );
  ui.paint(() =>
    inputs.forEach((input, i) => {
      input.checked = options[i][0] === ui.get(key);
    }),
  );
  return h(
    "fieldset.tx-choice",
    h("legend", label),
    inputs.map((input, i) => h("span", input, labelled(input, options[i][1]))),
  );
}

// One button a name, for the numbers 0, 1, ...; `reset` holds what a new choice sets besides, or is a
// function of the choice. `titles` say more about each than its name.
function picks(ui, key, { label, names, titles = null, reset = {} }) {
  const buttons = names.map((name, i) => {
    const more = titles && { "aria-label": `${name}: ${titles[i]}`, title: titles[i] };
    return h("button.tx-token", { ...more }, name);
  });
  const go = (i) => ui.save({ ...(reset instanceof Function ? reset(i) : reset), [key]: i });
  const box = h("div.tx-radios", { role: "radiogroup", "aria-label": label }, buttons);
  const show = radioGroup(box, buttons, go);
  ui.paint(() => show(ui.get(key)));
  return box;
}
