// One screen in front of a class: lines and figures that it cuts, letters that are small. `seen` collects
// what was whole.
globalThis.seen ??= new Set();
globalThis.linesOf = function* (main) {
  const walk = document.createTreeWalker(main, 5, (one) =>
    one.matches?.(".off, math, svg") ? 2 : one.nodeType === 3 ? 1 : 3,
  );
  for (let node = walk.nextNode(); node; node = walk.nextNode())
    if (node.textContent.trim() && node.parentElement.checkVisibility()) yield node;
};
globalThis.cutOnThisScreen = () => {
  const main = document.querySelector("#lesson");
  const box = main.getBoundingClientRect();
  const wrong = [];
  const [above, , below] = main.style.clipPath.match(/-?[\d.]+/g).map(Number);
  const top = box.top + above;
  const bottom = box.bottom - below;
  const cut = (b) =>
    b.width &&
    b.height &&
    ((b.top < top - 1 && b.bottom > top + 2) || (b.top < bottom - 2 && b.bottom > bottom + 1));
  if (bottom > innerHeight) wrong.push("below the screen");
  for (const node of linesOf(main)) {
    const range = document.createRange();
    const parent = node.parentElement;
    range.selectNodeContents(node);
    for (const line of range.getClientRects()) {
      const small = parseFloat(getComputedStyle(parent).fontSize) < 24 && !parent.closest(".tx");
      if (cut(line) || line.right > innerWidth || (line.top < bottom && small))
        wrong.push(node.textContent.slice(0, 40));
      if (line.top >= top - 1 && line.bottom <= bottom + 1) seen.add(node);
    }
  }
  const figures = [...main.querySelectorAll("figure :is(svg, img)")].filter((one) =>
    cut(one.getBoundingClientRect()),
  );
  return [...wrong, ...figures.map((one) => one.closest("figure").id)];
};
globalThis.neverSeen = () => {
  const main = document.querySelector("#lesson");
  const read = "p, li, h2, h3, td, pre, figcaption";
  const aside =
    ".tx, .left-out, .tx-still, .on-paper, .qr, .take, .anchor-link, details:not([open]), .enlarge, .copy";
  main.querySelectorAll(".off").forEach((block) => block.classList.remove("off"));
  return [...linesOf(main)]
    .filter(
      (node) => node.parentElement.closest(read) && !node.parentElement.closest(aside) && !seen.has(node),
    )
    .map((node) => node.textContent.slice(0, 60));
};
globalThis.headsWithoutTheirQuestion = () => {
  const main = document.querySelector("#lesson");
  const box = main.getBoundingClientRect();
  const [above, , below] = main.style.clipPath.match(/-?[\d.]+/g).map(Number);
  const top = box.top + above;
  const bottom = box.bottom - below;
  const whole = (part) =>
    part.getBoundingClientRect().top >= top && part.getBoundingClientRect().bottom <= bottom + 1;
  return [...main.querySelectorAll(".tx:has(.tx-question)")]
    .filter(
      (card) =>
        card.checkVisibility() &&
        whole(card.querySelector(".tx-title")) &&
        !whole(card.querySelector(".tx-question")),
    )
    .map((card) => card.ariaLabel);
};
globalThis.blocksOnThisScreen = () => {
  const main = document.querySelector("#lesson");
  const [top, below] = main.style.clipPath.match(/-?[\d.]+px/g).map(parseFloat);
  const above = main.getBoundingClientRect().top;
  return [...main.querySelectorAll(":is(p, li, h1, h2, h3, figure, .tx, .output_area)")].filter(
    (one) =>
      one.checkVisibility() &&
      one.getBoundingClientRect().bottom - above > top &&
      one.getBoundingClientRect().top - above < main.offsetHeight - below,
  ).length;
};
