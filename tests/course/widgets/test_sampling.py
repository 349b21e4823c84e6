"""The explorer of sampling: what its JavaScript computes, compared with the package and the language."""

import json

import numpy as np
import torch

import tinytx_course as course
from tests.course.widgets.conftest import UNWRITTEN, changed, close
from tinytx.generate import next_token_probs

STAGES = """(() => { const logits = Float64Array.from(get("logits"), (x) => x ?? -Infinity);
  const s = js.stagesOf(logits, get("settings"));
  return [s.model, s.heated, s.final, s.left, s.order, s.byTopK, s.byTopP,
    get("n") ? js.drawsOf(s, get("n"), get("seed")) : null]; })()"""


def of_logits(logits, temperature=1.0, top_k=None, top_p=1.0, n=0, seed=0):
    """Return a state of logits, -inf as null, and settings."""
    values = [None if x == -np.inf else float(x) for x in logits]
    settings = {"temperature": temperature, "top_k": top_k or len(values), "top_p": top_p}
    return {"logits": values, "settings": settings, "n": n, "seed": seed}


def random_state(seed):
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 40))
    logits = random.normal(scale=3, size=size)
    logits[1:][random.random(size - 1) < 0.2] = -np.inf
    top_p = float(random.uniform(0.01, 1)) if seed % 3 else 1.0
    return of_logits(logits, float(random.uniform(0.1, 5)), int(random.integers(1, size + 1)), top_p)


def test_every_stage_is_what_the_package_draws_from(node):
    states = [random_state(seed) for seed in range(40)]
    states.append(of_logits(np.log([0.5, 0.5]), top_p=0.5))  # the first reaches it exactly
    found = node("sampling", STAGES, *states)
    for state, (model, heated, final, left, order, by_top_k, by_top_p, _) in zip(states, found, strict=True):
        logits = torch.tensor([-np.inf if x is None else x for x in state["logits"]], dtype=torch.float64)
        expected = next_token_probs(logits, *state["settings"].values())
        close(model, logits.softmax(-1))
        close(heated, (logits / state["settings"]["temperature"]).softmax(-1))
        close(final, expected, atol=1e-6, rtol=1e-5)
        close(left, expected > 0)
        assert order == logits.argsort(descending=True, stable=True).tolist()
        best, possible = order[: state["settings"]["top_k"]], logits > -torch.inf
        close(by_top_k, possible & ~torch.isin(torch.arange(len(logits)), torch.tensor(best)))
        close([k or p for k, p in zip(by_top_k, by_top_p, strict=True)], possible & (expected == 0))


def test_draws_follow_the_distribution_and_repeat(node):
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    states = [of_logits(logits, top_k=3, n=n, seed=seed) for n, seed in ((10_000, 3), (100, 3), (100, 4))]
    many, few, other = (answer[-1] for answer in node("sampling", STAGES, *states))
    shares = np.bincount(many, minlength=4) / 10_000
    np.testing.assert_allclose(shares[:3] * 0.95, [0.5, 0.3, 0.15], atol=0.015)
    assert shares[3] == 0
    assert few == many[:100] and few != other


def test_the_text_of_the_reader_is_followed_through_the_shipped_model(node, live):
    explorer = changed(course.widgets.sampling("C'est"), temperature=0.7, top_k=2000, top_p=0.9)
    ((final, truth),) = node("sampling", "(({ final, truth }) => [final, truth])(js.sampled(get))", explorer)
    ids = live.ids("C'est")
    close(final, next_token_probs(live.logits(ids)[-1], 0.7, None, 0.9), atol=2e-5, rtol=1e-3)
    np.testing.assert_allclose(truth, live.exactly.next_token(ids[1:]), atol=1e-9)


def test_three_texts_are_written_token_by_token_and_what_the_language_forbids_is_found(node, live):
    explorer = changed(course.widgets.sampling("Le roman"), top_k=2000, top_p=1.0)
    step = "(() => { const now = { ...get('all') }, g = (key) => now[key];"
    step += (
        " for (let i = 0; i < 6; i++) now.written = js.writeOn(g); return [now.written, js.textsOf(g)]; })()"
    )
    ((written, texts),) = node("sampling", step, {"all": explorer.state()})
    world = live.world
    assert all(1 <= len(ids) <= 6 for ids in written) and not {*sum(written, [])} & {*UNWRITTEN}
    for ids, text in zip(written, texts, strict=True):
        words = world.split(live.tokenizer.decode(ids))
        assert [word for word, _ in text["words"]] == words
        possible = [bool(_possible(world, ["Le", "roman", *words[: i + 1]])) for i in range(len(words))]
        assert [fine for _, fine in text["words"]][: sum(possible) + 1] == possible[: sum(possible) + 1]
    ids = json.dumps([live.tokenizer.encode(word) for word in ("amis", "chats")])
    expression = f"{ids}.map((one) => js.textsOf((key) => key === 'text' ? 'Bonjour les' : [one, one, one]))"
    (((fine, *_), (strange, *_)),) = node("sampling", expression)
    assert fine["words"] == [["amis", True]] and [allowed for _, allowed in strange["words"]] == [False]


def _possible(world, words):
    try:
        return world.next_word(words)
    except ValueError:
        return {}


def test_what_is_said_can_be_checked_by_hand(describe):
    def uncut(temperature, **state):
        off = {"temperature": temperature, "top_k": 2000, "top_p": 1.0}
        return changed(course.widgets.sampling("Bonjour"), **off | state)

    plain, cut, strange, hot, drawn = describe(
        uncut(1.0),
        uncut(1.0, top_k=1, n_draws=3, stage=4),
        course.widgets.sampling("Le chat"),
        *(uncut(2.0, stage=stage) for stage in (0, 3)),
    )
    as_the_model_says = [text.split(", as the model says ")[1].split(",")[0] for text in (plain, hot, drawn)]
    assert len(set(as_the_model_says)) == 1 and f"“les” {as_the_model_says[0]}, as the model" in plain
    assert hot.startswith(f"Stage 1, model: “les” leads with {as_the_model_says[0]}.\n")
    assert drawn.startswith("Stage 4, to 100%: “les” stays at ") and " No token is cut.\n" in drawn
    assert hot.split("\n")[1] == drawn.split("\n")[1]
    assert f"“les” {as_the_model_says[0]}, as the model" not in hot
    assert plain.startswith("Stage 1, model: ") and " cut" not in plain.split("\n")[0]
    assert "\nAfter “Bonjour”: temperature 1.00, top-k off, top-p off. " in plain
    assert "in the language 66.7%" in plain and plain.endswith("Nothing was drawn yet.")
    assert " Of 1,994 tokens top-k cuts 1,993 and top-p 0: 1 is left, with " in cut
    assert ", scaled to 100%. The last was “les”.\n" in cut and "of 3 draws." in cut
    assert strange.startswith("“chat” is not in the small French of this model, which reads it in ")
    assert "in the language" not in strange


def test_what_is_nearly_nothing_or_all_is_not_written_as_such(describe):
    cold = changed(course.widgets.sampling("Le livre"), temperature=0.1, stage=1)
    assert "to >99.9%." in describe(cold)[0]
    assert "100.0%" not in describe(cold)[0].split("\n")[0]
