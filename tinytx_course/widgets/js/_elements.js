// Elements, and keys within groups of them. Shared by all explorers, imports nothing.

const SVG = new Set(["svg", "path", "line", "circle", "rect", "g", "text", "polyline"]);
const FOCUSABLE = new Set(["button", "input", "select", "textarea", "summary", "a"]);

// An element: h("p.tx-note", { id }, "words"). Classes and attributes may be left out; attributes named on... are
// listeners. A button submits nothing.
export function h(name, ...parts) {
  const [tag, ...classes] = name.split(".");
  const attributes = parts[0]?.constructor === Object ? parts.shift() : {};
  const element = SVG.has(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  if (tag === "button") element.type = "button";
  // JupyterLab takes keys from whatever has the focus unless that very element refuses; its parents cannot.
  if (FOCUSABLE.has(tag) || "tabindex" in attributes)
    element.setAttribute("data-lm-suppress-shortcuts", "true");
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...parts.flat(Infinity).filter((child) => child != null));
  return element;
}

// A button of ours; `kind` holds more classes, such as ".tx-next".
export const pushButton = (words, onclick, kind = "") => h(`button.tx-button${kind}`, { onclick }, words);

// Letters in a drawing, at a place; `anchor` is where along them that is.
export const lettering = (x, y, text, anchor = null, more = {}) =>
  h("text", { x, y, "text-anchor": anchor, ...more }, text);

export const setAll = (element, attributes) =>
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));

// Put a text on the clipboard; the button says so for a while.
export async function copyText(text, button, copied = "Copied") {
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // a page from disk may not be allowed to
    const box = h("textarea", text);
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }
  button.textContent = copied;
  setTimeout(() => {
    button.textContent = words;
  }, 1500);
}

// Text with what is between backticks as code, between asterisks emphasised.
const TAGS = ["", "code", "em"];
export const marked = (text) =>
  text
    .split(/`([^`]+)`|\*([^*\s][^*]*)\*/)
    .map((part = "", i) => (part && i % 3 ? h(TAGS[i % 3], part) : curled(part, !i)));
// Plain text with curly quotation marks, as the prose of a page has; whether one at its beginning opens.
export const curled = (text, first = true) =>
  text.replace(/["']/g, (mark, at) => {
    const opens = at ? /[\s([{<“‘«—–/-]/.test(text[at - 1]) : first;
    return mark === '"' ? (opens ? "“" : "”") : opens ? "‘" : "’";
  });

// Where an event is in an element, as shares of its width and height, at any zoom.
export function placeIn(element, event) {
  const box = element.getBoundingClientRect();
  return [
    clamp((event.clientX - box.left) / box.width, 0, 1),
    clamp((event.clientY - box.top) / box.height, 0, 1),
  ];
}

let made = 0;
export const uid = () => `tx-${++made}-${Math.random().toString(36).slice(2, 8)}`;

// The label of an input.
export function labelled(input, ...words) {
  input.id ||= uid();
  return h("label", { for: input.id }, words);
}

// One stop for Tab in a group of elements, the arrow keys move within; `columns`, a number or a function,
// makes it a grid. What is hidden is passed over; go(index) is called when a key chose another element.
export function roving(box, elements, { columns: count = 1, go = () => {} } = {}) {
  const move = (to) => {
    elements.forEach((element, i) => {
      element.tabIndex = i === to ? 0 : -1;
    });
  };
  box.addEventListener("keydown", (event) => {
    const shown = elements.filter((element) => !element.hidden);
    const at = shown.indexOf(event.target);
    const columns = typeof count === "function" ? count() : count;
    const column = at % columns;
    const steps =
      columns === 1
        ? { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -at, End: shown.length - 1 - at }
        : {
            ArrowDown: columns,
            ArrowUp: -columns,
            ArrowRight: column < columns - 1 ? 1 : 0,
            ArrowLeft: column ? -1 : 0,
            Home: -column,
            End: columns - 1 - column,
          };
    const step = steps[event.key];
    if (at < 0 || step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const chosen = shown[at + step];
    const to = elements.indexOf(chosen);
    if (step === 0 || !chosen) return;
    move(to);
    chosen.focus();
    go(to);
  });
  return move;
}

// Buttons of which one is chosen, by a press or by a key, which calls go(index); shows which.
export function radioGroup(box, buttons, go, columns = 1) {
  const move = roving(box, buttons, { columns, go });
  buttons.forEach((button, i) => {
    button.setAttribute("role", "radio");
    button.addEventListener("click", () => go(i));
  });
  return (chosen) => {
    move(chosen);
    buttons.forEach((button, i) => button.setAttribute("aria-checked", i === chosen));
  };
}

// A row of a table with its name.
export const bodyRow = (name, ...cells) => h("tr", h("th", { scope: "row" }, name), cells);

// The first row of a table; above a column without a name is an empty cell.
export const headRow = (names) =>
  h(
    "thead",
    h(
      "tr",
      names.map((name) => (name ? h("th", { scope: "col" }, name) : h("td"))),
    ),
  );
