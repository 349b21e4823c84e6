// What a prediction is about waits, blurred, until the reader has chosen or asks for it.

const CARD = "[data-tx-kind=questions]", RESULT = "[data-tx-kind=outcome]";
const cards = [...document.querySelectorAll(`#lesson :is(${CARD}, ${RESULT})`)];
const outputs = [...document.querySelectorAll("#lesson .output_area")];
const after = (one, other) => one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;

cards.forEach((card, i) => {
  const result = cards[i + 1];
  if (!card.matches(CARD) || !result?.matches(RESULT)) return;
  const last = result.closest(".output_area");
  const hidden = outputs.filter((output) => after(card, output) && (output === last || after(output, last)));
  const show = () => {
    hidden.forEach((output) => { output.inert = false; output.classList.remove("waiting"); });
    button.remove();
  };
  const button = h("button", { type: "button", class: "show-result", onclick: show }, "Show the result without a choice");
  const chosen = () => card.querySelector(".tx-question input:checked");
  hidden.forEach((output) => { output.inert = true; output.classList.add("waiting"); });
  card.closest(".output_area").after(button);
  card.addEventListener("change", show);
  addEventListener("load", () => { if (chosen()) show(); });
  addEventListener("present", show);
});
