// In front of a class: ?present or the key P. A screenful of one section a key press; predictions stop,
// figures are blurred until →, code is folded until C. What cannot be cut, a figure, a card or an explorer,
// fills what its text leaves free.

const main = document.querySelector("#lesson");

if (main) {
  const root = document.documentElement;
  const MARGIN = 30;
  const EDGE = 5;
  const COUNT = 34;
  const PLACE = `class:${document.body.dataset.lesson}`;
  const SMALLEST = 0.75;
  const LINES = 0.5;
  const ROUNDS = 6;
  const LARGE = 1.5;
  const LEGIBLE = 1.2; // letters of 15 px as large as 18
  const CARDS = "[data-tx-kind=questions], [data-tx-kind=outcome], [data-tx-kind=parsons]";
  const BLOCKS = ".text_cell_render > *, .code, .output_area";
  const WHOLE = "figure, tr, math, button, .tx-explorer, .tx-option-row, .tx-lines li";
  const inner = (block) => block.parentElement.closest(BLOCKS);
  const blocks = [...main.querySelectorAll(BLOCKS)].filter(
    (block) => !inner(block) && !block.closest(".further"),
  );
  const slides = [];
  const explorer = (block) => block.querySelector(`.tx-explorer:not(${CARDS})`);
  const elastic = (block) => block.querySelector("figure, .tx-explorer");
  for (const block of blocks) {
    if (!slides.length || /^H[123]$/.test(block.tagName)) slides.push([]);
    slides.at(-1).push(block);
  }
  const isOf = (title) => (each) => each[0].textContent.startsWith(title);
  const setUp = slides.findIndex(isOf("Set-up"));
  if (setUp > 0) {
    // but for the questions that it may ask, with the sentence before them
    const asks = slides[setUp].findIndex(elastic);
    const from = asks < 0 ? slides[setUp].length : asks - slides[setUp][asks - 1].matches("p");
    slides[setUp].splice(0, from).forEach((block) => block.classList.add("left-out"));
    if (!slides[setUp].length) slides.splice(setUp, 1);
  }
  const codes = blocks.filter((block) => block.matches(".code"));
  const takeHome = slides.find(isOf("Take-home"))?.filter((block) => codes.includes(block)) ?? [];
  takeHome.forEach((block) => block.classList.add("take-home"));
  let slide = 0;
  let step = 0;
  let steps = [];
  let own = new Set();
  let rounds = 0;
  let count; // own: what begins a screen

  const isPrediction = (block) =>
    [...block.querySelectorAll("[data-tx-kind=questions]")].some((card) =>
      /^Predict/.test(card.querySelector(".tx")?.getAttribute("aria-label") ?? ""),
    );
  const picture = (block) => block.querySelector(".picture, .txd-scroll");
  const isLines = (block) => Boolean(block.querySelector("[data-tx-kind=parsons]"));

  const tall = (block) => block.getBoundingClientRect().height;
  const zoomTo = (block, zoom) => {
    block.style.zoom = zoom;
    block.style.setProperty("--zoom", zoom || 1);
  };

  // A figure, an explorer or a card as large as a height allows; a card that is taller is divided between its
  // questions.
  const fit = (block, height) => {
    for (const figure of block.querySelectorAll("figure")) {
      const shown = picture(figure);
      const panels = figure.querySelector(".txd-panels");
      if (panels) panels.style.zoom = "";
      const around = figure.offsetHeight - (panels ?? shown.firstElementChild).getBoundingClientRect().height;
      const room = height - around - 4;
      shown.style.setProperty("--room", `${room}px`);
      if (!panels) continue;
      const most = Math.min(2.2, room / panels.offsetHeight);
      for (const zoom of [most, 1.5, 1.25, 1].filter((scale) => scale <= most)) {
        // side by side, and large
        panels.style.zoom = zoom;
        if (shown.scrollWidth <= shown.clientWidth && panels.getBoundingClientRect().height <= room) break;
      }
    }
    if (!block.querySelector(".tx-explorer")) return;
    block.querySelector(".tx").style.maxHeight = "";
    const least = explorer(block) ? LEGIBLE : isLines(block) ? LINES : SMALLEST;
    for (let zoom = explorer(block) ? LARGE : 1; zoom > least - 0.01; zoom -= 0.05) {
      zoomTo(block, zoom);
      if (tall(block) <= height && block.scrollWidth <= block.clientWidth + 1) return;
    }
    if (!explorer(block)) return zoomTo(block, 0.85);
    zoomTo(block, LEGIBLE); // what is taller scrolls
    block.querySelector(".tx").style.maxHeight = `${(height - 8) / LEGIBLE}px`;
  };

  const fitAll = (height) => {
    const shown = slides[slide];
    const elastics = shown.filter(elastic);
    own = new Set();
    for (const code of takeHome.filter((block) => shown.includes(block))) {
      // the whole idea on one screen
      let zoom = 1;
      zoomTo(code, zoom);
      while (zoom > LINES && tall(code) > 0.8 * height) {
        zoom -= 0.05;
        zoomTo(code, zoom);
      }
    }
    for (const wide of shown.flatMap((block) => [
      ...block.querySelectorAll(".output pre:is(.filled, :not(.prose)), table"),
    ])) {
      if (wide.closest(".tx")) continue;
      wide.style.zoom = "";
      if (wide.scrollWidth > wide.clientWidth) wide.style.zoom = wide.clientWidth / wide.scrollWidth;
    }
    for (const block of elastics) {
      if (explorer(block))
        fit(block, height - 30); // alone, as text above it would make it small
      else if (block.querySelector(".tx-explorer")) zoomTo(block, SMALLEST);
      else fit(block, 0.6 * height);
    }
    for (const block of elastics) {
      // small as they are, which text shares a screen with each?
      const rows = rowsOf(height);
      const at = shown.indexOf(block);
      const row = rows.findIndex((each) => each.at >= at);
      let first = 0;
      for (let last = endOf(rows, first, height); last < row; last = endOf(rows, first, height))
        first = last + 1;
      const till = shown.findIndex((other, i) => i > at && elastic(other));
      const end = shown.at(till < 0 ? -1 : till - 1);
      const above = rows[row].top - rows[first].top;
      const below = end.getBoundingClientRect().bottom - block.getBoundingClientRect().bottom;
      if (isLines(block) || (!block.querySelector(CARDS) && !explorer(block) && above > 0.1 * height)) {
        // Much larger without the text above it? Then it begins a screen, with the text below if that is
        // short.
        fit(block, height - above - 2);
        const shared = tall(block);
        const larger = isLines(block) ? (above + shared > height ? 0 : Infinity) : 1.15;
        const begin = [below < 0.35 * height && !isLines(block) ? below : 0, 0].find((under) => {
          fit(block, height - under - 2);
          return tall(block) > larger * shared;
        });
        if (begin !== undefined) {
          own.add(block);
          continue;
        }
      }
      const isShort =
        !block.querySelector(CARDS) && below < 0.35 * height && above + tall(block) + below <= height;
      fit(block, height - above - (isShort ? below : 0) - 2);
    }
  };

  // A question's button and answer belong to it.
  const asked = (question) => {
    const { top, left, width, bottom } = question.getBoundingClientRect();
    const ends = [bottom];
    for (
      let next = question.nextElementSibling;
      next?.matches(":not(.tx-question, .tx-say)");
      next = next.nextElementSibling
    )
      ends.push(next.getBoundingClientRect().bottom);
    return new DOMRect(left, top, width, Math.max(...ends) - top);
  };

  // Boxes that no screen may cut: lines of text, rows, figures.
  const boxes = (node, height) =>
    [...node.childNodes]
      .flatMap((child) => {
        if (child.nodeType === Node.TEXT_NODE) {
          const range = document.createRange();
          range.selectNodeContents(child);
          return [...range.getClientRects()];
        }
        if (child.nodeType !== Node.ELEMENT_NODE || child.matches(".copy, .tx-still")) return [];
        const box = child.getBoundingClientRect();
        if (child.matches(".tx-question") && box.height <= height) return [box, asked(child)];
        if (child.matches(".tx-title")) {
          // with the first question
          const below = asked(child.parentElement.querySelector(".tx-question") ?? child).bottom;
          if (below - box.top <= height) return [new DOMRect(box.left, box.top, box.width, below - box.top)];
        }
        if (!child.childNodes.length || (child.matches(WHOLE) && box.height <= height)) return [box];
        return boxes(
          child.tagName === "DETAILS" && !child.open ? child.querySelector("summary") : child,
          height,
        );
      })
      .filter(({ width, height: high }) => width && high);

  // The section as rows, one below the other, each with its block.
  const rowsOf = (height) => {
    const above = main.getBoundingClientRect().top;
    const rows = [];
    const all = slides[slide].flatMap((block, at) =>
      boxes({ childNodes: [block] }, height).map(({ top, bottom }) => ({
        top: top - above,
        bottom: bottom - above,
        at,
      })),
    );
    for (const box of all.sort((a, b) => a.top - b.top)) {
      const last = rows.at(-1);
      if (last && box.top < last.bottom - 3)
        Object.assign(last, { bottom: Math.max(last.bottom, box.bottom), at: Math.max(last.at, box.at) });
      else rows.push(box);
    }
    return rows;
  };

  // Where a screen that begins with a row ends: between blocks where that leaves no large gap, else between
  // two rows. Of two last screens of text none is nearly empty.
  const begins = (rows, i) => own.has(slides[slide][rows[i].at]) && rows[i - 1]?.at !== rows[i].at;
  const pastOf = (rows, first, height) =>
    rows.findIndex(({ bottom }, i) => i > first && (begins(rows, i) || bottom - rows[first].top > height));
  const endOf = (rows, first, height) => {
    const past = pastOf(rows, first, height);
    if (past < 0) return rows.length - 1;
    const end = rows.at(-1).bottom;
    const left = end - rows[first].top;
    const isText = !rows.slice(first).some(({ at }) => elastic(slides[slide][at]));
    const early = lastOf(rows, first, Math.min(height, 0.62 * left));
    const isThin = end - rows[past].top < 0.3 * height;
    return isText && isThin && rows[early].at !== rows[early + 1].at ? early : lastOf(rows, first, height);
  };
  const lastOf = (rows, first, height) => {
    const past = pastOf(rows, first, height);
    let end = past;
    while (end > first + 1 && rows[end - 1].at === rows[end].at) end -= 1;
    while (end > first + 1 && slides[slide][rows[end - 1].at].matches("h1, h2, h3, h4")) end -= 1;
    return rows[end - 1].bottom - rows[first].top > 0.4 * height ? end - 1 : past - 1;
  };

  // What each key press shows: from which height to which, and the figure that is still blurred. Folded code
  // has no screen of its own.
  const stepsOf = (height) => {
    const rows = rowsOf(height);
    const found = [];
    const isFolded = ({ at }) => codes.includes(slides[slide][at]) && !slides[slide][at].open;
    for (let first = 0, last; first < rows.length; first = last + 1) {
      last = endOf(rows, first, height);
      if (rows.slice(first, last + 1).every(isFolded)) continue;
      const top = rows[first].top;
      const till = (row, veiled = null) => found.push({ top, bottom: rows[row].bottom, veiled });
      for (let row = first; row <= last; row += 1) {
        const block = slides[slide][rows[row].at];
        if (rows[row + 1]?.at === rows[row].at) continue;
        const leads = rows[first].at === rows[row].at && first > 0; // the screen before made the pause
        if (block.querySelector(".picture") && !leads) till(row, block);
        else if (isPrediction(block) && rows.slice(row + 1, last + 1).some((each) => !isFolded(each)))
          till(row);
      }
      till(last);
    }
    return found;
  };

  // Lay a section out anew; go on where the reader was, as when code is opened or the window changes.
  const layOut = () => {
    if (!root.classList.contains("present")) return;
    const was = steps[step];
    const n = steps.length;
    const nth = was ? step - steps.findIndex(({ top }) => top === was.top) : 0;
    blocks.forEach((block) => block.classList.toggle("off", !slides[slide].includes(block)));
    const height = innerHeight - MARGIN - COUNT;
    fitAll(height);
    steps = stepsOf(height);
    if (was && steps.length !== n) {
      const at = Math.max(
        0,
        steps.findLastIndex(({ top }) => top <= was.top + 2),
      );
      const first = steps.findIndex(({ top }) => top === steps[at].top);
      step = Math.min(at, first + nth);
    }
    show();
  };

  const show = () => {
    const { top, bottom, veiled } = steps[step];
    const whole = main.offsetHeight;
    const above = main.getBoundingClientRect().top;
    main.style.clipPath = `inset(${top - EDGE}px -100vw ${whole - bottom - EDGE}px)`;
    for (const block of slides[slide]) {
      const box = block.getBoundingClientRect();
      block.inert = box.bottom - above < top || box.top - above > bottom;
      block.classList.toggle("veiled", block === veiled);
    }
    root.classList.toggle("first", slide === 0);
    const more = step < steps.length - 1;
    const tops = [...new Set(steps.map((each) => each.top))];
    const within = tops.length > 1 ? ` · screen ${tops.indexOf(top) + 1} of ${tops.length}` : "";
    const keys = slide || step || !look.letters ? "" : "? keys · ";
    const title = tops.indexOf(top) ? `${titleOf(slides[slide])} · ` : "";
    count.textContent = `${keys}${title}${slide + 1} / ${slides.length}${within}${more ? " · →" : ""}`;
    remember(PLACE, { slide, step }); // for a page that is loaded again
    scrollTo({ top: above + scrollY + top - MARGIN, behavior: "instant" });
  };

  const move = (by) => {
    rounds = 0;
    if (steps[step + by]) step += by;
    else if (slides[slide + by]) {
      goTo(slide + by);
      if (by < 0) step = steps.length - 1;
    }
    show();
  };

  const goTo = (place) => {
    slide = place;
    [steps, step, rounds] = [[], 0, 0];
    layOut();
  };

  const titleOf = ([first]) =>
    first.matches("h1, h2, h3") ? first.textContent.replace("¶", "").trim() : "Questions on earlier lessons";

  // All sections, to go to one: by O.
  const overview = h("dialog.overview", { "aria-label": "Sections" });
  overview.addEventListener("click", ({ target }) => {
    if (target === overview) overview.close();
  });
  overview.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const all = [...overview.querySelectorAll("button")];
    if (event.key.toLowerCase() === "o") overview.close();
    if (!by) return;
    event.preventDefault();
    all[(all.indexOf(document.activeElement) + by + all.length) % all.length].focus();
  });
  const openOverview = () => {
    overview.replaceChildren(
      h(
        "ol",
        slides.map((each, place) => {
          const now = place === slide;
          const open = () => {
            overview.close();
            goTo(place);
          };
          return h(
            "li",
            { class: each[0].tagName.toLowerCase() },
            h(
              "button",
              { onclick: open, ...(now && { autofocus: true, "aria-current": "step" }) },
              titleOf(each),
            ),
          );
        }),
      ),
    );
    document.body.append(overview);
    overview.showModal();
  };

  // Code is folded, but for what the key C or its own line opens.
  const fold = (open = false) => {
    for (const code of codes) code.open = open || takeHome.includes(code);
  };

  // Open the code of this screen and what is folded before it, or after the last one, and go there; or close
  // all of the section.
  const openCode = () => {
    const { top, bottom } = steps[step];
    const placeOf = (box) => box.getBoundingClientRect().top - main.getBoundingClientRect().top;
    const from = steps.findLast((other) => other.bottom <= top)?.bottom ?? 0;
    const till = steps.some((other) => other.top >= bottom) ? bottom : Infinity;
    const all = codes.filter((code) => slides[slide].includes(code));
    const seen = all.filter((code) => placeOf(code) > from - 1 && placeOf(code) < till);
    if (!seen.length) return;
    const open = seen.some((box) => !box.open);
    (open ? seen : all).forEach((box) => {
      box.open = open;
    });
    rounds = 0;
    layOut();
    const place = placeOf(seen[0]);
    const at = steps.findIndex((other) => other.bottom > place + 1);
    if (place < steps[step].top - MARGIN || place > steps[step].bottom) step = at < 0 ? steps.length - 1 : at;
    show();
  };

  const begin = () => {
    const first = blocks.find((block) => block.getBoundingClientRect().bottom > 90);
    slide =
      scrollY < 50
        ? 0
        : Math.max(
            0,
            slides.findIndex((each) => each.includes(first)),
          );
    [steps, step] = [[], 0];
    root.classList.add("present");
    dispatchEvent(new Event("present")); // a figure is blurred by its step from now on
    fold();
    count ??= h("p.slide-count", { role: "status" });
    document.body.append(count);
    layOut();
    sizes.observe(main);
  };
  const finish = () => {
    sizes.disconnect();
    root.classList.remove("present", "first");
    dispatchEvent(new Event("presented"));
    count.remove();
    main.style.clipPath = "";
    for (const block of blocks) {
      block.classList.remove("off", "veiled");
      block.inert = false;
      for (const part of block.querySelectorAll("[style*=zoom]")) part.style.zoom = "";
      zoomTo(block, "");
    }
    slides[slide][0].scrollIntoView({ behavior: "instant" });
  };
  // An explorer draws anew at its size, which may ask for another one: some rounds settle it, and none goes
  // on for ever.
  const sizes = new ResizeObserver(() => {
    rounds += 1;
    if (rounds <= ROUNDS) layOut();
  });
  addEventListener("resize", () => {
    rounds = 0;
    layOut();
  });
  const toggle = () => (root.classList.contains("present") ? finish() : begin());

  document.querySelector(".present-open")?.addEventListener("click", (event) => {
    event.target.closest("details").open = false;
    toggle();
  });
  document.addEventListener("keydown", (event) => {
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      event.defaultPrevented ||
      document.querySelector("dialog[open]")
    )
      return;
    const letter = look.letters && event.key.toLowerCase();
    if (letter === "p" && !event.target.closest(TYPING)) return toggle();
    if (event.target.closest("input, select, textarea, .tx")) {
      // the arrow keys turn screens again
      if (event.key === "Escape" && !document.fullscreenElement) event.target.blur();
      return;
    }
    if (!root.classList.contains("present")) return;
    if (letter === "c") openCode();
    if (letter === "o") return openOverview();
    if (letter) dispatchEvent(new CustomEvent("class-key", { detail: letter })); // those of the clock
    if (event.key === " " && event.target.closest("button, summary, label")) return;
    const by = { ArrowRight: 1, PageDown: 1, " ": event.shiftKey ? -1 : 1, ArrowLeft: -1, PageUp: -1 }[
      event.key
    ];
    const end = { Home: 0, End: slides.length - 1 }[event.key];
    if (end !== undefined) {
      event.preventDefault();
      goTo(end);
    } else if (by) {
      event.preventDefault();
      move(by);
    } else if (event.key === "Escape") finish();
  });
  main.addEventListener("focusin", ({ target }) => {
    // Tab goes on to the next screen
    if (!root.classList.contains("present")) return;
    const at = target.getBoundingClientRect().top - main.getBoundingClientRect().top;
    const { top, bottom } = steps[step];
    if (at < top || at > bottom)
      step = Math.max(
        0,
        steps.findLastIndex((each) => each.top <= at && each.bottom >= at),
      );
    show();
  });
  if (new URLSearchParams(location.search).has("present")) {
    const open = () => {
      begin();
      const was = performance.getEntriesByType("navigation")[0]?.type === "reload" && place;
      if (!was || !slides[was.slide]) return;
      goTo(was.slide);
      step = Math.min(was.step, steps.length - 1);
      show();
    };
    const place = recalled(PLACE);
    if (document.readyState === "complete") open();
    else addEventListener("load", open);
  }
}
