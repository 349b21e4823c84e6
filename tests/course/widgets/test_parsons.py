"""Parsons problems: the right arrangement passes its check, and only that; the page names the mistake."""

import itertools

import pytest

import tinytx_course as course
from tests.course.widgets.conftest import changed
from tinytx_course.exercises.catalogue import NAMES
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.rungs import program_lines
from tinytx_course.widgets.parsons import parse_problem, problem_names, read_problem

PROBLEMS = [read_problem(name) for name in problem_names()]
each_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
DISTRACTORS = [(problem, wrong) for problem in PROBLEMS for wrong in problem.distractors]


def passes(problem, program):
    """Run a program as the learner's, then the check of the exercise."""
    space = dict(NAMES)
    try:
        exec(program, space)
    except Exception:  # whatever a wrong program does, it does not pass
        return False
    return course.check(problem.name, space.get(problem.name), display=False).passed


def assembled(problem, wrong=None):
    """The program, with one wrong line in place of its right one if asked for."""
    lines = list(problem.lines)
    if wrong is not None:
        right = lines[wrong.instead_of]
        lines[wrong.instead_of] = right[: len(right) - len(right.lstrip())] + wrong.line
    return "\n".join(lines)


@each_problem
def test_the_right_lines_pass(problem):
    assert passes(problem, assembled(problem))


@pytest.mark.parametrize(
    ("problem", "wrong"), DISTRACTORS, ids=[f"{p.name}-{w.instead_of}" for p, w in DISTRACTORS]
)
def test_one_wrong_line_is_enough_to_fail(problem, wrong):
    """Most make the program of a known mistake, which `test_proof` has seen refused."""
    program = assembled(problem, wrong)
    known = (way for mistake in EXERCISES[problem.name].mistakes for way in mistake.wrongs)
    assert program.splitlines() in map(program_lines, known) or not passes(problem, program)


@each_problem
def test_neighbours_may_change_places_exactly_where_the_problem_says_so(problem):
    for first, second in itertools.pairwise(range(len(problem.lines))):
        lines = list(problem.lines)
        lines[first], lines[second] = lines[second], lines[first]
        free = problem.slots[first] == problem.slots[second]
        free |= bool(problem.free) and second in problem.free[first]
        assert passes(problem, "\n".join(lines)) == free, lines[second]


@each_problem
def test_its_words_are_sentences_and_it_is_shown_shuffled(problem):
    for text in (problem.task, *(wrong.why for wrong in problem.distractors)):
        assert text.endswith((".", ".)")) and 4 <= len(text.split()) <= 70, text
    assert problem.shuffled() != sorted(problem.shuffled()) == list(range(len(problem.lines)))
    explorer = course.parsons(problem.name)
    first = [block["wrong_first"] for block in explorer.blocks if block["wrong"]]
    assert 0 <= 2 * sum(first) - len(first) <= 1  # the upper line of a pair is wrong half of the time
    assert all(block["right"] in explorer.summary() for block in explorer.blocks)


# ---- what the page says


def solved(name, **state):
    explorer = course.parsons(name)
    indents = [block["indent"] for block in explorer.blocks]
    right = {"order": list(range(len(indents))), "indents": indents, "picked": [0] * len(indents)}
    return changed(explorer, **right, report="check", **state)


def verdicts(node, *explorers):
    return node("parsons", "js.verdictOf(get)", *explorers)


def test_the_page_accepts_the_right_arrangement_of_every_problem(node, describe):
    explorers = [solved(problem.name) for problem in PROBLEMS]
    for explorer, verdict, said in zip(
        explorers, verdicts(node, *explorers), describe(*explorers), strict=True
    ):
        assert verdict["mistake"] == "" and said.startswith("Right:"), (explorer.title, verdict)


def test_the_page_says_which_pair_is_wrong_and_why(node):
    explorers = []
    for problem, wrong in DISTRACTORS:
        picked = [int(number == wrong.instead_of) for number in range(len(problem.lines))]
        explorers.append(changed(solved(problem.name), picked=picked))
    for verdict, (_, wrong) in zip(verdicts(node, *explorers), DISTRACTORS, strict=True):
        assert (verdict["mistake"], verdict["line"]) == ("pair", wrong.instead_of + 1)
        assert wrong.why in verdict["text"] and wrong.line in verdict["text"]


def moved(explorer, number, to):
    order = [other for other in explorer.order if other != number]
    return changed(explorer, order=[*order[:to], number, *order[to:]])


def test_the_page_names_the_one_line_that_is_out_of_order_and_the_way_it_must_go(node):
    early, late = moved(solved("greedy_decode"), 6, 2), moved(solved("greedy_decode"), 1, 5)
    first, second = verdicts(node, early, late)
    assert (first["mistake"], first["line"]) == ("order", 3) and "“break”, comes too early" in first["text"]
    assert (second["mistake"], second["line"]) == ("order", 6) and "comes too late" in second["text"]
    assert "ids = [bos_id]" in second["text"]


