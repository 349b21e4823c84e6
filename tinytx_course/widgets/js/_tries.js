// Steps to try, above an explorer: one is shown until it is done, by hand or by a press on it, then the next.

// Whether the state is what a step asks for, such as "stage=1&temperature>=2".
export const isDone = (asked, get, allowed) =>
  asked.split("&").every((part) => {
    const [, key, relation, text] = part.match(/^(\w+)(>=|<=|=)(.*)$/);
    const [now, wanted] = [get(key), valueFrom(encodeURIComponent(text), get(key), allowed[key])];
    if (relation === "=") return valueText(now).replace(/(%20)+$/, "") === valueText(wanted);
    return relation === ">=" ? now >= wanted : now <= wanted;
  });

// A step waits until the state has rested: what a drag passes by is not done. Its question then stays until the
// reader asks for the next one.
export function leadHand(box, model, keep) {
  const steps = [...box.querySelectorAll(".tx-tries a")];
  const line = steps[0]?.parentElement;
  if (!line) return;
  const numbers = steps.map(() => h("a"));
  const end = h("span.tx-end", { tabindex: "-1" }, "All three done. Now change what you like.");
  const said = h("span.tx-unseen", { role: "status" });
  let at = 0;
  let done = false;
  let waiting;
  const go = () => {
    at += 1;
    done = false;
    show();
    (steps[at] ?? end).focus();
    look(); // its state may be there already
  };
  const next = pushButton("Next try", go);
  const show = () => {
    [...steps, end].forEach((step, i) => step.classList.toggle("tx-now", i === at));
    numbers.forEach((number, i) => {
      const ticked = i < at + done;
      number.textContent = ticked ? "✓" : i + 1;
      number.classList.toggle("tx-now", i === at);
      if (!ticked) return number.setAttribute("aria-hidden", "true");
      number.removeAttribute("aria-hidden");
      number.href = steps[i].href;
      number.title = number.ariaLabel = `Done: ${steps[i].textContent}`;
    });
    next.hidden = !done;
    said.textContent = done ? `Done: step ${at + 1} of ${steps.length}.` : "";
  };
  const look = () => {
    if (done || at === steps.length) return;
    done = isDone(steps[at].dataset.done, (key) => model.get(key), keep());
    if (done) show();
  };
  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(look, 250);
  };
  steps[0].before(h("span.tx-tried", numbers));
  line.append(end, next, said);
  steps.forEach((step) => step.addEventListener("click", later)); // its state may be there already
  model.on("change", later);
  show();
}
