"""The explorer of the next word: what it lists and sums up, compared with torch and the language."""

import math

import numpy as np

import tinytx_course as course
from tests.course.widgets.conftest import changed

TEXTS = ["", "Bonjour les", "Le roman est", "J'ai adoré ce roman", "Le chat dort"]


def test_the_possible_and_the_impossible_are_those_of_torch_and_the_language(node, live):
    expression = "(({ may, never, model, believed }) => [may, never, [...model], believed])(js.nextOf(get))"
    answers = node("next_word", expression, *({"text": text, "back": 0} for text in TEXTS))
    for text, (may, never, model, believed) in zip(TEXTS[:-1], answers, strict=False):
        ids = live.ids(text)
        truth = np.array(live.exactly.next_token(ids[1:]))
        expected = live.logits(ids)[-1].softmax(-1).numpy()
        np.testing.assert_allclose(model, expected, atol=2e-5)
        assert set(may) == set(np.flatnonzero(truth)) and not truth[never].any()
        assert sorted(expected[never], reverse=True)[0] == max(expected[never[:3]])
        np.testing.assert_allclose(believed, expected[truth == 0].sum(), atol=1e-4)
    unknown = answers[-1]
    assert unknown[1] == [] and len(unknown[0]) == 1994  # without a truth nothing is called impossible


def test_the_surprise_of_a_whole_text_is_that_of_its_tokens_by_both(node, live):
    text = "Bonjour les amis, le roman est"
    ((model, truth),) = node("next_word", "js.surprises(js.readText(get('text')))", {"text": text})
    ids = live.ids(text)
    of_model = -live.logits(ids)[:-1].log_softmax(-1)[range(len(ids) - 1), ids[1:]].numpy()
    np.testing.assert_allclose(model, [0, *of_model.cumsum()], atol=1e-3)
    of_truth = [-math.log(live.exactly.next_token(ids[1 : i + 1])[ids[i + 1]]) for i in range(len(ids) - 1)]
    np.testing.assert_allclose(truth, [0, *np.cumsum(of_truth)], atol=1e-9)


def test_what_is_said_can_be_checked_by_hand(describe):
    make = course.widgets.next_word
    known, past, unknown, begun, empty = describe(
        make("Bonjour les"), changed(make("Bonjour les amis"), back=1), make("Le chat dort"), make("Le rom"),
        make(""),
    )  # fmt: skip
    assert known.startswith("After token 2 “les” model and language share ") and "language 50.0%" in known
    assert "% of what they expect; 2 tokens may follow: “" in known
    assert "To tokens that cannot follow the model gives " in known
    assert known.endswith(" nats.") and "Surprise of the 2 tokens so far: model " in known
    assert "What was written: “amis”, model 49." in past and "After token 2 “les”" in past
    assert (
        unknown.startswith("The language has no word “chat”: from there on") and "language unknown" in unknown
    )
    assert begun.startswith("“rom” begins “roman”") and "you see the model alone" in begun
    assert empty.startswith("At the beginning ") and "Surprise" not in empty
