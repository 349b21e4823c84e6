// Slides on reveal.js: pictures and explorers fill them, S opens the notes in a window of their own, D is
// light or dark.

const deck = document.querySelector(".reveal");

// As large as there is room for: `zoom`, not a transform, so explorers lay themselves out anew in what is
// left.
const LETTERS = 20;
const grows = new WeakMap();
const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
async function fit(slide) {
  for (const box of slide?.querySelectorAll(".fit:not([data-fit]), .txd-panels:not([data-fit])") ?? []) {
    const room = box.parentElement;
    const explorer = box.matches(".explorer *");
    const wide = room.clientWidth;
    const tall = room.clientHeight;
    if (!wide) continue;
    box.dataset.fit = "begun";
    const sized = async (zoom, share) => {
      box.style.zoom = zoom;
      box.style.width = `${(share * wide) / zoom}px`;
      await frame();
      const most = Math.max(...[box, ...box.querySelectorAll("math")].map((one) => one.scrollWidth));
      return box.scrollHeight * zoom <= tall && most * zoom <= wide + 1;
    };
    const most = +box.style.zoom || (box.closest(".answers") ? 1 : 2.2);
    if (explorer) {
      // it may become lower where it is narrower
      sizes: for (let zoom = most; zoom > 0.5; zoom -= 0.1)
        for (const share of [1, 0.8, 0.64]) if (await sized(zoom, share)) break sizes;
    } else {
      let [fits, fails] = [0.5, most];
      if (!(await sized(most, 1))) {
        while (fails - fits > 0.05) {
          const zoom = (fits + fails) / 2;
          if (await sized(zoom, 1)) fits = zoom;
          else fails = zoom;
        }
        await sized(fits, 1);
      }
    }
    box.dataset.fit = "done";
    if (explorer && !grows.has(box))
      grows
        .set(
          box,
          new ResizeObserver(() => {
            if (box.dataset.fit !== "done" || room.scrollHeight <= room.clientHeight + 1) return;
            delete box.dataset.fit;
            fit(slide);
          }),
        )
        .get(box)
        .observe(box);
  }
  slide?.querySelectorAll(".figure svg").forEach(enlarge);
}

// Fit the slide that is shown, then the next one, so that it is there at once.
async function show(slide) {
  await fit(slide);
  const slides = [...document.querySelectorAll(".slides section:not(.stack)")];
  await fit(slides[slides.indexOf(slide) + 1]);
}

// Letters of a figure that are too small for the last row grow from where they are anchored; a name along an
// axis makes room for those it would cover, and the picture takes in what would leave it, which makes all a
// little smaller.
function enlarge(svg) {
  const texts = [...svg.querySelectorAll("text")];
  const box = (one) => one.getBoundingClientRect();
  const size = (one) =>
    one.firstChild?.nodeType === 3 ? parseFloat(getComputedStyle(one).fontSize) : Infinity;
  const drawn = texts.map((one) => one.getAttribute("transform") ?? "");
  for (let round = 0; round < 3; round += 1) {
    const here = svg.getScreenCTM();
    const scale = here.a / Reveal.getScale();
    const { x, y, width, height } = svg.viewBox.baseVal;
    texts.forEach((text, i) => {
      const grown = LETTERS / scale / Math.min(...[text, ...text.children].map(size));
      const own = text.getBBox();
      const at = text.hasAttribute("x")
        ? [+text.getAttribute("x"), +text.getAttribute("y")]
        : [own.x + own.width / 2, own.y + own.height / 2];
      if (grown > 1)
        text.setAttribute(
          "transform",
          `${drawn[i]} translate(${at}) scale(${grown}) translate(${-at[0]} ${-at[1]})`,
        );
    });
    texts
      .filter((_, i) => drawn[i].includes("rotate(-90"))
      .forEach((text) => {
        const { left, right, top, bottom } = box(text);
        const covered = texts
          .filter((one) => one !== text)
          .map(box)
          .filter((one) => one.left < right && one.right > left && one.top < bottom && one.bottom > top);
        if (!covered.length) return;
        const before = covered[0].left + covered[0].right > left + right;
        const away = before
          ? Math.min(...covered.map((one) => one.left)) - right
          : Math.max(...covered.map((one) => one.right)) - left;
        text.setAttribute("transform", `translate(${away / here.a}) ${text.getAttribute("transform")}`);
      });
    const all = texts.map(box);
    const left = Math.min(x, ...all.map((one) => (one.left - here.e) / here.a));
    const top = Math.min(y, ...all.map((one) => (one.top - here.f) / here.d));
    const right = Math.max(x + width, ...all.map((one) => (one.right - here.e) / here.a));
    const bottom = Math.max(y + height, ...all.map((one) => (one.bottom - here.f) / here.d));
    svg.setAttribute("viewBox", [left, top, right - left, bottom - top]);
  }
}

