// The explorer of the next word: what the shipped model and the language expect, for any beginning. `get`
// maps the name of a trait to its value. The model comes with _live.js.

const N_POSSIBLE = 8;
const N_IMPOSSIBLE = 3;
const TICKS = [0, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1];
const SCALE = "Twice as long: four times as probable. ";

// What may come after one of the tokens read, and which impossible tokens the model believes in most.
export function nextOf(get) {
  const read = readText(get("text"));
  const last = read.ids.length - 1;
  const at = clamp(last - get("back"), 0, last);
  const model = modelChances(read, at);
  const truth = trueChances(read, at);
  const ids = ranked(model, truth).filter((id) => model[id] > 0);
  const may = truth ? ids.filter((id) => truth[id] > 0) : ids;
  const never = truth ? ids.filter((id) => truth[id] === 0) : [];
  return {
    read,
    last,
    at,
    model,
    truth,
    may,
    never,
    believed: never.reduce((sum, id) => sum + model[id], 0),
  };
}

// Sums of −ln P of the tokens read, in nats: [model, language], the latter as far as the text is possible.
export function surprises(read) {
  const sums = [[0], [0]];
  for (let i = 1; i < read.ids.length; i++) {
    [modelChances(read, i - 1), trueChances(read, i - 1)].forEach((chances, side) => {
      const p = chances?.[read.ids[i]];
      if (p > 0 && sums[side].length === i) sums[side].push(sums[side][i - 1] - Math.log(p));
    });
  }
  return sums;
}

// The text up to token `at`, as people write it.
export function upTo({ all, skipped }, at) {
  const { tokenizer, world } = machine();
  return world.written(world.split(tokenizer.decode(all.slice(0, skipped + at))));
}

// In nats; none for a token that is never written, such as the one for what no token spells.
const surpriseOf = (p) => (p > 0 ? number(-Math.log(p), 1) : "–");

// A token as a word; dots say where it is only the beginning or the rest of one.
function asWord(id) {
  const { tokenizer, tokens } = machine();
  const begins = tokenizer.piece(id).startsWith(MARK);
  const special = id < UNWRITTEN;
  return `${begins || special ? "" : "…"}${shownAs(id)}${!begins || special || tokens.whole.has(String(id)) ? "" : "…"}`;
}

export function describe(get) {
  const { read, at, last, model, truth, may, never, believed } = nextOf(get);
  const [byModel, byTruth] = surprises(read).map((sums) => number(sums.at(-1)));
  const best = may
    .slice(0, 3)
    .map(
      (id) => `“${asWord(id)}” model ${chance(model[id])}${truth ? `, language ${chance(truth[id])}` : ""}`,
    )
    .join("; ");
  // 1 where both sides are the same
  const shared = may.reduce((sum, id) => sum + Math.min(model[id], truth?.[id]), 0);
  const texts = [remarks(read), at ? `After token ${named(read.names, at)}` : "At the beginning"];
  texts[1] += truth
    ? ` model and language share ${chance(shared)} of what they expect; ${counted(may.length, "token")} may follow: ${best}.`
    : ` the model expects: ${best}.`;
  const finding = texts.splice(0, 2).filter(Boolean).join(" ");
  if (at < last)
    texts.push(
      `What was written: “${read.names[at + 1]}”, model ${chance(model[read.ids[at + 1]])}${truth ? `, language ${chance(truth[read.ids[at + 1]])}` : ""}.`,
    );
  if (truth)
    texts.push(
      `To tokens that cannot follow the model gives ${chance(believed)}, most of it to “${asWord(never[0])}”, ${chance(model[never[0]])}.`,
    );
  const whole = surprises(read).map((sums) => sums.length === read.ids.length);
  texts.push(
    last
      ? `Surprise of the ${counted(last, "token")} so far: ${[
          ["model", byModel],
          ["language", byTruth],
        ]
          .map(([side, sum], i) => `${side} ${whole[i] ? `${sum} nats` : "unknown"}`)
          .join(", ")}.`
      : "",
  );
  return `${finding}\n${texts.filter(Boolean).join(" ")}`;
}

