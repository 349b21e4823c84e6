// The list of all keys: by ? or from the menu.

const KEYS = [
  [
    "On every page",
    [
      ["/ or Ctrl K", "search"],
      ["?", "this list"],
      ["Tab, Enter, arrow keys", "links, buttons, explorers"],
      ["Esc", "close what is open"],
    ],
  ],
  [
    "In front of a class",
    [
      ["P", "begin and end"],
      ["→, Page Down or Space", "next screen, or what is hidden on it"],
      ["← or Page Up", "back"],
      ["Home, End", "the first and the last section"],
      ["O", "all sections, to go to one"],
      ["C", "open or close the code of this screen"],
      ["1 to 9", "give the class as many minutes; 0 ends it"],
      ["T", "how long it has been"],
      ["B", "a dark screen, and back"],
      ["Tab", "into an explorer or a question; Esc leaves it"],
    ],
  ],
];
const close = h("button.close", { onclick: () => list.close() }, "Close");
const list = h(
  "dialog.keys",
  { "aria-label": "Keys" },
  close,
  h(
    "div.lists",
    KEYS.map(([title, keys]) =>
      h(
        "section",
        h("h2", title),
        h(
          "dl",
          keys.map(([key, does]) => [h("dt", h("kbd", key)), h("dd", does)]),
        ),
      ),
    ),
  ),
);
document.body.append(list);
const open = () => {
  if (!document.querySelector("dialog[open]")) list.showModal();
};

list.addEventListener("pointerdown", (event) => {
  if (event.target === list) list.close();
});
document.querySelector(".keys-open")?.addEventListener("click", (event) => {
  event.target.closest("details").open = false;
  open();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "?" && look.letters && !event.target.closest(TYPING)) open();
});
