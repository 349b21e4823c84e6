// The exercises that need no Python: which of them are solved, and those of one lesson. Nothing of it leaves
// the browser.

const all = [...document.querySelectorAll("[data-task]")];
const said = document.querySelector(".tasks-done");

const linkTo = (task) => h("a", { href: `#${task.querySelector("h3").id}` }, "Next unsolved");
const paint = () => {
  const solved = all.filter(({ dataset }) => recalled(`task:${dataset.task}`));
  solved.forEach((task) => {
    task.querySelector(".done").hidden = false;
  });
  const next = all.find((task) => !solved.includes(task));
  said.replaceChildren(`${solved.length} of ${all.length} solved. `, ...(next ? [linkTo(next)] : []));
  solved.forEach((task) => {
    const place = task.querySelector(".done");
    const later = all.slice(all.indexOf(task)).find((other) => !solved.includes(other)) ?? next;
    place.replaceChildren("✓ Solved. ", ...(later ? [linkTo(later), " · "] : []));
  });
};
// The right program of an exercise opens after a check of one of its rungs, or to who asks for it anyway.
const tried = ({ dataset }) => `tried:${dataset.exercise}`;
for (const fold of document.querySelectorAll(".watch")) {
  const task = fold.closest("[data-exercise]");
  const anyway = h("button", { onclick: () => remember(tried(task), true) }, "Show it anyway");
  const early = h("p", "It opens once you have checked an answer. ", anyway);
  fold.append(early);
  const open = () => {
    early.hidden = recalled(tried(task)) === true;
    fold.querySelector("div").hidden = !early.hidden;
  };
  document.addEventListener("tinytx", open);
  open();
}
document.addEventListener(
  "click",
  ({ target }) => {
    const task = target.textContent === "Check" && target.closest("[data-exercise]");
    if (task) remember(tried(task), true);
  },
  true, // before the button says something else
);

if (said) {
  const lessons = [...new Set(all.map(({ dataset }) => dataset.behind))].sort();
  const which = h(
    "select",
    { "aria-label": "Lesson" },
    h("option", { value: "" }, "All lessons"),
    lessons.map((name) => h("option", name)),
  );
  const unsolved = h("input", { type: "checkbox" });
  const links = new Map(
    [...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link.parentElement]),
  );
  const narrow = () => {
    for (const task of all) {
      task.hidden =
        (which.value && task.dataset.behind !== which.value) ||
        (unsolved.checked && recalled(`task:${task.dataset.task}`));
      links.get(task.querySelector("h3").id).hidden = task.hidden;
    }
    for (const heading of document.querySelectorAll(".exercises h2")) {
      let next = heading.nextElementSibling;
      let some = false;
      for (; next?.matches("section"); next = next.nextElementSibling) some ||= !next.hidden;
      heading.hidden = links.get(heading.id).hidden = !some;
    }
  };
  for (const field of [which, unsolved]) field.addEventListener("change", narrow);
  said.after(h("p.narrow", which, " ", h("label", unsolved, " Unsolved only")));
  document.addEventListener("tinytx", paint);
  paint();
}
