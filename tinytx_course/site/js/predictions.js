// What a prediction is about, and the words on it, wait, blurred, until the reader has chosen and said how sure, or asks.

const CARD = "[data-tx-kind=questions]", RESULT = "[data-tx-kind=outcome]";
const cards = [...document.querySelectorAll(`#lesson :is(${CARD}, ${RESULT})`)];
const parts = [...document.querySelectorAll("#lesson :is(.output_area, .text_cell_render > *)")];
const after = (one, other) => one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;

cards.forEach((card, i) => {
  const result = cards[i + 1];
  if (!card.matches(CARD) || !result?.matches(RESULT)) return;
  const last = parts.indexOf(result.closest(".output_area")), below = parts[last + 1]?.parentElement;
  const isHeading = (part) => /^H\d$/.test(part.tagName);
  let end = last + 1;  // the cell of text below says what came out
  while (below?.matches(".text_cell_render") && parts[end]?.parentElement === below && !isHeading(parts[end])) end += 1;
  const hidden = parts.slice(0, end).filter((part) => after(card, part) && !isHeading(part));
  const show = () => {
    hidden.forEach((output) => { output.inert = false; output.classList.remove("waiting"); });
    button.remove();
  };
  const button = h("button", { type: "button", class: "show-result", onclick: show }, "Show the result without a choice");
  const chosen = () => card.querySelector(".tx-question input:checked");
  const sure = () => chosen() && (!card.querySelector(".tx-sure") || card.querySelector(".tx-sure input:checked"));
  hidden.forEach((output) => { output.inert = true; output.classList.add("waiting"); });
  card.closest(".output_area").after(button);
  card.addEventListener("change", () => {
    if (sure()) show();
    else button.textContent = "Show the result";
  });
  addEventListener("load", () => { if (chosen()) show(); });
  addEventListener("present", show);
});
