// The first page: what this reader has read and answered, and where to go on. Nothing of it leaves the
// browser.

for (const card of document.querySelectorAll(".card[data-lesson]")) {
  const { lesson, quiz, questions } = card.dataset;
  const read = recalled(`read:${lesson}`);
  const box = card.querySelector(".progress");
  const right = stored(`answer:${quiz}/`).filter((answer) => answer?.right).length;
  const words = [
    read && (read.seen >= read.of ? "✓ read" : `${read.seen} of ${read.of} sections`),
    right && `${right} of ${questions} questions`,
  ].filter(Boolean);
  if (!words.length) continue;
  const share = read ? read.seen / read.of : 0;
  box.append(h("i", { "aria-hidden": "true", style: `--share:${share}` }), words.join(" · "));
  box.hidden = false;
}

const last = recalled("last");
const read = last && recalled(`read:${last}`);
const link = document.querySelector(".go-on");
const card = last && document.querySelector(`.card[data-lesson="${last}"]`);
if (card && read) {
  link.href = `${last}.html${read.anchor}`;
  link.textContent = `Go on: ${card.querySelector("h3").textContent}, ${read.title}`;
  link.hidden = false;
  link.className = "begin";
  const first = document.querySelector(".go .begin");
  first.className = "go-on";
  first.before(link, " ");
}
