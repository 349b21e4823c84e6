// Figures and diagrams become as large as the window: by their button, or by a press on the picture. On a
// phone the panels of a figure stand below one another.

const dialog = h("dialog.enlarged", { "aria-label": "Enlarged figure" });
const shrink = h("button.close", { onclick: () => dialog.close() }, "Close");
let back = () => {};
dialog.addEventListener("close", () => back());
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});
document.body.append(dialog);

const phone = matchMedia("(max-width: 40rem)");
const stacked = new Map();

// The panels of a figure by columns, with the box of each column: those that share a part of the width, and
// colour bars with what is left of them. All in the units of the drawing.
function columnsOf(svg, panels) {
  const { x, y, width, height } = svg.viewBox.baseVal;
  const frame = svg.getBoundingClientRect();
  const unit = width / frame.width;
  const boxOf = (parts) => {
    const rects = parts
      .map((part) => part.getBoundingClientRect())
      .filter((rect) => rect.width || rect.height);
    const edge = (most, side) => most(...rects.map((rect) => rect[side]));
    const left = Math.max(x, x + (edge(Math.min, "left") - frame.left) * unit);
    const right = Math.min(x + width, x + (edge(Math.max, "right") - frame.left) * unit);
    const top = Math.max(y, y + (edge(Math.min, "top") - frame.top) * unit);
    const bottom = Math.min(y + height, y + (edge(Math.max, "bottom") - frame.top) * unit);
    return { left, right, top, bottom, wide: right - left };
  };
  const all = panels
    .map((panel) => ({
      panels: [panel],
      ...boxOf([panel.querySelector("path"), ...panel.querySelectorAll("text")].filter(Boolean)),
    }))
    .sort((a, b) => a.left - b.left);
  const widest = Math.max(...all.map(({ wide }) => wide));
  const columns = [];
  for (const one of all) {
    const last = columns.at(-1);
    const shared = last ? Math.min(last.right, one.right) - one.left : 0;
    if (!last || (shared < 0.3 * Math.min(last.wide, one.wide) && one.wide > 0.35 * widest)) {
      columns.push(one);
      continue;
    }
    last.panels.push(...one.panels);
    for (const [side, most] of [
      ["left", Math.min],
      ["top", Math.min],
      ["right", Math.max],
      ["bottom", Math.max],
    ])
      last[side] = most(last[side], one[side]);
    last.wide = last.right - last.left;
  }
  // Beside the panels: legends, which stay a drawing, and texts, which become a line.
  const beside = [...panels[0].parentNode.children]
    .slice(1)
    .filter((part) => !panels.includes(part) && part.getBoundingClientRect().width);
  const drawn = beside.filter((part) => part.querySelector("path, use, image"));
  const written = beside.filter((part) => !drawn.includes(part) && part.textContent.trim());
  const words = written.map((part) => {
    const rect = part.getBoundingClientRect();
    const below = rect.top > panels[0].getBoundingClientRect().top;
    return `${rect.height > 1.5 * rect.width ? "↓ " : below ? "→ " : ""}${part.textContent.trim()}`;
  });
  return { columns, rest: drawn.length ? boxOf(drawn) : null, written, words };
}

const cutTo = ({ left, right, top, bottom }) =>
  `${left - 3} ${top - 3} ${right - left + 6} ${bottom - top + 6}`;

// Letters are larger on a phone, next to the drawing: it gets the room that they need.
function withRoom(svg) {
  const { x, y, width, height } = svg.viewBox.baseVal;
  const frame = svg.getBoundingClientRect();
  const unit = width / frame.width;
  svg.dataset.drawn ??= svg.getAttribute("viewBox");
  const rects = [...svg.querySelectorAll("text")]
    .map((text) => text.getBoundingClientRect())
    .filter((rect) => rect.width);
  const over = (side, sign) => Math.max(0, ...rects.map((rect) => sign * (rect[side] - frame[side]) * unit));
  const left = over("left", -1);
  const right = over("right", 1);
  const above = over("top", -1);
  const below = over("bottom", 1);
  svg.setAttribute("viewBox", `${x - left} ${y - above} ${width + left + right} ${height + above + below}`);
  svg.style.setProperty("--own", `${width + left + right}px`);
}

