// The exercises that need no Python: which of them are solved. Nothing of it leaves the browser.

const all = [...document.querySelectorAll("[data-task]")], said = document.querySelector(".tasks-done");

const paint = () => {
  const solved = all.filter(({ dataset }) => recalled(`task:${dataset.task}`));
  solved.forEach((task) => { task.querySelector(".done").hidden = false; });
  said.textContent = `${solved.length} of ${all.length} solved.`;
};
document.addEventListener("tinytx", paint);
paint();
