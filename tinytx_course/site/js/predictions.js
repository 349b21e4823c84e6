// What comes after a prediction waits, blurred, as far as the next heading or prediction, until the reader
// has chosen and said how sure, or asks, or follows a link into it.

const CARD = "[data-tx-kind=questions]";
const RESULT = "[data-tx-kind=outcome]";
const cards = [...document.querySelectorAll(`#lesson :is(${CARD}, ${RESULT})`)];
const parts = [...document.querySelectorAll("#lesson :is(.output_area, .text_cell_render > *)")];
const nameOf = (card) => JSON.parse(card.dataset.txExplorer).state.title;
const after = (one, other) => one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;

cards.forEach((card, i) => {
  const result = cards[i + 1];
  if (!card.matches(CARD) || !result?.matches(RESULT)) return;
  const isHeading = (part) => /^H\d$/.test(part.tagName);
  const next = cards.slice(i + 2).find((other) => other.matches(CARD));
  const from = parts.indexOf(result.closest(".output_area"));
  const end = parts.findIndex((part, at) => at > from && (isHeading(part) || (next && part.contains(next))));
  const hidden = parts
    .slice(0, end < 0 ? parts.length : end)
    .filter((part) => after(card, part) && !isHeading(part));
  const show = () => {
    hidden.forEach((output) => {
      output.inert = false;
      output.classList.remove("waiting");
    });
    pill.remove();
  };
  const there = () => {
    card.scrollIntoView({ block: "center" });
    card.querySelector("input")?.focus({ preventScroll: true });
  };
  const until = h("span", {}, "Hidden until you choose");
  const button = (words, does, kind) => h("button", { type: "button", class: kind, onclick: does }, words);
  const pill = h(
    "p",
    { class: "veil" },
    until,
    ` in ${nameOf(card)} `,
    button("Go there", there),
    " ",
    button("Show", show, "show-result"),
  );
  const chosen = () => card.querySelector(".tx-question input:checked");
  const sure = () =>
    chosen() && (!card.querySelector(".tx-sure") || card.querySelector(".tx-sure input:checked"));
  hidden.forEach((output) => {
    output.inert = true;
    output.classList.add("waiting");
  });
  hidden[0].before(pill);
  card.addEventListener("change", () => {
    if (sure()) show();
    else until.textContent = "Hidden until you say how sure you are";
  });
  addEventListener("load", () => {
    if (chosen()) show();
  });
  addEventListener("present", show);
  const reach = () => {
    // a link may lead into the middle of it
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (hidden.some((part) => part.contains(target))) show();
  };
  addEventListener("hashchange", reach);
  reach();
});