// Powers of ten are drawn letter by letter: they are enlarged as a whole, about their centre.
function enlargePowers(svg, by) {
  const enlarged = [...svg.querySelectorAll("text:has(tspan)")].map((text) => {
    const { x, y, width, height } = text.getBBox();
    const drawn = text.getAttribute("transform") ?? "";
    const [across, down] = [x + width / 2, y + height / 2].map((centre) => (1 - by) * centre);
    text.setAttribute("transform", `${drawn} translate(${across} ${down}) scale(${by})`);
    return () => text.setAttribute("transform", drawn);
  });
  return () => enlarged.forEach((undo) => undo());
}

// Stack the panels of a picture or put them back, as the width of the window wants it.
function arrange(picture) {
  const undo = stacked.get(picture);
  const wants =
    phone.matches && !picture.closest("dialog") && !document.documentElement.classList.contains("present");
  if (undo && !wants) undo();
  const svg = picture.querySelector("svg");
  const panels = [...picture.querySelectorAll("g.axes")];
  if (!wants || undo || !svg?.getBoundingClientRect().width) return;
  const look = svg.getAttribute("style");
  const shrinkPowers = enlargePowers(svg, 1.35);
  withRoom(svg);
  const { columns, rest, written, words } = panels.length ? columnsOf(svg, panels) : { columns: [] };
  const whole = svg.dataset.drawn;
  const putBack = () => {
    stacked.delete(picture);
    shrinkPowers();
    svg.setAttribute("viewBox", whole);
    svg.setAttribute("style", look);
  };
  if (columns.length < 2) return stacked.set(picture, putBack);
  const places = panels.map((panel) => {
    const place = document.createComment("");
    panel.before(place);
    return place;
  });
  const sized = ({ wide }) => `stroke-linejoin:round;max-width:${1.5 * wide}px;--own:${wide}px`;
  const pieces = columns.map((column) =>
    h(
      "svg",
      {
        class: column.wide > 440 ? "piece wide" : "piece",
        "aria-hidden": "true",
        viewBox: cutTo(column),
        style: sized(column),
      },
      column.panels,
    ),
  );
  if (words.length) pieces.unshift(h("p.beside", { "aria-hidden": "true" }, words.join(" · ")));
  written.forEach((part) => part.setAttribute("visibility", "hidden"));
  svg.after(...pieces);
  svg.setAttribute("viewBox", rest ? cutTo(rest) : whole);
  if (rest) svg.setAttribute("style", sized(rest));
  svg.classList.add(rest ? "legend" : "emptied");
  stacked.set(picture, () => {
    putBack();
    places.forEach((place, i) => place.replaceWith(panels[i]));
    pieces.forEach((piece) => piece.remove());
    written.forEach((part) => part.removeAttribute("visibility"));
    svg.classList.remove("legend", "emptied");
  });
}

for (const figure of document.querySelectorAll("figure.figure, figure.txd")) {
  const picture = figure.querySelector(".picture, .txd-scroll");
  const caption = figure.querySelector("figcaption");
  const enlarge = () => {
    const mark = document.createComment("");
    picture.replaceWith(mark);
    dialog.className = `enlarged ${figure.className}`;
    dialog.replaceChildren(shrink, picture);
    arrange(picture);
    back = () => {
      mark.replaceWith(picture);
      arrange(picture);
      button.focus({ preventScroll: true });
    };
    dialog.showModal();
  };
  const button = h("button.enlarge", { onclick: enlarge }, "Enlarge");
  picture.addEventListener("click", () => {
    if (dialog.open) dialog.classList.toggle("whole");
    else if (!document.documentElement.classList.contains("present")) enlarge();
  });
  caption?.append(" ", button);
  new ResizeObserver(() => arrange(picture)).observe(picture);
}
addEventListener("present", () => document.querySelectorAll(".picture").forEach(arrange));
