// Cards: what a term means, which paper a number is; on hover and on focus, Escape closes them.

const card = h("div.hover-card", { role: "tooltip", id: "hover-card", hidden: true });
document.body.append(card);
let shownFor = null;
let leaving;
let touched = false;
let asked = null;
addEventListener(
  "pointerdown",
  ({ pointerType, target }) => {
    touched = pointerType === "touch";
    if (!target.closest?.("a.term, a.paper, .hover-card")) asked = null;
  },
  true,
);

const hideCard = () => {
  shownFor?.removeAttribute("aria-describedby");
  shownFor = null;
  card.hidden = true;
};

const showCard = (link) => {
  clearTimeout(leaving);
  if (link === shownFor) return;
  hideCard();
  if (link.title) {
    // without this script the browser's own tip shows it
    link.dataset.card = link.title;
    link.removeAttribute("title");
  }
  shownFor = link;
  card.textContent = link.dataset.card;
  link.setAttribute("aria-describedby", card.id);
  card.hidden = false;
  const at = link.getClientRects()[0];
  const width = card.offsetWidth;
  const height = card.offsetHeight;
  const above = at.bottom + height + 12 > innerHeight && at.top > height + 12;
  card.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - width - 8)) + scrollX}px`;
  card.style.top = `${(above ? at.top - height - 8 : at.bottom + 8) + scrollY}px`;
};
const later = () => {
  clearTimeout(leaving);
  leaving = setTimeout(hideCard, 200);
};

for (const link of document.querySelectorAll("a.term, a.paper[title]")) {
  link.addEventListener("pointerenter", () => showCard(link));
  link.addEventListener("pointerleave", later);
  link.addEventListener("focus", () => showCard(link));
  link.addEventListener("blur", hideCard);
  link.addEventListener("click", (event) => {
    // a finger cannot hover: the first press shows the card, a second one follows the link
    if (touched && asked !== link) event.preventDefault();
    if (touched) {
      showCard(link);
      asked = link;
    }
  });
}
card.addEventListener("pointerenter", () => clearTimeout(leaving));
card.addEventListener("pointerleave", later);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideCard();
});