// Rows of tokens on one axis of square roots: a bar for the model, a mark for the language, which has none
// for the impossible.
function rows(count, kind, label, take) {
  const all = Array.from({ length: count }, () => {
    const word = h("span", { class: "tx-next-word", lang: "fr" });
    const bar = h("i");
    const mark = h("s");
    const texts = [h("b"), h("b")];
    const box = h(
      "button",
      { type: "button", class: "tx-option", onclick: () => take(+box.dataset.id) },
      word,
      " ",
      h("u", { "aria-hidden": "true" }, bar, mark),
      " ",
      h("span", {}, h("em", {}, "model "), texts[0]),
      " ",
      h("span", {}, h("em", {}, "language "), texts[1]),
    );
    return { box, word, bar, mark, texts };
  });
  const list = h(
    "div",
    { class: `tx-options ${kind}`, role: "group", "aria-label": label },
    all.map(({ box }) => box),
  );
  const stop = roving(
    list,
    all.map(({ box }) => box),
  );
  const paint = (ids, { model, truth, read, at, last }, full) => {
    const held = all.findIndex(({ box }) => box === document.activeElement);
    stop(clamp(held, 0, Math.max(0, ids.length - 1)));
    all.forEach(({ box, word, bar, mark, texts }, i) => {
      const id = ids[i];
      box.hidden = id === undefined;
      if (box.hidden) return;
      box.dataset.id = id;
      box.dataset.chosen = at < last && read.ids[at + 1] === id;
      box.setAttribute("aria-disabled", id === machine().tokenizer.eosId);
      word.textContent = asWord(id);
      bar.style.width = `${100 * Math.sqrt(model[id] / full)}%`;
      mark.hidden = !truth?.[id];
      mark.style.left = `${100 * Math.sqrt((truth?.[id] ?? 0) / full)}%`;
      texts[1].parentElement.hidden = !truth;
      [model[id], truth?.[id]].forEach((p, side) => {
        texts[side].textContent = side && p === 0 ? "∅ never" : chance(p);
      });
    });
    return list;
  };
  return { list, paint };
}

// The surprise of the text so far: for each token the sum up to it, by the model and by the language.
function running(ui) {
  const draw = plot(ui, {
    xLabel: "token",
    yLabel: "surprise so far (nats)",
    height: 174,
    right: 118,
    go: (x) => ui.set("back", clamp(nextOf(ui.get).last - Math.round(x), 0, 127)),
  });
  return {
    box: draw.box,
    paint: ({ read, last, at }) => {
      const sums = surprises(read);
      const end = Math.max(1, last);
      const top = Math.max(1, ...sums.flat());
      const step = 10 ** Math.floor(Math.log10(top));
      const grid = top / step > 5 ? 2 * step : top / step > 2 ? step : step / 2;
      const whole = Array.from({ length: Math.floor(top / grid) + 1 }, (_, i) => [
        i * grid,
        String(+(i * grid).toFixed(1)),
      ]);
      const each = Math.ceil(end / 8);
      draw({
        x: [0, end],
        y: [0, top * 1.05],
        at,
        yTicks: whole,
        xTicks: Array.from({ length: Math.floor(end / each) + 1 }, (_, i) => [i * each, String(i * each)]),
        lines: sums.slice(0, sums[1].length > 1 || !last ? 2 : 1).map((points, side) => ({
          points: points.map((sum, i) => [i, sum]),
          tone: ["tx-first", "tx-second"][side],
          name: `${["model", "language"][side]} ${number(points.at(-1), 1)}${points.length <= last ? " …" : ""}`,
        })),
        label: `Sum of the surprise of ${counted(last, "token")}, model and language`,
      });
    },
  };
}

