"""What a verdict says and how it is shown."""

import json
import re

import pytest
import torch
import torch.nn.functional as F

import tinytx as tx
import tinytx_course as course
from tinytx_course.exercises.card import Grid, as_html, as_text
from tinytx_course.exercises.checking import EXERCISES


def test_an_unknown_exercise_is_answered_with_near_names():
    with pytest.raises(ValueError, match="got 'casual_mask'; did you mean 'causal_mask'"):
        course.check("casual_mask", tx.causal_mask)
    with pytest.raises(ValueError, match="there are .*causal_mask, "):
        course.check("zzz", tx.causal_mask)


def lower_triangle(seq_len):
    return torch.ones(seq_len, seq_len).tril() > 0


def window_or_prefix(seq_len, window, prefix):
    age = torch.arange(seq_len)[:, None] - torch.arange(seq_len)
    return (age >= 0) & (age < window) | (torch.arange(seq_len) < prefix)


def test_a_message_says_where_it_differs_and_where_to_read():
    found = course.check("causal_mask", lambda n: torch.ones(n, n).tril(1).bool(), display=False)
    assert found.mistake == "one-ahead"
    assert "causal_mask(2)" in found.message  # with one token there is nothing ahead
    assert "   1   0                  1  [1]" in found.message
    assert 'lesson 02, section "The causal mask"' in found.message


def test_a_loss_that_overflows_passes_with_a_remark():
    def by_hand(logits, labels):
        chosen = labels != -100
        return -logits[chosen].softmax(-1).gather(-1, labels[chosen][:, None]).log().mean()

    def stable(logits, labels):
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    by_hand, stable = (course.check("masked_loss", one, display=False) for one in (by_hand, stable))
    assert by_hand.passed and "logits of 0 and 120" in by_hand.message
    assert stable.passed and "120" not in stable.message


def test_a_variance_that_is_lost_in_rounding_passes_with_a_remark():
    def of_squares(x, gamma, beta, eps):
        mean = x.mean(-1, keepdim=True)
        variance = x.square().mean(-1, keepdim=True) - mean.square()
        return gamma * (x - mean) / (variance + eps).sqrt() + beta

    def centred_first(x, *rest):
        return of_squares(x - x.mean(-1, keepdim=True), *rest)

    lost, exact = (course.check("layer_norm", one, display=False) for one in (of_squares, centred_first))
    assert lost.passed and "rounding" in lost.message
    assert exact.passed and "rounding" not in exact.message


def test_the_rule_comes_with_the_second_failure_and_the_first_says_what_differs(mine):
    rule = f"Expected: {EXERCISES['causal_mask'].rule}"
    course.check("causal_mask", ...)  # a stub is no try
    first, second = (course.check("causal_mask", lambda n: ~tx.causal_mask(n)) for _ in range(2))
    assert rule not in first.message and second.message.startswith(rule)
    assert "exchange True and False" in first.message and "expected (1 = True)    yours (1 = True)" in str(
        first
    )
    assert rule not in course.check("causal_mask", ..., display=False).message


