// The exercises that need no Python: which of them are solved. Nothing of it leaves the browser.

const all = [...document.querySelectorAll("[data-task]")], said = document.querySelector(".tasks-done");

const linkTo = (task) => h("a", { href: `#${task.querySelector("h3").id}` }, "Next unsolved");
const paint = () => {
  const solved = all.filter(({ dataset }) => recalled(`task:${dataset.task}`));
  solved.forEach((task) => { task.querySelector(".done").hidden = false; });
  const next = all.find((task) => !solved.includes(task));
  said.replaceChildren(`${solved.length} of ${all.length} solved. `, ...(next ? [linkTo(next)] : []));
  solved.forEach((task) => {
    const place = task.querySelector(".done"), later = all.slice(all.indexOf(task)).find((other) => !solved.includes(other)) ?? next;
    place.replaceChildren("✓ Solved. ", ...(later ? [linkTo(later), " · "] : []));
  });
};
if (said) {
  document.addEventListener("tinytx", paint);
  paint();
}
