// Slides on reveal.js: pictures and explorers fill them, S opens the notes in a window of their own, D is light or dark.

const deck = document.querySelector(".reveal");

// As large as there is room for: `zoom`, not a transform, so explorers lay themselves out anew in what is left. An
// explorer that would become too small to be read is scrolled.
const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
async function fit(slide) {
  for (const box of slide?.querySelectorAll(".fit:not([data-fit]), .txd-panels:not([data-fit])") ?? []) {
    const room = box.parentElement, wide = room.clientWidth, tall = room.clientHeight;
    if (!wide) continue;
    box.dataset.fit = "begun";
    const sized = async (zoom) => {
      box.style.zoom = zoom;
      box.style.width = `${wide / zoom}px`;
      await frame();
      const most = Math.max(...[box, ...box.querySelectorAll("math")].map((one) => one.scrollWidth));
      return box.scrollHeight * zoom <= tall && most * zoom <= wide + 1;
    };
    const explorer = box.matches(".explorer *"), least = explorer ? 11 : 5;
    let tenths = 22;
    while (tenths >= least && !(await sized(tenths / 10))) tenths -= 1;
    if (tenths < least && explorer) await sized(1.3);
    box.dataset.fit = "done";
  }
}

// What the speaker reads: the notes of the slide, and those of the slide that opened its section.
function notes() {
  const slide = Reveal.getCurrentSlide(), opening = slide.parentElement.querySelector("section");
  const next = document.querySelectorAll(".slides section:not(.stack)")[Reveal.getSlidePastCount() + 1];
  const said = [...new Set([slide, opening])].map((one) => one.querySelector(".notes")?.innerHTML ?? "").join("<hr>");
  return `<h1>${slide.querySelector("h2")?.innerHTML ?? ""}</h1>${said}<p class="next">Next: ${next?.querySelector("h2")?.textContent || next?.textContent || "the end"}</p>`;
}

let speaker, below;
function openNotes() {
  speaker = window.open("", "notes", "width=760,height=900");
  if (!speaker) {  // popups are not allowed: below the slide
    below = below ? void below.remove() : deck.appendChild(Object.assign(document.createElement("aside"), { className: "notes-below" }));
    return showNotes();
  }
  const started = Date.now(), page = speaker.document;
  page.title = `Notes · ${document.title}`;
  page.body.innerHTML = "<style>:root { color-scheme: light dark } body { font: 20px/1.5 system-ui, sans-serif; margin: 1.5rem 2rem } h1 { font-size: 26px } .next { opacity: 0.7 }</style><p id=time></p><main></main>";
  page.addEventListener("keydown", (event) => Reveal.triggerKey(event.keyCode));
  speaker.setInterval(() => {
    page.querySelector("#time").textContent = `${new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })} · ${Math.floor((Date.now() - started) / 60000)} min`;
  }, 1000);
  showNotes();
}
function showNotes() {
  const place = speaker && !speaker.closed ? speaker.document.querySelector("main") : below;
  if (place) place.innerHTML = notes();
}

Reveal.initialize({
  width: 1280, height: 720, margin: 0, center: false, controls: false, hash: true, slideNumber: "c/t",
  navigationMode: "linear", transition: "none", backgroundTransition: "none", pdfSeparateFragments: false, pdfMaxPagesPerSlide: 1,
  // In an explorer keys are its own, but for those of a remote control.
  keyboardCondition: (event) => !event.defaultPrevented && (!document.activeElement?.closest(".tx") || /^Page/.test(event.key)),
});
Reveal.addKeyBinding({ keyCode: 83, key: "S", description: "Speaker notes" }, openNotes);
Reveal.addKeyBinding({ keyCode: 68, key: "D", description: "Light or dark" }, () => {
  const dark = look.theme === "dark" || (look.theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  changeLook({ theme: dark ? "light" : "dark" });
});
Reveal.on("ready", (event) => { fit(event.currentSlide); });
Reveal.on("slidechanged", (event) => { fit(event.currentSlide); showNotes(); });
Reveal.on("pdf-ready", () => { document.querySelectorAll(".slides section:not(.stack)").forEach(fit); });
// Escape leaves an explorer; only then do keys belong to the slides again.
deck.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.closest(".tx")) {
    document.activeElement.blur();
    event.stopPropagation();
  }
});