def test_lines_that_do_not_need_each_other_may_be_far_apart(node):
    name, swapped = "multi_head_attention", moved(solved("causal_mask"), 3, 2)
    late, early = moved(solved(name), 5, 6), moved(solved(name), 7, 5)  # v after scores, weights before v
    assert [block["right"][:8] for block in late.blocks[5:8]] == ["v = spli", "scores =", "weights "]
    assert [one["mistake"] for one in verdicts(node, swapped, late, early)] == ["", "", "order"]


def test_rows_with_the_same_text_are_one_as_good_as_the_other(node):
    explorer = solved("causal_mask")
    same = {1: "x = 1", 4: "x = 1"}
    explorer.blocks = [
        block | {"right": same.get(i, block["right"])} for i, block in enumerate(explorer.blocks)
    ]
    explorer.order = [0, 4, 2, 3, 1]
    assert verdicts(node, explorer)[0]["mistake"] == ""


def test_the_page_names_a_wrong_indentation_last_and_an_open_choice_first(node):
    explorer = solved("greedy_decode")
    right = explorer.indents
    left, deep = (changed(solved("greedy_decode"), indents=[*right[:-1], level]) for level in (0, 2))
    both = moved(changed(solved("greedy_decode"), indents=[0] * 8), 0, 3)
    open_choice = moved(changed(solved("greedy_decode"), picked=[0, -1, 1, 0, 0, 0, 0, 0]), 0, 3)
    found = verdicts(node, left, deep, both, open_choice)
    assert [one["mistake"] for one in found] == ["indent", "indent", "order", "open"]
    assert [one["line"] for one in found] == [8, 8, 4, 1]
    assert "left" in found[0]["text"] and "right: its indentation is 2 levels" in found[1]["text"]


def test_the_page_says_where_a_moved_line_is_and_what_is_left_to_choose(describe):
    start, held = course.parsons("causal_mask"), course.parsons("causal_mask")
    held.held = held.start[1]
    shifted = changed(
        course.parsons("causal_mask"), held=held.start[0], order=held.start[1:] + held.start[:1]
    )
    first, same, moved = describe(start, held, shifted)
    assert first == same == "5 lines to be ordered and indented. Pairs to choose from: 3."
    assert moved.startswith("Line 5 of 5: “") and moved.endswith(
        "indented by 0 levels. Pairs to choose from: 3."
    )


# ---- data that cannot be used

TABLE = {
    "title": "T",
    "lesson": 2,
    "task": "Do it.",
    "lines": ["def f(x):", "    y = x", "    return y"],
    "distractors": [{"line": "    return x", "instead_of": "    return y", "why": "It is not."}],
}


def test_a_table_as_described_is_read():
    problem = parse_problem("t", TABLE | {"any_order": [["y = x", "    return y"]]})
    assert problem.slots == (0, 1, 1)
    assert assembled(problem, problem.distractors[0]) == "def f(x):\n    y = x\n    return x"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"lesson": "2"}, "lesson"),
        ({"hint": "x"}, "hint"),
        ({"lines": ["def f(x):", "   y = x", "    return y"]}, "4 spaces"),
        ({"lines": ["def f(x): return x"]}, "got 1"),
        ({"any_order": [["def f(x):", "    return y"]]}, "neighbouring"),
        ({"distractors": []}, "distractor"),
        ({"distractors": [{"line": "    return y", "instead_of": "    y = x", "why": "w"}]}, "'return y'"),
        ({"distractors": [{"line": "    return 1", "instead_of": "    y = 2", "why": "w"}]}, "'    y = 2'"),
        ({"distractors": [{"line": "    return 1", "instead_of": "    y = x"}]}, "why"),
        ({"distractors": [{"line": one, "instead_of": "y = x", "why": "w"} for one in "ab"]}, "'b'"),
    ],
)
def test_a_table_against_the_rules_is_refused_and_the_field_named(change, named):
    with pytest.raises(ValueError, match="t.toml") as caught:
        parse_problem("t", TABLE | change)
    assert named in str(caught.value)


@pytest.mark.parametrize("slug", ["scale-after-softmax", "no-such-mistake"])
def test_a_mistake_that_does_not_change_one_line_is_no_distractor(slug, monkeypatch):
    puzzle = EXERCISES["attention"].puzzle | {"distractors": [{"mistake": slug}]}
    monkeypatch.setitem(vars(EXERCISES["attention"]), "puzzle", puzzle)
    with pytest.raises(ValueError, match=f"attention.toml must change one line, got '{slug}'"):
        read_problem("attention")


@pytest.mark.parametrize(
    "state",
    [{"order": [0, 0, 1, 2, 3]}, {"indents": [0, 0, 0, 0, 3]}, {"picked": [0, 2, 0, 0, 0]}, {"picked": [0]}],
)
def test_state_that_no_reader_can_make_is_refused(state):
    ((name, _),) = state.items()
    with pytest.raises(ValueError, match=name):
        course.parsons("causal_mask").set_state(state)