def test_a_call_that_stops_shows_what_it_should_have_given():
    wrong = course.check("causal_mask", lambda n: 1 // 0, display=False).message
    assert "causal_mask(1)" in wrong and "ZeroDivisionError" in wrong and "expected (1 = True)\n   1" in wrong
    pair = course.check("shift_targets", lambda ids: ids @ None, display=False).message
    assert "inputs: expected" in pair and "targets: expected" in pair
    text = course.check("decode_bpe", lambda tokens: tokens + 1, display=False).message
    assert EXERCISES["decode_bpe"].solve(next(iter(EXERCISES["decode_bpe"].calls(0))).arguments[0]) in text


def test_a_verdict_is_true_exactly_when_passed_and_fits_into_json():
    passed = course.check("causal_mask", lower_triangle, display=False)
    failed = course.check("causal_mask", lambda n: ~tx.causal_mask(n), display=False)
    assert passed and not failed
    assert json.loads(json.dumps(failed.to_dict()))["mistake"] == "reversed"
    assert set(failed.to_dict()) == {"exercise", "passed", "attempted", "mistake", "message"}


def test_a_finding_names_the_mistake_or_the_trouble_and_stands_in_the_message():
    def nothing_known(n):
        mask = tx.causal_mask(n)
        mask[:1, 2:] = True
        return mask

    fails = {
        "exchange True and False": lambda n: ~tx.causal_mask(n),
        "ZeroDivisionError": lambda n: 1 // 0,
        "The shape": lambda n: tx.causal_mask(n)[None, None, None],
    }
    for words, function in fails.items():
        found = course.check("causal_mask", function, display=False)
        assert words in found.finding and found.finding in found.message, found.finding
    assert course.check("causal_mask", nothing_known, display=False).finding == ""
    assert course.check("causal_mask", lower_triangle, display=False).finding == ""
    nan = course.check("mean_pool", lambda h, m: h.sum(1) * float("nan"), display=False)
    assert nan.mistake == "not-a-number" and nan.finding.startswith("There is NaN")


def test_a_card_marks_cells_without_colour_and_escapes_what_it_shows():
    html = as_html("<b>", ("a < b", (Grid("got", (("1", "<i>"),), frozenset({(0, 1)})),)))
    assert "<script" not in html and "#" not in html and "rgb" not in html and "<i>" not in html
    assert "currentColor;font-weight:bold'>&lt;i&gt;" in html
    assert "[<i>]" in as_text(((Grid("got", (("1", "<i>"),), frozenset({(0, 1)})),),))


def test_outside_a_notebook_a_verdict_is_printed_unless_display_is_false(capsys):
    course.check("causal_mask", lower_triangle)
    assert capsys.readouterr().out.startswith("✓ causal_mask: passed\n")
    course.check("causal_mask", lower_triangle, display=False)
    assert capsys.readouterr().out == ""


CHECK = "course.check('causal_mask', lambda n: torch.ones(n, n).tril() > 0)"
CELLS = ["import torch\nimport tinytx_course as course", CHECK, f"v = {CHECK}", f"v = {CHECK}\nv", "v"]


@pytest.mark.slow
def test_in_a_notebook_a_card_is_shown_once_whichever_way_it_is_written():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    endless = "def f(n):\n    while True:\n        pass\nfrom tinytx_course.exercises import checking\n"
    endless += "checking.TIME_LIMIT = 0.3\ncourse.check('causal_mask', f)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in [*CELLS, endless]])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    _, *shown, stopped = ([out for out in cell.outputs if "data" in out] for cell in notebook.cells)
    assert [len(outputs) for outputs in shown] == [1, 1, 1, 1]
    assert all("causal_mask: passed" in outputs[0]["data"]["text/html"] for outputs in shown)
    text = stopped[0]["data"]["text/plain"]
    assert "still running" in text and "in your line" in text


def test_the_edge_of_a_card_says_what_its_sign_says_and_a_passed_one_what_comes_next(mine):
    passed = course.check("causal_mask", lower_triangle, display=False)
    failed = course.check("causal_mask", lambda n: ~tx.causal_mask(n), display=False)
    edges = [re.search(r"border-left:8px solid (#\w+)", one._repr_html_())[1] for one in (passed, failed)]
    assert len(set(edges)) == 2
    assert as_html("h", ()).count("dashed") == 1 and "border-left" not in as_html("h", ())
    shown = course.check("causal_mask", lower_triangle)
    n_exercises = [one.lesson for one in EXERCISES.values()].count(2)
    assert f"1 of {n_exercises} in lesson 02. Next: `window_prefix_mask`, in the core." in shown.message
    shown = course.check("window_prefix_mask", window_or_prefix)
    assert f"The core of lesson 02 is done. Further, {n_exercises - 2} more: `padding" in shown.message


def test_an_argument_given_back_is_refused_and_named(exercise):
    name, (first, *_) = exercise.name, exercise.parameters
    namespace = {}
    exec(f"def {name}({', '.join(exercise.parameters)}):\n    return {first}", namespace)
    verdict = course.check(name, namespace[name], display=False)
    assert not verdict.passed and verdict.mistake is not None
    if verdict.mistake == "argument-returned":
        assert f"This is `{first}` as it was given" in str(verdict)


@pytest.mark.parametrize("entry", [torch.ones(3), torch.ones(3).numpy(), [torch.ones(2)], object()])
def test_lists_of_anything_are_judged_and_nothing_is_raised(entry):
    for name in ("padded_cost", "encode_bpe", "merge_pair", "longest_chain"):
        parameters = ", ".join(EXERCISES[name].parameters)
        longest = EXERCISES[name].parameters[-1 if name == "encode_bpe" else 0]
        namespace = {"entry": entry}
        exec(f"def {name}({parameters}):\n    return [entry for _ in {longest}]", namespace)
        assert not course.check(name, namespace[name], display=False).passed
