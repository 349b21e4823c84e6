// Code folded to a line, or not: see look.js.

const cells = [...document.querySelectorAll("#lesson .code:not(.plotting)")];
const wishes = [...document.querySelectorAll(".story-switch input")];
const foldCode = () => {
  for (const cell of cells) cell.open = !look.story;
  for (const wish of wishes) wish.checked = look.story === (wish.value === "story");
};
wishes.forEach((wish) =>
  wish.addEventListener("change", () => {
    changeLook({ story: wish.value === "story" });
    foldCode();
  }),
);
addEventListener("presented", foldCode);
foldCode();
document.documentElement.classList.add("ready");

// A button on each piece of code that copies it, and on a phone one that wraps it; two lines are as quickly
// typed.

const wraps = [];
const wrapAll = (on) => {
  // one wish for all code, also of the next page
  remember("wrap", on);
  wraps.forEach(({ box, wrap }) => wrap.setAttribute("aria-pressed", box.classList.toggle("wrapped", on)));
};

for (const pre of document.querySelectorAll(
  ".input_area pre, .rendered_html > pre, .rendered_html details > pre, .rendered_html .highlight pre",
)) {
  if (pre.textContent.trim().split("\n").length < 3) continue;
  const button = h("button.copy", "Copy");
  button.addEventListener("click", () => copyText(pre.textContent.replace(/\n$/, ""), button));
  // paper may cut it
  pre.closest(".input_area")?.classList.toggle("long", pre.textContent.split("\n").length > 15);
  const box = pre.closest(".input_area") ?? pre.closest(".highlight") ?? h("div");
  if (!box.isConnected) {
    pre.replaceWith(box);
    box.append(pre);
  }
  box.classList.add("has-copy");
  const wrap = h("button.copy.wrap", { onclick: () => wrapAll(!recalled("wrap")) }, "Wrap");
  box.append(button, wrap);
  wraps.push({ box, wrap });
}
wrapAll(Boolean(recalled("wrap")));
