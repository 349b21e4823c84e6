// What scrolls sideways can be reached by keys, and nothing else stops Tab on its way.

const MAY_SCROLL = "pre, table, math[display=block], .wide, .txd-scroll, .picture";

const stops = new ResizeObserver((changes) => {
  for (const { target } of changes) {
    const scrolls = target.scrollWidth > target.clientWidth + 1 && getComputedStyle(target).overflowX !== "visible";
    if (scrolls) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
    target.classList.toggle("scrolls", scrolls);
  }
});
document.querySelectorAll(MAY_SCROLL).forEach((element) => stops.observe(element));
