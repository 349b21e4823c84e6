// What a page without a kernel remembers: in the browser or, where it stores nothing for pages from disk, in
// the page.

const ownShelf = {};
const STORED = "tinytx:";

// Where values are stored, by the names of properties: both kinds of shelf have them.
function shelf() {
  try {
    const there = globalThis.localStorage;
    there.setItem(STORED, "");
    there.removeItem(STORED);
    return there;
  } catch {
    return ownShelf;
  }
}

export const storageLasts = () => shelf() !== ownShelf;

// A value that was stored, or null.
export function recalled(key) {
  try {
    return JSON.parse(shelf()[STORED + key]);
  } catch {
    return null;
  }
}

// All values whose keys begin so.
export const stored = (beginning) =>
  Object.keys(shelf())
    .filter((key) => key.startsWith(STORED + beginning))
    .map((key) => recalled(key.slice(STORED.length)));

// Store a value, and call the listeners of this page.
export function remember(key, value) {
  shelf()[STORED + key] = JSON.stringify(value);
  document.dispatchEvent(new CustomEvent("tinytx", { detail: key }));
}

export function onRemembered(key, signal, listener) {
  document.addEventListener(
    "tinytx",
    (event) => {
      if (event.detail === key) listener();
    },
    { signal },
  );
}
