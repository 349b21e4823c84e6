// What a page without a kernel remembers: in the browser or, where it stores nothing for pages from disk, in
// the page.

const ownShelf = new Map();
const STORED = "tinytx:";

// Where values are stored, and whether they last longer than the page.
function shelf() {
  try {
    const there = globalThis.localStorage;
    there.setItem(STORED, "");
    there.removeItem(STORED);
    return {
      lasts: true,
      read: (key) => there.getItem(STORED + key),
      write: (key, text) => there.setItem(STORED + key, text),
      keys: () =>
        Object.keys(there)
          .filter((key) => key.startsWith(STORED))
          .map((key) => key.slice(STORED.length)),
    };
  } catch {
    return {
      lasts: false,
      read: (key) => ownShelf.get(key) ?? null,
      write: (key, text) => ownShelf.set(key, text),
      keys: () => [...ownShelf.keys()],
    };
  }
}

export const storageLasts = () => shelf().lasts;

// A value that was stored, or null.
export function recalled(key) {
  try {
    return JSON.parse(shelf().read(key));
  } catch {
    return null;
  }
}

// All values whose keys begin so.
export const stored = (beginning) =>
  shelf()
    .keys()
    .filter((key) => key.startsWith(beginning))
    .map(recalled);

// Store a value, and call the listeners of this page.
export function remember(key, value) {
  shelf().write(key, JSON.stringify(value));
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