function build(ui) {
  const go = (id) => {
    if (id === machine().tokenizer.eosId) return;
    const { read, at, last } = nextOf(ui.get);
    ui.set("back", 0);
    ui.save("text", appended(at < last ? upTo(read, at) : ui.get("text"), id));
  };
  const undo = h(
    "button",
    {
      type: "button",
      class: "tx-button",
      onclick: () => {
        ui.set(
          "text",
          ui
            .get("text")
            .trimEnd()
            .replace(/(\S+|\S)$/u, "")
            .trimEnd(),
        );
        ui.save("back", 0);
      },
    },
    "← Take back a word",
  );
  const field = beginning(ui, { reset: { back: 0 } });
  const path = tokenRow("Token to look behind", (i) =>
    ui.save("back", readText(ui.get("text")).ids.length - 1 - i),
  );
  const may = rows(N_POSSIBLE, "tx-may", "tokens that may come next", go);
  const never = rows(N_IMPOSSIBLE, "tx-never", "tokens that cannot come next", go);
  const sums = running(ui);
  const title = h("p", { class: "tx-title" });
  const axis = h("div", { class: "tx-ticks" });
  const rest = h("p", { class: "tx-note" });
  const belief = h("p", { class: "tx-title tx-belief" });
  const worst = h(
    "p",
    { class: "tx-note tx-worst" },
    "These tokens cannot follow; the most believed come first.",
  );
  const paint = () => {
    const now = nextOf(ui.get);
    const { read, at, last, model, truth, believed } = now;
    const shown = now.may.slice(0, N_POSSIBLE);
    const out = now.never.slice(0, N_IMPOSSIBLE);
    const full = fullBar(Math.max(...shown.flatMap((id) => [model[id], truth?.[id] ?? 0])));
    const left = now.may.length - shown.length;
    path.paint(read.names, at, (i) => [
      read.names[i],
      h("small", {}, i ? surpriseOf(modelChances(read, i - 1)[read.ids[i]]) : "nats"),
    ]);
    title.textContent =
      at < last
        ? `After token ${named(read.names, at)} you wrote “${read.names[at + 1]}”. What else could have come? A word that you press takes its place and ends the text.`
        : "What comes next? Press a word to go on with it.";
    keys.lastChild.hidden = !truth;
    keys.firstChild.textContent = truth ? "sorted by the mean of both" : "";
    lists.classList.toggle("tx-alone", !truth);
    const wide = axis.clientWidth || 300;
    const place = (p) => wide * Math.sqrt(p / full);
    const room = (p) => 8 * percent(p).length + 8;
    const ticks = TICKS.filter((p) => p <= full)
      .reverse()
      .reduce(
        (kept, p) =>
          kept.length && place(kept[0]) - place(p) < (room(p) + room(kept[0])) / 2 ? kept : [p, ...kept],
        [],
      );
    axis.replaceChildren(
      ...ticks.map((p) => h("span", { style: `left:${100 * Math.sqrt(p / full)}%` }, percent(p))),
    );
    lists.style.setProperty(
      "--grid",
      ticks
        .map(
          (p) => `linear-gradient(var(--tx-line) 0 0) ${100 * Math.sqrt(p / full)}% 0 / 1px 100% no-repeat`,
        )
        .join(","),
    );
    may.paint(shown, now, full);
    never.paint(out, now, full);
    never.list.hidden = belief.hidden = worst.hidden = !truth;
    belief.textContent = `Impossible here, but the model gives it ${chance(believed)}:`;
    rest.textContent =
      SCALE +
      (left > 0
        ? `${grouped(left)} more: model ${chance(now.may.slice(N_POSSIBLE).reduce((sum, id) => sum + model[id], 0))}${truth ? `, language ${chance(now.may.slice(N_POSSIBLE).reduce((sum, id) => sum + truth[id], 0))}` : ""}.`
        : "");
    undo.disabled = !ui.get("text").trim();
    sums.paint(now);
  };
  const lists = h("div", { class: "tx-both" });
  const keys = h(
    "div",
    { class: "tx-axis tx-keys", "aria-hidden": "true" },
    h("small"),
    h("span", { class: "tx-key" }, h("i"), " model"),
    h("span", { class: "tx-key" }, h("s"), " language"),
  );
  lists.append(
    h(
      "div",
      { class: "tx-part" },
      title,
      keys,
      h("div", { class: "tx-axis", "aria-hidden": "true" }, h("small", {}, "square-root scale"), axis),
      may.list,
      rest,
    ),
    h(
      "div",
      { class: "tx-part" },
      belief,
      worst,
      never.list,
      h("p", { class: "tx-title" }, "How surprising was the text so far?"),
      sums.box,
    ),
  );
  ui.show(
    paint,
    h(
      "p",
      { class: "tx-invite" },
      "Write a beginning, or press words. Where does the model differ from the language, and which impossible word does it believe in?",
    ),
    h("div", { class: "tx-row tx-start" }, field),
    h("div", { class: "tx-row tx-path" }, path.box, undo),
    lists,
  );
}

const keep = () => ({ text: (value) => value.length <= 2000, back: [0, 127] });

export default explorer("next_word", { build, describe, keep });
