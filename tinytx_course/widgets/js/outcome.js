// What came out, and whether it was predicted.

// As `_verdict` in predictions.py says it.
export function verdict(choice, sure, answer) {
  if (!choice) return `Answer: “${answer}”.`;
  const predicted = `predicted “${choice}”${sure ? `, ${sure} % sure` : ""}`;
  if (answer === "open") return `Open: you ${predicted}, and what was measured does not decide.`;
  return choice === answer ? `✓ Right: you ${predicted}.` : `✗ You ${predicted}. It is “${answer}”.`;
}

export function describe(get) {
  return `${verdict(get("choice"), get("sure"), get("answer"))} ${get("finding")}`.trim().replaceAll("`", "");
}

function build(ui) {
  const key = `answer:${ui.get("number")}`; // where `questions.js` stores it
  if (!ui.get("live")) {
    const look = () => {
      const found = recalled(key);
      ui.set({ sure: found?.sure ?? 0, choice: found?.text ?? "" });
    };
    look();
    onRemembered(key, ui.signal, look);
  }
  ui.paint(() => {
    const choice = ui.get("choice");
    const answer = ui.get("answer");
    ui.root.dataset.verdict = !choice || answer === "open" ? "" : choice === answer ? "right" : "wrong";
  });
  ui.show(h("p.tx-title", ui.get("title")));
}

export default explorer("outcome", { build, describe });
