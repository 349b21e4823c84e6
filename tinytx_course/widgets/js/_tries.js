// Steps to try, above an explorer: one is shown until it is done, by hand or by a press on it, then the next.

// Whether the state is what a step asks for, such as "stage=1&temperature>=2".
export const isDone = (asked, get, allowed) =>
  asked.split("&").every((part) => {
    const [, key, relation, text] = part.match(/^(\w+)(>=|<=|=)(.*)$/);
    const [now, wanted] = [get(key), valueFrom(encodeURIComponent(text), get(key), allowed[key])];
    if (relation === "=") return valueText(now).replace(/(%20)+$/, "") === valueText(wanted);
    return relation === ">=" ? now >= wanted : now <= wanted;
  });

// A step waits until the state has rested: what a drag passes by is not done.
export function leadHand(box, model, keep) {
  const steps = [...box.querySelectorAll(".tx-tries a")];
  const line = steps[0]?.parentElement;
  if (!line) return;
  const numbers = steps.map(() => h("a"));
  const end = h("span.tx-end", "All three done. Now change what you like.");
  const said = h("span.tx-unseen", { role: "status" });
  let at = 0;
  let waiting;
  const show = () => {
    [...steps, end].forEach((step, i) => step.classList.toggle("tx-now", i === at));
    numbers.forEach((number, i) => {
      number.textContent = i < at ? "✓" : i + 1;
      number.classList.toggle("tx-now", i === at);
      if (i >= at) return number.setAttribute("aria-hidden", "true");
      number.removeAttribute("aria-hidden");
      number.href = steps[i].href;
      number.title = number.ariaLabel = `Done: ${steps[i].textContent}`;
    });
  };
  const look = () => {
    if (at === steps.length || !isDone(steps[at].dataset.done, (key) => model.get(key), keep())) return;
    const had = document.activeElement === steps[at];
    at += 1;
    show();
    const next = at < steps.length ? `Step ${at + 1} of ${steps.length}: ${steps[at].textContent}` : "";
    said.textContent = `Done. ${next || end.textContent}`;
    if (had) (next ? steps[at] : numbers[at - 1]).focus(); // what had the focus is no longer seen
  };
  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(look, 250);
  };
  steps[0].before(h("span.tx-tried", numbers));
  line.append(end, said);
  steps.forEach((step) => step.addEventListener("click", later)); // its state may be there already
  model.on("change", later);
  show();
}
