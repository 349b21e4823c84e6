"""The files of exercises: programs run, mistakes are told apart, and what cannot be used is refused."""

import itertools
import tomllib
from importlib.resources import files

import pytest
from sacrebleu.metrics import CHRF

from tinytx_course.exercises.catalogue import Program, parse_catalogue
from tinytx_course.exercises.checking import EXERCISES
from tinytx_course.exercises.judging import read_known
from tinyworld.reviews import write_out


def test_every_program_runs_and_pairs_of_mistakes_do_too(exercise):
    for made in itertools.chain([exercise.solve], *(mistake.wrongs for mistake in exercise.mistakes)):
        if isinstance(made, Program):
            assert callable(made.function)


def test_edits_after_which_a_program_is_right_as_before_are_that(exercise):
    name = exercise.name
    table = tomllib.loads(files("tinytx_course.exercises").joinpath(f"{name}.toml").read_text())
    asked = {"words": "", "program": table["right"], "also": table.pop("also", [])}
    (programs,) = parse_catalogue(name, table | {"together": [], "mistakes": {"m": asked}})["mistakes"]
    for call in (call for seed in range(3) for call in exercise.calls(seed)):
        right, *others = (read_known(exercise, program, call) for program in programs.wrongs)
        assert all(other.agrees_with(right) for other in others)


def test_chrf_is_that_of_sacrebleu_without_words(world):
    reference, n_unlike = CHRF(word_order=0), 0
    texts = [write_out(pair.french, "fr") for pair in world.sentence_pairs(40, seed=3)]
    couples = [*itertools.pairwise(texts), (texts[0], texts[0]), (texts[1][:4], texts[1]), ("oui", "Non !")]
    couples += [call.arguments for call in EXERCISES["chrf"].calls(5)]
    for translation, text in couples:
        due = reference.sentence_score(translation, [text]).score
        assert EXERCISES["chrf"].solve(translation, text) == pytest.approx(due, abs=1e-9)
        n_unlike += 0 < due < 100
    assert n_unlike > 40


TABLE = {
    "signature": "double(x)",
    "lesson": 0,
    "section": "S",
    "title": "twice",
    "level": 1,
    "minutes": 5,
    "outcome": 2,
    "statement": "Write `double(x)`.",
    "hints": ["Add."],
    "rule": "twice x.",
    "right": "def double(x):\n    y = x + x\n    return y\n",
    "together": ["squared"],
    "mistakes": {
        "squared": {"edit": ["x + x", "x * x"], "words": "Squared.", "section": "T", "lesson": 3},
        "negative": {"edit": ["return y", "return -y"], "words": "Negative."},
        "nothing": {
            "program": "def double(x):\n    return x",
            "also": [["= x + x", "= 1 * x"]],
            "like": "squared",
        },
        "both": {"edits": [["x + x", "x + 1"], ["return y", "return y + 1"]], "words": "Both."},
    },
}

STATEMENT = ("title", "level", "minutes", "outcome", "statement", "hints")


def with_mistake(**fields):
    return TABLE | {"mistakes": TABLE["mistakes"] | {"m": {"words": "M."} | fields}}


def test_a_file_as_described_is_read_and_edits_that_do_not_overlap_come_together():
    found = parse_catalogue("double", TABLE)
    assert (found["statement"].minutes, found["statement"].heading) == (5, "### Exercise: twice")
    assert found["solve"](3) == 6 and found["solve"].text == TABLE["right"]
    made = {mistake.slug: [wrong(3) for wrong in mistake.wrongs] for mistake in found["mistakes"]}
    assert made == {
        "squared": [9],
        "negative": [-6],
        "nothing": [3, 3],
        "both": [5],
        "squared+negative": [-9],
        "squared+both": [4],
    }
    like, pair = found["mistakes"][2], found["mistakes"][4]
    assert (like.words, like.section, like.lesson) == ("Squared.", "T", 3)
    assert pair.words == "Two things at once. Squared. And: Negative." and pair.section == "T"


