// Search in headings, terms and names of the whole course; the index is a file next to the pages, read when
// asked for.

const opener = document.querySelector(".search-open");

if (opener) {
  let entries = null;
  const input = h("input", {
    type: "search",
    "aria-label": "Search the course",
    placeholder: "A term, a heading, a function",
    autocomplete: "off",
  });
  const list = h("ol.found");
  const count = h("p", { role: "status" });
  const close = h("button.close", { onclick: () => dialog.close() }, "Close");
  const dialog = h("dialog.search", { "aria-label": "Search" }, h("div.line", input, close), count, list);
  document.body.append(dialog);

  // What the file next to the pages calls.
  globalThis.tinytxSearch = (found) => {
    entries = found.map(([title, address, kind, more, text = "", asked = ""]) => {
      const others =
        plain(more)
          .match(/ also: (.*)\.$/)?.[1]
          .split(/[,;] /)
          .map((other) => other.replace(/ \(.*/, "")) ?? [];
      return {
        title,
        address,
        kind,
        more,
        words: plain(title),
        rest: plain(`${more} ${kind}`),
        text: plain(text),
        asked,
        names: [plain(title), ...others],
      };
    });
    show();
  };

  const load = () => {
    const failed = () => {
      count.textContent = "The index, search-index.js, is not next to this page.";
    };
    document.head.append(h("script", { src: "search-index.js", onerror: failed }));
  };

  // The title counts most, then terms, then the text of a section; a word of five letters may have one wrong.
  const like = (word) => {
    const safe = [...word].map((letter) => letter.replace(/[^a-z0-9]/g, "\\$&"));
    const ways = [safe.join("")];
    if (word.length >= 5) {
      safe.forEach((letter, i) => {
        const [before, after] = [safe.slice(0, i).join(""), safe.slice(i + 1).join("")];
        ways.push(`${before}.?${after}`, `${before}.${letter}${after}`);
        // two in the wrong order
        if (i) ways.push(`${safe.slice(0, i - 1).join("")}${letter}${safe[i - 1]}${after}`);
      });
    }
    return {
      exact: new RegExp(`(^|[^a-z0-9])${ways[0]}`),
      near: new RegExp(`(^|[^a-z0-9])(${ways.join("|")})`),
      word,
    };
  };
  const worth = (entry, { exact, near, word }) => {
    if (exact.test(entry.words)) return 6;
    if (exact.test(entry.asked)) return 5;
    if (near.test(entry.words)) return 2;
    if (exact.test(entry.rest)) return 1;
    if (entry.words.includes(word)) return 0.6; // within a word: "rope" is in "properly"
    return exact.test(entry.text) ? 0.5 : near.test(entry.rest) || near.test(entry.text) ? 0.2 : 0;
  };

  // What is asked for: a question is found by its other words, and a long word by its beginning where it is
  // not found whole.
  const SMALL = new Set(
    "a an and are between by can difference do does explain for from get has have how in is it of on or the to too use used using versus vs what when which who why with work works".split(
      " ",
    ),
  );
  const asksFor = (text) => {
    const all = plain(text)
      .replaceAll("√", " root ")
      .replace(/\bsqrt\b/g, "root")
      .split(/[\s?]+/)
      .filter(Boolean);
    const large = all.filter((word) => word.length > 1 && !SMALL.has(word));
    return large.length ? large : all;
  };

  const show = () => {
    const asked = asksFor(input.value);
    if (!entries || !asked.length) {
      count.textContent = "";
      list.replaceChildren();
      return;
    }
    const whole = plain(input.value).trim();
    const begun = (word) =>
      word.replace(/(i[sz]ations?|i[sz]ing|ations?|ers?|ing|ed|es|s)$/, (end) =>
        word.length - end.length > 3 ? "" : end,
      );
    const rank = (sought) =>
      entries
        .map((entry) => {
          const each = sought.map((word) => worth(entry, word));
          const sum = each.reduce((a, b) => a + b, 6 * entry.names.includes(whole));
          return { entry, n: each.filter(Boolean).length, sum: sum - entry.title.length / 200 };
        })
        .filter(({ n }) => n)
        .sort((a, b) => b.n - a.n || b.sum - a.sum);
    const inAll = (sought, ranked) => ranked.filter(({ n }) => n === sought.length);
    let words = asked.map((word) =>
      like(entries.some((entry) => worth(entry, like(word)) >= 0.5) ? word : begun(word)),
    );
    let found = rank(words);
    let all = inAll(words, found);
    if (!all.length && asked.length > 1) {
      // "flash attention" is one word elsewhere
      const glued = [like(asked.join(""))];
      const others = rank(glued);
      if (others.length) [words, found, all] = [glued, others, inAll(glued, others)];
    }
    const some =
      found.length && !all.length
        ? "No place has all these words; these have some."
        : "Nothing found: try another word.";
    const few =
      all.length && all.length < 4 && all.length < found.length ? ", then places with some of the words" : "";
    count.textContent = all.length ? `${all.length} found${few}` : some;
    const isMeant = ({ entry }) => words.every(({ near }) => near.test(entry.words));
    const meant =
      all.length &&
      !all.some(({ sum }) => sum >= 2.9 * words.length) &&
      isMeant(all[0]) &&
      all[0].entry.title;
    const ask = () => {
      input.value = meant;
      input.focus();
      show();
    };
    if (meant && plain(meant) !== whole)
      count.append(" · Did you mean ", h("button.close", { onclick: ask }, `${meant}?`));
    list.replaceChildren(
      ...(all.length && !few ? all : found)
        .slice(0, 20)
        .map(({ entry: { title, address, kind, more } }) =>
          h(
            "li",
            h(
              "a",
              { href: address, onclick: () => dialog.close() },
              h("b", title),
              " ",
              h("small", kind),
              more ? h("span", more) : null,
            ),
          ),
        ),
    );
  };

  const open = () => {
    if (!entries) load();
    dialog.showModal();
    input.select();
    show();
  };
  opener.addEventListener("click", open);
  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") list.querySelector("a")?.click();
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      // a field of this type would first take the key to empty itself
      event.preventDefault();
      dialog.close();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const links = [input, ...list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    event.preventDefault();
    links[Math.max(0, Math.min(links.length - 1, at + step))].focus();
  });
  dialog.addEventListener("pointerdown", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest(TYPING);
    if (
      (event.key === "/" && !typing && look.letters) ||
      (event.key === "k" && (event.ctrlKey || event.metaKey))
    ) {
      event.preventDefault();
      open();
    }
  });
}
