// Light, dark or as the system says, and the size of type: set before anything is drawn.

document.documentElement.classList.add("scripted");
const SIZES = [90, 100, 112, 125, 150];
// letters: whether P, / and ? are keys
// story: whether code is folded to a line
const look = {
  theme: "system",
  size: 100,
  letters: true,
  story: matchMedia("(max-width: 40rem)").matches,
  ...recalled("look"),
};

function applyLook() {
  const root = document.documentElement;
  root.dataset.theme = look.theme;
  root.style.setProperty("--type", look.size / 100);
  root.classList.toggle("story", look.story);
  // Explorers and diagrams follow this attribute in JupyterLab.
  if (look.theme === "system") delete document.body.dataset.jpThemeLight;
  else document.body.dataset.jpThemeLight = look.theme === "light";
}
applyLook();

function changeLook(change) {
  Object.assign(look, change);
  remember("look", look);
  applyLook();
}

addEventListener("beforeprint", () => {
  // paper is light
  document.documentElement.dataset.theme = "light";
  document.body.dataset.jpThemeLight = "true";
});
addEventListener("afterprint", applyLook);

document.addEventListener("DOMContentLoaded", () => {
  const box = document.querySelector(".look");
  if (!box) return;
  const themes = [...box.querySelectorAll("[name=theme]")];
  const letters = box.querySelector("[name=letters]");
  const said = box.querySelector("output");
  const step = (by) => SIZES[Math.min(SIZES.length - 1, Math.max(0, SIZES.indexOf(look.size) + by))];
  const say = () => {
    for (const input of themes) input.checked = input.value === look.theme;
    letters.checked = look.letters;
    said.textContent = `${look.size} %`;
  };
  themes.forEach((input) => input.addEventListener("change", () => changeLook({ theme: input.value })));
  letters.addEventListener("change", () => changeLook({ letters: letters.checked }));
  box.querySelectorAll("[data-step]").forEach((button) =>
    button.addEventListener("click", () => {
      changeLook({ size: step(+button.dataset.step) });
      say();
    }),
  );
  say();
});
