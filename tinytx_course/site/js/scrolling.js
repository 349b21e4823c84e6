// What scrolls sideways can be reached by keys, fades where there is more, and nothing else stops Tab on its
// way.

const MAY_SCROLL = "pre, table, p:has(.together), :has(> math[display=block]), .wide, .txd-scroll, .picture";

// Sentences that a cell printed are wrapped on a phone, too; a table or a tensor, with its runs of spaces, is
// not.
const isTabular = (line) => line.length <= 80 && /^ |\S {2,}\S.* {2}\S/.test(line);
for (const pre of document.querySelectorAll(".output pre")) {
  const lines = pre.textContent.trimEnd().split("\n");
  const isProse = !lines.some(isTabular);
  pre.classList.toggle("prose", isProse);
  // its lines were broken on purpose
  pre.classList.toggle("filled", isProse && lines.length > 1 && lines.every((line) => line.length < 92));
}

const fade = (element) =>
  element.classList.toggle("more", element.scrollLeft + element.clientWidth < element.scrollWidth - 2);

const stops = new ResizeObserver((changes) => {
  for (const { target } of changes) {
    const scrolls =
      target.scrollWidth > target.clientWidth + 1 && getComputedStyle(target).overflowX !== "visible";
    if (scrolls) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
    target.classList.toggle("scrolls", scrolls);
    if (scrolls) fade(target);
    else target.classList.remove("more");
  }
});
document.querySelectorAll(MAY_SCROLL).forEach((element) => {
  stops.observe(element);
  element.addEventListener("scroll", () => fade(element), { passive: true });
});