// What the speaker reads: the notes of the slide, and those of the slide that opened its section.
function notes() {
  const slide = Reveal.getCurrentSlide();
  const opening = slide.parentElement.querySelector("section");
  const next = document.querySelectorAll(".slides section:not(.stack)")[Reveal.getSlidePastCount() + 1];
  const said = [...new Set([slide, opening])]
    .map((one) => one.querySelector(".notes")?.innerHTML ?? "")
    .join("<hr>");
  return `<h1>${slide.querySelector("h2")?.innerHTML ?? ""}</h1>${said}<p class="next">Next: ${next?.querySelector("h2")?.textContent || next?.textContent || "the end"}</p>`;
}

let speaker;
let below;
function openNotes() {
  speaker = window.open("", "notes", "width=760,height=900");
  if (!speaker) {
    // popups are not allowed: below the slide
    below = below
      ? void below.remove()
      : deck.appendChild(Object.assign(document.createElement("aside"), { className: "notes-below" }));
    return showNotes();
  }
  const started = Date.now();
  const page = speaker.document;
  page.title = `Notes · ${document.title}`;
  page.body.innerHTML =
    "<style>:root { color-scheme: light dark } body { font: 20px/1.5 system-ui, sans-serif; margin: 1.5rem 2rem } h1 { font-size: 26px } .next { opacity: 0.7 }</style><p id=time></p><main></main>";
  page.addEventListener("keydown", (event) => Reveal.triggerKey(event.keyCode));
  speaker.setInterval(() => {
    page.querySelector("#time").textContent =
      `${new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })} · ${Math.floor((Date.now() - started) / 60000)} min`;
  }, 1000);
  showNotes();
}
function showNotes() {
  const place = speaker && !speaker.closed ? speaker.document.querySelector("main") : below;
  if (place) place.innerHTML = notes();
}

Reveal.initialize({
  width: 1280,
  height: 720,
  margin: 0,
  center: false,
  controls: false,
  hash: true,
  slideNumber: "c/t",
  navigationMode: "linear",
  transition: "none",
  backgroundTransition: "none",
  pdfSeparateFragments: false,
  pdfMaxPagesPerSlide: 1,
  // In an explorer keys are its own, but for those of a remote control.
  keyboardCondition: (event) =>
    !event.defaultPrevented && (!document.activeElement?.closest(".tx") || /^Page/.test(event.key)),
});
Reveal.addKeyBinding({ keyCode: 83, key: "S", description: "Speaker notes" }, openNotes);
Reveal.addKeyBinding({ keyCode: 68, key: "D", description: "Light or dark" }, () => {
  const dark =
    look.theme === "dark" || (look.theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  changeLook({ theme: dark ? "light" : "dark" });
});
Reveal.on("ready", (event) => {
  show(event.currentSlide);
});
Reveal.on("slidechanged", (event) => {
  show(event.currentSlide);
  showNotes();
});
Reveal.on("pdf-ready", () => {
  document.querySelectorAll(".slides section:not(.stack)").forEach(fit);
});
// Escape leaves an explorer; only then do keys belong to the slides again.
deck.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.closest(".tx")) {
    document.activeElement.blur();
    event.stopPropagation();
  }
});
