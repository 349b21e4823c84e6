// In front of a class: ?present or the key P. One section a screen; predictions stop, figures are blurred until →.

const main = document.querySelector("#lesson");

if (main) {
  const root = document.documentElement;
  const BLOCKS = ".text_cell_render > *, .input, .plotting, .output_area";
  const inner = (block) => block.parentElement.closest(BLOCKS);
  const blocks = [...main.querySelectorAll(BLOCKS)].filter((block) => !inner(block));
  const slides = [];
  const explorer = (block) => block.querySelector(".tx-explorer:not([data-tx-kind=questions], [data-tx-kind=outcome])");
  for (const block of blocks) {  // an explorer has the screen for itself
    const alone = explorer(block) || (slides.length && explorer(slides.at(-1)[0]));
    if (!slides.length || alone || /^H[123]$/.test(block.tagName)) slides.push([]);
    slides.at(-1).push(block);
  }
  let slide = 0, step = 0, count;

  const isPrediction = (block) => [...block.querySelectorAll("[data-tx-kind=questions]")].some((card) => /^Predict/.test(card.querySelector(".tx")?.getAttribute("aria-label") ?? ""));
  const picture = (block) => block.querySelector(".picture, .txd-scroll");
  // After how many blocks a screen stops: behind a prediction, and before a figure is clear.
  const stops = () => slides[slide].flatMap((block, i) =>
    isPrediction(block) ? [i + 1] : picture(block) ? [i + 0.5] : []);

  const show = () => {
    const ends = [...stops(), slides[slide].length], end = ends[step] ?? slides[slide].length;
    blocks.forEach((block) => block.classList.add("off"));
    slides[slide].forEach((block, i) => {
      block.classList.toggle("off", i >= end);
      block.classList.toggle("veiled", !!picture(block) && i + 0.5 === end);
    });
    root.classList.toggle("first", slide === 0);
    count.textContent = `${slide + 1} / ${slides.length}${step < ends.length - 1 ? " · →" : ""}`;
    if (step) slides[slide][Math.min(Math.ceil(end), slides[slide].length) - 1].scrollIntoView({ block: "nearest", behavior: "instant" });
    else scrollTo({ top: 0, behavior: "instant" });
  };

  const move = (by) => {
    const last = stops().length;
    if (by > 0 && step < last) step += 1;
    else if (by < 0 && step > 0) step -= 1;
    else if (slides[slide + by]) {
      slide += by;
      step = by > 0 ? 0 : stops().length;
    }
    show();
  };

  const begin = () => {
    const first = blocks.find((block) => block.getBoundingClientRect().bottom > 90);
    slide = scrollY < 50 ? 0 : Math.max(0, slides.findIndex((each) => each.includes(first)));
    step = 0;
    root.classList.add("present");
    dispatchEvent(new Event("present"));  // a figure is blurred by its step from now on
    count ??= h("p", { class: "slide-count", role: "status" });
    document.body.append(count);
    show();
  };
  const end = () => {
    root.classList.remove("present", "first");
    count.remove();
    blocks.forEach((block) => block.classList.remove("off", "veiled"));
    slides[slide][0].scrollIntoView({ behavior: "instant" });
  };
  const toggle = () => (root.classList.contains("present") ? end() : begin());

  document.querySelector(".present-open")?.addEventListener("click", (event) => {
    event.target.closest("details").open = false;
    toggle();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, select, textarea, .tx")) return;
    if (event.key === "p" || event.key === "P") return toggle();
    if (!root.classList.contains("present")) return;
    const by = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      move(by);
    } else if (event.key === "Escape") end();
  });
  if (new URLSearchParams(location.search).has("present")) {
    if (document.readyState === "complete") begin();
    else addEventListener("load", begin);
  }
}
