// Questions with choices: a quiz, questions of earlier lessons, or a prediction.

const LETTERS = "ABCDEFGH";

export function describe(get) {
  const questions = get("questions");
  const answers = get("answers");
  if (get("levels").length) {
    const [{ key, choices }] = questions;
    const answer = answers[key];
    if (!answer) return "Choose before you look at the next cell.";
    const chosen = choices[answer.choice];
    const choice = `“${chosen.text}”`;
    if (!answer.sure) return `You predict ${choice}. Now say how sure you are.`;
    return `You predict ${choice}, ${answer.sure} % sure. Now look at the next cell.`;
  }
  const checked = questions.filter(({ key }) => answers[key]?.checked);
  const right = checked.filter(({ key, choices }) => choices[answers[key].choice].right);
  return `${checked.length} of ${questions.length} checked, ${right.length} right.`;
}

// `outcome.js` looks here for a prediction.
const place = (key) => `answer:${key}`;

function build(ui) {
  const levels = ui.get("levels");
  const several = ui.get("questions").length > 1;
  const keeps = !ui.get("live") && ui.get("remembered");
  if (keeps) {
    const before = ui.get("questions").map(({ key, choices }) => [key, recalled(place(key)), choices]);
    const same = before.filter(
      ([, answer, choices]) => answer && choices[answer.choice]?.text === answer.text,
    );
    ui.set("answers", Object.fromEntries(same.map(([key, answer]) => [key, answer])));
  }
  const [{ program }] = ui.get("questions");
  const isRight = ({ key, choices }) =>
    ui.get("answers")[key]?.checked && choices[ui.get("answers")[key].choice].right;
  const save = ({ key, choices }, answer) => {
    ui.save("answers", { ...ui.get("answers"), [key]: answer });
    if (keeps && (levels.length || answer.checked))
      remember(place(key), {
        ...answer,
        text: choices[answer.choice].text,
        right: choices[answer.choice].right,
      });
    if (program && ui.get("questions").every(isRight)) remember(`task:${ui.get("title")}`, true);
  };
  const parts = ui
    .get("questions")
    .map((question, i) => asked(ui, question, several ? `${i + 1}. ` : "", levels, save));
  const lost =
    keeps &&
    !storageLasts() &&
    h(
      "p.tx-note",
      "This browser stores nothing for pages from disk: your answers last until you close the page.",
    );
  ui.show(
    h("p.tx-title", ui.get("title")),
    several && !levels.length ? score(ui, keeps) : null,
    parts,
    lost || null,
  );
}

// A disc a question, with its mark; and once all are checked, a button to begin again.
function score(ui, keeps) {
  const questions = ui.get("questions");
  const discs = questions.map((_, i) => h("i", i + 1));
  const clear = () => {
    ui.save("answers", {});
    if (keeps) questions.forEach(({ key }) => remember(place(key), null));
  };
  const again = pushButton("Start over", clear);
  ui.paint(() => {
    const answers = ui.get("answers");
    const verdicts = questions.map(({ key, choices }) =>
      answers[key]?.checked ? (choices[answers[key].choice].right ? "right" : "wrong") : "",
    );
    discs.forEach((disc, i) => {
      disc.dataset.verdict = verdicts[i];
      disc.textContent = { right: "✓", wrong: "✗" }[verdicts[i]] ?? i + 1;
    });
    again.hidden = !verdicts.every(Boolean);
  });
  return h("div.tx-score", discs, again);
}

// One question: its choices, then how sure (a prediction), or the button that checks and what it says.
function asked(ui, question, number, levels, save) {
  const { key, prompt, choices } = question;
  const box = h("fieldset.tx-question", h("legend", number, marked(prompt)));
  const now = () => ui.get("answers")[key] ?? { choice: -1, sure: 0, checked: false };
  const rows = radios(
    choices.map(({ text }, i) => [`${LETTERS[i]}. `, marked(text)]),
    (i) => save(question, { ...now(), choice: i, checked: false }),
  );
  box.append(...rows.map(({ row }) => row));
  if (levels.length) {
    const sure = radios(
      levels.map((level) => `${level} %`),
      (i) => save(question, { ...now(), sure: levels[i] }),
    );
    const group = h(
      "fieldset.tx-sure",
      h("legend", "How sure are you?"),
      sure.map(({ row }) => row),
    );
    ui.paint(() => {
      rows.forEach(({ input }, i) => {
        input.checked = now().choice === i;
      });
      sure.forEach(({ input }, i) => {
        input.checked = now().sure === levels[i];
        input.disabled = now().choice < 0;
      });
    });
    return [box, group];
  }
  let isAsked = false; // to check what was not chosen
  const press = () => {
    isAsked = now().choice < 0;
    if (isAsked) ui.redraw();
    else save(question, { ...now(), checked: !now().checked });
  };
  const check = pushButton("", press);
  const words = h("p.tx-feedback", { role: "status" });
  ui.paint(() => {
    const { choice, checked } = now();
    rows.forEach(({ input, mark, row }, i) => {
      input.checked = choice === i;
      const shown = checked && choice === i;
      mark.textContent = shown ? (choices[i].right ? "✓ " : "✗ ") : "";
      row.dataset.verdict = shown ? (choices[i].right ? "right" : "wrong") : "";
    });
    const isRight = checked && choices[choice].right;
    check.textContent = isRight ? "Ask again" : checked ? "Try again" : "Check";
    check.classList.toggle("tx-quiet", isRight);
    words.dataset.verdict = checked ? (isRight ? "right" : "wrong") : "";
    const said = checked ? choices[choice].feedback : isAsked && choice < 0 ? "Choose one first." : "";
    if (words.dataset.said !== said) {
      words.dataset.said = said;
      words.replaceChildren(...marked(said));
    }
    words.hidden = !said;
  });
  const program = question.program && h("pre", question.program);
  return [program || null, box, words, h("div.tx-row", check)];
}

// Radio buttons with their labels; the keys of a browser move within the group.
function radios(labels, onpick) {
  const name = uid();
  return labels.map((label, i) => {
    const mark = h("span.tx-mark");
    const input = h("input", { type: "radio", name, onchange: () => onpick(i) });
    return { input, mark, row: h("div.tx-option-row", input, labelled(input, mark, label)) };
  });
}

export default explorer("questions", { build, describe });
