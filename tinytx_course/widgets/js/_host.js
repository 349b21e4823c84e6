// A stand-in for anywidget in a page without a kernel: the part of its model that explorers use.

export function pageModel(state) {
  const listeners = new Map();
  const call = (event) => [...(listeners.get(event) ?? [])].forEach((listener) => listener());
  return {
    get: (key) => state[key],
    set(key, value) {
      if (state[key] === value) return;
      state[key] = value;
      call(`change:${key}`);
      call("change");
    },
    save_changes() {},
    on(event, listener) {
      listeners.set(event, (listeners.get(event) ?? new Set()).add(listener));
    },
    off(event, listener) {
      listeners.get(event)?.delete(listener);
    },
  };
}

// A buffer as float32: large shares between 0 and 1 come as multiples of 1/65535.
export function unpacked({ float32, uint16 }) {
  const bytes = bytesOf(float32 ?? uint16).buffer;
  return new DataView(float32 ? bytes : Float32Array.from(new Uint16Array(bytes), (x) => x / 65535).buffer);
}

// The state of an explorer, of what Python wrote.
const stateOf = ({ state, buffers }) => ({
  ...state,
  ...Object.fromEntries(Object.entries(buffers).map(([key, packed]) => [key, unpacked(packed)])),
});

// An explorer in a page of somebody else: it brings its style and its state, and needs no model of its host.
export function embedded(explorer, content, style) {
  return {
    render({ el }) {
      el.append(h("style", style));
      return explorer.render({ model: pageModel(stateOf(content)), el });
    },
  };
}

// Bring every explorer below `place` to life, with a pause after so many ms, but for a class, whose screens are
// fitted; one that fails keeps its text.
const BREATH = new URLSearchParams(location.search).has("present") ? Infinity : 30;
export async function host(explorers, place = document) {
  const counts = {};
  let begun = performance.now();
  const breathe = async () => {
    if (performance.now() - begun < BREATH) return;
    await new Promise((done) => setTimeout(done));
    begun = performance.now();
  };
  for (const box of place.querySelectorAll("[data-tx-explorer]")) {
    await breathe();
    const el = h("div.tx-here");
    const kind = box.dataset.txKind;
    const model = pageModel(stateOf(JSON.parse(box.dataset.txExplorer)));
    counts[kind] = (counts[kind] ?? 0) + 1;
    try {
      box.append(el);
      const name = `${kind}${counts[kind] > 1 ? counts[kind] : ""}`;
      keepInAddress(box, name, model, explorers[kind].keep);
      await breathe();
      explorers[kind].render({ model, el });
      el.querySelector(".tx-screen")?.before(...sharing(name, box));
      box.classList.add("tx-live");
    } catch (problem) {
      el.remove();
      console.error(problem);
    }
  }
  followAddress();
  for (const { box, model, keep } of keepers.values()) leadHand(box, model, keep);
}
