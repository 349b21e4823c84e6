// What tells the result of a prediction waits until the reader has chosen and said how sure, or asks, or
// follows a link into it: outputs up to the result, and the sentences after them as far as the next heading.
// Explorers and diagrams never wait. Once a result is seen, its prediction cannot be changed any more.

const CARD = "[data-tx-kind=questions]";
const RESULT = "[data-tx-kind=outcome]";
const OPEN = `.tx-explorer:not(${RESULT}), .txd`;
const cards = [...document.querySelectorAll(`#lesson :is(${CARD}, ${RESULT})`)];
const parts = [...document.querySelectorAll("#lesson :is(.output_area, .text_cell_render > *)")];
const nameOf = (card) => JSON.parse(card.dataset.txExplorer).state.title;
const shownAll = `shown:${document.body.dataset.lesson}`;
const several = (n, word) => (n ? [`${n} ${word}${n > 1 ? "s" : ""}`] : []);

cards.forEach((card, i) => {
  const result = cards[i + 1];
  if (!card.matches(CARD) || !result?.matches(RESULT)) return;
  const isHeading = (part) => /^H\d$/.test(part.tagName);
  const next = cards.slice(i + 2).find((other) => other.matches(CARD));
  const at = parts.indexOf(result.closest(".output_area"));
  const end = parts.findIndex((part, n) => n > at && (isHeading(part) || (next && part.contains(next))));
  const first = parts.findIndex((part) => part.contains(card));
  const hidden = [];
  let tells = false;
  for (const part of parts.slice(first + 1, end < 0 ? parts.length : end)) {
    const isOutput = part.matches(".output_area");
    if (isHeading(part)) tells = false;
    else if (isOutput ? !part.querySelector(OPEN) : tells) hidden.push(part);
    tells ||= isOutput && hidden.at(-1) === part;
  }
  const chosen = () => card.querySelector(".tx-question input:checked");
  const sure = () =>
    chosen() && (!card.querySelector(".tx-sure") || card.querySelector(".tx-sure input:checked"));
  const uncover = () => {
    hidden.forEach((part) => {
      part.inert = false;
      part.classList.remove("waiting");
    });
    pill.remove();
  };
  const show = () => {
    uncover();
    for (const group of card.querySelectorAll("fieldset")) group.disabled = true;
  };
  const there = () => {
    card.scrollIntoView({ block: "center" });
    card.querySelector("input")?.focus({ preventScroll: true });
  };
  const button = (words, does, kind) => h("button", { class: kind, onclick: does }, words);
  const all = () => {
    remember(shownAll, true);
    dispatchEvent(new Event("showall"));
  };
  const figures = hidden.filter((part) => part.querySelector("figure")).length;
  const outputs = hidden.filter((part) => part.matches(".output_area")).length;
  const what = [
    ...several(figures, "figure"),
    ...several(outputs - figures, "output"),
    ...several(hidden.length - outputs, "paragraph"),
  ];
  const until = h("span", "until you choose");
  const pill = h(
    "p.veil",
    `Hidden: ${what.join(", ").replace(/, ([^,]*)$/, " and $1")}, `,
    until,
    ` in ${nameOf(card)} `,
    button("Go there", there),
    " ",
    button("Show", show, "show-result"),
    " ",
    button("Show all on this page", all, "show-all"),
  );
  hidden.forEach((part) => {
    part.inert = true;
    part.classList.add("waiting");
  });
  hidden[0].before(pill);

  // Arrow keys pass over levels that the reader does not mean: Enter, or leaving the group, settles it.
  let byArrow = false;
  card.addEventListener("keydown", ({ key }) => {
    byArrow = key.startsWith("Arrow");
    if (key === "Enter" && sure()) show();
  });
  card.addEventListener("pointerdown", () => {
    byArrow = false;
  });
  card.addEventListener("focusout", ({ target, relatedTarget }) => {
    const group = target.closest(".tx-sure");
    if (group && !group.contains(relatedTarget) && sure()) show();
  });
  card.addEventListener("change", () => {
    if (sure() && !byArrow) show();
    else until.textContent = sure() ? "until you press Enter" : "until you say how sure you are";
  });
  addEventListener("load", () => {
    if (sure() || recalled(shownAll)) show();
  });
  addEventListener("showall", show);
  addEventListener("present", uncover);
  const reach = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!hidden.some((part) => part.matches(".waiting") && part.contains(target))) return;
    show();
    target.scrollIntoView({ behavior: "instant" });
  };
  addEventListener("hashchange", reach);
  reach();
});
