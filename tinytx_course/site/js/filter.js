// A field that narrows a long list as one types: the terms of the glossary, the names of the reference.

const long = document.querySelector("main.glossary, main.reference");

if (long) {
  const upTo = (heading) => {
    const parts = [heading];
    while (parts.at(-1).nextElementSibling?.matches(":not(h2, h3)"))
      parts.push(parts.at(-1).nextElementSibling);
    return parts;
  };
  const rows = [...long.querySelectorAll("[aria-label=Terms] tbody tr")].map((row) => [row]);
  const entries = (rows.length ? rows : [...long.querySelectorAll("h3")].map(upTo)).map((parts) => ({
    parts,
    words: plain(
      parts
        .slice(0, 3)
        .map((part) => part.textContent)
        .join(" "),
    ),
  }));
  const input = h("input", {
    type: "search",
    "aria-label": "Narrow the list",
    placeholder: "Narrow the list",
    autocomplete: "off",
  });
  const count = h("span", { role: "status" });
  const narrow = () => {
    const asked = plain(input.value).split(/\s+/).filter(Boolean);
    let n = 0;
    for (const { parts, words } of entries) {
      const shown = asked.every((word) => words.includes(word));
      for (const part of parts) part.hidden = !shown;
      n += shown;
    }
    count.textContent = asked.length ? `${n} of ${entries.length}` : "";
  };
  input.addEventListener("input", narrow);
  long.querySelector(".narrow").append(input, " ", count);
}
