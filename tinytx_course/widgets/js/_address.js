// The state of explorers in the address of a page: #mask?causal=0&window=2;positions?hand=3. Only in pages.
// "mask" is the first explorer of its kind, "mask2" the second. What is as it was at first is left out.
// keep(get) gives for each trait the values that are allowed: [low, high] for whole numbers, [low, high,
// "real"] for others, a list of words, or a function of a value; for a list, they hold for each of its items.

const keepers = new Map();

const oneWritten = (value) => encodeURIComponent(typeof value === "boolean" ? Number(value) : value);
export const valueText = (value) =>
  Array.isArray(value) ? value.map(oneWritten).join(",") : oneWritten(value);

// The value that a text stands for, of the type of the present one; undefined where it is not allowed.
export function valueFrom(text, now, allowed) {
  if (Array.isArray(now)) {
    const items =
      text === ""
        ? []
        : text.split(",").map((item) => valueFrom(item, typeof allowed[0] === "number" ? 0 : "", allowed));
    return items.includes(undefined) ? undefined : items;
  }
  if (typeof now === "boolean") return { 0: false, 1: true }[text];
  const value = typeof now === "number" ? Number(text) : decodeURIComponent(text);
  if (typeof allowed === "function") return allowed(value) ? value : undefined;
  if (typeof now === "string") return allowed.includes(value) ? value : undefined;
  const [low, high, real] = allowed;
  return text !== "" && value >= low && value <= high && (real || Number.isInteger(value))
    ? value
    : undefined;
}

// What an address says, by explorer and trait, as texts.
export function addressParts(hash) {
  const parts = hash
    .replace(/^#/, "")
    .split(";")
    .map((part) => part.split("?"))
    .filter(([name, ...more]) => name && more.length < 2);
  return new Map(
    parts.map(([name, pairs]) => [name, new Map(pairs?.split("&").map((pair) => pair.split("=")))]),
  );
}

export function keepInAddress(box, name, model, keep) {
  const get = (key) => floats(model.get(key));
  const start = new Map(Object.keys(keep(get)).map((key) => [key, model.get(key)]));
  let waiting;
  keepers.set(name, { box, model, keep: () => keep(get), start });
  model.on("change", () => {
    clearTimeout(waiting);
    waiting = setTimeout(writeAddress, 250);
  });
}

const changedIn = ({ model, start }) =>
  [...start]
    .filter(([key, value]) => valueText(model.get(key)) !== valueText(value))
    .map(([key]) => `${key}=${valueText(model.get(key))}`)
    .join("&");

// Buttons that copy the address of an explorer as it is now, and the frame that shows its bare page.
export function sharing(name, box) {
  const { txKind: kind, txPage: bare } = box.dataset;
  const link = (page, called) => {
    const changed = changedIn(keepers.get(name));
    return `${new URL(page, location.href.split("#")[0])}#${called}${changed && `?${changed}`}`;
  };
  const copied = location.protocol === "file:" ? "Copied: for this machine only" : "Copied";
  const frame = () => {
    const title = box.querySelector(".tx").ariaLabel;
    const size = { width: "100%", height: box.offsetHeight + 80 };
    const rest = { style: "border: 0", loading: "lazy", allow: "fullscreen; clipboard-write" };
    return h("iframe", { src: link(bare, kind), title, ...size, ...rest }).outerHTML;
  };
  const button = (words, text) =>
    h(
      "button.tx-button.tx-screen.tx-copy",
      { onclick: ({ target }) => copyText(text(), target, copied) },
      words,
    );
  return [button("Copy link", () => link("", name)), ...(bare ? [button("Embed", frame)] : [])];
}

function writeAddress() {
  const parts = [...keepers]
    .map(([name, keeper]) => [name, changedIn(keeper)])
    .filter(([, changed]) => changed)
    .map(([name, changed]) => `${name}?${changed}`);
  const plain = location.pathname + location.search;
  const ours = [...addressParts(location.hash).keys()].some((name) => keepers.has(name));
  if (!parts.length && !ours) return; // the heading that somebody linked to
  try {
    history.replaceState(history.state, "", parts.length ? `#${parts.join(";")}` : plain);
  } catch {
    /* not granted */
  }
}

// Take over what the address says, now and whenever a link changes it, and go to the first explorer it names.
export function followAddress() {
  const read = () => {
    const parts = addressParts(location.hash);
    const [first] = [...parts.keys()].filter((name) => keepers.has(name));
    if (!first) return;
    for (const [name, { model, start, keep }] of keepers) {
      const said = parts.get(name) ?? new Map();
      for (const [key, value] of start) {
        let asked;
        try {
          asked = said.has(key) ? valueFrom(said.get(key), value, keep()[key]) : undefined;
        } catch {
          /* no text */
        }
        model.set(key, asked ?? value);
      }
    }
    const { box } = keepers.get(first);
    for (let folded = box.closest("details"); folded; folded = folded.parentElement.closest("details"))
      folded.open = true;
    box.scrollIntoView({ block: "start", behavior: "instant" });
  };
  read();
  addEventListener("hashchange", read);
}
