// Search in headings, terms and names of the whole course; the index is a file next to the pages, read when asked for.

const opener = document.querySelector(".search-open");

if (opener) {
  const plain = (text) => text.normalize("NFD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
  let entries = null;
  const input = h("input", { type: "search", "aria-label": "Search the course", placeholder: "A term, a heading, a function", autocomplete: "off" });
  const list = h("ol", { class: "found" }), count = h("p", { role: "status" });
  const close = h("button", { type: "button", class: "close", onclick: () => dialog.close() }, "Close");
  const dialog = h("dialog", { class: "search", "aria-label": "Search" }, h("div", { class: "line" }, input, close), count, list);
  document.body.append(dialog);

  // What the file next to the pages calls.
  globalThis.tinytxSearch = (found) => {
    entries = found.map(([title, address, kind, more]) => ({ title, address, kind, more, words: plain(title), rest: plain(`${more} ${kind}`) }));
    show();
  };

  const load = () => {
    const failed = () => { count.textContent = "The index, search-index.js, is not next to this page."; };
    document.head.append(h("script", { src: "search-index.js", onerror: failed }));
  };

  const worth = (entry, asked) => {
    let sum = 0;
    for (const word of asked) {
      const start = new RegExp(`(^|[^a-z0-9])${word.replace(/[^a-z0-9]/g, "\\$&")}`);
      if (start.test(entry.words)) sum += 6 + 6 * (entry.words === asked.join(" "));
      else if (entry.words.includes(word)) sum += 3;
      else if (start.test(entry.rest)) sum += 1;
      else return 0;
    }
    return sum - entry.title.length / 200;
  };

  const show = () => {
    const asked = plain(input.value).split(/\s+/).filter(Boolean);
    if (!entries || !asked.length) {
      count.textContent = "";
      list.replaceChildren();
      return;
    }
    const found = entries.map((entry) => [worth(entry, asked), entry]).filter(([sum]) => sum > 0).sort(([a], [b]) => b - a);
    count.textContent = found.length ? `${found.length} found` : "Nothing found: try a shorter word.";
    list.replaceChildren(...found.slice(0, 20).map(([, { title, address, kind, more }]) =>
      h("li", {}, h("a", { href: address, onclick: () => dialog.close() }, h("b", {}, title), " ", h("small", {}, kind), more ? h("span", {}, more) : null))));
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
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const links = [input, ...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    event.preventDefault();
    links[Math.max(0, Math.min(links.length - 1, at + step))].focus();
  });
  dialog.addEventListener("pointerdown", (event) => { if (event.target === dialog) dialog.close(); });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if ((event.key === "/" && !typing) || (event.key === "k" && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      open();
    }
  });
}
