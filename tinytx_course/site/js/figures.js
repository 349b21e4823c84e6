// Figures and diagrams become as large as the window: by their button, or by a press on the picture.

const dialog = h("dialog", { class: "enlarged", "aria-label": "Enlarged figure" });
const shrink = h("button", { type: "button", class: "close", onclick: () => dialog.close() }, "Close");
let back = () => {};
dialog.addEventListener("close", () => back());
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
document.body.append(dialog);

for (const figure of document.querySelectorAll("figure.figure, figure.txd")) {
  const picture = figure.querySelector(".picture, .txd-scroll"), caption = figure.querySelector("figcaption");
  const enlarge = () => {
    const mark = document.createComment("");
    picture.replaceWith(mark);
    dialog.className = `enlarged ${figure.className}`;
    dialog.replaceChildren(shrink, picture);
    back = () => { mark.replaceWith(picture); button.focus({ preventScroll: true }); };
    dialog.showModal();
  };
  const button = h("button", { type: "button", class: "enlarge", onclick: enlarge }, "Enlarge");
  picture.addEventListener("click", () => { if (!dialog.open && !document.documentElement.classList.contains("present")) enlarge(); });
  caption?.append(" ", button);
}