def test_mistakes_are_made_in_other_right_programs_too():
    mistakes = {"squared": TABLE["mistakes"]["squared"], "negative": TABLE["mistakes"]["negative"]}
    about = TABLE | {"also": [["y = x + x", "y = 2 * x"], ["return y", "return 1 * y"]], "mistakes": mistakes}
    texts = {m.slug: [wrong.text for wrong in m.wrongs] for m in parse_catalogue("double", about)["mistakes"]}
    head = "def double(x):\n    y ="
    assert texts == {
        "squared": [f"{head} x * x\n    return y\n", f"{head} x * x\n    return 1 * y\n"],
        "negative": [f"{head} x + x\n    return -y\n", f"{head} 2 * x\n    return -y\n"],
        "squared+negative": [f"{head} x * x\n    return -y\n"],
    }


def test_edits_leave_alone_what_both_sides_share_so_they_come_together():
    text = "def f(q, mask):\n    return q.masked_fill(~mask, -1)\n"
    mistakes = {
        "reversed": {"edit": ["(~mask, -1)", "(mask, -1)"], "words": "R."},
        "filled": {"edit": ["(~mask, -1)", "(~mask, -2)"], "words": "F."},
        "log": {"edit": ["q.masked_fill", "log_q.masked_fill"], "words": "L."},
        "other": {"edit": ["q.masked_fill", "k.masked_fill"], "words": "O."},
    }
    about = TABLE | {"right": text, "mistakes": mistakes, "together": ["reversed", "log"]}
    pairs = {m.slug: m.wrongs[0].text for m in parse_catalogue("f", about)["mistakes"] if "+" in m.slug}
    assert [*pairs] == ["reversed+filled", "reversed+log", "reversed+other", "filled+log"]
    assert "q.masked_fill(mask, -2)" in pairs["reversed+filled"]


@pytest.mark.parametrize(
    ("table", "named"),
    [
        (TABLE | {"hint": "x"}, "hint"),
        ({key: value for key, value in TABLE.items() if key != "rule"}, "got no rule"),
        *((({key: TABLE[key] for key in TABLE if key != gone}), f"no {gone}") for gone in STATEMENT),
        (TABLE | {"lesson": "2"}, "lesson"),
        (TABLE | {"level": 6}, "level"),
        (TABLE | {"minutes": "5"}, "minutes"),
        (TABLE | {"statement": " "}, "' '"),
        (TABLE | {"hints": []}, "hints"),
        (TABLE | {"hints": [3]}, "got 3"),
        (TABLE | {"also": ["def double(x): ..."]}, "edits"),
        (TABLE | {"together": ["cubed"]}, "cubed"),
        (TABLE | {"together": [], "mistakes": {"m": "M."}}, "a table"),
        (with_mistake(edti=["x", "y"]), "edti"),
        (with_mistake(edit=["z", "y"]), "'z' 0 times"),
        (with_mistake(edit=["y", "z"]), "'y' 2 times"),
        (with_mistake(edit=["x + x"]), "pair"),
        (with_mistake(edit=["x + x", "x"], also=[3]), "pair"),
        (with_mistake(edits=[["x + x", "x"], ["x + x", "0"]]), "overlap"),
        (with_mistake(edit=["x + x", "x"], program="def double(x): ..."), "one of"),
        (with_mistake(), "one of"),
        (with_mistake(words=3, edit=["x + x", "x"]), "words"),
        (with_mistake(edit=["x + x", "x"], words="", like="n"), "'n'"),
    ],
)
def test_what_cannot_be_used_is_refused_with_file_and_name(table, named):
    with pytest.raises(ValueError, match="double.toml") as caught:
        parse_catalogue("double", table)
    assert named in str(caught.value) and "\n" not in str(caught.value)
    assert "'m'" in str(caught.value) or "m" not in table["mistakes"]


@pytest.mark.parametrize(
    ("program", "named"),
    [("def double(x) return x", "SyntaxError"), ("def twice(x): ...", "define double"), ("z", "NameError")],
)
def test_a_program_that_does_not_run_or_define_the_function_is_refused_when_it_is_called(program, named):
    found = parse_catalogue("double", with_mistake(program=program))["mistakes"][4]
    with pytest.raises(ValueError, match=r"'m' of double\.toml") as caught:
        found.wrongs[0](1)
    assert named in str(caught.value)
