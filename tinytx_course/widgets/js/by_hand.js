// A task that needs no Python: a mask to fill, or a number to predict. A known mistake is named, as its
// checker in Python does.

const isMask = (get) => get("rows").length > 0;
const sides = (get) => [get("rows"), get("columns")];

// A number as people write it: 1,234 or 1 234 or 6,91; NaN where it is none. Where an answer need not be
// exact, a comma is that of decimals if there is but one.
export function numberOf(typed, within = 0) {
  const text = typed.replace(/[\s_\u202f]/g, "").replace("−", "-");
  const isDecimal = within > 0 && /^[^,.]*,[^,.]*$/.test(text);
  const plain =
    !isDecimal && /^-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/.test(text)
      ? text.replaceAll(",", "")
      : text.replace(",", ".");
  return plain === "" ? NaN : Number(plain);
}

const sumOf = (get) => (get("sum") ? ` The calculation: ${get("sum")}.` : "");

// What is said of the present answer: { mistake, text }, of which "" is none and null one without a name.
export function verdictOf(get) {
  const given = isMask(get) ? get("cells") : numberOf(get("typed"), get("within"));
  if (Number.isNaN(given))
    return { mistake: null, text: "This is no number: write one such as 1234 or 0.25." };
  const same = ([value]) => (isMask(get) ? value === given : Math.abs(value - given) <= get("within"));
  const known = get("answers").find(same);
  const [[right]] = get("answers");
  if (known) return { mistake: known[1], text: known[1] ? `Not yet: ${known[2]}` : `Right.${sumOf(get)}` };
  if (!isMask(get))
    return { mistake: null, text: `Not yet: the number is too ${given < right ? "small" : "large"}.` };
  const [rows, columns] = sides(get);
  const wrong = [...given].flatMap((cell, i) => (cell === right[i] ? [] : [i]));
  const at = `row ${1 + Math.floor(wrong[0] / columns.length)}, “${rows[Math.floor(wrong[0] / columns.length)]}”, column ${1 + (wrong[0] % columns.length)}, “${columns[wrong[0] % columns.length]}”`;
  return {
    mistake: null,
    text: `Not yet: ${counted(wrong.length, "cell")} of ${given.length} ${wrong.length === 1 ? "is" : "are"} wrong. The first is in ${at}.`,
  };
}

export function describe(get) {
  if (get("report") === "solution")
    return isMask(get)
      ? "This is the solution."
      : `The solution: ${grouped(+get("answers")[0][0])}.${sumOf(get)}`;
  if (get("report") === "check") return verdictOf(get).text;
  if (!isMask(get)) return get("typed") ? `Your answer: ${get("typed")}.` : "Write a number, then check it.";
  return `${get("cells").replaceAll("0", "").length} of ${counted(get("cells").length, "cell")} open.`;
}

const change = (ui, key, value) => ui.save({ report: "", [key]: value });

// A mask whose cells are buttons: one stop for Tab, the arrow keys move, the space bar opens and blocks.
function mask(ui) {
  const [rows, columns] = sides(ui.get);
  const tokens = rows.map((row) => row.split(" "));
  // a row is a text: its tokens are in the cells
  const inside = columns.length > 1 && tokens.every(({ length }) => length === columns.length);
  const flip = (i) => {
    const cells = [...ui.get("cells")];
    cells[i] = cells[i] === "1" ? "0" : "1";
    change(ui, "cells", cells.join(""));
  };
  const cells = rows.flatMap((_, i) =>
    columns.map((__, j) =>
      h(
        "button.tx-cell",
        { onclick: () => flip(i * columns.length + j) },
        inside ? h("span", tokens[i][j]) : null,
      ),
    ),
  );
  const across = columns.map((word) =>
    h("span", { class: `tx-key${word.length < 3 ? " tx-upright" : ""}`, "aria-hidden": "true" }, word),
  );
  const grid = h(
    "div.tx-hand",
    {
      role: "group",
      "aria-label": "Mask, pressed is open",
      style: `--columns:${columns.length};--side:${inside ? 52 : 44}px`,
    },
    h("span"),
    across,
    rows.map((word, i) => [
      h("span.tx-query", { "aria-hidden": "true" }, inside ? `text ${i}` : word),
      cells.slice(i * columns.length, (i + 1) * columns.length),
    ]),
  );
  roving(grid, cells, { columns: columns.length })(0);
  ui.paint(() =>
    cells.forEach((cell, i) => {
      const row = Math.floor(i / columns.length);
      const open = ui.get("cells")[i] === "1";
      cell.setAttribute("aria-pressed", open);
      cell.ariaLabel = `${inside ? `${cell.textContent}, ` : ""}row ${row + 1}, ${rows[row]}, column ${(i % columns.length) + 1}, ${columns[i % columns.length]}`;
    }),
  );
  return h("div.tx-scroll", grid);
}

function entry(ui) {
  const input = h("input.tx-typed", {
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    oninput: () => change(ui, "typed", input.value),
    onkeydown: (event) => {
      if (event.key === "Enter") check(ui);
    },
  });
  ui.paint(() => {
    if (input.value !== ui.get("typed")) input.value = ui.get("typed");
  });
  return h("div.tx-row", labelled(input, "Your answer"), input);
}

function check(ui) {
  ui.save("report", "check");
  if (verdictOf(ui.get).mistake === "") remember(`task:${ui.get("title")}`, true);
}

function build(ui) {
  const answer = isMask(ui.get) ? mask(ui) : entry(ui);
  const [[right]] = ui.get("answers");
  const solve = () => ui.save({ [isMask(ui.get) ? "cells" : "typed"]: right, report: "solution" });
  const solution = pushButton("Show the solution", solve);
  const buttons = h(
    "div.tx-row",
    pushButton("Check", () => check(ui)),
    solution,
  );
  solution.hidden = true;
  ui.paint(() => {
    if (ui.get("report") && (isMask(ui.get) ? ui.get("cells").includes("1") : ui.get("typed")))
      solution.hidden = false; // after the first try
    ui.root.classList.toggle("tx-solved", ui.get("report") === "check" && verdictOf(ui.get).mistake === "");
  });
  ui.show(h("p.tx-task", marked(ui.get("task"))), answer, buttons);
}

export default explorer("by_hand", { build, describe });
